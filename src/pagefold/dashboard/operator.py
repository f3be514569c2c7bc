"""The dashboard of whoever runs a server for teams: what each team used of its limits, for which project, agent and
model, and metrics of all. Pages and conversations of a team are shown to that team alone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from pagefold.access.budget import Spent
from pagefold.access.team import MICRO, Team, UseByAttribution
from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.dashboard import layout
from pagefold.dashboard.app import HttpReply, assets, html_reply, sent_reply
from pagefold.dashboard.auth import COOKIE, DashboardAuth
from pagefold.html import Html, el
from pagefold.telemetry import metrics


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team with its limits, and what it has used."""

    team: Team
    spent: Spent

    @property
    def budgets(self) -> list[tuple[str, str, float, float]]:
        """By period and unit: what was used, and the limit or 0."""
        limits, day, month = self.team.limits, self.spent.day, self.spent.month
        return [
            ("day", "usd", day.microusd / MICRO, limits.usd_day),
            ("month", "usd", month.microusd / MICRO, limits.usd_month),
            ("day", "tokens", day.tokens, limits.tokens_day),
            ("month", "tokens", month.tokens, limits.tokens_month),
            ("minute", "requests", self.spent.minute, limits.requests_minute),
        ]

    @property
    def words(self) -> str:
        said = [
            f"{_amount(what, used)} of {_amount(what, limit)} a {period}"
            for period, what, used, limit in self.budgets
            if limit
        ]
        return f"Team {self.team.name} has used {', '.join(said)}." if said else f"Team {self.team.name} has no limits."


class OperatorDashboard:
    """The ASGI application below /pagefold, for requests that show the operator's key."""

    def __init__(
        self,
        auth: DashboardAuth,
        *,
        rows: Callable[[], Iterable[TeamRow]],
        uses: Callable[[], UseByAttribution],
        status: Callable[[], Mapping[str, Any]],
        samples: Callable[[], Iterable[metrics.Sample]],
    ) -> None:
        self._auth, self._rows, self._uses, self._status, self._samples = auth, rows, uses, status, samples
        self._assets = assets()

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        await sent_reply(self._answer(scope), scope["method"], send)

    def _answer(self, scope: Event) -> HttpReply:
        headers = dict(scope["headers"])
        path = scope["raw_path"].decode("ascii", "replace").split("?")[0]
        shown = parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[-1]
        if scope["method"] not in ("GET", "HEAD"):
            return html_reply(405, layout.notice("Nothing to change here", "The dashboard only reads."))
        if (asset := self._assets.get(path.removeprefix("/pagefold/"))) is not None:
            return HttpReply(200, *asset)
        if shown and self._auth.fits(shown.encode()):
            cookie = f"{COOKIE}={self._auth.cookie}; Path=/pagefold; HttpOnly; SameSite=Strict; Max-Age=31536000"
            return HttpReply(303, b"text/html", b"", ((b"location", path.encode()), (b"set-cookie", cookie.encode())))
        if not self._auth.lets_in(headers):
            return html_reply(401, layout.key_form())
        match path.removeprefix("/pagefold").strip("/"):
            case "":
                return html_reply(200, self._page())
            case "status":
                return HttpReply(200, b"application/json", json.dumps(self._status()).encode())
            case "metrics":
                return HttpReply(200, metrics.CONTENT_TYPE.encode(), metrics.render(self._samples()).encode())
        return html_reply(404, layout.notice("Not found", "Sessions and pages of a team are shown to the team alone."))

    def _page(self) -> str:
        rows = list(self._rows())
        budgets = [(row.team.name, *(_used(what, used, limit) for _, what, used, limit in row.budgets)) for row in rows]
        uses = [
            (
                *(use.team, use.project, use.agent, use.model),
                *(layout.short(count) for count in (counts.requests, counts.prompt, counts.saved)),
                _amount("usd", counts.microusd / MICRO),
                _amount("usd", counts.microusd_saved / MICRO),
            )
            for use, counts in sorted(self._uses().items(), key=lambda item: -item[1].microusd)
        ]
        return layout.page(
            "Teams",
            el("h1", "Teams"),
            _table(("Team", "Today", "This month", "Tokens today", "Tokens this month", "This minute"), budgets, 1),
            el("h2", "Since this instance started"),
            _table(
                ("Team", "Project", "Agent", "Model", "Requests", "Prompt", "Tokens saved", "Cost", "Saved"), uses, 4
            ),
        )


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]], names: int) -> Html:
    """A table whose first columns are names, and the others numbers."""
    head = el(
        "tr", (el("th", name, scope="col", class_="n" if at >= names else None) for at, name in enumerate(columns))
    )
    body = [
        el("tr", (el("td", cell, class_="n" if at >= names else None) for at, cell in enumerate(row))) for row in rows
    ]
    return el("div", el("table", el("thead", head), el("tbody", body), class_="sessions"), class_="wide")


def _used(what: str, used: float, limit: float) -> str:
    return f"{_amount(what, used)} of {_amount(what, limit)}" if limit else _amount(what, used)


def _amount(what: str, value: float) -> str:
    return f"${value:,.2f}" if what == "usd" else layout.short(value)
