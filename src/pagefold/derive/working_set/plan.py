"""The last stated plan: todo lists and plans as they were last written by the agent."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefold.pages.exchanges import arguments_of
from pagefold.wire.message import BlockKind, Message

_MARKS = {"completed": "[x]", "done": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}
_WORDS = ("content", "step", "subject", "title", "text", "description")


def plan_lines(messages: Sequence[Message]) -> list[str]:
    """The newest todo list or plan, and tasks that were made one by one, with their state."""
    listed: list[str] = []
    tasks: dict[str, tuple[str, str]] = {}
    for message in messages:
        for block in message.blocks:
            if block.kind is not BlockKind.CALL:
                continue
            arguments = arguments_of(block)
            if steps := arguments.get("todos") or arguments.get("plan"):
                listed = list(_listed(steps))
            elif block.name == "TaskCreate" and isinstance(subject := arguments.get("subject"), str):
                tasks[str(len(tasks) + 1)] = (subject, "pending")
            elif block.name == "TaskUpdate" and str(arguments.get("taskId")) in tasks:
                key = str(arguments["taskId"])
                tasks[key] = (tasks[key][0], str(arguments.get("status") or tasks[key][1]))
    return [*listed, *(f"{_MARKS.get(state, '[ ]')} {subject}" for subject, state in tasks.values())]


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
