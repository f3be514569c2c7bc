"""Numbered files, frames, context, JSON and references: each looks like this, and gives back what it was given."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode import delta, encode
from pagefold.encode.codecs.envelopes import ENVELOPES
from pagefold.encode.codecs.json_codec import JsonCodec
from pagefold.encode.codecs.numbered import NumberedCodec
from pagefold.encode.notation.json_value import LAYOUTS, Layout, parse
from pagefold.pages.ledger import Ledger, LedgerEntry

numbered = NumberedCodec()


def file(first: int, count: int, style: str = "{}\t", text: str = "line") -> str:
    return "\n".join(f"{style.format(number)}{text} {number}" for number in range(first, first + count))


def test_a_numbered_file_keeps_the_first_and_every_tenth_number() -> None:
    shown = numbered.encode("1\ta\n2\tb\n3\tc\n4\td\n5\te\n6\tf\n7\tg\n8\th\n9\ti\n10\tj\n11\tk", str)

    assert shown == "[lines 1-11]\n1\ta\nb\nc\nd\ne\nf\ng\nh\ni\n10\tj\nk"


@pytest.mark.parametrize(
    ("style", "header"),
    [
        ("{}\t", "[lines 95-106]"),
        ("{:>6}→", "[lines 95-106→]"),
        ("{:>6}\t", "[lines 95-106 set 6 wide]"),
        ("{}: ", "[lines 95-106: ]"),
        ("{}:", "[lines 95-106:]"),
    ],
)
def test_every_way_of_writing_numbers_comes_back(style: str, header: str) -> None:
    text = file(95, 12, style)

    shown = numbered.encode(text, str)

    assert shown is not None
    assert shown.split("\n")[0] == header
    assert numbered.decode(shown, str) == text


def test_what_stands_around_numbered_lines_stays_and_gaps_begin_a_new_run() -> None:
    text = f"before\n{file(1, 6)}\n...\n{file(40, 6)}\n\n<note>\nafter"

    shown = numbered.encode(text, str)

    assert shown is not None
    assert "[lines 1-6]" in shown
    assert "[lines 40-45]" in shown
    assert numbered.decode(shown, str) == text


def test_a_text_that_holds_a_header_of_ours_is_left_alone() -> None:
    assert numbered.encode(f"[lines 1-4]\n{file(1, 6)}", str) is None


LINES = st.sampled_from(
    ["", "x", "\ty", "1\tz", "12", "3\t", "10\tq", "[lines 1-3]", "= 1-2", "[R1]", "  4→w", "5: v", "a\r"]
)


@given(st.lists(st.one_of(LINES, st.integers(1, 12).map(lambda n: file(n, 6))), max_size=8))
@settings(deadline=None, max_examples=600)
def test_numbered_forms_come_back_whatever_lines_they_hold(lines: list[str]) -> None:
    text = "\n".join(lines)
    shown = numbered.encode(text, str)

    assert shown is None or numbered.decode(shown, str) == text


# ---- frames ----------------------------------------------------------------------------------------------------


def framed(text: str) -> tuple[str, str]:
    for codec in ENVELOPES:
        shown = codec.encode(text, str)
        if shown is not None:
            assert codec.owns(shown.split("\n")[0])
            return shown, codec.decode(shown, str)
    raise AssertionError("no frame fits")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"type":"text","text":"two\\nlines \\"said\\""}', '[MCP text]\ntwo\nlines "said"'),
        ('{"type":"text","text":"x","annotations":null}', '[MCP text …,"annotations":null}]\nx'),
        ('{"type": "text", "text": "\\u00e9"}', "[MCP text spaced ascii]\né"),
        (
            '{"type":"text","text":"cut \\"off\\" her ...\n\n(too long)',
            '[MCP text, broken off before the last 3 lines]\ncut "off" her ...\n\n\n(too long)',
        ),
        ("<returncode>0</returncode>\n<output>\nhi\n</output>", "[returncode 0]\nhi\n"),
        (
            "Chunk ID: 1f\nWall time: 0.10 seconds\nProcess exited with code 0\nOriginal token count: 7\nOutput:\nhi\n",
            "[chunk 1f, 0.10 s, exit 0, 7 tokens]\nhi\n",
        ),
        ("Exit code: 1\nWall time: 0.2 seconds\nOutput:\nhi\n", "[exit 1, 0.2 s]\nhi\n"),
        (json.dumps("[\n  1,\n  2,\n  3\n]\n" * 3), "[text in JSON: …]\n" + "[\n  1,\n  2,\n  3\n]\n" * 3),
        (
            json.dumps({"content": [{"type": "text", "text": "é\n" * 40}], "isError": False}),
            '[text in JSON ascii: {"content": [{"type": "text", "text": …}], "isError": false}]\n' + "é\n" * 40,
        ),
        (
            json.dumps({"output": "line\n" * 40, "metadata": {"exit_code": 0}}, separators=(",", ":")),
            '[text in JSON: {"output":…,"metadata":{"exit_code":0}}]\n' + "line\n" * 40,
        ),
        (
            (
                "Address: https://a.example/x\nTitle: Hello\n"
                "Viewport position: Showing page 1 of 3.\n=======================\nbody"
            ),
            "[page 1 of 3]\nAddress: https://a.example/x\nTitle: Hello\nbody",
        ),
        (
            (
                "Address: google: a b\nTitle: a b - Search\n"
                "Viewport position: Showing page 1 of 1.\n=======================\n"
                "A Google search for 'a b' found 2 results:\n\n## Web Results\n1. [x](y)"
            ),
            "[page 1 of 1, 2 results]\nAddress: google: a b\n1. [x](y)",
        ),
    ],
)
def test_a_frame_is_opened_and_put_back(text: str, shown: str) -> None:
    assert framed(text) == (shown, text)


@given(st.text(), st.sampled_from([True, False]), st.sampled_from(['"}', '","a":1}', "", " ...\n\ncut"]))
@settings(deadline=None, max_examples=400)
def test_a_text_block_comes_back_whatever_it_holds(content: str, ascii_only: bool, end: str) -> None:
    text = '{"type":"text","text":' + json.dumps(content, ensure_ascii=ascii_only)[:-1] + end
    codec = ENVELOPES[0]
    shown = codec.encode(text, str)

    assert shown is None or codec.decode(shown, str) == text


# ---- JSON ------------------------------------------------------------------------------------------------------

ROWS = [{"id": number, "name": f"item {number}", "tags": ["a", "b"], "note": None} for number in range(6)]


OPTIONS: dict[str, dict[str, Any]] = {"compact": {"separators": (",", ":")}, "spaced": {}}
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=15,
)


def dumped(layout: Layout, value: object) -> str:
    name, ascii_only = layout.name.removesuffix(" ascii"), layout.name.endswith(" ascii")
    options = OPTIONS[name] if name in OPTIONS else {"indent": int(name[-1])}
    return json.dumps(value, ensure_ascii=ascii_only, **options)


@given(VALUES, st.sampled_from(LAYOUTS))
@settings(deadline=None)
def test_a_layout_is_what_a_serialiser_writes(value: object, layout: Layout) -> None:
    text = dumped(layout, value)

    assert layout.dump(parse(text)) == text


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_json_in_any_layout_comes_back_to_the_byte_where_bytes_count(layout: Layout) -> None:
    text = dumped(layout, {"items": ROWS, "word": "é"})
    shown = JsonCodec(exact=True).encode(text, str)

    assert shown is not None
    assert len(shown) < len(text)
    assert JsonCodec(exact=True).decode(shown, str) == text


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_json_that_breaks_off_keeps_what_was_complete_and_its_torn_end(layout: Layout) -> None:
    text = dumped(layout, {"kind": "list", "items": ROWS})
    codec = JsonCodec(exact=True)
    encoded = 0
    for end in range(60, len(text)):
        shown = codec.encode(text[:end], str)
        if shown is not None:
            encoded += 1
            assert codec.decode(shown, str) == text[:end], end

    assert encoded > 0.5 * (len(text) - 60)


def test_numbers_keep_their_spelling_and_keys_that_stand_twice_stand_twice_where_bytes_count() -> None:
    text = '{"price":1.10,"price":2E+3,"of":[{"a":1.0,"b":-0},{"a":0.50,"b":1e5}]}'
    shown = JsonCodec(exact=True).encode(text, str)

    assert shown is not None
    assert JsonCodec(exact=True).decode(shown, str) == text


@pytest.mark.parametrize("odd", ['"a\tb"', f"{'9' * 5_000}"], ids=["a bare tab", "a number of 5,000 digits"])
def test_json_that_breaks_off_and_that_python_would_not_read_is_not_tripped_over(odd: str) -> None:
    text = f'[{{"id": 1, "name": {odd}, "state": "open", "count": 12, "labels": ["x", "y"]}}, {{"id": 2, "na'

    for torn in (text, f"{text[:-12]}\n" * 4):
        shown = JsonCodec(exact=True).encode(torn, str)
        assert shown is None or JsonCodec(exact=True).decode(shown, str) == torn


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"text\n" * 40: 1}),
        json.dumps({"a": "line\n" * 40, "b": "line\n" * 40}),
        json.dumps({"a…": "line\n" * 40}, ensure_ascii=False),
        '{"a":"' + "line\\n" * 40 + '"]',
        '{"a":"' + "line\\n" * 40,
        json.dumps({"a": "a line without any sign that needs another before it"}),
    ],
    ids=["a key", "two texts", "our sign", "no JSON", "torn", "nothing escaped"],
)
def test_only_json_around_one_long_text_is_opened(text: str) -> None:
    assert ENVELOPES[1].name == "json-text"
    assert ENVELOPES[1].encode(text, str) is None


@given(
    st.text(), st.sampled_from([True, False]), st.sampled_from([(",", ":"), (", ", ": ")]), st.sampled_from([None, "…"])
)
@settings(deadline=None, max_examples=400)
def test_a_text_in_json_comes_back_whatever_it_holds(
    content: str, ascii_only: bool, separators: tuple[str, str], beside: str | None
) -> None:
    text = json.dumps([{"is": beside, "text": content * 3}], ensure_ascii=ascii_only, separators=separators)
    shown = ENVELOPES[1].encode(text, str)

    assert shown is None or ENVELOPES[1].decode(shown, str) == text


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if not layout.indent], ids=lambda layout: layout.name)
def test_lines_of_json_are_a_table_and_come_back_to_the_byte(layout: Layout, end: str, exact: bool) -> None:
    rows = [{"id": n, "name": f"é {n}", "rate": "1.10", "tags": [n, None]} for n in range(6)]
    text = "\n".join(layout.dump(parse(json.dumps(row))) for row in rows) + end
    shown = JsonCodec(exact=exact).encode(text, str)

    assert shown is not None
    assert shown.startswith(
        f"[JSON lines {layout.name}{', the last line empty' if end else ''}]\n#1\n#1 6 rows: id=0..,"
    )
    assert JsonCodec(exact=exact).decode(shown, str) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1}\n{"a":2}',
        '{"a":1}\n{"a":2}\n{"a": 3}',
        '{"a":1\n{"b":2\n{"c":3}',
        '{"a":1}\n\n{"a":2}\n{"a":3}',
        "[1\n[2\n[3]]]",
    ],
    ids=["too few", "two layouts", "torn lines", "an empty line", "over lines"],
)
def test_other_lines_of_json_stay(text: str) -> None:
    shown = JsonCodec(exact=False).encode(text, str)

    assert shown is None or not shown.startswith("[JSON lines")


def test_a_python_literal_comes_back_as_it_was_written() -> None:
    text = repr([{"a": True, "b": None, "c": "it's", "d": 1.5}, {"a": False, "b": None, "c": "x", "d": 2.0}])
    shown = JsonCodec(exact=False).encode(text, str)

    assert shown is not None
    assert shown.startswith("[Python]\n")
    assert JsonCodec(exact=False).decode(shown, str) == text


@pytest.mark.parametrize("odd", [(1, 2), {3: 4}, b"x", {"a", "b"}], ids=["tuple", "key", "bytes", "set"])
def test_a_python_literal_that_json_has_no_word_for_stays(odd: object) -> None:
    text = repr({"rows": [{"id": n, "ok": True, "none": None} for n in range(9)], "odd": odd})
    shown = encode(text)

    assert not shown.skipped
    assert "json" not in shown.codecs


# ---- references ------------------------------------------------------------------------------------------------


def after(*texts: str) -> Ledger:
    ledger = Ledger()
    for number, text in enumerate(texts):
        against = delta.encode(text, ledger, f"Read {number}")
        for entry in against.ledger_entries:
            ledger = ledger.with_text(entry)
    return ledger


BODY = [f"def function_{number}(argument): return argument * {number}" for number in range(40)]


def test_a_file_read_again_after_an_edit_says_only_what_changed() -> None:
    before = "\n".join(f"{number}\t{line}" for number, line in enumerate(BODY, 1))
    edited = [*BODY[:20], "a line that is new", *BODY[20:]]
    ledger = after(before)

    against = delta.encode("\n".join(f"{number}\t{line}" for number, line in enumerate(edited, 1)), ledger, "Read 0")

    assert against.text == (
        "[R2 lines 1-41, changed since R1: line 21]\n= lines 1-19 of R1\n"
        f"20\t{BODY[19]}\na line that is new\n{BODY[20]}\n= lines 23-41 are lines 22-40 of R1"
    )


def test_a_part_of_a_file_is_said_by_the_whole() -> None:
    ledger = after("\n".join(f"{number}\t{line}" for number, line in enumerate(BODY, 1)))
    part = "\n".join(f"{number}\t{BODY[number - 1]}" for number in range(11, 31))

    against = delta.encode(part, ledger, "Read")

    assert against.text == "[R2 lines 11-30]\n= lines 11-30 of R1"


def test_lines_that_stand_above_in_the_same_text_are_said_once() -> None:
    against = delta.encode("\n".join([*BODY[:8], "---", *BODY[:8]]), Ledger(), "Bash")

    assert against.text == "\n".join(["[R1]", *BODY[:8], "---", BODY[0], "= lines 11-17 are lines 2-8 of R1"])


def test_a_line_that_was_itself_a_reference_is_not_referred_to() -> None:
    whole = "\n".join(BODY)
    ledger = after(whole, whole)

    again = delta.encode(whole, ledger, "Bash")

    assert again.text == "[R3]\n= lines 1-40 of R1"


LEVELS = [
    f"    deep in one block the level {number} of the mill is counted and no border is near" for number in range(20)
]


@pytest.mark.parametrize(
    ("above", "shown"),
    [
        pytest.param("int f() {", "= lines 4-19 are lines 3-18 of R1", id="code"),
        pytest.param("@@ -1,20 +1,20 @@ f", "= lines 2-19 are lines 1-18 of R1", id="a hunk of a diff"),
        pytest.param(
            "\n".join(f"08:00:{n:02} INFO {n}" for n in range(40)), "= lines 41-60 are lines 1-20 of R1", id="a log"
        ),
    ],
)
def test_lines_at_the_ends_of_a_reference_stay_where_an_edit_may_need_them(above: str, shown: str) -> None:
    text = "\n".join(LEVELS)
    referring = delta.encode(f"{above}\n{text}\n}} // the end", after(text), "Bash")

    assert [line for line in referring.text.split("\n") if line.startswith("= ")] == [shown]


def test_what_another_history_saw_is_not_referred_to() -> None:
    shared = after("\n".join(BODY[:10]))
    theirs = shared.with_text(LedgerEntry("R2", tuple(BODY[10:])))
    ours = shared.with_text(LedgerEntry("R2", ("something else",)))

    seen = delta.encode("\n".join(BODY[10:]), theirs, "Bash")
    unseen = delta.encode("\n".join(BODY[10:]), ours, "Bash")

    assert (seen.references, unseen.references) == (1, 0)


def test_a_reference_to_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="not there"):
        delta.decode("[R9]\n= lines 1-4 of R3", Ledger())


PIECES = st.sampled_from(
    [*BODY[:6], "", "}", "x", "= lines 1-2 of R1", "= line 1", "[R1]", "[lines 1-2]", "1\ta", "12\tb", "short", "a\tb"]
)


@given(st.lists(st.lists(PIECES, max_size=20), max_size=6), st.sampled_from(["", "{}\t", "{:>6}→"]))
@settings(deadline=None, max_examples=500)
def test_references_come_back_under_the_ledger_they_were_made_with(texts: list[list[str]], style: str) -> None:
    ledger = Ledger()
    for lines in texts:
        text = (
            "\n".join(f"{style.format(number)}{line}" for number, line in enumerate(lines, 1))
            if style
            else "\n".join(lines)
        )
        if delta.holds_signs(text):
            continue
        against = delta.encode(text, ledger, "Read")
        assert numbered.decode(delta.decode(against.text, ledger), str) == text
        for entry in against.ledger_entries:
            ledger = ledger.with_text(entry)
