"""Makes random texts: JSON in several layouts, whole and cut off, numbered files, search hits, logs, frames, our own
signs, the shapes that codecs look for, and mutations of all of these."""

import json
import random
from collections.abc import Callable
from typing import Any

from bench.fuzz import shapes

WORDS = [
    "a",
    "id",
    "name",
    "load_page",
    "x-y",
    "null",
    "true",
    "12",
    "1.0",
    "-0",
    "",
    " ",
    "a b",
    "a,b",
    "k: v",
    "{",
    "]",
    '"',
    "$a",
]
WORDS += [
    "*1",
    "&1",
    "#1",
    "!",
    "= 1-2",
    "[R1]",
    "[JSON]",
    "[lines 1-2]",
    "é",
    "\\n",
    "\t",
    "https://a.example/u/7",
    "2026-01-02",
]
WORDS += [
    "pf-abcdefghij",
    "..",
    "{id}",
    "\u2028",
    "🙂",
    "ERROR",
    "src/app/main.py",
    "C:\\x\\y.py",
    "--",
    "|",
    "\x1b[32m",
    "0.5 s",
]


def scalar(dice: random.Random) -> Any:
    pick = dice.random()
    if pick < 0.5:
        return " ".join(dice.choice(WORDS) for _ in range(dice.randint(1, 4)))
    return dice.choice(
        [None, True, False, dice.randint(-9, 9999), round(dice.random() * 100, dice.randint(0, 6)), 1e30, 10**25]
    )


def value(dice: random.Random, depth: int = 0) -> Any:
    pick = dice.random()
    if depth > 3 or pick < 0.4:
        return scalar(dice)
    if pick < 0.6:
        return [value(dice, depth + 1) for _ in range(dice.randint(0, 5))]
    keys = [dice.choice(WORDS) for _ in range(dice.randint(1, 5))]
    if pick < 0.8:
        return {key: value(dice, depth + 1) for key in keys}
    rows = [{key: scalar(dice) for key in keys if dice.random() < 0.9} for _ in range(dice.randint(2, 8))]
    if dice.random() < 0.5:
        for number, row in enumerate(rows):
            row |= {"number": number, "url": f"https://a.example/n/{number}", "state": "open"}
    return rows


def as_json(dice: random.Random) -> str:
    layout: dict[str, Any] = dice.choice(
        [{}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}, {"ensure_ascii": False}]
    )
    text = json.dumps(value(dice), **layout)
    return text[: dice.randint(0, len(text))] if dice.random() < 0.2 else text


def json_lines(dice: random.Random) -> str:
    found = value(dice)
    layout: dict[str, Any] = dice.choice([{}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    rows = found if isinstance(found, list) else [found] * dice.randint(2, 5)
    return "\n".join(json.dumps(row, **layout) for row in rows) + dice.choice(["", "\n", "\n\n"])


def lines(dice: random.Random) -> list[str]:
    return [" ".join(dice.choice(WORDS) for _ in range(dice.randint(0, 6))) for _ in range(dice.randint(1, 40))]


def numbered(dice: random.Random) -> str:
    style, first = dice.choice(["{}\t", "{:>6}→", "{:>6}\t", "{}: ", "{}:"]), dice.choice([1, 7, 95, 996])
    return "\n".join(f"{style.format(first + at)}{line}" for at, line in enumerate(lines(dice)))


def hits(dice: random.Random) -> str:
    path, sign = dice.choice(["src/a.py", "/r/src/a.py", "b.go", "C:\\x\\y.py"]), dice.choice([":", "-"])
    return "\n".join(f"{path}{sign}{dice.randint(1, 99)}{sign}{line}" for line in lines(dice))


def log(dice: random.Random) -> str:
    return "\n".join(
        f"2026-03-21 08:{dice.randint(10, 12)}:{at % 60:02} INFO  [w-{at % 3}] {line}"
        for at, line in enumerate(lines(dice))
    )


def framed(dice: random.Random) -> str:
    body = dice.choice([as_json, json_lines, numbered, hits, log, *SHAPES])(dice)
    if dice.random() < 0.4:
        return shapes.wrapped(dice, body)
    return dice.choice(
        [
            json.dumps({"type": "text", "text": body}, separators=(",", ":")),
            json.dumps({"type": "text", "text": body, "annotations": None}),
            json.dumps({"content": [{"type": "text", "text": body}], "isError": False}),
            json.dumps({"output": body, "metadata": {"exit_code": 0}}, ensure_ascii=False),
            json.dumps(body),
            f"<output>\n{body}\n</output>",
            f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{body}",
            f"<returncode>0</returncode>\n<output>\n{body}</output>",
            json.dumps({"type": "text", "text": body}, separators=(",", ":"))[: dice.randint(23, 200)]
            + " ...\n\n(cut)",
        ]
    )


SHAPES: tuple[Callable[[random.Random], str], ...] = (
    *(shapes.bare_json, shapes.wide_rows, shapes.literal, shapes.records, shapes.listing, shapes.coloured),
    *(shapes.repeated, shapes.opened, shapes.code),
)
MAKERS: tuple[Callable[[random.Random], str], ...] = (
    as_json,
    as_json,
    json_lines,
    numbered,
    hits,
    log,
    framed,
    lambda d: "\n".join(lines(d)),
    *SHAPES,
    lambda d: "\n".join(f"{at}\t{line}" for at, line in enumerate(shapes.code(d).split("\n"), d.choice((1, 1, 998)))),
)


def mutated(dice: random.Random, text: str) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice([*WORDS, "\n", "\r\n", "\x00"]) + text[at + dice.randint(0, 3) :]
