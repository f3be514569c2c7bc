"""A report as one HTML file that needs nothing else: no script, no font, no picture from anywhere.

Everything that came out of a log is escaped; a page that is opened asks no network for anything, and says so to the
browser.
"""

from collections.abc import Iterator, Sequence
from html import escape

from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report import pictures as draw
from pagefold.analysis.report.style import CSS
from pagefold.analysis.session_report import Share, Waste
from pagefold.number_format import money, rate, several, share, short

_TOOLS = 15
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(report: SavingsReport) -> str:
    return "".join(_whole(report))


def _whole(report: SavingsReport) -> Iterator[str]:
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<link rel="icon" href="data:,"><title>What pagefold would have saved</title>'
        f"<style>{CSS}</style></head><body>"
        '<a class="skip" href="#figures">Skip to the figures</a><main>'
        "<h1>What pagefold would have saved</h1>"
    )
    if not report.sessions:
        yield "<p>No session was found in these recordings.</p>"
        yield from _problems(report)
        yield "</main></body></html>\n"
        return
    yield from _headline(report)
    yield from _bill(report)
    yield from _tools(report)
    yield from _timeline(report)
    yield from _policies(report)
    yield from _sessions(report)
    yield from _codecs(report)
    yield from _reread(report)
    yield from _wasted(report)
    yield '<h2 id="notes">What was measured, and what was estimated</h2><ul>'
    yield from (f"<li>{escape(note)}</li>" for note in report.notes())
    yield "</ul>"
    yield from _problems(report)
    yield "</main></body></html>\n"


def _headline(report: SavingsReport) -> Iterator[str]:
    before, after = report.before, report.after
    sources = ", ".join(escape(name) for name in sorted(report.totals["identity"].sources))
    yield (
        f'<p class="soft">{several(report.sessions, "session")} with '
        f"{several(before.requests, 'request')}, from {sources}.</p>"
    )
    missed = rate(after.missed / after.demanded) if after.demanded else "0"
    cards = [
        ("", money(report.usd(before.cost)), "as logged, with the cache priced in"),
        ("", money(report.usd(after.cost)), "with pagefold"),
        ("good", share(before.cost - after.cost, before.cost), "of the prompt bill saved"),
        ("", share(before.cost - report.lossless.cost, before.cost), "of it by lossless forms alone"),
        ("", missed, "of the facts that answers used were missed"),
    ]
    if report.worst[1]:
        cards.append(("", f"{report.worst[0]:.2f}", "of its cost in the worst session, misses priced in"))
    items = "".join(f'<li class="{kind}"><b>{escape(value)}</b>{escape(words)}</li>' for kind, value, words in cards)
    yield f'<ul class="cards" id="figures">{items}</ul>'


def _bill(report: SavingsReport) -> Iterator[str]:
    before = report.before
    rows = [
        [
            escape(name),
            short(figures.tokens),
            share(figures.cached_tokens, figures.tokens),
            money(report.usd(figures.cost)),
            share(figures.cost, before.cost),
            share(figures.effective, before.cost),
            rate(figures.missed / figures.demanded) if figures.demanded else "0",
            short(figures.peak),
            f"{figures.over:,}",
        ]
        for name, figures in (
            ("as logged", before),
            ("lossless forms", report.lossless),
            ("economic: forms and folds", report.after),
        )
    ]
    columns = ["", "tokens sent", "cached", "cost", "share", "with misses", "missed", "peak", "over the window"]
    yield "<h2>The bill</h2>"
    yield _table("Prompt tokens of all requests", columns, rows)
    if before.logged_requests:
        prompt, output = report.logged_usd()
        ratio = report.after.cost / before.cost if before.cost else 1.0
        yield (
            f"<p>The providers themselves reported {short(before.logged.prompt)} prompt tokens for "
            f"{before.logged_requests:,} requests, {share(before.logged.cache_read, before.logged.prompt)} of them "
            f"read from cache: {money(prompt)} for prompts and {money(output)} for answers at these prices. At the "
            f"same ratio the prompts would have come to about {money(prompt * ratio)}.</p>"
        )
    if report.folds:
        folds = "; ".join(f"{times:,} because {escape(why)}" for why, times in sorted(report.folds.items()))
        yield f'<p class="soft">Folds: {folds}.</p>'


def _tools(report: SavingsReport) -> Iterator[str]:
    shares = sorted(report.tools.items(), key=lambda item: (-item[1].cost, item[0]))
    if not shares:
        return
    shown, rest = shares[:_TOOLS], shares[_TOOLS:]
    if rest:
        other = Share()
        for _, one in rest:
            other.add(one)
        shown = [*shown, (f"{len(rest)} more", other)]
    most = max(one.cost for _, one in shown)
    rows = [
        [
            escape(name),
            f"{one.results:,}",
            money(report.usd(one.cost)),
            money(report.usd(one.after)),
            share(one.cost - one.after, one.cost),
            share(one.tokens - one.shown_tokens, one.tokens),
            draw.bar(one.cost, one.after, most),
        ]
        for name, one in shown
    ]
    yield "<h2>Where the money goes, by tool</h2>"
    columns = ["", "messages", "as logged", "after", "saved", "on arrival", "what is left of it"]
    yield _table("What each tool's results, and each speaker, cost in all requests together", columns, rows, bars=True)


