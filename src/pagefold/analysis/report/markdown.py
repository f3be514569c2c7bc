"""Writes a report as Markdown, in tables that fit an issue or a chat."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pagefold.analysis.cache_losses import who_and_what
from pagefold.analysis.compare import ComparedPolicy
from pagefold.analysis.report import EXAMPLE, SavingsReport
from pagefold.analysis.report.figures import BILL_COLUMNS, GROUP_COLUMNS, bill_rows, figures_of, group_rows, notes_of
from pagefold.number_format import change, money, rate, several, share, short


def markdown(report: SavingsReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: SavingsReport) -> Iterator[str]:
    yield "# What your agents cost, and what pagefold would save"
    yield ""
    if not report.sessions:
        yield report.nothing
        yield from _problems(report)
        return
    if report.example:
        yield f"**{EXAMPLE}**"
        yield ""
    when = f", {report.period}" if report.period else ""
    yield f"{several(report.sessions, 'session')}, {several(report.before.requests, 'request')}{when}."
    yield ""
    yield from (f"- **{figure.value}** {figure.words}" for figure in figures_of(report))
    yield ""
    yield from _table(BILL_COLUMNS, bill_rows(report))
    if report.trial.sessions:
        yield from _section("Your own trial")
        yield report.trial.verdict
    for what, groups in (("model", report.models), ("project", report.projects)):
        if any(groups):
            yield from _section(f"By {what}")
            yield from _table(
                GROUP_COLUMNS, group_rows({name or "not recorded": bill for name, bill in groups.items()})
            )
    tools = sorted(report.tools.items(), key=lambda item: -item[1].cost)[:10]
    yield from _section("By tool")
    yield from _table(
        ("", "results", "before", "after", "saved"),
        [
            (
                name,
                f"{one.results:,}",
                money(report.usd(one.cost)),
                money(report.usd(one.after)),
                share(one.cost - one.after, one.cost),
            )
            for name, one in tools
        ],
    )
    if report.cache_losses:
        yield from _section("Who broke the provider's cache")
        yield from _table(CACHE_COLUMNS, cache_cells(report))
        if dearest := loss_cells(report):
            yield ""
            yield from _table(LOSS_COLUMNS, dearest)
    if points := report.points():
        yield from _section("Policies")
        yield from _table(
            ("policy", "window", "cost", "with misses", "missed"),
            [policy_cells(one) for one in points],
        )
    yield from _section("Notes")
    yield from (f"- {note}" for note in notes_of(report))
    yield from _problems(report)


CACHE_COLUMNS = ("who", "what changed", "times", "sessions", "tokens paid again", "cost")
LOSS_COLUMNS = ("when (UTC)", "session", "who", "what changed", "tokens paid again", "cost")


def cache_cells(report: SavingsReport) -> list[tuple[str, ...]]:
    """Returns the rows of what broke the cache: who, what changed, how often, and what it cost."""
    return [
        (
            *who_and_what(reason, behind=bool(report.bill.behind)),
            f"{one.times:,}",
            f"{one.sessions:,}",
            short(one.tokens),
            money(report.usd(one.cost)),
        )
        for reason, one in report.cache_broken()
    ]


def loss_cells(report: SavingsReport) -> list[tuple[str, ...]]:
    """Returns a row for each of the dearest losses."""
    return [
        (
            f"{datetime.fromtimestamp(one.when, UTC):%Y-%m-%d %H:%M}" if one.when else "not recorded",
            one.session,
            *who_and_what(one.reason, behind=bool(report.bill.behind)),
            short(one.tokens),
            money(report.usd(one.cost)),
        )
        for one in report.dearest_losses
        if one.tokens
    ]


def policy_cells(one: ComparedPolicy) -> tuple[str, ...]:
    """Returns the cells of a policy's row: what it is, what it costs, and what it misses."""
    shares = (change(one.cost), change(one.effective), rate(one.missed))
    return (one.choice.policy, short(one.choice.window), *shares)


def _problems(report: SavingsReport) -> Iterator[str]:
    if report.problems.count:
        yield from _section("What could not be used")
        yield from (f"- {_plain(line)}" for line in report.problems.lines)


def _section(title: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|---|" + "--:|" * (len(columns) - 1)
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)


def _plain(text: str) -> str:
    """Escapes Markdown: names of tools and files come out of logs."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
