"""Makes inputs of a target out of its corpus: hypothesis chooses the mutations, so what fails is made small."""

from hypothesis import strategies as st

from bench.fuzz.target import Target


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Inputs of the corpus with up to eight mutations, and now and then bytes or words alone."""
    kept = [data for _, data in target.corpus()]
    words = st.sampled_from([*target.words]) | st.binary(max_size=4)

    @st.composite
    def mutated(draw: st.DrawFn) -> bytes:
        data = draw(st.sampled_from(kept))
        for _ in range(draw(st.integers(0, 8))):
            at = draw(st.integers(0, len(data)))
            match draw(st.integers(0, 4)):
                case 0:  # a word is put in
                    data = data[:at] + draw(words) + data[at:]
                case 1:  # a piece is taken out
                    data = data[:at] + data[at + draw(st.integers(1, 40)) :]
                case 2:  # a word takes the place of a piece
                    data = data[:at] + draw(words) + data[at + draw(st.integers(1, 12)) :]
                case 3:  # a piece is there twice
                    data = data[:at] + data[max(0, at - draw(st.integers(1, 120))) :]
                case _:  # another input goes on from here
                    other = draw(st.sampled_from(kept))
                    data = data[:at] + other[draw(st.integers(0, len(other))) :]
        return data[:20_000]

    return mutated() | mutated() | mutated() | st.lists(words, max_size=12).map(b"".join)
