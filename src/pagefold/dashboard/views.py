"""Makes the HTML of a session, of a page at its levels, and of search results, from values the caller looked up."""

from collections.abc import Sequence
from urllib.parse import urlencode

from pagefold.charts import LEVEL_WORDS, context_timeline, legend, request_strip
from pagefold.dashboard.layout import SHORT, clock, link, page, share, short
from pagefold.dashboard.overview import happened_list
from pagefold.dashboard.page_levels import DiffLine, Level
from pagefold.html import Html, HtmlChild, el
from pagefold.pages.page import handle_of
from pagefold.pages.search import SearchAnswer, SearchFailed, SearchHit
from pagefold.pages.store import ListedPage
from pagefold.telemetry.live import LiveSession, LiveView

_DECISIONS = 200


# ---- one session --------------------------------------------------------------------------------------------------


def session_page(session: LiveSession, live: LiveView, listings: Sequence[ListedPage]) -> str:
    about = " · ".join(filter(None, (session.agent or session.api, session.model, session.policy)))
    return page(
        f"Session {session.name[:SHORT]}",
        el("h1", f"Session {session.name[:SHORT]}"),
        el("p", about, class_="quiet"),
        el("div", session_part(session, live), id="part"),
        _pages(listings, session.name),
        live=session.name[:SHORT],
        seen=(session.changed, 0),
    )


def session_part(session: LiveSession, live: LiveView) -> Html:
    """Returns the part of a session's page that is updated while it is open."""
    figures = {
        "Tokens": short(session.tokens),
        "Saved": short(session.saved),
        "Cache reads": share(session.cache_read, session.prompt),
        "Turns": short(session.turns or session.calls),
        "Fold points": short(session.folds),
        "Faults": short(session.faults),
        "Recalls": short(session.recalls),
        "Output": short(session.output),
    }
    tiles = el("dl", (el("div", el("dt", k), el("dd", v)) for k, v in figures.items()), class_="tiles small")
    own = [one for one in live.happened if one.session == session.name]
    parts: list[HtmlChild] = [tiles]
    if session.bands:
        keys = ((f"dot {one}", f"{words} {session.levels.get(one, 0):,}") for one, words in LEVEL_WORDS.items())
        parts += [
            el("div", el("h2", "The last request"), legend(keys, "In which form"), class_="title"),
            request_strip(session.bands, session.tokens, session.head),
        ]
    if session.points:
        parts += [el("h2", "Turn by turn"), context_timeline(list(session.points))]
    if fold := session.last_fold:
        rows = [
            el("tr", el("td", one.place, class_="n"), el("td", one.level), el("td", one.part), el("td", one.reason))
            for one in fold.decisions[:_DECISIONS]
        ]
        head = el("tr", (el("th", name, scope="col") for name in ("Message", "Level", "In the digest", "Why")))
        table = el("table", el("thead", head), el("tbody", rows), class_="plain")
        counts = f"{len(fold.decisions):,} messages, {clock(fold.at)}: {fold.fold}"
        parts += [el("h2", "The last fold point"), el("p", counts, class_="quiet")]
        parts += [el("details", el("summary", "Every decision and its reason"), table)] if rows else []
    parts += [el("h2", "What happened"), happened_list(own, of=False)]
    return el("div", parts)


def _pages(listings: Sequence[ListedPage], within: str) -> Html | None:
    if not listings:
        return None
    rows = [
        el(
            "li",
            el("a", handle_of(one.page), href=link(handle_of(one.page), within)),
            el("span", str(one.kind or "page"), class_="badge calm"),
            el("span", one.name, class_="reason"),
        )
        for one in listings
    ]
    return el("section", el("h2", "Pages kept for recall"), el("ol", rows, class_="pages"), aria_label="Pages")


# ---- one page -----------------------------------------------------------------------------------------------------


def page_view(
    handle: str, where: str, within: str, levels: Sequence[Level], chosen: str, lines: Sequence[DiffLine]
) -> str:
    whole = levels[0].tokens
    columns = [
        el(
            "section",
            el("h2", str(one.level), class_=f"level {one.level}"),
            el("p", f"{one.tokens:,} tokens, {share(one.tokens, whole)}" if one.tokens else "", class_="quiet"),
            el("p", one.how, class_="quiet"),
            el("pre", one.text, tabindex="0", aria_label=f"The page at the level {one.level}"),
        )
        for one in levels
    ]
    others = [str(one.level) for one in levels[1:]]
    tabs = [
        el(
            "a",
            f"full → {level}",
            href=f"?{urlencode({'level': level, 'in': within})}#diff",
            aria_current="true" if level == chosen else None,
        )
        for level in others
    ]
    signs = {"-": "del", "+": "ins", "…": "em"}
    body = [el(signs.get(one.sign, "span"), f"{one.sign} {one.text}\n") for one in lines]
    changed = any(one.sign in "+-" for one in lines)
    diff = el("pre", body, class_="diff", tabindex="0", aria_label=f"What {chosen} changes")
    return page(
        f"Page {handle}",
        el("h1", f"Page {handle}"),
        el("p", where, class_="quiet"),
        el("div", columns, class_="levels"),
        el(
            "section",
            el("h2", "Difference", id="diff"),
            el("nav", tabs, class_="tabs", aria_label="Level to compare"),
            diff if changed else el("p", "No line is different.", class_="quiet"),
            aria_label="Difference",
        )
        if others
        else None,
    )


# ---- search -------------------------------------------------------------------------------------------------------


def search_page(query: str, searched: SearchAnswer | None) -> str:
    if searched is None:
        what: HtmlChild = el("p", "Words, names, paths, codes, quoted phrases.", class_="quiet")
    elif isinstance(searched, SearchFailed):
        what = el("p", searched.text, class_="wary note")
    elif not searched.found:
        what = el("p", f"No page speaks of {query!r}.", class_="quiet")
    else:
        what = el("ol", map(_found, searched.found), class_="found")
    return page("Search", el("h1", "Search"), what, query=query)


def _found(one: SearchHit) -> Html:
    return el(
        "li",
        el(
            "p",
            el("a", one.handle, href=link(one.handle, one.history)),
            el("span", str(one.kind or "page"), class_="badge calm"),
            el("span", one.name, class_="reason"),
        ),
        el("pre", one.excerpt, tabindex="0", aria_label=f"From line {one.line:,}"),
    )
