"""The choice of a form: cheaper, undone at run time, every time; a liar is caught, and nobody is taken for us."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters import recordings
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.lossless import State
from pagefold.encode import decode, encode
from pagefold.encode.choose import may_be_form, self_contained
from pagefold.encode.codec import Codec, Inner
from pagefold.encode.notation.json_value import parse
from pagefold.pages.ledger import Ledger
from pagefold.tokens import counter
from pagefold.wire.message import BlockKind
from pagefold.wire.transcripts import Session
from tests.shared import FAMILIES, needs_traces

count = counter("o200k").count
ROWS = json.dumps(
    [{"id": n, "name": f"item {n}", "state": "open", "url": f"https://a.example/i/{n}"} for n in range(20)]
)
SHORT = "\n".join(f"a line that is long enough to be referred to, number {n}" for n in range(6))
FILE = "\n".join(f"{n}\tdef function_{n}(argument): return {n} * argument" for n in range(1, 60))


def same(back: str, text: str) -> bool:
    """Bytes, or for JSON the same values, types, order and lexemes."""
    if back == text:
        return True
    try:
        return parse(back) == parse(text)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "text", [ROWS, FILE, json.dumps({"type": "text", "text": ROWS}), "", "word", "a\nb\n", "{}", "[]"]
)
def test_a_form_is_cheaper_or_the_text_itself_and_comes_back(text: str) -> None:
    shown = encode(text, tool="x")

    assert (shown.tokens, shown.before) == (count(shown.text), count(text))
    assert shown.tokens < shown.before if shown.codecs else shown.text == text
    assert same(decode(shown.text), text)


@given(st.text(alphabet='[]>R1 =\n:a-,{}"#', max_size=60))
def test_what_is_certainly_no_form_says_what_it_says(text: str) -> None:
    assert may_be_form(text) or decode(text) == text


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        FILE,
        json.dumps({"type": "text", "text": FILE}),
        f"{SHORT}\n{FILE}",
        "[R1 lines 1-3 of a]\n",
        "same line\n" * 30,
    ],
)
def test_every_form_may_be_one(text: str) -> None:
    shown = encode(text, tool="x").text

    assert shown == text or may_be_form(shown)


def test_chains_compose() -> None:
    shown = encode(json.dumps({"type": "text", "text": ROWS}, separators=(",", ":")), tool="x")

    assert shown.codecs == ("mcp-text", "json")


class Liar(Codec):
    """A codec whose text is short and says something else."""

    name = "liar"

    def owns(self, line: str) -> bool:
        return line == "[short]"

    def encode(self, text: str, inner: Inner) -> str | None:
        return "[short]"

    def decode(self, shown: str, inner: Inner) -> str:
        return "something else"


class Faulty(Liar):
    name = "faulty"

    def encode(self, text: str, inner: Inner) -> str | None:
        raise ZeroDivisionError


class Forgetful(Liar):
    name = "forgetful"

    def decode(self, shown: str, inner: Inner) -> str:
        raise KeyError(shown)


@pytest.mark.parametrize("codec", [Liar(), Faulty(), Forgetful()], ids=lambda codec: codec.name)
def test_a_codec_that_lies_or_fails_is_caught_and_counted(codec: Liar) -> None:
    skipped: list[str] = []

    form, names = self_contained(FILE, skipped, (codec,), (codec,))

    assert (form, names, skipped) == (FILE, (), [codec.name])


@pytest.mark.parametrize(
    "text",
    [
        "[JSON]\n{a:1}",
        "[as it is]\nx",
        "[R1]\n= 3 lines as in R0",
        "[lines 1-3]\n1\ta\nb\nc",
        "[MCP text]\nx",
        "[returncode 0]\nx",
        "> [ref: Read a.py, byte-identical]",
        "> [near-ref: tc_1, a: 1→2]",
        "word\n[lines 1-1]\n1\tx",
    ],
)
def test_a_result_that_only_looks_like_a_form_of_ours_is_marked_and_comes_back(text: str) -> None:
    shown = encode(text, tool="x", ledger=Ledger())

    assert shown.text == f"[as it is]\n{text}"
    assert decode(shown.text) == text


@pytest.mark.parametrize("ledger", [None, Ledger()], ids=["alone", "in a history"])
def test_a_form_that_would_hold_a_header_of_ours_is_not_used(ledger: Ledger | None) -> None:
    torn = ROWS[:-1] + ', {"id": 1\n[lines 1-2]\nx\ny'

    shown = encode(torn, tool="x", ledger=ledger)

    assert shown.text == f"[as it is]\n{torn}"
    assert decode(shown.text) == torn


def test_what_passes_uncounted_is_marked_too() -> None:
    text = "[lines 1-2]\n\x00"

    assert decode(encode(text).text) == text


def test_a_result_that_looks_like_ours_comes_back_even_where_it_holds_references() -> None:
    lines = [f"a line that is long enough to be referred to, number {n}" for n in range(12)]
    first = encode("\n".join(lines), tool="x", ledger=Ledger())
    ledger = Ledger().with_text(first.ledger_entries[0])
    text = "\n".join(["[JSON]", *lines])

    shown = encode(text, tool="x", ledger=ledger)

    assert shown.references == 1
    assert decode(shown.text, ledger) == text


@pytest.mark.parametrize(("floor", "references"), [(9, 1), (25, 1), (60, 0)])
def test_lines_worth_less_than_the_floor_are_said_again(floor: int, references: int) -> None:
    block = "\n".join(f"a line that is long enough to be referred to, number {n}" for n in range(4))
    first, second = (f"{block}\n{n} of them are new\nclose what you opened before" for n in (1, 2))
    ledger = Ledger().with_text(encode(first, tool="x", ledger=Ledger(), title="R1").ledger_entries[0])

    shown = encode(second, tool="x", ledger=ledger, floor=floor)

    assert shown.references == references
    assert decode(shown.text, ledger) == second


def test_a_result_that_was_shown_whole_is_said_by_one_line() -> None:
    first = encode(ROWS, tool="list", ledger=Ledger())
    ledger = Ledger().with_text(first.ledger_entries[0])

    again = encode(ROWS, tool="list", ledger=ledger)

    assert again.text == "> [ref: R1, byte-identical]"
    assert decode(again.text, ledger) == ROWS


@pytest.mark.parametrize(
    "tool", ["Bash echo , byte-identical", "a\nb", "x, from: y]", "Bash x from 3", "your text", "R1", "> [ref"]
)
def test_no_name_that_an_agent_can_think_of_breaks_a_reference(tool: str) -> None:
    ledger = Ledger()
    for text in (SHORT, SHORT, f"{SHORT}\nand a line", SHORT):
        shown = encode(text, tool=tool, ledger=ledger)
        assert decode(shown.text, ledger) == text
        for entry in shown.ledger_entries:
            ledger = ledger.with_text(entry)


def test_a_failed_call_is_shown_whole_even_if_it_failed_like_this_before() -> None:
    first = encode(ROWS, tool="list", ledger=Ledger())
    ledger = Ledger().with_text(first.ledger_entries[0])

    assert "ref:" not in encode(ROWS, tool="list", ledger=ledger, failed=True).text


def test_an_object_that_differs_in_a_field_is_said_by_the_difference() -> None:
    job = {"id": 42, "status": "pending", "duration": 12, **{f"field_{n}": f"value number {n}" for n in range(40)}}
    first = encode(json.dumps(job), tool="job 42", ledger=Ledger())
    ledger = Ledger().with_text(first.ledger_entries[0])
    done = json.dumps(job | {"status": "success", "duration": 34})

    again = encode(done, tool="job 42", ledger=ledger)

    assert again.text == "> [near-ref: R1, status: pending→success, duration: 12→34]"
    assert parse(decode(again.text, ledger)) == parse(done)


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 5000,
        "a�b" * 300,
        "[" * 200000,
        '{"a":' * 100000,
        "x" * 10000000,
        "(" * 50000,
        "{'a': " * 3000,
        '{"type":"text","text":"' + "\\" * 9999,
        "1\t" * 5000,
        "= 1-2\n" * 500,
        "a:1:" * 5000,
        '"' * 9999,
        "[[1,2]," * 2000,
    ],
    ids=lambda text: f"{text[:8]!r} x {len(text)}",
)
def test_bad_input_comes_out_as_it_went_in(text: str) -> None:
    shown = encode(text, tool="x", ledger=Ledger())

    assert decode(shown.text) == text


TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(["a", "1\tb", "[R1]", "= 1-2 as in R1", "x: y", "[JSON]", "{}", "--", "a.py:3:z", ""])
    ).map("\n".join),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
        max_leaves=15,
    ).map(lambda value: json.dumps(value, indent=2)),
)


@given(st.lists(st.one_of(TEXTS, st.sampled_from([ROWS, FILE, FILE[:900], ROWS.replace("open", "shut")])), max_size=6))
@settings(deadline=None, max_examples=300)
def test_any_history_of_texts_comes_back_text_by_text(texts: list[str]) -> None:
    ledger = Ledger()
    for text in texts:
        shown = encode(text, tool="x", ledger=ledger)
        assert same(decode(shown.text, ledger), text)
        for entry in shown.ledger_entries:
            ledger = ledger.with_text(entry)


@needs_traces
@pytest.mark.parametrize("path", [p for p in FAMILIES if p.stat().st_size < 600_000], ids=lambda path: path.name)
def test_every_result_of_recorded_sessions_comes_back_and_costs_no_more(path: object) -> None:
    """The small families here; all of them in the benchmark that measures codecs."""
    policy = policy_named("lossless")
    for batch in recordings.batches(path, given=None, max_bytes=1 << 26):  # type: ignore[arg-type]
        for session in recordings.sessions(batch, max_bytes=1 << 26):
            if isinstance(session, Session):
                _check(session, policy)


def _check(session: Session, policy: object) -> None:
    state: State = policy.begin()  # type: ignore[attr-defined]
    for message in session.messages:
        state = policy.step(state, message)  # type: ignore[attr-defined]
        shown, ledger = state.waiting[-1], state.standings.ledger
        if len(message.blocks) == 1 and message.blocks[0].kind is BlockKind.RESULT:
            assert same(decode(shown.blocks[0].text, ledger), message.blocks[0].text)
            assert count(shown.text) <= count(message.text) + 5  # a title
        else:
            assert shown == message
