"""Tool calls and their results, and what the file model makes of them."""

import json
from collections.abc import Iterable
from typing import Any

from pagefold.pages.exchanges import Work
from pagefold.pages.files.folders import START
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.model import FileModel
from pagefold.pages.files.recognise import changes_of, shell_folders_after
from pagefold.pages.outcome import ending_of
from pagefold.wire import openai_chat
from pagefold.wire.message import Message

Step = tuple[str, dict[str, Any], str]
"""A tool's name, its arguments and its result."""


def model_of(*steps: Step, model: FileModel | None = None, place: int = 0) -> FileModel:
    """The files as they are after these calls, the first of them told at `place`."""
    model = model or FileModel()
    folders = START
    for at, (name, arguments, result) in enumerate(steps, place):
        ending = ending_of(result)
        model = model.after(changes_of(name, arguments, result, ending, folders=folders), at)
        folders = shell_folders_after(name, arguments, result, ending, folders=folders)
    return model


def file_of(model: FileModel, key: str) -> KnownFile:
    assert key in model.files, f"{key} is none of {sorted(model.files)}"
    return model.files[key]


def numbered_lines(file: KnownFile, *, certain: bool = True) -> dict[int, str]:
    """The lines with numbers, without those in doubt unless `certain` is False."""
    return {
        number: line
        for region in file.text.regions
        if region.start is not None
        for number, line, seen in zip(range(region.start, region.end), region.lines, region.seen, strict=True)
        if not certain or not file.text.is_doubted(seen)
    }


def loose_lines(file: KnownFile) -> list[tuple[str, ...]]:
    """The runs of lines without numbers."""
    return [region.lines for region in file.text.regions if region.start is None]


def all_lines(file: KnownFile) -> set[str]:
    return {line for region in file.text.regions for line in region.lines}


def whole_text(file: KnownFile) -> str:
    """The text of a file that is known whole and without doubt."""
    lines = numbered_lines(file)
    assert file.text.length == len(lines)
    assert sorted(lines) == list(range(1, len(lines) + 1))
    return "".join(lines[number] + "\n" for number in sorted(lines))


def cat_n(lines: Iterable[str], start: int = 1, mark: str = "\t") -> str:
    """Lines with their numbers, as a read tool shows them."""
    return "\n".join(f"{number:6}{mark}{line}" for number, line in enumerate(lines, start))


def conversation(*values: dict[str, Any]) -> list[Message]:
    return [openai_chat.parse_message(value, json.dumps(value), place) for place, value in enumerate(values)]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str, arguments: dict[str, Any] | str, text: str = "") -> dict[str, Any]:
    spelled = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": spelled}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def work_of(messages: Iterable[Message]) -> Work:
    work = Work()
    for place, message in enumerate(messages):
        work = work.after(message, place)
    return work
