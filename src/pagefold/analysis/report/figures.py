"""The figures at the top of a report, each with how it was got. Pages, Markdown and JSON show the same ones."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pagefold.analysis.compare import MISSED
from pagefold.analysis.report import EXAMPLE, SavingsReport
from pagefold.analysis.request_usage import Money
from pagefold.analysis.session_bill import LARGE_HEAD, Bill
from pagefold.number_format import day_of, money, rate, several, share, short

_POLICIES = {
    "lossless": ("pagefold run, as it comes (lossless: nothing is left out)", "saved by `pagefold run` as it comes"),
    "economic": (
        "pagefold run --policy economic (old results are folded)",
        "saved by `pagefold run --policy economic`",
    ),
}


_LESS = (
    "the reported usage less the tokens that the policy would have left out, from the cache or not as the reported "
    "usage shows"
)
_LEAST_USED = 0.01  # of a window: providers report whole percents


class Figure(NamedTuple):
    """A figure as it is shown, what it says, and how it was got. `good` is what a user would gain."""

    value: str
    words: str
    how: str
    good: bool = False


def figures_of(report: SavingsReport) -> list[Figure]:
    """The headline, the most important figure first."""
    return [*_paid(report.bill), *_saved(report.bill), *_could_save(report), *_windows(report.bill)]


def warnings_of(report: SavingsReport) -> Iterator[str]:
    """What `compare` would not rank for what it misses."""
    if (missed := report.after.missed_share) > MISSED:
        yield f"economic misses {rate(missed)} of what answers used; pagefold compare allows {rate(MISSED)}."


def percent(part: float, plus_or_minus: float | None = None) -> str:
    """A share with what it may be off by: a tenth at least, for more is not shown."""
    sure = f" ± {max(0.1, 100 * plus_or_minus):.1f}" if plus_or_minus is not None else ""
    return f"{100 * part:.1f}{sure} %"


def saved_share(bill: Bill, policy: str) -> str:
    """What a policy would have saved, as a share with its interval."""
    most, least = bill.share_saved(policy), bill.least_share_saved(policy)
    if most - least >= 0.005:
        return f"{100 * least:.0f} to {100 * most:.0f} %"
    return percent(most, _off(bill))


def _off(bill: Bill) -> float | None:
    """What a share may be off by; None where nothing was logged by which to tell."""
    return bill.uncertainty if bill.logged else None


def _paid(bill: Bill) -> Iterator[Figure]:
    paid, output = bill.happened, bill.happened.output
    if bill.logged_requests == bill.requests:
        words = "what was paid, at list prices"
        how = f"The usage that the provider reported with each of {several(bill.requests, 'answer')}"
    elif bill.logged_requests:
        words = "what was paid, at list prices, partly reckoned"
        how = (
            f"The usage that the provider reported with {bill.logged_requests:,} of {bill.requests:,} answers, and for "
            "the others their messages with the head of the nearest answer that has it"
        )
    else:
        words = "what the prompts cost at least, reckoned: these logs hold no usage"
        how = (
            "The messages of every request, counted (the last section says what is assumed), with a prompt cache that "
            "lives as long as the provider's does"
        )
    how += ", times the list prices of each session's model, five-minute and one-hour cache writes apart."
    if output:
        how += f" {money(paid.prompt)} are for prompts; {money(output)} are for answers, which no policy changes."
    if bill.head_usd:
        how += f" {money(bill.head_usd)} of it are system prompts and tool schemas, which no policy changes either."
    yield Figure(money(paid.both), words, how)


def _saved(bill: Bill) -> Iterator[Figure]:
    if bill.behind:
        how = (
            f"{several(bill.behind, 'session')} ran behind pagefold: the proxy noted their names. Without it their "
            "usage would have held the tokens that the policy left out, read from the cache or written as the reported "
            "usage shows."
        )
        if bill.logged:
            how += " By how much that may be off is said below with what could still be saved: it is the same model."
        part = percent(bill.saved / bill.plain.both if bill.plain.both else 0.0, _off(bill))
        yield Figure(f"{part} ({money(bill.saved)})", "saved already, behind pagefold", how, True)


def _could_save(report: SavingsReport) -> Iterator[Figure]:
    bill = report.bill
    for policy, (_, words) in _POLICIES.items():
        money_left, misses = bill.policies[policy], bill.misses[policy]
        saved = bill.happened.both - bill.with_misses(policy).both
        how = (
            f"The same sessions under the policy would have cost {money(money_left.both)}, answers included: {_LESS}."
            if bill.logged_requests
            else f"The same requests as the policy would have sent them would have cost {money(money_left.both)}."
        )
        if turns := bill.extra_turns[policy]:
            how += (
                f" In {several(turns, 'turn')} an answer used something that its request would no longer have held: "
                f"each is priced as one more round trip, {money(misses.both)} in all, and counted in."
            )
        if gone := bill.edits_gone[policy]:
            how += (
                f" Of {several(bill.edits, 'edit')}, {gone:,} ({share(gone, bill.edits)}) replaced a text that its "
                "request would no longer have held: each is priced as a refused try, a fetch and the edit once more."
            )
        if bill.logged:
            how += (
                f" The same model, from the first half of each session and its messages, gives {money(bill.predicted)} "
                f"for the logged prompts, which cost {money(bill.logged)}; by as much (95 of 100) the saving may be "
                "off."
            )
        if bill.large_head_usd:
            how += (
                f" The lower figure is with a system prompt and tool schemas of {LARGE_HEAD:,} tokens in every "
                "request, as agents with many tools have and these logs do not tell; the higher one is without "
                "(--overhead N says how many)."
            )
        again = "could still be " if bill.behind else "would have been "
        yield Figure(f"{saved_share(bill, policy)} ({money(saved)})", again + words, how, True)


def _windows(bill: Bill) -> Iterator[Figure]:
    for used, name in ((bill.windows, "five-hour"), (bill.weeks, "weekly")):
        if used >= _LEAST_USED:
            how = (
                f"While sessions ran that cost {money(bill.metered_usd)}, {100 * used:.1f} % of a {name} window was "
                "used, by all that the account did: so Codex logged, or the provider's headers told the proxy. What "
                "would have been free is in proportion to the money."
            )
            freed = {policy: f"{100 * bill.freed(used, policy):.1f} %" for policy in _POLICIES}
            words = f"of a {name} window would have been free as it comes, {freed['economic']} with folds"
            yield Figure(freed["lossless"], words, how, True)
    if not bill.windows and not bill.weeks and bill.logged_requests:
        how = (
            "Nothing here says how much of a subscription's window was used (Codex logs it; of other clients the proxy "
            "is told), so nothing is said in percent of one. Plans meter what list prices meter, about: the same work "
            "then uses so much less of any limit."
        )
        yield Figure(
            saved_share(bill, "economic"),
            "less of a plan's limits for the same work, if it meters as prices do",
            how,
        )


def bill_rows(report: SavingsReport) -> list[tuple[str, ...]]:
    """What happened and what the policies make of it: prompts, answers, misses, all, and in percent."""
    bill = report.bill
    paid = bill.happened.both
    off = _off(bill)
    rows = [_bill_row("without pagefold", bill.plain, paid, off=off)] if bill.behind else []
    rows.append(_bill_row("what was paid", bill.happened, paid))
    for policy, (name, _) in _POLICIES.items():
        extra = f"{bill.extra_turns[policy]:,}", f"{bill.edits_gone[policy]:,} of {bill.edits:,}"
        rows.append(_bill_row(name, bill.policies[policy], paid, bill.misses[policy].both, extra, off))
    return rows


_NONE = ("-", "-")


def _bill_row(
    name: str, cost: Money, paid: float, misses: float = 0.0, extra: tuple[str, str] = _NONE, off: float | None = None
) -> tuple[str, ...]:
    missed = "-" if extra is _NONE else money(misses)
    whole = cost.both + misses
    return (
        name,
        money(whole),
        percent(whole / paid, off) if paid else "-",
        money(cost.prompt),
        money(cost.output),
        missed,
        *extra,
    )


BILL_COLUMNS = ("", "in all", "of what was paid", "prompts", "answers", "misses", "extra turns", "edits gone")
GROUP_COLUMNS = ("", "paid", "could be saved", "in percent", "saved already", "for answers", "sessions")


def group_rows(groups: dict[str, Bill], most: int = 12) -> list[tuple[str, ...]]:
    """One row for each model or project, the dearest first; what is over, in one row."""
    ranked = sorted(groups.items(), key=lambda item: (-item[1].happened.both, item[0]))
    if len(ranked) > most:
        rest = Bill()
        for _, bill in ranked[most - 1 :]:
            rest.add(bill)
        ranked = [*ranked[: most - 1], (f"{len(groups) - most + 1} more", rest)]
    return [
        (
            name,
            money(bill.happened.both),
            money(bill.happened.both - bill.with_misses("economic").both),
            saved_share(bill, "economic"),
            money(bill.saved) if bill.behind else "-",
            money(bill.happened.output),
            f"{bill.sessions:,}",
        )
        for name, bill in ranked
    ]


def to_dict(report: SavingsReport) -> dict[str, Any]:
    """All of a report for JSON: what it holds, the headline, and the notes."""
    shown = [figure._asdict() for figure in figures_of(report)] if report.sessions else []
    return {"figures": shown, **report.to_dict(), "notes": notes_of(report)}


def notes_of(report: SavingsReport) -> list[str]:
    """What was measured, what was assumed where the logs do not say, and what is left out."""
    return [*_notes_on_the_bill(report), *report.notes()]


def _notes_on_the_bill(report: SavingsReport) -> Iterator[str]:
    bill, figures = report.bill, report.before
    if report.example:
        yield EXAMPLE
    missing = bill.requests - bill.logged_requests
    if missing and not bill.logged_requests:
        head = report.job.overhead
        said = f"{head:,} tokens, as you said" if head else "what a log holds of it, which in many is nothing"
        yield (
            f"These logs hold no usage figures of the provider. Assumed: every request is its messages after a head "
            f"(system prompt, tool schemas) of {said}; all of it is cached and lives as long as the provider's cache "
            f"does; what the model wrote is not counted. --overhead says how large the head is."
        )
    elif missing:
        yield f"{missing:,} of {bill.requests:,} answers have no usage in the log: those are reckoned."
    if bill.compacted:
        yield (
            f"{several(bill.compacted, 'session')} without usage grew beyond the window of {short(report.job.window)} "
            "tokens. Nobody can have sent them so: what happened is taken to be the client's own compaction at that "
            "window, with what it misses priced in. Behind lossless the client would have compacted too, a little "
            "later: where not even that fits, lossless is taken to save nothing."
        )
    if bill.uncompacted.prompt > bill.plain.prompt * 1.001:
        yield (
            f"Had nothing ever been compacted, the prompts would have cost {money(bill.uncompacted.prompt)}. Nobody "
            "would have paid that, so nothing here is compared with it."
        )
    if figures.logged.cleared:
        yield f"Providers cleared {short(figures.logged.cleared)} tokens of results themselves, as clients asked."
    forks, copies = report.copied.forks, report.copied.copies
    if forks or copies:
        yield (
            f"An answer that several logs hold counts once: {several(forks, 'session')} began with a copy of another, "
            f"{several(copies, 'session')} held nothing else."
        )
    if report.options.since:
        left_out = f"; {several(report.undated, 'session')} left out, whose logs tell no time" if report.undated else ""
        yield f"Only answers since {day_of(report.options.since)} count{left_out}."
    yield "Not in these figures: requests that a client does not log (titles, summaries of its own compactions)."
