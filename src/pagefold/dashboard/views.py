"""The pages of the dashboard, each made of values: what is shown, in which words. Nothing here asks for anything."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from pagefold.dashboard.drawings import bar, legend, strip, timeline
from pagefold.dashboard.figures import Figures
from pagefold.dashboard.html import Child, Html, el
from pagefold.dashboard.levels import Level, Line
from pagefold.pages.page import handle_of
from pagefold.pages.search import Found, Searched, SearchFailed
from pagefold.pages.store import Listing
from pagefold.telemetry.events import LEVELS
from pagefold.telemetry.live import Happened, Live, Session

ROWS = 100
EVENTS = 40
SHORT = 8
_DECISIONS = 200
_WORDS = {
    "fold": "fold point",
    "refetch": "refetch",
    "duplicate_tool": "duplicate call",
    "duplicate_alert": "repeated call",
    "recall": "recall",
    "cold": "cold cache",
    "shrunk": "made smaller",
    "failed": "failed",
}
_TONES = {"fold": "calm", "recall": "calm", "cold": "wary", "shrunk": "wary", "duplicate_alert": "wary"}


def short(number: float) -> str:
    """1,234 as it is, then 12.3k, 4.56M, 7.89G. The script writes numbers alike."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            scaled = number / (1e3 if letter == "k" else size)
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{letter}"
    return f"{number:,.0f}"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%H:%M:%S}"


# ---- the frame ----------------------------------------------------------------------------------------------------


