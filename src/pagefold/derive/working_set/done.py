"""What was done before the fold: one line for each call with its outcome, repeats together, the newest last."""

from collections.abc import Iterator, Mapping, Sequence

from pagefold.derive.selection import Candidate, Offer
from pagefold.frozen import frozen
from pagefold.pages.exchanges import Exchange
from pagefold.pages.files.changes import Act
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.outcome import Outcome

_NAMED = 12  # exchanges at the end whose results are named by their handles
NO_HANDLES: Mapping[str, str] = {}


@frozen
class DoneLine:
    """What the digest says of one exchange, or of several of the same call and outcome in a row."""

    text: str
    exchanges: tuple[Exchange, ...]

    def candidate(self, recency: float, *, must_stand: bool) -> Candidate:
        """Some lines always stand; of the others the newest. `recency` is above 0, the oldest, and 1 for the newest."""
        cost = len(self.text) // 4 + 1
        offer = Offer(ResidencyLevel.STRUCTURED, cost, cost * recency)
        return Candidate(self.exchanges[-1].answered, (offer,), 0 if must_stand else None)


def done_lines(exchanges: Sequence[Exchange], handles: Mapping[str, str] = NO_HANDLES) -> list[DoneLine]:
    """A line for each exchange, or for several of the same call and outcome in a row. `handles` recall results, by the
    call that they answer; the newest are named."""
    lines: list[DoneLine] = []
    last, together = "", list[Exchange]()
    for place, exchange in enumerate(exchanges):
        if only_showed(exchange) and exchange is not exchanges[-1]:
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


def mended_by(exchanges: Sequence[Exchange]) -> dict[str, str]:
    """The calls that did not go well, each with the next one that did: the same call again, or one of the same tool on
    the same files; nothing where there is none."""
    went_well: dict[tuple[str, object], str] = {}
    found: dict[str, str] = {}
    for exchange in reversed(exchanges):
        same = ((exchange.name, exchange.label), (exchange.name, exchange.paths or exchange.label))
        if exchange.ending.outcome is Outcome.OK:
            went_well |= dict.fromkeys(same, exchange.call_id)
        else:
            found[exchange.call_id] = next((went_well[key] for key in same if key in went_well), "")
    return found


def told_always(exchanges: Sequence[Exchange], mended: Mapping[str, str]) -> set[str]:
    """The calls that were refused, and those that failed and have not gone well since; of what was refused and then
    went well, both."""
    refused = {one.call_id for one in exchanges if one.ending.outcome is Outcome.REFUSED}
    found = {call for call, success in mended.items() if not success or call in refused}
    return found | {mended[call] for call in refused if mended[call]}


def only_showed(exchange: Exchange) -> bool:
    """Whether an exchange has no line: a read that went well. What it showed is among the files."""
    return exchange.act is Act.SHOWED and exchange.ending.outcome is Outcome.OK


def counted_lines(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Exchanges that have no line for want of room, counted by tool. They stand among those that have one."""
    for well, how in ((True, "all of which went well"), (False, "which did not all go well")):
        counts: dict[str, int] = {}
        for exchange in exchanges:
            if (exchange.ending.outcome is Outcome.OK) is well:
                counts[exchange.name] = counts.get(exchange.name, 0) + 1
        if counts:
            yield f"left out among these, {how}: " + ", ".join(f"{name} x {times}" for name, times in counts.items())
