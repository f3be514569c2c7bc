"""Builds what `pagefold serve` runs from the settings: the proxy, its store and its upstreams, and the counts of it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pagefold import config
from pagefold.adapters.instructions import instructions_in
from pagefold.adapters.library import Library
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.model_prices import ModelPrices
from pagefold.adapters.model_proxy_lock import hold_model_proxy_lock
from pagefold.adapters.problem_log import ProblemLog
from pagefold.adapters.protection import Protection, protection_of
from pagefold.adapters.stores import open_existing, retention_of
from pagefold.cli import counter_writer, output, session_rows_writer, telemetry_setup
from pagefold.derive.learned import learned_of
from pagefold.derive.policies import policy_named
from pagefold.door import Door
from pagefold.errors import ConfigError, StoreError
from pagefold.loopback import is_loopback
from pagefold.model_proxy import server
from pagefold.model_proxy.aws_signing import AwsSigning
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.other_version import OtherVersion
from pagefold.model_proxy.proxy import Proxy, to_stderr
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.reloading import ReloadingApp
from pagefold.model_proxy.totals import Totals
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import Store
from pagefold.settings.sections import Settings
from pagefold.wire.apis import accounts, providers


@contextmanager
def opened_proxy(settings: Settings, *, token: str | None = None, scope: StoreScope = THIS_USER) -> Iterator[Proxy]:
    """Yields the proxy that the settings describe; what it opened is closed after the block. `scope` is the project of
    all its clients, where they have one.

    With `serve.observe` only a store that is there is opened, for what it knows of reasoning that was bound before.
    Otherwise a lock tells MCP proxies on the same store that a model proxy reads their forms. Whatever cannot be opened
    is told in a sentence, and the proxy works without it. Raises ConfigError.
    """
    problems = problem_log(settings)
    with opened_stores(settings, problems, scope) as (library, known):
        proxy = proxy_for(settings, library, known=known, token=token, report=lambda line: problems("fault", line))
        proxy.unanswered = unanswered(problems)
        if library is not None:
            library.when_back(proxy.store_is_back)
        if telemetry_setup.store_path(settings) is None:
            yield proxy
            return
        with session_rows_writer.gathering(proxy, settings, scope.written):
            yield proxy


def problem_log(settings: Settings) -> ProblemLog:
    return ProblemLog(as_json=settings.telemetry.log == "json")


def unanswered(problems: ProblemLog) -> Callable[[str, str], None]:
    """Tells of an upstream that gives no answer, each no more than once a minute."""
    return lambda host, cause: problems(f"upstream {host}", f"upstream {host} failed: {cause}")


def run_reloading(app: ReloadingApp, settings: Settings, started: Callable[[int], None]) -> None:
    """Serves until a signal arrives; SIGHUP reloads, unless it says that the user's terminal was closed."""
    serve = settings.serve
    reload = None if sys.stdin is not None and sys.stdin.isatty() else app.reload
    limits = app.app.readiness.limits
    service = server.Service(server.tls_of(serve), limits, serve.grace_seconds, app.drain, reload)
    server.run(app, serve.host, serve.port, started=started, service=service)


@contextmanager
def opened_stores(
    settings: Settings, problems: ProblemLog, scope: StoreScope
) -> Iterator[tuple[Library | None, Store | None]]:
    """Yields the library of a proxy that derives, or the store that one that observes only asks."""
    with ExitStack() as stack:
        library, known = None, None
        path, place = telemetry_setup.store_path(settings), telemetry_setup.store_place(settings)
        protection = protection_of(settings.store, settings.sink)
        if settings.serve.observe:
            if place is not None and (known := _known_store(place, protection)) is not None:
                stack.callback(known.close)
        else:
            deadline = settings.store.deadline_seconds
            library = Library.open_steady(
                place, settings.sink, deadline=deadline, report=problems, scope=scope, protection=protection
            )
            stack.enter_context(closing(library))
            if place is not None:
                retention = retention_of(place, settings.store, protection, lambda line: problems("retention", line))
                retention.start()
                stack.callback(retention.close)
            try:
                if path is not None:
                    lock = LocalFiles(path).model_proxy_lock
                    stack.enter_context(hold_model_proxy_lock(lock, settings.serve.policy))
            except StoreError as error:
                if not library.health.out:  # then that is told already
                    problems("lock", f"MCP proxies cannot tell that this proxy runs: {error}")
        yield library, known


