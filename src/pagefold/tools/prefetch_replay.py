"""Replays prefetching on recorded sessions: what would have been run early, used and wasted. No tool is run.

The recorded turns take the place of the agent; planner, write epochs and waiting answers are those of a live
conversation. The calls of a turn are taken one after another, so a read after a write in the same turn is never served
early. What is planned after a turn can only serve later turns.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.tools.call_memo import CallMemo
from pagefold.tools.model import READING
from pagefold.tools.planner import AnsweredCall, PlannedCall, Planner
from pagefold.tools.prefetch import PrefetchedAnswers, WriteEpochs, canonical
from pagefold.tools.projection import opened
from pagefold.tools.registry import ToolRegistry
from pagefold.wire import transcripts
from pagefold.wire.message import BlockKind, Role

_ERROR_STARTS = ("error", "mcp error", "traceback", "access denied")


@dataclass(slots=True)
class PrefetchFigures:
    """Counts over sessions.

    `planned` are the turns after which something was planned; `top_1` and `top_3` those whose very next turn made the
    first, or one of the first three, planned calls.
    """

    calls: int = 0
    turns: int = 0
    planned: int = 0
    top_1: int = 0
    top_3: int = 0
    dispatched: int = 0
    used: int = 0
    used_bytes: int = 0
    wasted_bytes: int = 0
    saved_ms: float = 0.0
    tool_ms: float = 0.0
    repeats: int = 0
    repeats_alike: int = 0

    @property
    def wasted(self) -> int:
        return self.dispatched - self.used


def turns_of(session: transcripts.Session) -> list[list[AnsweredCall]]:
    """Returns the turns of a recorded session, each with its calls and their answers."""
    answers = {
        block.call_id: block
        for message in session.messages
        if message.role is Role.TOOL
        for block in message.blocks
        if block.kind is BlockKind.RESULT
    }
    turns = []
    for message in session.messages:
        calls = [block for block in message.blocks if block.kind is BlockKind.CALL]
        if message.role is not Role.ASSISTANT or not calls:
            continue
        turn = []
        for call in calls:
            answer = answers.get(call.call_id)
            text = answer.text if answer else ""
            failed = answer is None or answer.failed or _reads_as_error(text)
            turn.append(AnsweredCall(call.name, _arguments(call.text), text, failed))
        turns.append(turn)
    return turns


def _arguments(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _reads_as_error(text: str) -> bool:
    """Tells by its text whether an answer is an error: chat recordings do not mark failed calls."""
    value = opened(text[:400] if not text.startswith('{"type":"text"') else text)
    return isinstance(value, str) and value.lstrip().casefold().startswith(_ERROR_STARTS)


def replay_prefetch(
    sessions: Sequence[Sequence[Sequence[AnsweredCall]]],
    registry: ToolRegistry,
    *,
    planner: Callable[[ToolRegistry], Planner] = Planner,
    think_ms: float = 5_000,
) -> PrefetchFigures:
    """Replays each session on its own, from its first turn, with a planner of its own.

    `think_ms` is how long the model takes before its next call: the most that an early call can save.
    """
    total = PrefetchFigures()
    for session in sessions:
        _ReplayedSession(registry, planner(registry), total, think_ms).run(session)
    return total


class _ReplayedSession:
    """One session as it is replayed; adds to the figures of all."""

    def __init__(self, registry: ToolRegistry, planner: Planner, total: PrefetchFigures, think_ms: float) -> None:
        self._registry = registry
        self._planner = planner
        self._total = total
        self._think_ms = think_ms
        self._epochs = WriteEpochs(registry)
        self._answers: PrefetchedAnswers[PlannedCall] = PrefetchedAnswers(self._epochs)
        self._asked: dict[tuple[str, str], tuple[int, int]] = {}
        self._memo: CallMemo[Any] = CallMemo(registry, self._epochs, every=True)

    def run(self, session: Sequence[Sequence[AnsweredCall]]) -> None:
        plan: Sequence[PlannedCall] = ()
        for turn in session:
            self._total.turns += 1
            self._compare_plan(plan, turn)
            for done in turn:
                self._call(done)
            plan = self._planner.plan(turn, has=self._has)
            for planned in plan:
                ticket = self._answers.begin(planned.tool, planned.arguments, 0.0)
                if ticket is not None:
                    self._answers.settle(ticket, planned, failed=False)
                    self._total.dispatched += 1
                    self._total.wasted_bytes += self._typical(planned.tool)

    def _has(self, tool: str, arguments: str) -> bool:
        shown = self._asked.get((tool, arguments)) == self._epochs.of(tool)
        return shown or self._answers.holds(tool, arguments, 0.0)

    def _compare_plan(self, plan: Sequence[PlannedCall], turn: Sequence[AnsweredCall]) -> None:
        if not plan:
            return
        made = {(done.tool, canonical(done.arguments)) for done in turn}
        hits = [(planned.tool, canonical(planned.arguments)) in made for planned in plan[:3]]
        self._total.planned += 1
        self._total.top_1 += hits[0]
        self._total.top_3 += any(hits)

    def _call(self, done: AnsweredCall) -> None:
        self._total.calls += 1
        self._epochs.called(done.tool)
        latency = self._latency(done.tool)
        self._total.tool_ms += latency
        text = canonical(done.arguments)
        if done.arguments is not None and text is not None:
            if self._answers.take(done.tool, done.arguments, 0.0) is not None:
                self._total.used += 1
                self._total.used_bytes += len(str(done.result).encode("utf-8", "replace"))
                self._total.wasted_bytes -= self._typical(done.tool)
                self._total.saved_ms += min(latency, self._think_ms)
            self._compare_repeat(done)
        self._epochs.called(done.tool)
        if text is not None:
            self._asked[done.tool, text] = self._epochs.of(done.tool)

    def _compare_repeat(self, done: AnsweredCall) -> None:
        assert done.arguments is not None
        match = self._registry.find(done.tool)
        if match is None or match.model.side_effect_class not in READING:
            return
        earlier = self._memo.recall(done.tool, done.arguments, 0.0)
        if earlier is not None:
            self._total.repeats += 1
            self._total.repeats_alike += earlier == done.result
        self._memo.remember(done.tool, done.arguments, done.result, 0.0, failed=done.failed)

    def _typical(self, tool: str) -> int:
        match = self._registry.find(tool)
        return round((match.model.cost_model.typical_kb if match else 1.0) * 1024)

    def _latency(self, tool: str) -> float:
        match = self._registry.find(tool)
        return float((match.model.cost_model.latency_ms_p50 if match else None) or 200)