def page(title: str, *content: Child, query: str = "", live: str = "", seen: tuple[int, int] = (0, 0)) -> str:
    """`live` is what the script follows: "now", or the name of a session; `seen` is what it has seen already."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · pagefold"),
        el("link", rel="icon", href="data:,"),
        el("link", rel="stylesheet", href="/pagefold/style.css"),
        el("script", src="/pagefold/script.js", defer=True),
    )
    pause = el("button", "Pause", type="button", id="pause", aria_pressed="false", hidden=True)
    header = el(
        "header",
        el("a", "pagefold", href="/pagefold/", class_="brand"),
        el(
            "span", el("span", "", id="dot", aria_hidden="true"), el("span", "", id="state"), id="live", hidden=not live
        ),
        pause if live else None,
        el(
            "form",
            el("label", "Search pages", for_="q", class_="unseen"),
            el("input", id="q", name="q", type="search", value=query, placeholder="Search pages  ( / )"),
            role="search",
            action="/pagefold/search",
        ),
    )
    skip = el("a", "To the content", href="#content", class_="skip")
    main = el("main", *content, id="content", data_live=live or None, data_n=seen[0], data_k=seen[1])
    return "<!doctype html>" + el("html", head, el("body", skip, header, main), lang="en")


def notice(title: str, *words: Child) -> str:
    return page(title, el("section", el("h1", title), *(el("p", one) for one in words), class_="notice"))


def door() -> str:
    """What whoever has no key is shown."""
    words = "Open the address that pagefold serve or pagefold dashboard prints, or show the key here."
    form = el(
        "form",
        el("label", "Key", for_="key"),
        el("input", id="key", name="key", type="password", autocomplete="off", required=True),
        el("button", "Open", type="submit"),
        method="get",
        action="/pagefold/",
        class_="door",
    )
    return page("Key needed", el("section", el("h1", "Key needed"), el("p", words), form, class_="notice"))


# ---- what goes on now ---------------------------------------------------------------------------------------------


def tiles_of(live: Live, figures: Figures, now: float) -> dict[str, tuple[str, str, str]]:
    """By id: what is told, the figure, and words about it."""
    totals, mcp = live.totals, figures.mcp
    recent = [session for session in live.sessions.values() if now - session.last < 300]
    prompt = totals["fresh"] + totals["cache_read"] + totals["cache_write"]
    context = sum(session.tokens for session in recent if session.turns)
    faults = sum(count for kind, count in live.faults.items() if kind != "duplicate_alert")
    recalls = sum(live.recalls.values()) + mcp.get("own calls context_recall", 0)
    sent, read = mcp.get("tokens before", 0), mcp.get("tokens after", 0)
    early, answered = mcp.get("early calls", 0), mcp.get("calls answered early", 0)
    return {
        "sessions": ("Sessions now", short(len(recent)), f"{short(totals['turns'])} turns seen"),
        "context": ("Context now", short(context), "tokens in their last requests"),
        "saved": (
            "Saved",
            short(totals["saved"]),
            f"tokens, {share(totals['saved'], totals['saved'] + prompt)} of what came",
        ),
        "cache": ("Cache reads", share(totals["cache_read"], prompt), f"of {short(prompt)} prompt tokens"),
        "folds": ("Fold points", short(totals["folds"]), f"{short(totals['cold'])} found a cold cache"),
        "faults": ("Faults", short(faults), f"{short(recalls)} recalls"),
        "mcp": ("Tool results", share(sent - read, sent), f"saved of {short(sent)} tokens by MCP"),
        "early": ("Prefetch", short(answered), f"of {short(early)} early calls were used"),
        "store": ("Store", short(figures.pages), f"pages, {short(figures.stored_bytes)}B on disk"),
    }


def overview(live: Live, figures: Figures, now: float, *, notes: Sequence[str] = ()) -> str:
    tiles = el(
        "dl",
        (
            el(
                "div",
                el("dt", name),
                el("dd", figure, id=f"tile-{key}"),
                el("dd", words, id=f"words-{key}", class_="words"),
            )
            for key, (name, figure, words) in tiles_of(live, figures, now).items()
        ),
        class_="tiles",
    )
    rows = [session_row(session) for session in live.newest(ROWS)]
    columns = ("Session", "Context by level", "Tokens", "Saved", "Cache", "Turns", "Folds", "Faults", "Heard")
    head = el("tr", (el("th", name, scope="col", class_="n" if at > 1 else None) for at, name in enumerate(columns)))
    table = el(
        "div",
        el(
            "table",
            el("caption", "Sessions, the newest first", class_="unseen"),
            el("thead", head),
            el("tbody", rows, id="sessions"),
            class_="sessions",
        ),
        class_="wide",
    )
    empty = el("p", "No session has been heard of yet.", id="empty", class_="quiet", hidden=bool(rows))
    wrong = [el("p", one, class_="wary note") for one in (*notes, figures.wrong) if one]
    return page(
        "Now",
        el("h1", "Now", class_="unseen"),
        wrong,
        tiles,
        el("section", el("div", el("h2", "Sessions"), legend(), class_="title"), empty, table, aria_label="Sessions"),
        el("section", el("h2", "What happened"), _happened(live.happened), aria_label="What happened"),
        el("template", session_row(Session("0" * 64, 0, 0)), id="row"),
        live="now",
        seen=(live.number, live.told),
    )


def session_row(session: Session) -> Html:
    name = session.name[:SHORT]
    about = " · ".join(filter(None, (session.model, session.policy)))
    who = session.agent or session.api or "session"
    return el(
        "tr",
        el(
            "th",
            el("a", who, href=f"/pagefold/session/{name}"),
            el("span", about or "-", class_="about"),
            scope="row",
        ),
        el("td", bar([session.levels.get(level, 0) for level in LEVELS]), class_="bar"),
        _cell("Tokens", short(session.tokens)),
        _cell("Saved", short(session.saved)),
        _cell("Cache", share(session.cache_read, session.prompt)),
        _cell("Turns", short(session.turns or session.calls)),
        _cell("Folds", short(session.folds)),
        _cell("Faults", short(session.faults)),
        _cell("Heard", clock(session.last)),
        id=f"s-{name}",
        data_last=round(session.last, 3),
    )


def _cell(label: str, text: str) -> Html:
    return el("td", text, class_="n", data_label=label)


def _happened(happened: Iterable[Happened], *, of: bool = True) -> Html:
    newest = list(happened)[-EVENTS:][::-1]
    empty = el("p", "Folds, faults, recalls and errors are told here, with their reasons.", class_="quiet")
    made = (event_item(one, of=of) for one in newest)
    items = el("ol", made, id="happened", role="log", aria_live="polite", aria_label="What happened")
    return el("div", None if newest else empty, items)


def event_item(one: Happened, *, of: bool = True) -> Html:
    """`of` says whose it is too."""
    tone = _TONES.get(one.what, "bad")
    return el(
        "li",
        el("time", clock(one.at)),
        el("span", _WORDS.get(one.what, one.what.replace("_", " ")), class_=f"badge {tone}"),
        el("span", one.reason, class_="reason"),
        el("a", one.page, href=_link(one.page, one.session)) if one.page else None,
        el("a", one.session[:SHORT], href=f"/pagefold/session/{one.session[:SHORT]}", class_="of") if of else None,
    )


def update(live: Live, figures: Figures, now: float, number: int, told: int) -> dict[str, object]:
    """What changed since, for the script: in short arrays, since it is sent ten times a second."""
    return {
        "n": live.number,
        "at": round(now),
        "k": live.told,
        "t": {key: [figure, words] for key, (_, figure, words) in tiles_of(live, figures, now).items()},
        "s": [_changed(session, now) for _, session in zip(range(ROWS), live.changed_since(number), strict=False)],
        "h": [event_item(one) for one in live.happened if one.number > told][-EVENTS:],
    }


def _changed(session: Session, now: float) -> list[object]:
    cache = round(100 * session.cache_read / session.prompt) if session.prompt else -1
    about: list[object] = []
    if session.turns + session.calls <= 2:  # who it is stays as it is
        about = [session.agent or session.api or "session", " · ".join(filter(None, (session.model, session.policy)))]
    return [
        session.name[:SHORT],
        *(session.levels.get(level, 0) for level in LEVELS),
        session.saved,
        cache,
        session.turns or session.calls,
        session.folds,
        session.faults,
        round(now - session.last),
        *about,
    ]


# ---- one session --------------------------------------------------------------------------------------------------


def session_page(session: Session, live: Live, listings: Sequence[Listing]) -> str:
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


def session_part(session: Session, live: Live) -> Html:
    """What changes while it is looked at."""
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
    parts: list[Child] = [tiles]
    if session.bands:
        parts += [
            el("div", el("h2", "The last request"), legend(session.levels), class_="title"),
            strip(session.bands, session.tokens, session.head),
        ]
    if session.points:
        parts += [el("h2", "Turn by turn"), timeline(list(session.points))]
    if fold := session.last_fold:
        rows = [
            el("tr", el("td", one.place, class_="n"), el("td", one.level), el("td", one.reason))
            for one in fold.decisions[:_DECISIONS]
        ]
        head = el("tr", el("th", "Message", scope="col"), el("th", "Level", scope="col"), el("th", "Why", scope="col"))
        table = el("table", el("thead", head), el("tbody", rows), class_="plain")
        counts = f"{len(fold.decisions):,} messages, {clock(fold.at)}: {fold.fold}"
        parts += [el("h2", "The last fold point"), el("p", counts, class_="quiet")]
        parts += [el("details", el("summary", "Every decision and its reason"), table)] if rows else []
    parts += [el("h2", "What happened"), _happened(own, of=False)]
    return el("div", parts)


def _pages(listings: Sequence[Listing], within: str) -> Html | None:
    if not listings:
        return None
    rows = [
        el(
            "li",
            el("a", handle_of(one.page), href=_link(handle_of(one.page), within)),
            el("span", str(one.kind or "page"), class_="badge calm"),
            el("span", one.name, class_="reason"),
        )
        for one in listings
    ]
    return el("section", el("h2", "Pages kept for recall"), el("ol", rows, class_="pages"), aria_label="Pages")


def _link(handle: str, within: str) -> str:
    """To a page, as a history has it: there it has a name."""
    return f"/pagefold/page/{handle}?{urlencode({'in': within})}"


# ---- one page -----------------------------------------------------------------------------------------------------


def page_view(handle: str, where: str, within: str, levels: Sequence[Level], chosen: str, lines: Sequence[Line]) -> str:
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


def search_page(query: str, searched: Searched | None) -> str:
    if searched is None:
        what: Child = el("p", "Words, names, paths, codes, quoted phrases.", class_="quiet")
    elif isinstance(searched, SearchFailed):
        what = el("p", searched.text, class_="wary note")
    elif not searched.found:
        what = el("p", f"No page speaks of {query!r}.", class_="quiet")
    else:
        what = el("ol", map(_found, searched.found), class_="found")
    return page("Search", el("h1", "Search"), what, query=query)


def _found(one: Found) -> Html:
    return el(
        "li",
        el(
            "p",
            el("a", one.handle, href=_link(one.handle, one.history)),
            el("span", str(one.kind or "page"), class_="badge calm"),
            el("span", one.name, class_="reason"),
        ),
        el("pre", one.excerpt, tabindex="0", aria_label=f"From line {one.line:,}"),
    )


def status_of(counts: Mapping[str, int]) -> str:
    """What the trace has to tell of itself, where something is wrong with it."""
    lost = counts.get("dropped", 0) + counts.get("unwritable", 0)
    return f"{lost:,} events of the trace were not written." if lost else ""
