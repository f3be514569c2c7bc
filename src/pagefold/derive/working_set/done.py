"""What was done before the fold: one line for each call with its outcome, repeats together, the newest last."""

from collections.abc import Iterator, Mapping, Sequence

from pagefold.derive.selection import Candidate, Offer
from pagefold.frozen import frozen
from pagefold.pages.exchanges import Exchange
from pagefold.pages.files.changes import Act
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.outcome import Outcome

_NAMED = 12  # exchanges at the end whose results are named by their handles
_FAILED = 1.0  # how much more a token of a failure is worth than one of what went well as long ago
NO_HANDLES: Mapping[str, str] = {}


@frozen
class DoneLine:
    """What the digest says of one exchange, or of several of the same call and outcome in a row."""

    text: str
    exchanges: tuple[Exchange, ...]

    def candidate(self, recency: float, *, open_failure: bool) -> Candidate:
        """A failure that nothing has mended since always stands; of the others the newest, failures first. `recency` is
        above 0, the oldest, and 1 for the newest."""
        cost = len(self.text) // 4 + 1
        went_well = self.exchanges[-1].ending.outcome is Outcome.OK
        offer = Offer(ResidencyLevel.STRUCTURED, cost, cost * (recency + (0.0 if went_well else _FAILED)))
        return Candidate(self.exchanges[-1].answered, (offer,), 0 if open_failure else None)


def done_lines(exchanges: Sequence[Exchange], handles: Mapping[str, str] = NO_HANDLES) -> list[DoneLine]:
    """A line for each exchange, or for several of the same call and outcome in a row. `handles` recall results, by the
    call that they answer; the newest are named."""
    lines: list[DoneLine] = []
    last, together = "", list[Exchange]()
    for place, exchange in enumerate(exchanges):
        if not is_told(exchange, exchanges):
            continue
        line = exchange.line
        if place >= len(exchanges) - _NAMED and exchange.act is Act.OTHER and exchange.call_id in handles:
            line = f"{line} ({handles[exchange.call_id]})"
        if line == last:
            together.append(exchange)
            lines[-1] = DoneLine(f"{line} (x {len(together)})", tuple(together))
            continue
        last, together = line, [exchange]
        lines.append(DoneLine(line, (exchange,)))
    return lines


def open_failures(exchanges: Sequence[Exchange]) -> set[str]:
    """The calls that were refused, or that failed and have not gone well since: the same call again, or one of the same
    tool on the same files."""
    mended: set[tuple[str, object]] = set()
    found: set[str] = set()
    for exchange in reversed(exchanges):
        same = {(exchange.name, exchange.label), (exchange.name, exchange.paths or exchange.label)}
        if exchange.ending.outcome is Outcome.OK:
            mended |= same
        elif exchange.ending.outcome is Outcome.REFUSED or not mended & same:
            found.add(exchange.call_id)
    return found


def is_told(exchange: Exchange, among: Sequence[Exchange]) -> bool:
    """Whether an exchange has a line among these: not a read that went well, unless it is the last of them. What it
    showed is among the files."""
    read = exchange.act is Act.SHOWED and exchange.ending.outcome is Outcome.OK
    return not read or exchange is among[-1]


def counted_lines(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Old exchanges that went well, counted by tool."""
    counts: dict[str, int] = {}
    for exchange in exchanges:
        if exchange.ending.outcome is Outcome.OK:
            counts[exchange.name] = counts.get(exchange.name, 0) + 1
    if counts:
        yield "earlier, none failed: " + ", ".join(f"{name} x {times}" for name, times in counts.items())
