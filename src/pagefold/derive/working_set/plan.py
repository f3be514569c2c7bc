"""The last stated plan: todo lists and plans as the agent last wrote them, and the plan that the user approved last."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pagefold.frozen import frozen
from pagefold.pages.exchanges import steps_of
from pagefold.pages.files.file_tools import KNOWN_TOOLS, Does, FileTools, text_under
from pagefold.pages.outcome import Outcome, ending_of
from pagefold.wire.message import Block, BlockKind, Message, arguments_of

_MARKS = {"completed": "[x]", "done": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}
_APPROVED = re.compile(r"^## Approved Plan[^\n]*:\n(.*)\Z", re.DOTALL | re.MULTILINE)  # as the user may have edited it
_TASKS = (Does.NEW_TASK, Does.TASK_STATE)
_WORDS = ("content", "step", "subject", "title", "text", "description")


@frozen
class Plan:
    """The newest todo list or plan, and tasks that were made one by one, by their number: what each is, and its
    state.

    `in_words` where the newest is a text and no list. `proposed` is a plan in words that waits for the user, by its
    call, `approved` the last one that the user let pass, and `approved_at` the place at which that was told.
    """

    listed: tuple[str, ...] = ()
    in_words: bool = False
    tasks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    proposed: tuple[str, str] = ("", "")
    approved: tuple[str, ...] = ()
    approved_at: int = -1

    def after(self, message: Message, place: int, tools: FileTools = KNOWN_TOOLS) -> "Plan":
        """The plan after one more message."""
        plan = self
        for block in message.blocks:
            if block.kind is BlockKind.RESULT and block.call_id == plan.proposed[0] != "":
                plan = plan._answered(block, place)
            if block.kind is not BlockKind.CALL:
                continue
            tool = tools.find(block.name)
            does, names = (tool.does, tool.arguments) if tool else (Does.NOTHING, tools.arguments)
            if does not in _TASKS and not any(f'"{name}"' in block.text for name in names.steps):
                continue
            arguments = arguments_of(block)
            tasks = plan.tasks
            if steps := steps_of(block.name, arguments, tools):
                plan = replace(plan, listed=tuple(_listed(steps)), in_words=isinstance(steps, str))
                if isinstance(steps, str) and _may_be_approved(block.name, tools):
                    plan = replace(plan, proposed=(block.call_id, steps))
            elif does is Does.NEW_TASK and (subject := text_under(arguments, names.task)) is not None:
                plan = replace(plan, tasks={**tasks, str(len(tasks) + 1): (subject, "pending")})
            elif does is Does.TASK_STATE and (key := _key(arguments, names.task_id)) in tasks:
                subject, state = tasks[key]
                plan = replace(plan, tasks={**tasks, key: (subject, str(arguments.get("status") or state))})
        return plan

    def _answered(self, result: Block, place: int) -> "Plan":
        """The plan after the answer to a proposed one."""
        if ending_of(result.text, failed=result.failed).outcome is not Outcome.OK:
            return replace(self, proposed=("", ""))
        edited = _APPROVED.search(result.text)
        lines = tuple((edited[1] if edited else self.proposed[1]).strip("\n").split("\n"))
        return replace(self, proposed=("", ""), approved=lines, approved_at=place)

    @property
    def lines(self) -> list[str]:
        """Each step and each task with its state."""
        return [*self.listed, *(f"{_MARKS.get(state, '[ ]')} {subject}" for subject, state in self.tasks.values())]


def _may_be_approved(name: str, tools: FileTools) -> bool:
    """Whether the answer to a plan is the user's: where the client's own tool proposes it, not one of a server."""
    tool = tools.of_client(name)
    return tool is not None and tool.does is Does.PLAN


def _key(arguments: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(arguments[name]) for name in names if name in arguments), "")


def _listed(steps: Any) -> Iterator[str]:
    if isinstance(steps, str):
        yield from steps.split("\n")
    elif isinstance(steps, list):
        for step in steps:
            if isinstance(step, Mapping):
                words = next((value for name in _WORDS if isinstance(value := step.get(name), str)), "")
                yield f"{_MARKS.get(str(step.get('status')), '-')} {' '.join(words.split())}"
            elif isinstance(step, str):
                yield f"- {step}"
