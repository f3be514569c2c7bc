"""The dashboard as an ASGI application: HTML pages made here, and short updates for open browser pages.

The model proxy mounts it below /pagefold/ to show what passes; `pagefold dashboard` runs it alone to show what a trace
says. It only reads. An open browser page asks for updates by long polling: an answer waits until something happens, at
most one or two seconds, so that no connection keeps the server from stopping.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from importlib import resources
from typing import NamedTuple
from urllib.parse import parse_qs

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.dashboard import layout, overview, views
from pagefold.dashboard.auth import COOKIE, DashboardAuth
from pagefold.dashboard.page_levels import difference, levels_of
from pagefold.dashboard.store_view import StoreView
from pagefold.errors import PagefoldError
from pagefold.pages.page import handle_of
from pagefold.pages.recall import Recalled, recall
from pagefold.pages.search import SearchAnswer
from pagefold.pages.store import ListedPage
from pagefold.telemetry import metrics
from pagefold.telemetry.live import LiveSession, LiveView, snapshot

_WAIT_SECONDS = 1.5
_TICK_SECONDS = 0.05
_LISTED = 100
_FOUND = 20
_HTML, _JSON = b"text/html; charset=utf-8", b"application/json"
_ASSETS = {"style.css": b"text/css; charset=utf-8", "script.js": b"text/javascript; charset=utf-8"}
_POLICY = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'"
)
_SAFE = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class HttpReply(NamedTuple):
    status: int
    kind: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


def assets() -> dict[str, tuple[bytes, bytes]]:
    """The files that pages ask for: their kinds and contents by name."""
    folder = resources.files("pagefold.dashboard") / "assets"
    return {name: (kind, (folder / name).read_bytes()) for name, kind in _ASSETS.items()}


async def sent_reply(answer: HttpReply, method: str, send: Send) -> None:
    status, kind, body, more = answer
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *_SAFE, *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


class Dashboard:
    """The application. `samples` gives further metrics for /pagefold/metrics. `refresh` is called before anything is
    shown; it reads the trace, if the view comes from one. `notes` gives sentences for the top of the page."""

    def __init__(
        self,
        live: LiveView,
        store_view: StoreView,
        auth: DashboardAuth,
        *,
        samples: Callable[[], Iterable[metrics.Sample]] = tuple,
        refresh: Callable[[], None] = lambda: None,
        notes: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._live, self._store_view, self._auth = live, store_view, auth
        self._samples, self._refresh, self._notes, self._clock = samples, refresh, notes, clock
        self._assets = assets()

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send, self._store_view.close)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        await sent_reply(await self._answer(scope), scope["method"], send)

    async def _answer(self, scope: Event) -> HttpReply:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        path = scope["raw_path"].decode("ascii", "replace").split("?")[0]
        query = {key: values[-1] for key, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        if self._auth.is_foreign(headers):
            return html_reply(403, layout.notice("Not from there", "Requests of other sites and hosts are refused."))
        if scope["method"] not in ("GET", "HEAD"):
            return html_reply(
                405,
                layout.notice("Nothing to change here", "The dashboard only reads."),
            )
        if (asset := self._assets.get(path.removeprefix("/pagefold/"))) is not None:
            return HttpReply(200, *asset)
        if path == "/":
            return HttpReply(303, _HTML, b"", ((b"location", b"/pagefold/"),))
        if "key" in query and self._auth.fits(query["key"].encode()):
            cookie = f"{COOKIE}={self._auth.cookie}; Path=/pagefold; HttpOnly; SameSite=Strict; Max-Age=31536000"
            return HttpReply(303, _HTML, b"", ((b"location", path.encode()), (b"set-cookie", cookie.encode())))
        if not self._auth.lets_in(headers):
            return html_reply(401, layout.key_form())
        self._refresh()
        try:
            return await self._shown(path, query)
        except PagefoldError as error:
            return html_reply(503, layout.notice("The store cannot be used", str(error)))

    async def _shown(self, path: str, query: Mapping[str, str]) -> HttpReply:
        match path.removeprefix("/pagefold").strip("/").split("/"):
            case [""]:
                figures = await self._store_view.fresh()
                return html_reply(
                    200, overview.overview_page(self._live, figures, self._clock(), notes=tuple(self._notes()))
                )
            case ["changes"]:
                return await self._update(_number(query.get("n")), _number(query.get("k")))
            case ["live.json"]:
                return _json({**snapshot(self._live), "figures": asdict(await self._store_view.fresh())})
            case ["metrics"]:
                return HttpReply(200, metrics.CONTENT_TYPE.encode(), (await self._metrics()).encode())
            case ["session", name, *rest]:
                return await self._session(name, rest, _number(query.get("n")))
            case ["page", handle]:
                return await asyncio.to_thread(
                    self._page, handle, query.get("in", ""), query.get("level", "compressed")
                )
            case ["search"]:
                words = query.get("q", "").strip()
                return html_reply(200, views.search_page(words, await asyncio.to_thread(self._search, words)))
        return html_reply(404, layout.notice("Not found", "There is no such page here."))

    async def _update(self, number: int, told: int) -> HttpReply:
        await self._until(lambda: self._live.number != number)
        return _json(overview.update(self._live, self._store_view.figures, self._clock(), number, told))

    async def _until(self, changed: Callable[[], bool]) -> None:
        ends = time.monotonic() + _WAIT_SECONDS
        while not changed() and time.monotonic() < ends:
            await asyncio.sleep(_TICK_SECONDS)
            self._refresh()

    async def _session(self, name: str, rest: list[str], number: int) -> HttpReply:
        session = self._live.named(name)
        if session is None:
            words = "It has had no event since pagefold started, or it was dropped for newer sessions."
            return html_reply(404, layout.notice("No such session", words))
        if rest != ["part"]:
            listings = await asyncio.to_thread(self._listings, session)
            return html_reply(200, views.session_page(session, self._live, listings))
        await self._until(lambda: session.changed != number)
        return _json({"n": session.changed, "html": views.session_part(session, self._live)})

    def _listings(self, session: LiveSession) -> list[ListedPage]:
        library = self._store_view.library()
        return list(library.store.pages.listings(session.name))[-_LISTED:][::-1] if library else []

    def _page(self, handle: str, within: str, chosen: str) -> HttpReply:
        library = self._store_view.library()
        found = recall(library.store.pages, handle) if library else None
        if not isinstance(found, Recalled):
            words = found.text if found else "There is no store yet."
            return html_reply(404, layout.notice("No such page", words))
        text = found.content.decode("utf-8", "replace")
        listed = library.store.pages.listings(within) if library and within else ()
        name = next((one.name for one in listed if one.page == found.page), "")
        levels = levels_of(found.content, name)
        other = next((one for one in levels[1:] if one.level == chosen), levels[-1])
        lines = list(difference(text, other.text)) if len(levels) > 1 else []
        where = " · ".join(filter(None, (name, f"{len(found.content):,} bytes", found.page)))
        return html_reply(200, views.page_view(handle_of(found.page), where, within, levels, str(other.level), lines))

    def _search(self, query: str) -> SearchAnswer | None:
        library = self._store_view.library() if query else None
        return library.search(query, limit=_FOUND) if library else None

    async def _metrics(self) -> str:
        figures = await self._store_view.fresh()
        return metrics.render(
            (
                *self._samples(),
                *metrics.of_live(self._live, self._clock()),
                *metrics.of_mcp(figures.mcp),
                *metrics.of_store(
                    figures.pages, figures.bytes, figures.stored_bytes, (figures.unsent, figures.unsent_bytes)
                ),
            )
        )


async def _lifespan(receive: Receive, send: Send, close: Callable[[], None]) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    close()
    await send({"type": "lifespan.shutdown.complete"})


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else 0


def html_reply(status: int, text: str) -> HttpReply:
    return HttpReply(status, _HTML, text.encode("utf-8", "replace"))


def _json(value: object) -> HttpReply:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return HttpReply(200, _JSON, text.encode("utf-8", "replace"))
