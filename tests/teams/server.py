"""A server for teams on loopback, with its access store in reach, for tests."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pagefold.access.store import AccessStore
from pagefold.access.team import AdministrativeAct, IssuedToken, Team, TeamLimits, stored_hash, token_id
from pagefold.adapters.stores import open_access
from pagefold.cli.serve_teams import opened_front
from pagefold.model_proxy.server import running
from pagefold.model_proxy.team_front import TeamFront
from pagefold.settings.sections import ServeSettings, Settings, StoreSettings, UpstreamTable

OPERATOR = "the operator's own token"
PATIENCE = 10.0
SOON = 3.0


@dataclass
class TeamServer:
    """A server, and what its operator does. Changes are known to it when the call returns."""

    url: str
    front: TeamFront
    access: AccessStore
    tokens: dict[str, str] = field(default_factory=dict)

    def add(self, team: str, **limits: Any) -> str:
        """Adds a team or changes its limits; returns its token."""
        self.access.set_team(Team(team, TeamLimits(**limits)), AdministrativeAct(time.time(), "test", "team set", team))
        if team not in self.tokens:
            token = self.tokens[team] = f"pf_{team}{'x' * 30}"
            digest = stored_hash(token)
            issued = IssuedToken(token_id(digest), team, "", time.time())
            self.access.add_token(digest, issued, AdministrativeAct(time.time(), "test", "token created", team))
        self.look()
        return self.tokens[team]

    def look(self) -> None:
        assert self.front.gate.look()  # type: ignore[attr-defined]
        assert self.front.gate.look()  # type: ignore[attr-defined]

    def get(self, path: str, token: str = "", **headers: str) -> tuple[int, str]:
        status, text, _ = self.ask("GET", path, b"", {"x-pagefold-token": token, **headers} if token else headers)
        return status, text

    def post(self, body: Any, path: str = "/v1/messages", **headers: str) -> tuple[int, str, dict[str, str]]:
        """Headers are named with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, json.dumps(body).encode(), {"content-type": "application/json", **named})

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}


def settings_for(folder: Path, upstream: str, *, url: str = "", key: str = "", **serve: Any) -> Settings:
    tables = (UpstreamTable(name="anthropic", key=key), UpstreamTable(name="openai", key=key)) if key else ()
    how = {"recall": "inline", "token": OPERATOR, **serve}
    return Settings(
        # A store that a busy machine keeps waiting makes other requests.
        store=StoreSettings(path=str(folder / "store.sqlite3"), url=url, deadline_seconds=20.0),
        serve=ServeSettings(teams=True, anthropic_url=upstream, openai_url=upstream, **how),
        upstreams=tables,
    )


@contextmanager
def team_server(settings: Settings) -> Iterator[TeamServer]:
    place = settings.store.url or Path(settings.store.path)
    with opened_front(settings) as front, running(front) as url, closing(open_access(place)) as access:
        yield TeamServer(url, front, access)
