"""Writes a report as one HTML file that needs nothing else: no script, no font, no picture from anywhere.

Everything that came out of a log is escaped; a page that is opened asks no network for anything, and says so to the
browser.
"""

from collections.abc import Iterable, Iterator, Sequence

from pagefold import charts
from pagefold.analysis.compare import MISSED, WORST_FROM
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.report import EXAMPLE, SavingsReport
from pagefold.analysis.report.figures import (
    BILL_COLUMNS,
    GROUP_COLUMNS,
    Figure,
    bill_rows,
    figures_of,
    group_rows,
    notes_of,
    saved_share,
)
from pagefold.analysis.report.markdown import CACHE_COLUMNS, LOSS_COLUMNS, cache_cells, loss_cells, policy_cells
from pagefold.analysis.session_report import Share
from pagefold.html import Html, HtmlChild, el
from pagefold.number_format import money, rate, several, share, short
from pagefold.package_data import package_text

_ROWS = 15
_WHAT = (
    "An agent sends its whole history to the model with every request. pagefold stands between the two and sends the "
    "same history in fewer tokens. This page compares what these sessions cost with what they would have cost."
)
_NOT_SHOWN = (
    "What no log can show: whether the agent would have worked as well. The same answers are assumed here; "
    "`pagefold run --trial 0.2` compares sessions with and without it on your own work."
)
_HOW_BILL = (
    "What was paid is the usage that the provider reported, times list prices; where a log holds none, the messages "
    "counted, with the cache that the provider has. A policy's row is that with the tokens it leaves out taken away "
    "where they would have been read or written. Misses are answers that used something which the request would no "
    "longer have held: one more round trip each. Edits gone are edits that replaced a text which the request would no "
    "longer have held: a refused try, a fetch, and the edit once more. After the sign ± stands by how much, in 95 of "
    "100, the same model is off on what was logged. By model and by project, the interval is of that group's own "
    "sessions."
)
_HOW_TOOLS = (
    "The sessions are replayed with their system prompt: each message is charged for every time it was written to the "
    "cache and read from it, at its place in the request. After a fold, a result is charged its share of the one "
    "message that stands for it. All rows together are the whole cost of the replayed prompts, which may differ a "
    "little from the bill above: there the provider's own figures decide what was read from the cache."
)
_HOW_TIMELINE = (
    "This session is replayed under the policy economic, message by message; nothing is drawn that was not in a "
    "request. Tokens are counted, not reported. A fault is a call made again whose result a fold had left out."
)
_HOW_POLICIES = (
    "Each policy is replayed on the same sessions with the same window and prices. Cost is that of the prompts against "
    "the history as it is; missed is of the facts (names, numbers, paths) that later answers used."
)
_HOW_SESSIONS = (
    "Paid is the session's own bill, answers included. With folds is the same under the policy economic, misses priced "
    "in. The sessions are sorted by the money saved; those that lose are counted in the bill above."
)
_HOW_CODECS = (
    "Each result is counted once, when it first came: its tokens as the tool wrote it, and in the cheapest form that "
    "decodes to the same. Names joined by + were used one on the other. As it is: nothing shorter decoded to the same."
)
_HOW_REREAD = (
    "A call with the same tool and the same arguments as an earlier one of its session; the tokens are those of the "
    "later results. It may have been needed: the file may have changed in between."
)
_MISSED = "Missed: of the facts that later answers used, so many the request would no longer have held"
_BILL = (
    "At list prices. Answers cost the same under every policy. Misses, and edits whose text was gone, are priced as "
    "the extra turns they would have taken"
)
_TOOLS = (
    "What each tool's results, and each speaker, cost over all requests: a result is paid for again with every later "
    "request. On arrival: how much shorter it is when it first comes, by lossless forms alone"
)
_TITLE = "What your agents cost, and what pagefold would save"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MARKS = {"fold": "fold point", "miss": "a fact was missed", "fault": "fault"}


