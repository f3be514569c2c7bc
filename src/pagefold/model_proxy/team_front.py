"""The front of a server that teams share: verifies a team's token, holds the team to its limits, and hands the request
to that team's own proxy.

Promises: without a valid token nothing is answered but health and readiness, and where tokens cannot be verified nobody
is let in. A token reaches neither the provider nor a log: every header that holds something like one is left out, and
where it stood in the place of the provider's key the server's own is put there. Each team has a proxy of its own, with
its own scope of the store, caches, counts and dashboard, so that nothing of one is there to be shown to another.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, unquote_to_bytes

from pagefold.access.budget import OverLimit
from pagefold.access.team import Team, TeamUse, dashboard_secret
from pagefold.adapters.asgi import App, Event, Lifespan, Receive, Send
from pagefold.door import FOREIGN, TOKEN_HEADER, Door
from pagefold.model_proxy.http import CAME_WITH, PROJECT_HEADER, Headers, only_legible, refuse, reply
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.readiness import PATHS, Readiness
from pagefold.model_proxy.server_key import goes_with
from pagefold.model_proxy.totals import Seen
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.telemetry.events import agent_name, model_name
from pagefold.wire import json_text
from pagefold.wire.api import ApiProvider
from pagefold.wire.api_paths import error_at
from pagefold.wire.apis import providers

COOKIE = "pagefold_team"
_TOKEN = re.compile(rb"pf_[A-Za-z0-9_-]{20,}")
_PROJECT = re.compile(r"[\w.:/@+-]{1,60}", re.ASCII)
_KEY_HEADERS = frozenset((b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"))
_UNKNOWN = "this pagefold asks for a team's token, in x-pagefold-token or in place of the provider's key"
_SHUT = "teams cannot be looked up now: the access store does not answer"
_NOT_FOR_IT = (
    "the key that this pagefold holds goes with requests to models alone, because what else is kept under it belongs "
    "to all teams: send a key of your own, and the team's token in x-pagefold-token"
)
_IN_QUERY = "a team's token belongs in a header, not in the address"
_COOKIE = "Path=/pagefold; HttpOnly; SameSite=Strict; Max-Age=2592000"


class Gate(Protocol):
    """Who is let in: see `adapters.access_gate`."""

    @property
    def is_shut(self) -> bool: ...

    def team_of(self, token: str) -> Team | None: ...

    def team_of_secret(self, secret: str) -> Team | None: ...

    def admit(self, team: Team) -> OverLimit | None: ...

    def add(self, team: str, project: str, agent: str, model: str, counts: TeamUse) -> None: ...


class TeamProxy(NamedTuple):
    """A team's proxy, and the key of its dashboard, which only the front knows."""

    proxy: Proxy
    key: str = ""


