"""A simulated agent with a known memory: it follows a task's plan, and can act only on what the request really holds.

It copies the text of an edit from the request, or reads the file again where it is not there; it believes what it
reads. What was last true for it may be false: then its edit fails, and it reads again, or what it writes is wrong. It
knows its plan and how far it is; it knows nothing else, and never recalls what was folded. `slips` is how often it gets
a number wrong or reads a file twice, as agents do: without them two runs in one arm are the same.
"""

import random
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.solve.memory import Memory, texts_of
from pagefold.solve.task import Ask, Change, Look, Pick, Recollect, Retry, Run, Say, Step

_TRIES = 3
_NO_SUCH = re.compile(r"stands \d+ times")

Fault: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
"""Damages the messages of a request: to see whether the damage is found."""


class Reading:
    """A request as the agent reads it: what it remembers by it, and what the last tool said."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.memory = Memory(messages)
        self.last = "\n".join(texts_of(messages[-1])) if messages else ""


Acting: TypeAlias = Generator[Answer, Reading, Reading]


class SimulatedAgent:
    """Answers requests as the agent would. One object works on one task; every request has to be the next one."""

    def __init__(
        self, asks: Sequence[Ask], fault: Fault | None = None, dice: random.Random | None = None, slips: float = 0.0
    ) -> None:
        self._asks, self._fault, self._dice, self._slips = asks, fault, dice, slips
        self._acting: Generator[Answer, Reading, None] | None = None
        self.looked_again = self.failed_edits = 0

    def __call__(self, number: int, request: Mapping[str, Any]) -> Answer:
        messages = request["messages"]
        reading = Reading(self._fault(messages) if self._fault else messages)
        try:
            if self._acting is None:
                self._acting = self._work(reading)
                return next(self._acting)
            return self._acting.send(reading)
        except StopIteration:
            return Answer("There is nothing left to do.")

    def _work(self, reading: Reading) -> Generator[Answer, Reading, None]:
        for ask in self._asks:
            for step in ask.plan:
                reading = yield from self._do(step, reading)

    def _do(self, step: Step, reading: Reading) -> Acting:
        match step:
            case Look() | Run():
                if self._slip():
                    yield _called(step)  # needlessly
                return (yield _called(step))
            case Say():
                return (yield Answer(step.text))
            case Change():
                return (yield from self._change(step, reading))
            case Recollect():
                return (yield from self._recollect(step, reading))
            case Retry():
                for change in [change for change in step.changes if reading.memory.was_left(change.path)]:
                    reading = yield from self._change(change, reading)
            case Pick():
                names = [reading.memory.item(number, list(step.changes)) for number in step.numbers]
                for name in filter(None, names):
                    reading = yield from self._change(step.changes[name], reading)
        return reading

    def _change(self, change: Change, reading: Reading) -> Acting:
        """Edits with the function's text as the request has it; reads the file where it has none, or a wrong one."""
        for _ in range(_TRIES):
            text = reading.memory.function(change.anchor, change.pattern)
            if text is None:
                self.looked_again += 1
                reading = yield _called(Look(change.path))
                continue
            number = re.search(change.pattern, text)
            assert number is not None
            new = re.sub(rf"\b{number[1]}\b", str(change.new + self._slip()), text)
            if new == text:
                return reading
            edit = {"file_path": change.path, "old_string": text, "new_string": new}
            reading = yield Answer("", [AnswerCall("Edit", edit)])
            if not _NO_SUCH.search(reading.last):
                return reading
            self.failed_edits += 1
            self.looked_again += 1
            reading = yield _called(Look(change.path))
        return reading

    def _slip(self) -> int:
        """How far a number is off: mostly not at all."""
        return 1 if self._dice is not None and self._dice.random() < self._slips else 0

    def _recollect(self, step: Recollect, reading: Reading) -> Acting:
        value = reading.memory.newest(step.pattern)
        if value is None and step.again is not None:
            self.looked_again += 1
            reading = yield _called(step.again)
            value = reading.memory.newest(step.pattern)
        content = {"file_path": step.path, "content": f"{value or 'unknown'}\n"}
        return (yield Answer("", [AnswerCall("Write", content)]))


def _called(step: Look | Run) -> Answer:
    if isinstance(step, Look):
        return Answer("", [AnswerCall("Read", {"file_path": step.path})])
    return Answer("", [AnswerCall("Bash", {"command": step.command})])