def page(report: SavingsReport) -> str:
    style = package_text("pagefold.analysis.report", "style.css").strip()
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("link", rel="icon", href="data:,"),
        el("title", _TITLE),
        el("style", Html(style)),
    )
    skip = el("a", "Skip to the figures", class_="skip", href="#figures")
    body = el("body", skip, el("main", el("h1", _TITLE), _sections(report)))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _sections(report: SavingsReport) -> Iterator[Html]:
    if not report.sessions:
        yield el("p", report.nothing)
    else:
        yield from _headline(report)
        yield from _trial(report)
        yield from _bill(report)
        yield from _cache_losses(report)
        yield from _tools(report)
        yield from _timeline(report)
        yield from _policies(report)
        yield from _sessions(report)
        yield from _codecs(report)
        yield from _reread(report)
        yield from _wasted(report)
        yield el("h2", "What was measured, and what was estimated", id="notes")
        yield el("ul", (el("li", note) for note in notes_of(report)))
    if report.problems.count:
        yield el("h2", "What could not be used")
        yield el("p", f"{report.problems.summary}.")
        yield el("ul", (el("li", line) for line in report.problems.lines))


def _headline(report: SavingsReport) -> Iterator[Html]:
    sources = ", ".join(sorted(report.totals["identity"].sources))
    sessions, requests = several(report.sessions, "session"), several(report.before.requests, "request")
    when = f", {report.period}" if report.period else ""
    if report.example:
        yield el("p", el("b", EXAMPLE))
    yield el("p", _WHAT)
    yield el("p", f"{sessions} with {requests}, from {sources}{when}.", class_="soft")
    yield el("ul", map(_card, figures_of(report)), class_="cards", id="figures")
    if report.worst[1]:
        worst = f"The session that gains least would have cost {_more_or_less(report.worst[0])} with folds, misses"
        yield el("p", f"{worst} priced in (of those with {WORST_FROM} requests or more).")
    yield el("p", _with_code(_NOT_SHOWN))


def _more_or_less(ratio: float) -> str:
    percent = round(100 * abs(ratio - 1))
    return f"{percent} % {'more' if ratio > 1 else 'less'}" if percent else "as much"


def _trial(report: SavingsReport) -> Iterator[Html]:
    trial = report.trial
    if trial.sessions:
        groups = f"{several(trial.treated, 'session')} behind pagefold, {trial.held_out:,} held out, chosen by hash."
        yield el("h2", "Does it work as well? Your own trial")
        yield el("p", trial.verdict)
        yield el("p", f"{groups} Each interval holds the truth in 95 of 100 trials by itself.", class_="soft")


def _card(figure: Figure) -> Html:
    how = el("details", el("summary", "how"), el("p", figure.how), class_="how")
    return el(
        "li",
        el("b", _unbroken(figure.value)),
        el("span", _with_code(figure.words)),
        how,
        class_="good" if figure.good else None,
    )


def _how(words: str) -> Html:
    """How the figures of a section were got, a click away."""
    return el("details", el("summary", "how"), el("p", words, class_="inside"), class_="how")


def _unbroken(value: str) -> str:
    """A share and an amount, each on one line: in a narrow card the amount stands below."""
    return value.replace(" ", "\u00a0").replace("\u00a0(", " (")


def _with_code(words: str) -> Iterator[HtmlChild]:
    """A sentence in which what stands in backticks is code."""
    for place, part in enumerate(words.split("`")):
        yield el("code", part) if place % 2 else part


def _missed(figures: ReplayFigures) -> str:
    return rate(figures.missed_share) if figures.demanded else "0"


def _bill(report: SavingsReport) -> Iterator[Html]:
    yield el("h2", "The bill")
    yield _table(_BILL, BILL_COLUMNS, bill_rows(report))
    if report.folds:
        folds = "; ".join(f"{times:,} because {why}" for why, times in sorted(report.folds.items()))
        yield el("p", f"Folds of the economic policy: {folds}.", class_="soft")
    for what, groups in (("model", report.models), ("project", report.projects)):
        named = {name or "not recorded": bill for name, bill in groups.items()}
        if len(named) > 1 or (what == "model" and "" not in groups):
            yield el("h3", f"By {what}")
            yield _table("With folds (--policy economic), misses priced in", GROUP_COLUMNS, group_rows(named))
    yield _tokens(report)
    yield _how(_HOW_BILL)