def counted(settings: Settings, totals: Callable[[], Totals]) -> AbstractContextManager[None]:
    """Adds the counts to what `pagefold stats` shows, while the block runs and at its end."""

    def counts() -> Counter[str]:
        seen = totals()
        return Counter(
            {
                "requests": seen.requests,
                "failed": seen.failed,
                "prompt tokens": seen.usage.prompt,
                "cached tokens": seen.usage.cache_read,
                "saved tokens": seen.work.saved,
                "microdollars": round(1e6 * seen.reckoned.usd),
                "microdollars saved": round(1e6 * seen.reckoned.usd_saved),
                "millionths of a window": round(1e6 * seen.reckoned.windows),
                "folds": seen.work.folds,
                "keep-alives": seen.keep_alives,
                "reasoning dropped": seen.work.reasoning_dropped,
                "sent again": seen.work.refused,
                "faults": seen.faults,
            }
        )

    return counter_writer.counting(settings, "model", counts)


def _known_store(place: str | Path, protection: Protection) -> Store | None:
    """The store that is there, for a proxy that observes; None where there is none or it cannot be read."""
    try:
        return open_existing(place, protection)
    except StoreError as error:
        output.to_stderr(f"pagefold: observing without its store: {error}")
        return None


def proxy_for(
    settings: Settings,
    library: Library | None,
    *,
    known: Store | None = None,
    token: str | None = None,
    sharers: int = 1,
    report: Callable[[str], None] = to_stderr,
) -> Proxy:
    """Returns the proxy that the settings describe. `known` is a store that is only asked; `sharers` is how many such
    share the process. Raises ConfigError."""
    serve = settings.serve
    conversations = Conversations(
        None if serve.observe else _policy(settings),
        store=library.store if library else known,
        window=serve.window,
        memory=serve.memory << 20,
        sharers=sharers,
        known=ModelPrices(settings.prices_usd, settings.prices, lambda line: output.to_stderr(f"pagefold: {line}")),
        recall_rounds=serve.recall_rounds if serve.recall == "inline" and library else 0,
        trial=serve.trial,
    )
    upstreams = upstreams_of(settings)
    door = Door(is_loopback(serve.host), serve.token if token is None else token)
    through = config.proxies_for(upstreams.addresses.values())
    signs = any(table.sign for table in settings.upstreams if table.name == "bedrock")
    signing = AwsSigning(config.aws_credentials() if signs else None, asked=signs)
    if library is None:
        return Proxy(
            upstreams,
            conversations,
            door=door,
            http_proxies=through,
            keep_alive=serve.keep_alive,
            report=report,
            limits=server.limits_here(),
            signing=signing,
        )
    apart = library.store.scope.project is None and settings.store.projects == "apart"
    keeper, answers = PageKeeper(library), RecallAnswers(library, alone=apart)
    return Proxy(
        upstreams,
        conversations,
        put=keeper,
        write_back=keeper.write_back,
        soon=library.soon,
        answers=answers,
        door=door,
        http_proxies=through,
        keep_alive=serve.keep_alive,
        report=report,
        limits=server.limits_here(),
        store_health=lambda: library.health,
        signing=signing,
        other_version=OtherVersion(serve.other_version),
    )


def upstreams_of(settings: Settings) -> Upstreams:
    """The table of upstreams: the two that have a flag, those whose address is known, those for accounts, then those of
    the user's own tables."""
    addresses = {"anthropic": settings.serve.anthropic_url, "openai": settings.serve.openai_url}
    addresses |= {name: provider.url for name, provider in providers().items() if provider.url}
    addresses |= {account.name: account.url for account in accounts()}
    addresses |= {table.name: table.url for table in settings.upstreams if table.url}
    return Upstreams(addresses, {path: table.name for table in settings.upstreams for path in table.paths or ()})


def _policy(settings: Settings) -> Any:
    policy: Any = policy_named(settings.serve.policy, learned=learned_of(settings))
    files = [name.strip() for name in settings.serve.instructions.split(",") if name.strip()]
    if files and not policy.abilities.pins:
        raise ConfigError(f"serve.instructions: expected a policy that folds; serve.policy is {policy.name}")
    return replace(policy, instructions=instructions_in(files)) if files else policy