class TeamFront:
    """The ASGI application. `open_team` makes the proxy of a team when its first request comes; `keys` are the
    provider's keys that the server holds, by upstream; `operator` answers below /pagefold to whoever shows the
    operator's token, which is that of the `door`."""

    def __init__(
        self,
        gate: Gate,
        open_team: Callable[[str], TeamProxy],
        upstreams: Upstreams,
        *,
        door: Door,
        readiness: Readiness,
        keys: Mapping[str, str] | None = None,
        operator: App | None = None,
    ) -> None:
        self.gate, self._open, self._upstreams = gate, open_team, upstreams
        self._door, self.readiness, self._keys, self._operator = door, readiness, dict(keys or {}), operator
        self._teams: dict[str, tuple[TeamProxy, Lifespan]] = {}
        self._opening: dict[str, asyncio.Task[TeamProxy]] = {}

    @property
    def proxies(self) -> dict[str, Proxy]:
        """The proxies of the teams that have asked, by team."""
        return {name: opened.proxy for name, (opened, _) in self._teams.items()}

    def drain(self) -> None:
        self.readiness.draining = True

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for _, lifespan in self._teams.values():
                await lifespan.stop()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: Event, receive: Receive, send: Send) -> None:
        path, named = scope["raw_path"], dict(scope["headers"])
        error = error_at(scope["path"])
        if self._door.is_foreign(named):
            await refuse(send, 403, error("permission_error", FOREIGN))
        elif path in PATHS and scope["method"] in ("GET", "HEAD"):
            await reply(send, *self.readiness.answer(path))
        elif path == b"/pagefold" or path.startswith(b"/pagefold/"):
            await self._serve_own_paths(named, scope, receive, send)
        elif (team := self.gate.team_of(token_in(named))) is None:
            shut = self.gate.is_shut
            status, kind, words = (503, "api_error", _SHUT) if shut else (401, "authentication_error", _UNKNOWN)
            await reply(send, status, json_text.bytes_of(error(kind, words)), *_retry(5 if shut else 0))
        elif _TOKEN.search(unquote_to_bytes(path + b"?" + scope["query_string"])):
            await refuse(send, 400, error("invalid_request_error", _IN_QUERY))
        elif over := self.gate.admit(team):
            body = json_text.bytes_of(error("rate_limit_error", over.sentence))
            await reply(send, 429, body, *_retry(over.retry_after))
        else:
            headers, problem = self._headers(scope)
            if problem:
                status, kind = (403, "permission_error") if problem == _NOT_FOR_IT else (401, "authentication_error")
                await refuse(send, status, error(kind, problem))
                return
            opened = await self._opened(team.name)
            await opened.proxy({**scope, "headers": headers, CAME_WITH: scope["headers"]}, receive, send)

    async def _serve_own_paths(self, named: Mapping[bytes, bytes], scope: Event, receive: Receive, send: Send) -> None:
        """Answers below /pagefold: to a team about itself, to the operator about all."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        shown = query.get("key", [""])[-1] or token_in(named)
        if self._operator is not None and self._door.token and _is_operator(self._door, named, shown):
            await self._operator(scope, receive, send)
            return
        team = self.gate.team_of(shown) or self.gate.team_of_secret(_cookie(named, COOKIE))
        if team is None:
            if self._operator is not None:  # it shows its form, and knows its own cookie
                await self._operator(scope, receive, send)
            else:
                await refuse(send, 401, error_at(scope["path"])("authentication_error", _UNKNOWN))
        elif "key" in query:
            cookie = f"{COOKIE}={dashboard_secret(shown)}; {_COOKIE}".encode()
            headers = [
                (b"location", scope["raw_path"].split(b"?")[0]),
                (b"set-cookie", cookie),
                (b"content-length", b"0"),
            ]
            await send({"type": "http.response.start", "status": 303, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            opened = await self._opened(team.name)
            headers = _without_tokens(scope["headers"])
            await opened.proxy({**scope, "headers": [*headers, (TOKEN_HEADER, opened.key.encode())]}, receive, send)

    def _headers(self, scope: Event) -> tuple[Headers, str]:
        """The headers for the provider: without the token, and with the key that the server holds where the client has
        none. And why the request does not go on: the server holds no key in whose place the token could stand, or none
        that goes with such a request."""
        path, headers = scope["raw_path"], scope["headers"]
        kept = only_legible(_without_tokens(headers))
        if any(name in _KEY_HEADERS for name, _ in kept):
            return kept, ""
        name = self._upstreams.name_of(path, headers)
        if key := self._keys.get(name, ""):
            if not goes_with(scope["method"], path.decode("latin-1")):
                return kept, _NOT_FOR_IT
            header, before = providers().get(name, _ANY_PROVIDER).key_header
            return [*kept, (header, before + key.encode())], ""
        if any(name in _KEY_HEADERS for name, _ in headers):
            return (
                kept,
                f"this pagefold holds no key of {name}: send your own, and the team's token in x-pagefold-token",
            )
        return kept, ""

    async def _opened(self, team: str) -> TeamProxy:
        """The proxy of a team, which serves by now."""
        if team in self._teams:
            return self._teams[team][0]
        if team not in self._opening:
            self._opening[team] = asyncio.get_running_loop().create_task(self._start(team))
        try:
            return await asyncio.shield(self._opening[team])
        finally:
            if self._opening.get(team) is not None and self._opening[team].done():
                del self._opening[team]

    async def _start(self, team: str) -> TeamProxy:
        opened = self._open(team)
        opened.proxy.meter = self._meter(team)
        lifespan = Lifespan(opened.proxy)
        await lifespan.start()
        self._teams[team] = opened, lifespan
        return opened

    def _meter(self, team: str) -> Callable[[Seen, Mapping[bytes, bytes]], None]:
        def meter(seen: Seen, headers: Mapping[bytes, bytes]) -> None:
            project = headers.get(PROJECT_HEADER, b"").decode("latin-1")
            agent = agent_name(headers.get(b"user-agent", b"").decode("latin-1"))
            model = model_name(seen.model, answered=seen.usage is not None)
            self.gate.add(team, project if _PROJECT.fullmatch(project) else "", agent, model, use_of(seen))

        return meter


_ANY_PROVIDER = ApiProvider("")


def use_of(seen: Seen) -> TeamUse:
    """What an exchange counts for its team."""
    usage, reckoned = seen.usage, seen.reckoned
    if seen.charge is not None:
        prompt, cached, output, usd = seen.charge.prompt, seen.charge.cached, seen.charge.output, seen.charge.usd
    else:
        prompt, cached, output = (usage.prompt, usage.cache_read, usage.output) if usage else (0, 0, 0)
        usd = reckoned.usd
    money = round(1e6 * usd), round(1e6 * reckoned.usd_saved)
    return TeamUse(int(bool(seen.api)), prompt, cached, output, seen.work.saved, *money)


def token_in(named: Mapping[bytes, bytes]) -> str:
    """The token that a request shows, in the header of its own or in the place of a provider's key; "" without one."""
    if shown := named.get(TOKEN_HEADER, b""):
        return shown[:200].decode("latin-1").strip()
    for header in _KEY_HEADERS:
        scheme, _, value = named.get(header, b"").rpartition(b" ")
        if value.startswith(b"pf_") and scheme.lower() in (b"", b"bearer"):
            return value[:200].decode("latin-1")
    return ""


def _without_tokens(headers: Headers) -> Headers:
    """The headers that hold no token, and not the cookie that stands for one."""
    return [
        (name, value)
        for name, value in headers
        if name != TOKEN_HEADER and not _TOKEN.search(value) and not (name == b"cookie" and COOKIE.encode() in value)
    ]


def _is_operator(door: Door, named: Mapping[bytes, bytes], shown: str) -> bool:
    return door.lets_in({**named, TOKEN_HEADER: shown.encode("latin-1", "replace")})


def _cookie(named: Mapping[bytes, bytes], name: str) -> str:
    try:
        found = SimpleCookie(named.get(b"cookie", b"").decode("latin-1")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _retry(seconds: int) -> list[tuple[bytes, bytes]]:
    return [(b"retry-after", str(seconds).encode())] if seconds else []