def _tokens(report: SavingsReport) -> Html:
    rows = [
        (
            name,
            short(figures.tokens),
            share(figures.cached_tokens, figures.tokens),
            _missed(figures),
            short(figures.peak),
            f"{figures.over:,}",
        )
        for name, figures in (
            ("history as it is", report.before),
            ("lossless forms", report.lossless),
            ("economic: forms and folds", report.after),
        )
    ]
    columns = ("", "tokens sent", "cached", "missed", "peak", "over the window")
    table = _table("Prompt tokens of all requests, as replayed", columns, rows)
    return el("details", el("summary", "In tokens, as replayed"), el("div", table, class_="inside"))


def _cache_losses(report: SavingsReport) -> Iterator[Html]:
    if not report.cache_losses:
        return
    lost = report.usd(sum(one.cost for one in report.cache_losses.values()))
    how = (
        "A loss is a request of which the provider read less from its cache than the one before had left there. Why is "
        "what the provider said, where a client logged it; else what times and usage show. It costs what these tokens "
        "cost more in being written than in being read. A policy's bill above holds the same losses."
    )
    yield el("h2", "Who broke the provider's cache")
    yield el("p", f"{money(lost)}, {share(lost, report.bill.happened.both)} of what was paid.")
    yield _table("", CACHE_COLUMNS, cache_cells(report))
    if dearest := loss_cells(report):
        yield el("details", el("summary", "The dearest, one by one"), _table("", LOSS_COLUMNS, dearest))
    yield _how(how)


def _tools(report: SavingsReport) -> Iterator[Html]:
    shares = sorted(report.tools.items(), key=lambda item: (-item[1].cost, item[0]))
    if not shares:
        return
    shown, rest = shares[:_ROWS], shares[_ROWS:]
    if rest:
        other = Share()
        for _, one in rest:
            other.add(one)
        shown = [*shown, (f"{len(rest)} more", other)]
    most = max(one.cost for _, one in shown)
    rows = [
        (
            name,
            f"{one.results:,}",
            money(report.usd(one.cost)),
            money(report.usd(one.after)),
            share(one.cost - one.after, one.cost),
            share(one.tokens - one.shown_tokens, one.tokens),
            charts.share_bar(one.cost, one.after, most),
        )
        for name, one in shown
    ]
    columns = ("", "messages", "cost as logged", "with folds", "saved", "on arrival", "what is left of it")
    yield el("h2", "Where the money goes, by tool")
    yield _table(_TOOLS, columns, rows, bars=True)
    yield _how(_HOW_TOOLS)


def _timeline(report: SavingsReport) -> Iterator[Html]:
    data = report.timeline
    if data is None:
        return
    yield el("h2", "One session, turn by turn")
    yield el(
        "p",
        f"{data.session}: each stripe is one message or result, as high as it is long, from the turn it came; its "
        "colour is the form in which it was sent. Below, the tokens of every request as logged (grey) and with folds "
        "(green).",
    )
    keys = [(f"key {level}", words) for level, words in charts.LEVEL_WORDS.items()]
    yield charts.legend([*keys, *((f"key line {name}", words) for name, words in _MARKS.items())])
    yield charts.session_timeline(data)
    if data.folds:
        rows = [
            (f"before answer {mark.turn + 1}", mark.why, short(data.before[mark.turn]), short(data.after[mark.turn]))
            for mark in data.folds[:30]
        ]
        table = _table("", ("fold", "because", "as logged", "after"), rows)
        yield el("details", el("summary", "Every fold of it, and why"), table)
    yield _how(_HOW_TIMELINE)


