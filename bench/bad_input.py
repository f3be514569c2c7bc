r"""Puts bad, odd and very large results through the codecs: how long each takes, and whether it decodes to the same.

    python bench/bad_input.py [--size 999999] [--only WORD] [--over MS]

Every input has about SIZE characters: the largest that are still looked at. Three figures in milliseconds of processor
time: *alone* as the first text of a history; *again* with nearly the same text standing above it, so that every line is
looked for there; *a fourth* of it, alone. *Counting* is the tokens alone, *parsing* Python's own JSON parser or, for
text, splitting into lines, both in the same run: the floor. The last column is what it is shown as. Exit code 1 where
something comes back differently, the gate had to catch a codec, or a figure is over the bound (100 ms).
"""

import argparse
import json
import random
import string
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from pagefold.encode import decode, encode
from pagefold.encode.choose import EncodedText
from pagefold.encode.notation.json_value import parse
from pagefold.pages.ledger import Ledger
from pagefold.tokens import counter

BOUND = 100.0
Maker = Callable[[int], str]
dice = random.Random(1)


def repeated(pattern: str) -> Maker:
    return lambda size: pattern * (size // len(pattern))


def lines(line: Callable[[int], str]) -> Maker:
    """Lines by their number, up to a size."""

    def made(size: int) -> str:
        found, length, number = list[str](), 0, 0
        while length < size:
            found.append(line(number))
            length, number = length + len(found[-1]) + 1, number + 1
        return "\n".join(found)[:size]

    return made


def array(item: Callable[[int], object], *, torn: bool = False, indent: int | None = None) -> Maker:
    """A JSON array of items by their number, up to a size; `torn` in mid-value."""

    def made(size: int) -> str:
        found, length = list[object](), 0
        while length < size:
            found.append(item(len(found)))
            length += len(json.dumps(found[-1], indent=indent)) + 2
        text = json.dumps(found[:-1] or found, indent=indent)
        return text[: len(text) - 7] if torn else text

    return made


def word(length: int, letters: str = string.ascii_lowercase) -> str:
    return "".join(dice.choices(letters, k=length))


def nested(depth: int, opening: str, inside: str, closing: str) -> Maker:
    def made(size: int) -> str:
        one = opening * depth + inside + closing * depth
        return "[" + ",".join([one] * max(1, size // (len(one) + 1))) + "]"

    return made


def wide(size: int) -> str:
    return json.dumps({f"{word(6)}_{n}": n for n in range(size // 22)})


def wide_rows(size: int) -> str:
    keys = [f"{word(5)}{n}" for n in range(2000)]
    return json.dumps([dict.fromkeys(keys, row) for row in range(size // 28_000 + 1)])


def other_keys(size: int) -> str:
    return json.dumps([{f"{word(5)}{n}": n, f"{word(5)}": word(4)} for n in range(size // 40)])


def table(size: int) -> str:
    head = "| " + " | ".join(f"column {n}" for n in range(12)) + " |\n"
    return head + lines(lambda n: "| " + " | ".join(f"{n * c % 997}" for c in range(12)) + " |")(size - len(head))


def shuffled(size: int) -> str:
    known = [word(40) for _ in range(200)]
    return lines(lambda n: dice.choice(known))(size)


def framed(maker: Maker) -> Maker:
    return lambda size: json.dumps({"type": "text", "text": maker(int(size * 0.9))})


def python(size: int) -> str:
    return repr([{"id": n, "name": f"row {n}", "ok": n % 2 == 0, "none": None} for n in range(size // 52)])


def row(n: int) -> object:
    return {"id": n, "title": f"Row {n} of many", "state": "open", "comments": n % 7}


ZOO: dict[str, Maker] = {
    # characters
    "NULs": repeated("\x00"),
    "NULs between": repeated("a\x00b"),
    "one letter": repeated("x"),
    "letters": lambda size: word(size, string.ascii_letters),
    "base64": lambda size: word(size, string.ascii_letters + string.digits + "+/"),
    "base64 in lines": lines(lambda n: word(76, string.ascii_letters + string.digits + "+/")),
    "digits": lambda size: word(size, string.digits),
    "hex in lines": lines(lambda n: f"{n * 16:08x}  {word(2, 'abcdef')} {word(2, '0123')} {word(20, 'abc.')}"),
    "marks": lambda size: word(size, string.punctuation),
    "any of ASCII": lambda size: word(size, string.printable),
    "random Unicode": lambda size: "".join(chr(dice.randrange(0x20, 0xD7FF)) for _ in range(size)),
    "ideographs": repeated("的一是不了人"),
    "ideographs in lines": lines(lambda n: f"{word(30, '的一是不了人我在有他这')}。"),
    "emoji": repeated("🙂👩‍👩‍👧🏽"),
    "marks above letters": repeated("e\u0301\u0302\u0303\u0304"),
    "letters from right to left": lines(lambda n: word(30, "אבגדהוזחטי")),
    "surrogates alone": repeated("\ud800"),
    "surrogates in words": repeated("a\ud800 "),
    "surrogates in lines": repeated("a\ud800\n"),
    "lines that hold surrogates": lines(lambda n: f"{word(20)}\udc80{n}"),
    "surrogate pairs": repeated("\ud83d\ude00"),
    "signs of the vocabulary": repeated("<|endoftext|>"),
    "half signs of the vocabulary": repeated("<|"),
    "spaces": repeated(" " * 3000 + "x\n"),
    "spaces and tabs": repeated(" \t"),
    "spaces behind": lines(lambda n: f"{word(8)}{' ' * 60}"),
    "carriage returns": lines(lambda n: f"{n} % done\r"),
    "progress": repeated("10 % done\r"),
    "form feeds": repeated("a\f\v\u2028\u0085b"),
    # lines
    "no lines": repeated("\n"),
    "lines of a letter": lines(lambda n: dice.choice("abcdefgh")),
    "lines of two letters": lines(lambda n: word(2)),
    "lines of five letters": lines(lambda n: word(5)),
    "lines of nine letters": lines(lambda n: word(9)),
    "lines of twenty letters": lines(lambda n: word(20)),
    "lines of fifty letters": lines(lambda n: word(50)),
    "lines and empty lines": lines(lambda n: word(8) if n % 2 else ""),
    "one line over and over": repeated("the same line again\n"),
    "a short line over and over": repeated("ab\n"),
    "a circle of eight lines": repeated("a\nb\nc\nd\ne\nf\ng\nh\n"),
    "a circle of nine lines": repeated("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"),
    "a circle of a hundred lines": lines(lambda n: f"line {n % 100} of the circle"),
    "two lines in turns": repeated("a line\nanother line\n"),
    "lines that nearly repeat": lines(lambda n: f"the same line but for {n}"),
    "pairs of lines": lines(lambda n: f"line {n // 2}"),
    "lines of a small book": shuffled,
    "a line of a megabyte": lambda size: "words " * (size // 6),
    "ten long lines": lines(lambda n: "words " * 17_000),
    "prose": lines(lambda n: " ".join(word(dice.randint(2, 9)) for _ in range(12))),
    # what codecs look for
    "numbered": lines(lambda n: f"{n + 1}\t{word(12)}"),
    "numbered, short": lines(lambda n: f"{n + 1}\tx"),
    "numbered with arrows": lines(lambda n: f"{n + 1:>6}→    return {word(5)}"),
    "numbered and broken": lines(lambda n: f"{n % 5}\t{word(4)}"),
    "always the first number": repeated("1\tx\n"),
    "long numbers": repeated("1" * 5000 + ":x\n"),
    "hits": lines(lambda n: f"src/{word(3)}/a.py:{n}:{word(20)}"),
    "hits, short": repeated("a:1:\n"),
    "hits in one line": repeated("a:1:"),
    "hits with context": lines(lambda n: ("--", f"a{n}.py-{n}-}}", f"a{n}.py:{n}:x")[n % 3]),
    "hits in one file with context": lines(lambda n: f"src/a.py{':' if n % 5 == 0 else '-'}{n}{':-'[n % 5 > 0]}}}"),
    "lines with a colon": lines(lambda n: f"{word(4)}:{word(3)}"),
    "colons": repeated(":" * 3000 + "a\n"),
    "colons and digits": repeated(":1" * 3000 + "\n"),
    "log": lines(lambda n: f"2026-03-21 08:{n // 60 % 60:02}:{n % 60:02} INFO [w-{n % 7}] {word(8)} n={n}"),
    "log, short": repeated("00:00:01 x\n"),
    "times in one line": repeated("00:00:00"),
    "dates": repeated("2026-01-01 "),
    "coloured log": lines(lambda n: f"\x1b[3{n % 8}m{word(5)}\x1b[0m \x1b[1m{word(9)}\x1b[0m"),
    "colours": repeated("\x1b[31m"),
    "many colours": lines(lambda n: f"\x1b[38;5;{n % 256}m{word(3)}"),
    "half colours": repeated("\x1b[" + "1;" * 12),
    "paths": lines(lambda n: f"src/{word(2)}/{word(2)}/{word(6)}.py"),
    "paths, short": repeated("a/b\n"),
    "deep paths": lines(lambda n: "/".join(word(2) for _ in range(30))),
    "slashes": repeated("/" * 300 + "\n"),
    "listing": lines(lambda n: f"-rw-r--r-- 1 root root {n:>6} Nov 22 10:{n % 60:02} {word(6)}.py"),
    "half listings": repeated("-rw-r--r-- 1 root root "),
    "modes": repeated("-rwxr-xr-x\n"),
    "records": lines(lambda n: (f"Name: {word(6)}", f"Id: {n}", "")[n % 3]),
    "records, short": repeated("a: b\n"),
    "records of other keys": lines(lambda n: f"{word(4)}: {word(4)}"),
    "long keys": repeated("a " * 20 + ": x\n"),
    "spaces before dashes": repeated(" " * 200 + "- \n"),
    "YAML": lines(lambda n: (f"- id: {n}", f"  name: {word(6)}", "  tags:", f"    - {word(3)}")[n % 4]),
    "CSV": lines(lambda n: ",".join(str(n * c % 1009) for c in range(9))),
    "markdown table": table,
    "HTML": lines(lambda n: f'<tr class="r{n % 2}"><td>{n}</td><td><a href="/{word(4)}">{word(6)}</a></td></tr>'),
    "diff": lines(lambda n: f"{' +-'[n % 3]}{word(16)}"),
    "stack traces": lines(lambda n: f'  File "/app/{word(3)}.py", line {n % 900}, in {word(6)}'),
    "escaped breaks": repeated("\\n"),
    "escaped breaks in lines": lines(lambda n: "\\n".join(word(7) for _ in range(60))),
    "backslashes": repeated("\\" * 3000 + "n\n"),
    "backslashes in turns": repeated("\\" * 3 + "n" + "\\" * 5 + "n"),
    "minified code": lambda size: ";".join(f"function {word(2)}(a,b){{return a+{n}*b}}" for n in range(size // 34)),
    # our own signs
    "references": repeated("= 1-2 as in R1\n"),
    "references to nobody": lines(lambda n: f"= {n} lines as in {word(5)} from {n}"),
    "headers": repeated("[lines 1-2]\n"),
    "long headers": repeated("[lines " + "1" * 500 + "-2]\n"),
    "titles": repeated("[R1]\n= 3 lines\n"),
    "hints": repeated("> [ref: a]\n"),
    "a long hint": lambda size: f"> [ref: {'a, ' * (size // 3)}]",
    "a long near hint": lambda size: f"> [near-ref: a{', b: 1→2' * (size // 8)}]",
    "a near hint that never ends": lambda size: f"> [near-ref: a{', b: 1' * (size // 6)}]",
    "counts": repeated("[the line above 3 times more]\n"),
    "bars before counts": repeated("|||[the last 2 lines 1 time more]\n"),
    "a long bar": lambda size: "|" * (size - 1) + "[",
    "our JSON": lambda size: "[JSON]\n" + "#1 " * (size // 3),
    "our frames": repeated("[MCP text …}]\n"),
    "rows of records": repeated("[3 rows of a | b]\n"),
    "a long head of records": lambda size: "[3 rows of " + "a | " * (size // 4),
    # frames
    "blocks in blocks": repeated('{"type":"text","text":"'),
    "a block around lines": framed(lines(lambda n: word(5))),
    "a block around rows": framed(array(row)),
    "a block around JSON, torn": framed(array(row, torn=True)),
    "a block of escapes": framed(repeated('"\\\t')),
    "a torn block": lambda size: framed(array(row))(size)[:-40],
    "a shell's answer": lambda size: (
        f"<returncode>0</returncode>\n<output>\n{lines(lambda n: word(5))(size - 60)}</output>"
    ),
    "half answers": repeated("<returncode>0</returncode>\n<output>\n"),
    "a web page": lambda size: "Address: a\n" + "Title: x\n" * (size // 9),
    # JSON
    "open objects": repeated('{"a":'),
    "open arrays": repeated("["),
    "brackets": repeated("[]"),
    "empty arrays": lambda size: "[" + "[]," * (size // 3) + "[]]",
    "empty objects": lambda size: "[" + "{}," * (size // 3) + "{}]",
    "arrays that go on": repeated("[[1,2],"),
    "deep arrays": nested(90, "[", "1", "]"),
    "deep objects": nested(90, '{"a":', "1", "}"),
    "too deep": nested(5000, "[", "1", "]"),
    "rows": array(row),
    "rows, indented": array(row, indent=2),
    "short rows": array(lambda n: {"a": n}),
    "small objects": array(lambda n: {"id": n}),
    "numbers": array(lambda n: n),
    "small numbers": array(lambda n: n % 10),
    "fractions": array(lambda n: n / 7),
    "truths": array(lambda n: (True, False, None)[n % 3]),
    "strings": array(lambda n: word(10)),
    "short strings": array(lambda n: word(1)),
    "strings that share their beginning": array(lambda n: f"https://a.example/{n % 30}/{word(5)}"),
    "pairs": array(lambda n: [n, word(3)]),
    "lists of lists": array(lambda n: [[n, 1], [n, 2]]),
    "wide": wide,
    "wide rows": wide_rows,
    "rows of other keys": other_keys,
    "rows of two shapes": array(lambda n: row(n) if n % 2 else {"path": word(9), "size": n}),
    "rows in rows": array(lambda n: {"id": n, "owner": {"login": word(4), "id": n}, "labels": [{"name": "bug"}] * 2}),
    "different rows in rows": array(lambda n: {"id": n, word(2): {word(2): {word(3): n}}}),
    "long strings": array(lambda n: "words and " * 300),
    "strings of breaks": array(lambda n: "a\nb\n" * 30),
    "escaped strings": array(lambda n: "\u00e9\u4e00" * 10),
    "half characters": lambda size: "[" + ",".join(['"\\ud800"'] * (size // 9)) + "]",
    "long keys of objects": array(lambda n: {word(200): n}),
    "keys that stand twice": lambda size: "{" + ",".join(['"a":1'] * (size // 6)) + "}",
    "the same object": array(lambda n: {"a": "the same object", "b": [1, 2, 3]}),
    "long numbers of JSON": array(lambda n: 10**60 + n),
    "torn rows": array(row, torn=True),
    "torn rows, indented": array(row, torn=True, indent=2),
    "torn numbers": array(lambda n: n, torn=True),
    "torn deep": lambda size: '{"a":[' * 60 + "1," * (size // 2),
    "torn strings": array(lambda n: word(8), torn=True),
    "lines of JSON": lines(lambda n: json.dumps(row(n))),
    "lines of small JSON": lines(lambda n: f'{{"a":{n}}}'),
    "quotes": repeated('"' * 3000 + "a\n"),
    "quoted words": repeated('"a" '),
    "a literal": python,
    "a literal, torn": lambda size: python(size)[:-9],
    "a small literal": lambda size: python(min(size, 180_000)),
    "nearly a literal": lambda size: python(min(size, 180_000)) + ",",
    "strings of Python": lambda size: "['" + "', '".join(word(6) for _ in range(size // 10)) + "']",
    "brackets of Python": lambda size: "[" + "('" * min(size // 2, 60_000),
    "minus signs": lambda size: "[" + "- " * min(size // 2, 90_000) + "'1']",
}


def changed(text: str) -> str:
    """Nearly the same text: one line in forty is another, and some are gone."""
    return (
        "\n".join(f"{line}!" if at % 40 == 7 else line for at, line in enumerate(text.split("\n")) if at % 90)
        or text[1:]
    )


def taken(text: str, ledger: Ledger) -> tuple[float, EncodedText, Ledger]:
    started = time.process_time()
    shown = encode(text, tool="get a", ledger=ledger)
    after = ledger
    for entry in shown.ledger_entries:
        after = after.with_text(entry)
    return 1000 * (time.process_time() - started), shown, after


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    with suppress(ValueError, RecursionError):  # it was parsed up to there
        work()
    return 1000 * (time.process_time() - started)


def same(back: str, text: str) -> bool:
    return back == text or parse(back) == parse(text)


def fitted(maker: Maker, size: int) -> str:
    """As much as a maker makes within a size."""
    text, asked = maker(size), float(size)
    while len(text) > size:
        asked *= 0.99 * size / len(text)
        text = maker(int(asked))
    return text


def measured(name: str, maker: Maker, size: int) -> tuple[dict[str, object], float]:
    dice.seed(name)
    text, fourth = fitted(maker, size), fitted(maker, size // 4)
    counting = timed(lambda: counter("o200k").count(f"{text} "))  # what was counted once is remembered
    parsing = timed(lambda: json.loads(text)) if text[:1] in "{[" else timed(lambda: text.split("\n"))
    part = taken(fourth, Ledger())[0]
    alone, shown, _ = taken(text, Ledger())
    _, _, ledger = taken(changed(text), Ledger())
    more = f"{text}\n"
    again, second, _ = taken(more, ledger)
    backs = same(decode(shown.text, Ledger()), text) and same(decode(second.text, ledger), more)
    wrong = [] if backs else ["differs"]
    wrong += [f"caught: {codec}" for codec in (*shown.skipped, *second.skipped)]
    row: dict[str, object] = {"input": name, "alone": alone, "again": again, "a fourth": part}
    row |= {"counting": counting, "parsing": parsing, "worst / floor": max(alone, again) / max(0.1, counting + parsing)}
    row["shown as"] = "; ".join([*wrong, " > ".join(second.codecs) or second.reason])
    return row, float("inf") if wrong else max(alone, again)


def said(rows: list[dict[str, object]]) -> Iterator[str]:
    yield "| " + " | ".join(rows[0]) + " |"
    yield "|---|" + "--:|" * (len(rows[0]) - 2) + "---|"
    for found in rows:
        yield (
            "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in found.values()) + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=999_999)
    parser.add_argument("--only", default="", metavar="WORD", help="inputs whose name holds this")
    parser.add_argument("--over", type=float, default=0, metavar="MS", help="show only what takes longer")
    given = parser.parse_args()
    for name in ("rows", "log", "strings"):  # so that the vocabulary is there
        taken(ZOO[name](50_000), Ledger())
    found = [measured(name, maker, given.size) for name, maker in ZOO.items() if given.only in name]
    found.sort(key=lambda of: -of[1])
    slow = sum(worst > BOUND for _, worst in found)
    print("\n".join(said([row for row, worst in found if worst >= given.over])))
    print(f"\n{len(found)} inputs of {given.size:,} characters, {slow} over {BOUND:.0f} ms or not as they were")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
