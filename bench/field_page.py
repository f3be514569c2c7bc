"""Writes the page and the picture of bench/field.py: who is ahead in each family and on each payload.

Written from figures alone. A contender that misses more than `MISSED` of the facts is shown and not ranked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.recorded import cell
from bench.recorded import table as plain_table

MISSED = 0.003
HARNESS = "compaction at 142k"

Row = dict[str, Any]


@dataclass(slots=True)
class Told:
    """What was measured. `samples` are the families on the sessions that everybody saw."""

    missing: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, tuple[float, int]] = field(default_factory=dict)
    families: dict[str, list[Row]] = field(default_factory=dict)
    samples: dict[str, list[Row]] = field(default_factory=dict)
    payloads: list[Row] = field(default_factory=list)
    github: list[Row] = field(default_factory=list)

    def is_ours(self, name: str) -> bool:
        return self.kinds.get(name) == "pagefold"

    def ranked(self, rows: Sequence[Row]) -> list[Row]:
        """The cheapest first, misses priced in, of those that may be compared."""
        fit = [row for row in rows if row["miss_rate"] <= MISSED and self.kinds[row["name"]] != "nothing"]
        return sorted(fit, key=lambda row: (row["effective_ratio"], not self.is_ours(row["name"])))


INTRO = """# The field

pagefold beside its alternatives: rivals that can be installed, run by adapters in environments of their own, and the
published rules as comparison policies. Every contender gets the same sessions, and everything it would have sent is
scored by the same scorer, which uses nobody's own figures. `make bench-field` writes this page.

*cost* is cache-priced (read 0.1, write 1.25, life five minutes where times are recorded), *effective* has the misses
priced in; both, and *tokens*, are relative to sending the history as it is. *missed* are facts that an answer used and
the request no longer held, *lines* those whose line was gone, *own* the assistant's own words. *moved* is the share of
requests whose prefix moved while the cache was warm, *over* the requests above the window (200,000, or what the name
says), *broken* those that a provider would refuse beyond the recording's own, *worst* the dearest session of ten
requests or more. *back*: every result comes back exactly, by value, or not (lossy); `recall`: by a handle; `unknown`:
there is no decoder for it. *ms* a request are processor time for pagefold and the rules, counting included, and time in
the rival for the others: for comparing only. MCP results stand without their envelopes for everybody. Ranked, and first
in a table, are contenders that miss at most 0.3 %.
"""


def page(told: Told) -> str:
    parts = [INTRO]
    if told.missing:
        parts.append(f"Not installed here, so not in the tables: {', '.join(told.missing)}.\n")
    if told.families:
        parts += ["## Who is ahead\n", "\n".join(_verdicts(told)), "\n![effective cost by family](field.svg)\n"]
        parts += ["## Sessions, family by family\n"]
        for family, rows in told.families.items():
            parts += [f"### {family}, {rows[0]['sessions']} sessions, {rows[0]['requests']:,} requests\n"]
            parts += ["\n".join(_table(told, rows)) + "\n"]
    if told.samples:
        parts += ["## The same with rivals that take long\n"]
        parts += ["On a sample of the sessions, the same for everybody in a table.\n"]
        for family, rows in told.samples.items():
            parts += [f"### {family}, {rows[0]['sessions']} sessions, {rows[0]['requests']:,} requests\n"]
            parts += ["\n".join(_table(told, rows)) + "\n"]
    if told.payloads:
        parts += ["## Payloads\n", PAYLOADS, _payloads(told.payloads), "\n", plain_table(told.github), "\n"]
    parts += ["## What it takes\n", "\n".join(_sizes(told)) + "\n"]
    return "\n".join(parts)


PAYLOADS = """Tokens of one tool result. A figure stands alone where key order and the spelling of numbers came back
too, for text its bytes; `v` marks values only, `?` a form without a decoder, `✗` a loss. *ours / best* is against the
best lossless rival: at most 1 where nobody is ahead.
"""


def _verdicts(told: Told) -> Iterator[str]:
    """The best of pagefold's policies against the best of the others that may be compared; the first is in bold."""
    yield f"| family | pagefold | effective | missed | best of the others | effective | missed | {HARNESS} |"
    yield "|---|---|--:|--:|---|--:|--:|--:|"
    for family, rows in told.families.items():
        mine = next((row for row in told.ranked(rows) if told.is_ours(row["name"])), None)
        other = next((row for row in told.ranked(rows) if not told.is_ours(row["name"])), None)
        harness = next((row for row in rows if row["name"] == HARNESS), None)
        first = min((row["effective_ratio"] for row in (mine, other) if row), default=None)
        cells = [cell for row in (mine, other) for cell in _told(row, first=first)]
        yield f"| {family} | {' | '.join(cells)} | {harness['effective_ratio'] if harness else 0:.3f} |"
    yield ""
    yield from _losses(told)


