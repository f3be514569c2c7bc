"""The ledger: two histories with the same beginning, each of which knows only its own texts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.pages.ledger import Ledger, LedgerEntry

LINES = ["a line", "another line", "the third line", "}", "one more"]
TEXTS = st.lists(
    st.tuples(st.lists(st.none() | st.sampled_from(LINES), max_size=5), st.booleans(), st.sampled_from([None, "rows"])),
    max_size=4,
)


def with_texts(ledger: Ledger, texts: list[tuple[list[str | None], bool, str | None]]) -> Ledger:
    for lines, titled, like in texts:
        whole = "\n".join(line or "" for line in lines) if like else None
        entry = LedgerEntry(ledger.next_title if titled else "", tuple(lines), whole=whole, like=like)
        ledger = ledger.with_text(entry)
    return ledger


def known(ledger: Ledger) -> list[object]:
    places = [list(ledger.places(line)) for line in LINES]
    same = [ledger.same(line) for line in LINES]
    return [places, same, ledger.like("rows"), ledger.held(LINES), [ledger.labelled(f"R{n}") for n in range(9)]]


@given(TEXTS, TEXTS, TEXTS)
@settings(deadline=None, max_examples=300)
def test_a_history_knows_what_it_would_know_if_no_other_had_gone_on_from_its_beginning(
    beginning: list[tuple[list[str | None], bool, str | None]],
    one: list[tuple[list[str | None], bool, str | None]],
    other: list[tuple[list[str | None], bool, str | None]],
) -> None:
    shared = with_texts(Ledger(), beginning)

    ones, others = with_texts(shared, one), with_texts(shared, other)

    assert known(ones) == known(with_texts(Ledger(), [*beginning, *one]))
    assert known(others) == known(with_texts(Ledger(), [*beginning, *other]))
    assert known(shared) == known(with_texts(Ledger(), beginning))