def _timeline(report: SavingsReport) -> Iterator[str]:
    told = report.timeline
    if told is None:
        return
    yield "<h2>One session, turn by turn</h2>"
    yield (
        f"<p>{escape(told.session)}: each stripe is a page, as high as it was long, from the turn it came; its colour "
        "is the level at which it stood. Below, the tokens of every request as logged (grey) and after (green).</p>"
    )
    yield draw.legend()
    yield draw.timeline(told)
    if told.folds:
        rows = [
            [
                f"before answer {mark.turn + 1}",
                escape(mark.why),
                short(told.before[mark.turn]),
                short(told.after[mark.turn]),
            ]
            for mark in told.folds[:30]
        ]
        yield "<details><summary>Every fold of it, and why</summary>"
        yield _table("", ["fold", "because", "as logged", "after"], rows)
        yield "</details>"


def _policies(report: SavingsReport) -> Iterator[str]:
    points = report.points()
    if not points:
        return
    yield "<h2>Policies against each other</h2>"
    yield (
        "<p>Cost relative to sending the history as it is, misses priced in, over what was missed. Shaded is where at "
        "most 0.3 % was missed; nobody beats the points in bold.</p>"
    )
    yield draw.pareto(points)
    rows = [
        [
            escape(one.policy),
            short(one.window),
            f"{one.cost:.3f}",
            f"{one.effective:.3f}",
            rate(one.missed),
            f"{one.over:,}",
        ]
        for one in points
    ]
    yield _table("", ["policy", "window", "cost", "with misses", "missed", "over the window"], rows)


def _sessions(report: SavingsReport) -> Iterator[str]:
    rows = [
        [
            escape(row.id),
            f"{row.before.requests:,}",
            money(report.usd(row.before.cost)),
            money(report.usd(row.after.cost)),
            share(row.before.cost - row.after.cost, row.before.cost),
            rate(row.after.missed / row.after.demanded) if row.after.demanded else "0",
        ]
        for row in report.rows
    ]
    yield "<h2>The sessions that saved most</h2>"
    yield _table("", ["session", "requests", "as logged", "after", "saved", "missed"], rows)


def _codecs(report: SavingsReport) -> Iterator[str]:
    made = sorted(report.codecs.items(), key=lambda item: (item[1].shown_tokens - item[1].tokens, item[0]))
    rows = [
        [
            escape(name),
            f"{one.results:,}",
            short(one.tokens),
            short(one.shown_tokens),
            share(one.tokens - one.shown_tokens, one.tokens),
        ]
        for name, one in made[:_TOOLS]
    ]
    if rows:
        yield "<h2>Lossless forms, by codec</h2>"
        yield _table(
            "Each result once, on arrival; every form was decoded and compared before it counted",
            ["codecs", "results", "as it came", "as shown", "saved"],
            rows,
        )


def _reread(report: SavingsReport) -> Iterator[str]:
    rows = [
        [escape(label), f"{times:,}", f"{sessions:,}", short(size)]
        for label, (sessions, times, size) in report.most_reread()
    ]
    if rows:
        yield "<h2>What was read again most</h2>"
        yield _table("The same call in the same session", ["call", "times again", "sessions", "tokens again"], rows)


def _wasted(report: SavingsReport) -> Iterator[str]:
    if not report.wasted:
        return
    yield f"<h2>The {len(report.wasted)} results that wasted most</h2>"
    for one in report.wasted:
        yield (
            f"<details><summary><b>{escape(one.label)}</b>: {short(one.tokens)} tokens in {one.requests:,} requests, "
            f"{money(report.usd(one.cost))} as logged, {money(report.usd(one.after))} after</summary>"
        )
        yield f'<div class="pair">{_excerpt("As it came", one.tokens, one.before_text)}'
        yield f"{_excerpt(_form(one), one.shown_tokens, one.after_text)}</div></details>"


def _form(one: Waste) -> str:
    return f"On arrival ({one.codecs})" if one.codecs else "On arrival"


def _excerpt(title: str, size: int, text: str) -> str:
    body = f'<pre tabindex="0">{escape(text)}</pre>' if text else "<p>Left out.</p>"
    return f"<div><h3>{escape(title)}, {short(size)} tokens</h3>{body}</div>"


def _problems(report: SavingsReport) -> Iterator[str]:
    if report.problems.count:
        yield f"<h2>What could not be used</h2><p>{report.problems.summary}.</p><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in report.problems.lines)
        yield "</ul>"


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, bars: bool = False) -> str:
    """Cells are HTML already: whatever came from a log was escaped where it was taken."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    last = len(columns) - 1
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="bars">{cell}</td>' if bars and at == last else f"<td>{cell}</td>"
            for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    rows_of = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{title}{rows_of}</table></div>'
