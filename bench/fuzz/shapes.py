"""Makes texts in the shapes that codecs look for: JSON that nobody escaped, records, listings, diffs, shell wrappers,
and an earlier text as it is after an edit or another fetch."""

import json
import random
from collections.abc import Callable
from typing import Any

_STRINGS = (
    '<b class="x">bold</b>',
    'say "yes"',
    '"quoted"',
    'a "b": c',
    'a", "b',
    'ends with a quote"',
    '"',
    "plain words",
    "C:\\x",
    "https://a.example/very/long/path/" + "x" * 12,
    "https://a.example/very/long/path/y",
    "",
    "12",
    "é 的",
)
_OUTCOMES = ("ok", "FAILED tests/a.py", "error: no such file", "exit code 1", "3 passed in 0.1s", "Traceback")
_CODE = (
    "def f(x):",
    "    return x",
    "",
    "class A:",
    "    def g(self) -> None:",
    "        pass",
    "@@ -1,3 +1,4 @@",
    "}",
)


def bare_json(dice: random.Random) -> str:
    """Indented JSON whose strings hold quotes that nobody escaped, whole or cut off."""
    keys = dice.sample(("id", "name", "html", "price", "a b", 'a"b', "url"), dice.randint(1, 5))

    def member(key: str) -> Any:
        if dice.random() < 0.3:
            return dice.choice((1, 1.5, True, None, [], {}, ["a", 'b "c"'], {"in": 'x "y" z'}))
        return " ".join(dice.choice(_STRINGS) for _ in range(dice.randint(1, 2)))

    rows: Any = [{key: member(key) for key in keys} for _ in range(dice.randint(1, 12))]
    whole = dice.choice((rows, {"items": rows, "total": len(rows)}, rows[0]))
    text = json.dumps(whole, indent=dice.choice((1, 2, 4)), ensure_ascii=dice.random() < 0.3)
    text = text.replace('\\"', '"') + dice.choice(("", "", "\n"))
    return text[: dice.randint(1, len(text))] if dice.random() < 0.4 else text