def _policies(report: SavingsReport) -> Iterator[Html]:
    points = report.points()
    if not points:
        return
    yield el("h2", "Policies against each other")
    yield el(
        "p",
        "Cost relative to sending the history as it is, misses priced in, over what was missed. Shaded is where at "
        "most 0.3 % was missed; nobody beats the points in bold.",
    )
    named = [
        charts.CostPoint(f"{one.choice.policy} {short(one.choice.window)}", one.effective, one.missed) for one in points
    ]
    yield charts.cost_over_misses(named, MISSED)
    rows = [(*policy_cells(one), f"{one.total.over:,}") for one in points]
    yield _table("", ("policy", "window", "cost", "with misses", "missed", "over the window"), rows)
    yield _how(_HOW_POLICIES)


def _sessions(report: SavingsReport) -> Iterator[Html]:
    rows = []
    for row in report.rows:
        bill = row.value.bill
        paid, left = bill.happened.both, bill.with_misses("economic").both
        missed = _missed(row.value.figures["economic"])
        rows.append(
            (
                row.id,
                saved_share(bill, "economic") if paid else "-",
                money(paid),
                money(left),
                f"{bill.requests:,}",
                missed,
            )
        )
    yield el("h2", "The sessions that would have saved most")
    yield _table(_MISSED, ("session", "saved", "paid", "with folds", "requests", "missed"), rows)
    yield _how(_HOW_SESSIONS)


def _codecs(report: SavingsReport) -> Iterator[Html]:
    by_saving = sorted(report.codecs.items(), key=lambda item: (item[1].shown_tokens - item[1].tokens, item[0]))
    rows = [
        (
            name,
            f"{one.results:,}",
            short(one.tokens),
            short(one.shown_tokens),
            share(one.tokens - one.shown_tokens, one.tokens),
        )
        for name, one in by_saving[:_ROWS]
    ]
    if rows:
        caption = "Each result once, on arrival; every form was decoded and compared before it counted"
        yield el("h2", "Lossless forms, by codec")
        yield _table(caption, ("codecs", "results", "as it came", "as shown", "saved"), rows)
        yield _how(_HOW_CODECS)


def _reread(report: SavingsReport) -> Iterator[Html]:
    rows = [
        (label, f"{times:,}", f"{sessions:,}", short(size)) for label, (sessions, times, size) in report.most_reread()
    ]
    if rows:
        yield el("h2", "What was read again most")
        yield _table("The same call in the same session", ("call", "times again", "sessions", "tokens again"), rows)
        yield _how(_HOW_REREAD)


def _wasted(report: SavingsReport) -> Iterator[Html]:
    if report.wasted:
        yield el("h2", "The results that cost most beyond need")
        words = "Each was sent again and again; with folds it would have been shorter, or gone until it is asked for."
        yield el("p", words, class_="soft")
    for one in report.wasted:
        costs = f"{money(report.usd(one.cost))} as logged, {money(report.usd(one.after))} with folds"
        words = f": {short(one.tokens)} tokens in {one.requests:,} requests, {costs}"
        pair = (
            _excerpt("As it came", one.tokens, one.before_text),
            _excerpt(f"On arrival ({one.codecs})", one.shown_tokens, one.after_text),
        )
        yield el("details", el("summary", el("b", one.label), words), el("div", pair, class_="pair"), class_="listed")


def _excerpt(title: str, size: int, text: str) -> Html:
    body = el("pre", text, tabindex="0") if text else el("p", "Left out.")
    return el("div", el("h3", f"{title}, {short(size)} tokens"), body)


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[HtmlChild]], *, bars: bool = False) -> Html:
    """`bars`: the last column holds bars."""
    last = len(columns) - 1 if bars else None
    body = (
        el("tr", (el("td", cell, class_="bars" if place == last else None) for place, cell in enumerate(row)))
        for row in rows
    )
    head = el("thead", el("tr", (el("th", column, scope="col") if column else el("td") for column in columns)))
    table = el("table", el("caption", caption) if caption else None, head, el("tbody", body))
    return el("div", table, class_="scroll", tabindex="0")
