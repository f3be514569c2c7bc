"""Makes the start page (tiles, sessions, incidents), and the updates that its script asks for."""

from collections.abc import Iterable, Mapping, Sequence

from pagefold.charts import LEVEL_WORDS, LEVELS, legend, level_bar
from pagefold.dashboard.layout import SHORT, clock, link, page, share, short
from pagefold.dashboard.store_view import StoreFigures
from pagefold.html import Html, el
from pagefold.telemetry.live import Incident, LiveSession, LiveView

ROWS = 100
EVENTS = 40
_WORDS = {
    "fold": "fold point",
    "begun_anew": "begun anew",
    "refetch": "refetch",
    "duplicate_tool": "duplicate call",
    "duplicate_alert": "repeated call",
    "recall": "recall",
    "cold": "cold cache",
    "shrunk": "made smaller",
    "failed": "failed",
}
_TONES = {"fold": "calm", "recall": "calm"} | dict.fromkeys(("begun_anew", "cold", "shrunk", "duplicate_alert"), "wary")


def tiles_of(live: LiveView, figures: StoreFigures, now: float) -> dict[str, tuple[str, str, str]]:
    """Returns by the tile's id: its title, its figure, and a few words about it."""
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
        "faults": ("Faults", short(faults), f"left out but needed; {short(recalls)} recalls"),
        "mcp": ("Tool results", share(sent - read, sent), f"saved of {short(sent)} tokens by MCP"),
        "early": ("Prefetch", short(answered), f"of {short(early)} early calls were used"),
        "store": ("Store", short(figures.pages), f"pages, {short(figures.stored_bytes)}B on disk"),
    }


def overview_page(live: LiveView, figures: StoreFigures, now: float, *, notes: Sequence[str] = ()) -> str:
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
    columns = (
        "Session",
        "What the last request holds",
        "Tokens",
        "Saved",
        "Cache",
        "Turns",
        "Folds",
        "Faults",
        "Heard",
    )
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
    empty = el("p", "No session has been seen yet.", id="empty", class_="quiet", hidden=bool(rows))
    wrong = [el("p", one, class_="wary note") for one in (*notes, figures.wrong) if one]
    levels = legend(((f"dot {level}", words) for level, words in LEVEL_WORDS.items()), "In which form")
    return page(
        "Now",
        el("h1", "Now", class_="unseen"),
        wrong,
        tiles,
        el("section", el("div", el("h2", "Sessions"), levels, class_="title"), empty, table, aria_label="Sessions"),
        el("section", el("h2", "What happened"), happened_list(live.happened), aria_label="What happened"),
        el("template", session_row(LiveSession("0" * 64, 0, 0)), id="row"),
        live="now",
        seen=(live.number, live.told),
    )


def session_row(session: LiveSession) -> Html:
    name = session.name[:SHORT]
    who, about = _whose(session)
    return el(
        "tr",
        el(
            "th",
            el("a", who, href=f"/pagefold/session/{name}"),
            el("span", about, class_="about"),
            scope="row",
        ),
        el("td", level_bar([session.levels.get(level, 0) for level in LEVELS]), class_="bar"),
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


def _whose(session: LiveSession) -> tuple[str, str]:
    """Returns the agent's name, and what distinguishes this session from others of the same agent."""
    said = (session.name[:SHORT], session.model, session.policy)
    return session.agent or session.api or "session", " · ".join(filter(None, said))


def _cell(label: str, text: str) -> Html:
    return el("td", text, class_="n", data_label=label)


def happened_list(happened: Iterable[Incident], *, of: bool = True) -> Html:
    newest = list(happened)[-EVENTS:][::-1]
    empty = el("p", "Folds, faults, recalls and errors are told here, with their reasons.", class_="quiet")
    made = (event_item(one, of=of) for one in newest)
    items = el("ol", made, id="happened")
    return el("div", None if newest else empty, items, role="log", aria_live="polite", aria_label="What happened")


def event_item(one: Incident, *, of: bool = True) -> Html:
    """Returns one incident as a list item; with `of`, with a link to its session."""
    tone = _TONES.get(one.what, "bad")
    return el(
        "li",
        el("time", clock(one.at)),
        el("span", _WORDS.get(one.what, one.what.replace("_", " ")), class_=f"badge {tone}"),
        el("span", one.reason, class_="reason"),
        el("a", one.page, href=link(one.page, one.session)) if one.page else None,
        el("a", one.session[:SHORT], href=f"/pagefold/session/{one.session[:SHORT]}", class_="of") if of else None,
    )


def update(live: LiveView, figures: StoreFigures, now: float, number: int, told: int) -> dict[str, object]:
    """Returns what changed since the event `number` and the incident `told`, as short arrays for the script."""
    return {
        "n": live.number,
        "at": round(now),
        "k": live.told,
        "t": {key: [figure, words] for key, (_, figure, words) in tiles_of(live, figures, now).items()},
        "s": [_changed(session, now) for _, session in zip(range(ROWS), live.changed_since(number), strict=False)],
        "h": [event_item(one) for one in live.happened if one.number > told][-EVENTS:],
    }


def _changed(session: LiveSession, now: float) -> list[object]:
    cache = round(100 * session.cache_read / session.prompt) if session.prompt else -1
    about: list[object] = []
    if session.turns + session.calls <= 2:  # sent only at the beginning: it does not change
        about = [*_whose(session)]
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


def status_of(counts: Mapping[str, int]) -> str:
    """Returns a sentence about events that could not be written to the trace, or nothing."""
    lost = counts.get("dropped", 0) + counts.get("unwritable", 0)
    return f"{lost:,} events of the trace were not written." if lost else ""
