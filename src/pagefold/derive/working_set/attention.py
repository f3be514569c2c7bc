"""What the work is about now, by the texts that say it: the last words, reports and results, and the plan."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from pagefold.derive.entry import Entry
from pagefold.derive.working_set.reading import WorkReading
from pagefold.frozen import frozen
from pagefold.pages.facts import facts_of
from pagefold.pages.voices import Voice
from pagefold.wire.message import BlockKind

LONG_AGO = 600  # turns: lines that nobody has seen for longer are not shown, unless they were asked for by name
_ANSWERS = 3  # of the agent's last answers
_OTHERS = {Voice.USER: 2, Voice.AGENT: 2}  # of what the user said last, and of the last reports
_RESULT = 6_000  # characters of a result


@frozen
class Attention:
    """`turn` is the present one, `cut` the place that the last exchanges begin at, `text` what is said and shown now,
    `words` are the names in it, and `turns` the turn of every message by its place."""

    turn: int
    cut: int
    words: frozenset[str]
    text: str
    turns: Sequence[int]

    @property
    def oldest(self) -> int:
        """The first place that was not long ago."""
        return bisect_left(self.turns, self.turn - LONG_AGO)


def attention_of(reading: WorkReading, entries: Sequence[Entry], cut: int, turn: int) -> Attention:
    """What the last words, the results of the last exchanges and the open steps of the plan are about."""
    steps = [step for step in reading.plan.lines if not step.startswith("[x]")]
    text = "\n".join([*_said_last(reading), *_shown_last(entries, cut), *steps])
    return Attention(turn, cut, facts_of(text), text, reading.turns)


def _said_last(reading: WorkReading) -> Iterator[str]:
    for answer in reading.answers.since(max(0, reading.answers.length - _ANSWERS)):
        yield answer.text
    left = dict(_OTHERS)
    for saying in reversed(reading.others):
        if left.get(saying.voice):
            left[saying.voice] -= 1
            yield saying.text


def _shown_last(entries: Sequence[Entry], cut: int) -> Iterator[str]:
    for entry in entries[cut:]:
        for block in entry.message.blocks:
            if block.kind is BlockKind.RESULT:
                yield block.text[:_RESULT]