def wide_rows(dice: random.Random) -> str:
    """A list of rows with columns that are constant, count up or share a beginning, and perhaps breaks off."""
    first, path = dice.randint(-3, 999), dice.choice(("https://a.example/api/v2/repos/", "src/a/very/deep/folder/", ""))
    rows: list[dict[str, Any]] = []
    for at in range(dice.randint(3, 30)):
        row: dict[str, Any] = {"id": first + at, "url": f"{path}{dice.randint(0, 99)}", "state": "open", "n": None}
        row |= {"user": {"login": dice.choice(("ada", "ben")), "site": False}, "tags": [dice.choice(("x", "y", "1"))]}
        for key in dice.sample(sorted(row), dice.choice((0, 0, 0, 1, 3))):
            del row[key]
        rows.append(row)
    layout: dict[str, Any] = dice.choice(({}, {"indent": 2}, {"separators": (",", ":")}))
    text = json.dumps({"total": len(rows), "items": rows} if dice.random() < 0.5 else rows, **layout)
    return text[: dice.randint(len(text) // 2, len(text))] if dice.random() < 0.4 else text


def literal(dice: random.Random) -> str:
    rows = [
        {"id": n, "name": dice.choice(("a", "it's", 'say "x"', "é\n")), "ok": n % 2 == 0, "none": None}
        for n in range(dice.randint(1, 9))
    ]
    return repr(dice.choice((rows, {"rows": rows, "of": (1, 2)}, rows[0])))


def records(dice: random.Random) -> str:
    """Groups of `key: value` lines, or a YAML list."""
    keys = dice.sample(("Name", "Id", "- ID", "  Zone", "State", "E mail", "    deep"), dice.randint(1, 4))
    cells = ("x", "", "a | b", '"q"', "a: b", "open", "open", "12 |", ", then an empty line", "…")
    between = dice.choice(([], [""], ["--"]))
    lines = list[str](["data:"] * dice.randint(0, 2))
    for _ in range(dice.randint(2, 9)):
        lines += [f"{key}: {dice.choice(cells)}" for key in keys if dice.random() < 0.97] + between
    return "\n".join(lines)


def listing(dice: random.Random) -> str:
    width = dice.choice((1, 5, 8))
    return "\n".join(
        f"{dice.choice(('-rw-r--r--', '-rw-r--r--', 'drwxr-xr-x'))}  {dice.choice((1, 1, 12))} root root "
        f"{dice.randint(0, 99999):>{width}} {dice.choice(('Nov 22 10:01', 'Nov 22  2024', '2026-01-02 10:01'))} "
        f"{dice.choice(('a.py', '96 b', 'Nov 22 10:01 c', '|d', ''))}"
        for _ in range(dice.randint(3, 20))
    ) + dice.choice(("", "\n", "\ntotal 8", "\n|total 8"))


def coloured(dice: random.Random) -> str:
    codes = ("\x1b[0m", "\x1b[31m", "\x1b[1;32m", "\x1b[2K", "\x1b")
    return "\n".join(
        "".join(dice.choice((*codes, "FAILED ", "ok ", "§", "¶", "a.py:1:")) for _ in range(dice.randint(1, 8)))
        for _ in range(dice.randint(3, 20))
    )


def repeated(dice: random.Random) -> str:
    block = [dice.choice((*_OUTCOMES, *_CODE, "[the line above 3 times more]", "|[", "  at walk (tree.js:1:2)"))]
    block *= dice.randint(1, 3)
    lines = ["top", *block * dice.randint(2, 30), *dice.choice(([], ["end"], [""]))]
    return "\n".join(lines * dice.randint(1, 2))


def opened(dice: random.Random) -> str:
    sign = dice.choice(("\\n", "\\\\n", "\\\\\\n"))
    long = sign.join(dice.choice((*_CODE, *_OUTCOMES, ">>", "<<\\n", "words " * 12)) for _ in range(60))
    return dice.choice((long, f"{{'text': '{long}'", f"before\n{long}\nafter\n{long}"))


def code(dice: random.Random) -> str:
    """Source, test output or a diff, with lines that tell outcomes."""
    mark = dice.choice(("", "", "+", " "))
    return "\n".join(
        f"{mark}{dice.choice((*_CODE, *_CODE, *_OUTCOMES, f'    value_{dice.randint(0, 30)} = compute(a, b, c)'))}"
        for _ in range(dice.randint(5, 80))
    )


def wrapped(dice: random.Random, body: str) -> str:
    """What today's agents put around a command's output."""
    time = dice.choice(("0.1", "0.0000", "12"))
    return dice.choice(
        (
            (
                f"Chunk ID: a1b2\nWall time: {time} seconds\nProcess exited with code 0\n"
                f"Original token count: 9\nOutput:\n{body}"
            ),
            (
                f"Chunk ID: a1b2\nWall time: {time} seconds\nProcess running with session ID 4\n"
                f"Original token count: 9\nOutput:\n{body}"
            ),
            f"Script completed\nWall time {time} seconds\nOutput:\n\n{body}",
            (
                f"=== STDOUT ===\n{body}\n=== EXECUTION INFO ===\nReturn code: 0\n"
                f"Execution time: {time} seconds\nTimeout limit: 60 seconds"
            ),
            (
                f"Address: https://a.example\nTitle: A\nViewport position: Showing page 1 of 2.\n"
                f"=======================\n{body}"
            ),
            json.dumps({"type": "text", "text": body, "is_error": False}),
            json.dumps([{"output": body}]),
        )
    )


def again(dice: random.Random, text: str) -> str:
    """An earlier text after an edit: a few lines are other, gone, new or moved; or the rows of its JSON are."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    rows = value if isinstance(value, list) else value.get("items") if isinstance(value, dict) else None
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        _shaken(dice, rows, lambda row: {**row, dice.choice(("state", "id", "n", "new")): dice.choice((1, "x", None))})
        return json.dumps(value)
    lines = text.split("\n")
    _shaken(dice, lines, lambda line: dice.choice((line + "!", *_CODE, *_OUTCOMES)))
    if lines and dice.random() < 0.5 and lines[0].partition("\t")[0].isdigit():
        lines = [
            f"{at}\t{line.partition(chr(9))[2]}" for at, line in enumerate(lines, int(lines[0].partition("\t")[0]))
        ]
    return "\n".join(lines)


def _shaken(dice: random.Random, items: list[Any], other: Callable[[Any], Any]) -> None:
    for _ in range(dice.randint(1, 3)):
        if not items:
            return
        at = dice.randrange(len(items))
        match dice.randint(0, 3):
            case 0:
                items[at] = other(items[at])
            case 1:
                del items[at : at + dice.randint(1, 3)]
            case 2:
                items.insert(at, other(items[at]))
            case _:
                items.insert(dice.randrange(len(items)), items.pop(at))