def _told(row: Row | None, *, first: float | None) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    name = f"**{row['name']}**" if row["effective_ratio"] == first else row["name"]
    return name, f"{row['effective_ratio']:.3f}", f"{row['miss_rate']:.2%}"


def _losses(told: Told) -> Iterator[str]:
    """Every contender, ranked or not, that is cheaper than pagefold anywhere: it is said, with what it misses."""
    for family, rows in told.families.items():
        yield from _cheaper(told, family, rows, {row["name"] for row in rows})
        sample = told.samples.get(family, [])
        yield from _cheaper(told, f"{family}, sample", sample, {row["name"] for row in _others(told, family)})
    for row in told.payloads:
        if isinstance(row.get("pagefold / best rival"), float) and row["pagefold / best rival"] > 1:
            yield f"- {row['tokens']}: a lossless rival needs fewer tokens."


def _cheaper(told: Told, where: str, rows: Sequence[Row], names: set[str]) -> Iterator[str]:
    mine = min((row["effective_ratio"] for row in told.ranked(rows) if told.is_ours(row["name"])), default=9.0)
    for row in rows:
        if row["name"] in names and row["effective_ratio"] < mine and not told.is_ours(row["name"]):
            why = "" if row["miss_rate"] <= MISSED else f", but misses {row['miss_rate']:.1%}"
            yield f"- {where}: {row['name']} is cheaper, {row['effective_ratio']:.3f} against {mine:.3f}{why}."


def _strong(told: Told, name: str) -> str:
    return f"**{name}**" if told.is_ours(name) else name


def _table(told: Told, rows: Sequence[Row]) -> Iterator[str]:
    heads = ("tokens", "cost", "effective", "missed", "lines", "own", "moved", "over", "broken", "worst", "back", "ms")
    yield f"| contender | {' | '.join(heads)} |"
    yield f"|---|{'--:|' * len(heads)}"
    ranks = [row["name"] for row in told.ranked(rows)]
    order = sorted(rows, key=lambda row: (row["name"] not in ranks, row["effective_ratio"]))
    for row in order:
        name = _strong(told, row["name"])
        cells = [
            *(f"{row[key]:.3f}" for key in ("tokens_ratio", "cost_ratio", "effective_ratio")),
            *(f"{row[key]:.2%}" for key in ("miss_rate", "line_miss_rate", "own_miss_rate", "moved_rate")),
            f"{row['over']:,}",
            f"{row['broken'] - row['identity_broken']:+,}",
            f"{row['worst']:.2f}",
            row["back"],
            f"{row['ms']:.1f}" if row["name"] != "as it is" else "",
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def _payloads(rows: Sequence[Row]) -> str:
    """Without the milliseconds: they are in the tables of `python -m bench.codecs`."""
    kept = [{key: value for key, value in row.items() if not key.startswith("ms ")} for row in rows]
    return plain_table([{key.replace("pagefold / best rival", "ours / best"): v for key, v in r.items()} for r in kept])


def _sizes(told: Told) -> Iterator[str]:
    yield "Megabytes on disk of the package with everything it requires, and how many packages that is.\n"
    yield "| contender | MB | packages |\n|---|--:|--:|"
    seen = set[tuple[float, int]]()
    for name, (size, packages) in sorted(told.sizes.items(), key=lambda pair: pair[1]):
        if (size, packages) not in seen:
            yield f"| {_strong(told, name)} | {cell(size)} | {packages} |"
        seen.add((size, packages))


# ---- the picture -----------------------------------------------------------------------------------------------------

_WIDE, _LEFT, _RIGHT, _STEP, _TOP = 960, 210, 30, 62, 74
_FAR = 1.25  # ratios beyond stand at the edge
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c1e21}.soft{fill:#5a6069}.t{font-weight:600;font-size:14px}"
    ".a{stroke:#d5d9df}.one{stroke:#8a919c;stroke-dasharray:3 3}.ours{fill:#1f8a7d}.fit{fill:#2563a8}"
    ".rest{fill:#fff;stroke:#a9afb8;stroke-width:1.5}.harness{fill:#c98a12}.best{font-weight:600}"
)


