"""What `pagefold run` and `pagefold serve` say at their end: what was saved, what went wrong, what to do next.

The share is of what the provider billed, at list prices; where no price is known it is of prompt tokens, and says so.
A proxy that no request came by always says that.
"""

from collections.abc import Iterator

from pagefold.model_proxy.totals import Totals
from pagefold.number_format import money, several, share, short


def summary(seen: Totals, crowded: str = "", *, who: str = "", observed: bool = False) -> str:
    """`who` is the agent that was started, `observed` says that nothing was to be changed."""
    if not seen.requests:
        asked = f"no request of {who}" if who else "no request"
        return f"{asked} came by here, so nothing was saved; pagefold doctor looks for the reason"
    return "\n".join(f"pagefold: {line}" for line in _lines(seen, crowded, observed=observed)).removeprefix(
        "pagefold: "
    )


def _lines(seen: Totals, crowded: str, *, observed: bool) -> Iterator[str]:
    passed = f"{several(seen.requests, 'request')}, {seen.failed:,} failed"
    yield f"{passed}; {_saved(seen, observed=observed)}"
    cached = f"{share(seen.usage.cache_read, seen.usage.prompt)} of them read from cache"
    done = f"; the history was folded {several(seen.work.folds, 'time')}" if seen.work.folds else ""
    yield f"{short(seen.usage.prompt)} prompt tokens, {cached}{done}"
    if dropped := seen.work.reasoning_dropped:
        yield f"reasoning left out of {several(dropped, 'earlier answer')}"
    if again := seen.work.refused:
        yield f"{several(again, 'request')} sent again without reasoning that was refused"
    if seen.faults:
        yield f"{several(seen.faults, 'fault')} of pagefold's own, told above: those requests went on as they came"
    if crowded:
        yield crowded
    yield "more: `pagefold stats` day by day; `pagefold top` or `pagefold dashboard` while an agent runs"


def _saved(seen: Totals, *, observed: bool) -> str:
    if observed:
        return "nothing was changed, as --observe says"
    costs, saved = seen.reckoned.usd, seen.reckoned.usd_saved
    if costs and saved > 0:
        before, after = money(costs + saved), money(costs)
        told = f"{after} instead of {before}" if after != before else f"of {before}"
        return f"about {share(saved, costs + saved)} saved: {told}"
    if seen.work.saved:
        whole = seen.usage.prompt + seen.work.saved
        return f"{short(seen.work.saved)} tokens saved, {share(seen.work.saved, whole)} of what was to be sent"
    return "nothing could be saved in them"
