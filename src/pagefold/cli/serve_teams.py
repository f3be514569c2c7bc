"""`pagefold serve` with `serve.teams`: one server for many teams, each with its own proxy, budget and dashboard.

The store, the history sink and the access store are opened once. Several cores, or machines, are several instances
behind a balancer: they share all that matters through the database.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace

from pagefold import config
from pagefold.adapters.access_gate import AccessGate
from pagefold.adapters.library import Library
from pagefold.adapters.problem_log import ProblemLog
from pagefold.adapters.protection import Protection, key_of, protection_of
from pagefold.adapters.steady_store import StoreHealth
from pagefold.adapters.stores import open_access
from pagefold.cli import serve_setup, telemetry_setup
from pagefold.cli.proxy_metrics import of_added_time, of_process
from pagefold.dashboard.app import Dashboard
from pagefold.dashboard.auth import DashboardAuth
from pagefold.dashboard.operator import OperatorDashboard, TeamRow
from pagefold.dashboard.store_view import StoreView
from pagefold.door import Door
from pagefold.errors import ConfigError
from pagefold.loopback import is_loopback
from pagefold.model_proxy import server
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.readiness import Readiness
from pagefold.model_proxy.reloading import ReloadingApp, ServedApp
from pagefold.model_proxy.team_front import TeamFront, TeamProxy
from pagefold.model_proxy.totals import Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import Store
from pagefold.settings.sections import Settings
from pagefold.telemetry import metrics
from pagefold.telemetry.events import TraceEvent
from pagefold.telemetry.live import LiveView
from pagefold.telemetry.trace import TraceWriter

_KEY_BYTES = 24


def run(settings: Settings, started: Callable[[int, str], None], reread: Callable[[], Settings]) -> Totals:
    """Serves until a signal arrives, and returns what was counted. `started` gets the port and the dashboard's key,
    `reread` gives the settings anew, for a reload. Raises ConfigError."""
    if settings.serve.workers > 1:
        raise ConfigError(
            f"serve.workers = {settings.serve.workers}: expected 1 with serve.teams; run several instances behind a "
            "balancer"
        )
    past = Totals()

    def ended(app: ServedApp) -> None:
        nonlocal past
        past += _sum(app)

    with opened_front(settings) as first:
        app = ReloadingApp(
            first, lambda: opened_front(reread()), report=serve_setup.problem_log(settings), replaced=ended
        )
        with serve_setup.counted(settings, lambda: past + _sum(app.app, so_far=True)):
            serve_setup.run_reloading(app, settings, lambda port: started(port, settings.serve.token.strip()))
        return past + _sum(app.app)


@contextmanager
def opened_front(settings: Settings) -> Iterator[TeamFront]:
    """Yields the front that the settings describe; what it opened is closed after the block. Raises ConfigError."""
    with ExitStack() as stack:
        problems = serve_setup.problem_log(settings)
        place = config.store_place(settings)
        protection = protection_of(settings.store, settings.sink)
        gate = AccessGate(lambda: open_access(place, Protection(key_of(settings.store))), report=problems)
        stack.enter_context(closing(gate))
        library, known = stack.enter_context(serve_setup.opened_stores(settings, problems, THIS_USER))
        read = _Reading(settings, protection)
        stack.callback(read.close)
        writer = telemetry_setup.trace_writer(settings)
        teams = _Teams(settings, gate, problems, library, known, read, writer)
        upstreams = serve_setup.upstreams_of(settings)
        local, token = is_loopback(settings.serve.host), settings.serve.token.strip()
        operator = OperatorDashboard(
            DashboardAuth(token or secrets.token_urlsafe(_KEY_BYTES), local=local),
            rows=teams.rows,
            uses=lambda: dict(gate.seen),
            status=lambda: {
                **asdict(_sum(front)),
                "teams": {name: asdict(one.totals) for name, one in front.proxies.items()},
            },
            samples=lambda: _samples(front, gate),
        )
        health = (lambda: library.health) if library is not None else StoreHealth
        front = TeamFront(
            gate,
            teams.open,
            upstreams,
            door=Door(local, token),
            readiness=Readiness(server.limits_here(), asks_token=True, store=health),
            keys={table.name: table.key for table in settings.upstreams if table.key},
            operator=operator,
        )
        yield front


class _Teams:
    """Opens the proxies of teams on what all of them share."""

    def __init__(
        self,
        settings: Settings,
        gate: AccessGate,
        problems: ProblemLog,
        library: Library | None,
        known: Store | None,
        read: "_Reading",
        writer: TraceWriter | None,
    ) -> None:
        self._settings, self._gate, self._problems = settings, gate, problems
        self._library, self._known, self._read, self._writer = library, known, read, writer

    def open(self, team: str) -> TeamProxy:
        scope, settings = StoreScope(team), self._settings
        proxy = serve_setup.proxy_for(
            settings,
            self._library.scoped(scope) if self._library else None,
            known=self._known.scoped(scope) if self._known else None,
            token="",
            sharers=max(1, len(self._gate.teams())),
            report=lambda line: self._problems("fault", line),
        )
        proxy.unanswered = serve_setup.unanswered(self._problems)
        if self._library is not None:
            self._library.when_back(proxy.store_is_back)
        return TeamProxy(proxy, self._watched(proxy, team))

    def _watched(self, proxy: Proxy, team: str) -> str:
        """Connects the proxy to the trace and to a dashboard of its team's. Returns the dashboard's key, or ""."""
        settings, live, writer = self._settings, LiveView(), self._writer

        def see(event: TraceEvent) -> None:
            live.see(event)
            if writer is not None:
                writer.see(event)

        proxy.recorder = TurnRecorder(see, spelled=settings.telemetry.content)
        if not settings.telemetry.dashboard:
            return ""
        key = secrets.token_urlsafe(_KEY_BYTES)

        def samples() -> Iterator[metrics.Sample]:
            yield from metrics.of_model_proxy(asdict(proxy.totals))
            yield from _budgets(self.rows(team))

        proxy.dashboard = Dashboard(
            live,
            StoreView(lambda: self._read.scoped(StoreScope(team)), None, whole=False),
            DashboardAuth(key, local=is_loopback(settings.serve.host)),
            samples=samples,
            notes=lambda: (row.words for row in self.rows(team)),
            refresh=proxy.catch_up,
        )
        return key

    def rows(self, only: str = "") -> list[TeamRow]:
        """What every team, or one, has used of its limits."""
        teams = [team for team in self._gate.teams() if only in ("", team.name)]
        return [TeamRow(team, self._gate.spent(team.name)) for team in teams]


class _Reading:
    """A library for dashboards alone: what they ask may take long, and no request waits for it."""

    def __init__(self, settings: Settings, protection: Protection) -> None:
        self._settings, self._protection = settings, protection
        self._library: Library | None = None

    def scoped(self, scope: StoreScope) -> Library:
        """Raises StoreError."""
        if self._library is None:
            place = config.store_place(self._settings)
            self._library = Library.open(place, self._settings.sink, sending=False, protection=self._protection)
        return self._library.scoped(scope)

    def close(self) -> None:
        if self._library is not None:
            self._library.close()


def _sum(front: ServedApp, *, so_far: bool = False) -> Totals:
    assert isinstance(front, TeamFront)
    totals = Totals()
    for proxy in front.proxies.values():
        totals += proxy.totals_so_far if so_far else proxy.totals
    return totals


def _samples(front: TeamFront, gate: AccessGate) -> Iterator[metrics.Sample]:
    """What an operator watches: counts of every team under its name, and the process as a whole."""
    proxies = front.proxies
    for name, proxy in proxies.items():
        for sample in metrics.of_model_proxy(asdict(proxy.totals)):
            yield replace(sample, labels=(("team", name), *sample.labels))
    yield from of_process(front.readiness)
    yield from of_added_time(proxies.values())
    yield from _budgets(TeamRow(team, gate.spent(team.name)) for team in gate.teams())
    yield from metrics.of_teams(dict(gate.seen), is_out=gate.is_out)


def _budgets(rows: Iterable[TeamRow]) -> Iterator[metrics.Sample]:
    for row in rows:
        yield from metrics.of_budgets(row.team.name, row.budgets)