def picture(told: Told) -> str:
    """One line a family, every contender that saw all of its sessions a mark where its effective cost is."""
    high = _TOP + _STEP * len(told.families) + 40
    body = "".join(_axis(high)) + "".join(
        f'<g transform="translate(0,{_TOP + _STEP * at})">{"".join(_line(told, family))}</g>'
        for at, family in enumerate(told.families)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{high}" role="img">'
        f"<title>Effective cost by family</title><desc>{_said(told)}</desc><style>{_STYLE}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{body}</svg>\n'
    )


def _x(ratio: float) -> float:
    return _LEFT + (_WIDE - _LEFT - _RIGHT) * min(ratio, _FAR) / _FAR


def _said(told: Told) -> str:
    words = [f"{family}: {rows[0]['name']} {rows[0]['effective_ratio']:.2f}" for family, rows in _firsts(told)]
    return "The cheapest of those that miss at most 0.3 %. " + "; ".join(words)


def _firsts(told: Told) -> Iterator[tuple[str, list[Row]]]:
    for family, rows in told.families.items():
        if ranks := told.ranked(rows):
            yield family, ranks


def _others(told: Told, family: str) -> list[Row]:
    """Rivals that only the sample has."""
    known = {row["name"] for row in told.families[family]}
    return [row for row in told.samples.get(family, ()) if row["name"] not in known]


def _axis(high: int) -> Iterator[str]:
    title = "Cost with the cache and the misses priced in, against the history as it is"
    yield f'<text class="t" x="16" y="26">{title}</text>'
    x = 16.0
    for kind, words, wide in (
        ("ours", "pagefold", 80),
        ("fit", "others that miss at most 0.3 %", 225),
        ("harness", "the harness's own compaction", 220),
        ("rest", "others that miss more", 0),
    ):
        yield f'<circle class="{kind}" cx="{x + 5}" cy="46" r="5"/>'
        yield f'<text class="soft" x="{x + 15}" y="50">{words}</text>'
        x += wide
    for at in range(6):
        ratio = at * 0.25
        kind = "one" if ratio == 1 else "a"
        word = f"{ratio:.2f}" + ("+" if ratio == _FAR else "")
        yield f'<line class="{kind}" x1="{_x(ratio):.0f}" x2="{_x(ratio):.0f}" y1="{_TOP - 8}" y2="{high - 30}"/>'
        yield f'<text class="soft" x="{_x(ratio):.0f}" y="{high - 12}" text-anchor="middle">{word}</text>'


def _line(told: Told, family: str) -> Iterator[str]:
    rows = [row for row in told.families[family] if told.kinds[row["name"]] != "nothing"]
    yield f'<text class="best" x="16" y="26">{family}</text>'
    yield f'<text class="soft" x="16" y="42">{told.families[family][0]["requests"]:,} requests</text>'
    yield f'<line class="a" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="22" y2="22"/>'
    ranks = told.ranked(rows)
    for row in sorted(rows, key=lambda row: (told.is_ours(row["name"]), row["miss_rate"] <= MISSED)):
        fit = row["miss_rate"] <= MISSED
        kind = "ours" if told.is_ours(row["name"]) else "fit" if fit else "rest"
        kind = "harness" if row["name"] == HARNESS else kind
        said = f"{row['name']}: {row['effective_ratio']:.3f}, {row['miss_rate']:.2%} missed"
        x = _x(row["effective_ratio"])
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="22" r="5"><title>{said}</title></circle>'
    mine = next((row for row in ranks if told.is_ours(row["name"])), None)
    other = next((row for row in ranks if not told.is_ours(row["name"])), None)
    if mine:
        yield _label(mine, 10, "best")
    if other:
        yield _label(other, 44, "soft")


def _label(row: Row, y: int, kind: str) -> str:
    x = _x(row["effective_ratio"])
    anchor = "end" if x > _WIDE - 200 else "middle" if x > _LEFT + 100 else "start"
    words = f"{row['name']} {row['effective_ratio']:.2f}"
    return f'<text class="{kind}" x="{x:.0f}" y="{y}" text-anchor="{anchor}">{words}</text>'
