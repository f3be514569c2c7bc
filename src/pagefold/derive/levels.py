"""At which level every message of a history stands after a fold, in which part of the digest, and why.

Full is as it came; compressed is a form with fewer tokens, lossless or trimmed; structured is in the digest; pointer is
by the digest's handle alone.
"""

from collections.abc import Iterable, Mapping

from pagefold.derive.entry import Entry
from pagefold.derive.policy import LOSSLESS, Decision
from pagefold.derive.working_set.held import Held
from pagefold.log import Log
from pagefold.pages.kinds import ResidencyLevel

TRIMMED = "trimmed to the room there is"


def place_in_history(entry: Entry, index: int) -> int:
    """The place of a message in its history; by its index in the log where nobody has numbered the messages."""
    return entry.message.place if entry.message.place >= 0 else index


def levels_after_fold(
    log: Log[Entry], cut: int, stays: Iterable[int], trimmed: Iterable[int], held: Held
) -> tuple[Decision, ...]:
    """One decision for each message of the history, in order. `log` is as it stands; `stays` are the places before the
    cut that stand as they came, `trimmed` those behind it of which a part is shown."""
    fixed, shortened = frozenset(stays), frozenset(trimmed)
    numbered = any(entry.message.place >= 0 for entry in log)
    decisions: dict[int, Decision] = {}
    why_not = held.why_not()
    for index, entry in enumerate(log):
        place = entry.message.place if numbered else index
        if place < 0:
            continue  # pins and stand-ins for missing results are no messages of the history
        if index >= cut:
            decision = _in_tail(place, entry, trimmed=index in shortened)
        elif index in fixed:
            why = "the system says it" if entry.fixed else "what the user asked"
            decision = Decision(place, ResidencyLevel.FULL, why)
        else:
            decision = _in_digest(place, index, held, why_not)
        decisions.setdefault(place, decision)  # a message that was repaired may have entered in two
    return tuple(decisions.values())


def _in_tail(place: int, entry: Entry, *, trimmed: bool) -> Decision:
    last = "one of the last exchanges"
    if trimmed:
        return Decision(place, ResidencyLevel.COMPRESSED, f"{last}, {TRIMMED}")
    if entry.shown.raw == entry.message.raw:
        return Decision(place, ResidencyLevel.FULL, last)
    return Decision(place, ResidencyLevel.COMPRESSED, f"{last}, {LOSSLESS}")


def _in_digest(place: int, index: int, held: Held, why_not: Mapping[int, str]) -> Decision:
    if parts := held.of(index):
        names, reasons = zip(*parts, strict=True)
        return Decision(place, ResidencyLevel.STRUCTURED, "; ".join(dict.fromkeys(reasons)), ", ".join(names))
    return Decision(place, ResidencyLevel.POINTER, why_not.get(index, "nothing in it that the work still needs"))
