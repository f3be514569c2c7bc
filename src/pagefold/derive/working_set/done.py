"""What was done before the fold: one line for each call with its outcome, repeats together, the newest last."""

from collections.abc import Iterator, Mapping, Sequence

from pagefold.pages.exchanges import Exchange
from pagefold.pages.files.changes import Act
from pagefold.pages.outcome import Outcome

_NAMED = 12  # exchanges at the end whose results are named by their handles
NO_HANDLES: Mapping[str, str] = {}


def done_lines(exchanges: Sequence[Exchange], handles: Mapping[str, str] = NO_HANDLES) -> list[str]:
    """A line for each exchange, or for several of the same call and outcome in a row. `handles` recall results, by the
    call that they answer; the newest are named."""
    lines: list[str] = []
    last, times = "", 0
    for place, exchange in enumerate(exchanges):
        if not is_told(exchange, exchanges):
            continue
        line = exchange.line
        if place >= len(exchanges) - _NAMED and exchange.act is Act.OTHER and exchange.call_id in handles:
            line = f"{line} ({handles[exchange.call_id]})"
        if line == last:
            times += 1
            lines[-1] = f"{line} (x {times})"
            continue
        last, times = line, 1
        lines.append(line)
    return lines


def is_told(exchange: Exchange, among: Sequence[Exchange] = ()) -> bool:
    """Whether an exchange has a line among these: not a read that went well, unless it is the last of them. What it
    showed is among the files."""
    read = exchange.act is Act.SHOWED and exchange.ending.outcome is Outcome.OK
    return not read or (bool(among) and exchange is among[-1])


def counted_lines(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Old exchanges that went well, counted by tool."""
    counts: dict[str, int] = {}
    for exchange in exchanges:
        if exchange.ending.outcome is Outcome.OK:
            counts[exchange.name] = counts.get(exchange.name, 0) + 1
    if counts:
        yield "earlier, all ok: " + ", ".join(f"{name} x {times}" for name, times in counts.items())
