"""What one tool call did to files, from its name, its arguments and its result.

Tools are recognised by the names of their arguments and by verbs in their own name, so that agents and servers nobody
has listed are understood as well. `FileTools` holds those names.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen
from pagefold.pages.files.changes import Doubted, Edited, FileChange, Shown, Written
from pagefold.pages.files.commands import changed_by_script
from pagefold.pages.files.patch import patch_in, patched_files
from pagefold.pages.files.printed import hits_in, numbered
from pagefold.pages.files.text import lines_of
from pagefold.pages.outcome import Ending, Outcome

_CODEX_FRAME = re.compile(r"\A(?:Chunk ID|Exit code|Wall time|Script completed)[^\n]*\n(?:[^\n]*\n){0,5}?Output:\n")
_BASH_FRAME = re.compile(r"\A<returncode>\d+</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL)
_JSON_CALL = re.compile(r"tools\.(\w+)\(\s*")
_SHELL_NOTE = re.compile(r"\n?Shell cwd was reset to [^\n]*\s*\Z")
_CUT = re.compile(r"<persisted-output>|truncated\b|<output_head>|</output_tail>|Output too large|output was too long")
_ONLY_LOOKS = re.compile(
    r"read[- ]only|do not (?:edit|modify|write|change) (?:any |the )?(?:files?|code|anything)|no edits", re.IGNORECASE
)
_WHOLE_READ = 2_000
_SAYS_INSTEAD = ("<system-reminder>", "EISDIR", "File unchanged", "Wasted call")


@frozen
class FileTools:
    """By which names of arguments, and by which verbs in the names of tools, file tools are known."""

    path: tuple[str, ...] = (
        "file_path",
        "path",
        "filePath",
        "filepath",
        "absolute_path",
        "target_file",
        "file",
        "filename",
        "notebook_path",
    )
    old: tuple[str, ...] = ("old_string", "old_str", "oldString", "old_text", "oldText", "search")
    new: tuple[str, ...] = ("new_string", "new_str", "newString", "new_text", "newText", "replace")
    content: tuple[str, ...] = ("content", "file_text", "contents", "text")
    script: tuple[str, ...] = ("command", "cmd", "script")
    folder: tuple[str, ...] = ("workdir", "cwd", "working_directory")
    offset: tuple[str, ...] = ("offset", "start_line", "view_range")
    limit: tuple[str, ...] = ("limit", "head", "tail", "end_line", "view_range")
    everywhere: tuple[str, ...] = ("replace_all", "replaceAll")
    delegates: frozenset[str] = frozenset(("Agent", "Task", "spawn_agent", "wait_agent"))
    only_look: frozenset[str] = frozenset(("explore", "plan", "claude-code-guide"))
    reads: frozenset[str] = frozenset(("read", "view", "open", "cat", "show", "get"))
    writes: frozenset[str] = frozenset(("write", "create", "save"))


KNOWN_TOOLS = FileTools()
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def changes_of(
    name: str, arguments: Mapping[str, Any], result: str, ending: Ending, tools: FileTools = KNOWN_TOOLS
) -> Iterator[FileChange]:
    """What a call did to files. A call that failed or was refused did nothing, unless it was a script."""
    if ending.outcome in (Outcome.REFUSED, Outcome.INTERRUPTED):
        return
    failed = ending.outcome is Outcome.FAILED
    path = _text(arguments, tools.path)
    if name in tools.delegates:
        yield from _by_agent(name, arguments, tools)
    elif _text(arguments, tools.script) is None and (patches := _patches(arguments)):
        if not failed:
            yield from (change for patch in patches for change in patched_files(_unescaped(patch)))
    elif path is None:
        yield from _by_script(arguments, result, tools, failed=failed)
    elif not failed:
        yield from _by_path(name, path, arguments, result, tools)


def _by_agent(name: str, arguments: Mapping[str, Any], tools: FileTools) -> Iterator[FileChange]:
    """What an agent of its own may have done: it can change any file, unless it was told to look only."""
    prompt = _text(arguments, ("prompt", "message")) or ""
    kind = (_text(arguments, ("subagent_type",)) or "").lower()
    if kind not in tools.only_look and not _ONLY_LOOKS.search(prompt):
        what = _text(arguments, ("description", "task_name", "subagent_type")) or name
        yield Doubted("", f"the agent for {what!r}")


def _patches(arguments: Mapping[str, Any]) -> list[str]:
    return [patch for value in arguments.values() if isinstance(value, str) and (patch := patch_in(value))]


def _by_path(name: str, path: str, arguments: Mapping[str, Any], result: str, tools: FileTools) -> Iterator[FileChange]:
    """What a call that names a file did to it."""
    verbs = {word.lower() for word in _WORDS.findall(name)}
    edits = arguments.get("edits")
    if isinstance(edits, list):
        yield from (change for edit in edits if isinstance(edit, dict) for change in _edit(path, edit, tools))
    elif _text(arguments, tools.old) is not None:
        yield from _edit(path, arguments, tools)
    elif verbs & tools.writes or arguments.get("command") == "create":
        content = _text(arguments, tools.content)
        yield from [Written(path, content)] if content is not None else []
        return
    elif "pattern" in arguments:
        yield from hits_in(result, path if "." in path.rpartition("/")[2] else "")
        return
    elif verbs & tools.reads or arguments.get("command") == "view":
        yield from _read(path, arguments, result, tools)
        return
    if (snippet := _snippet(path, result)) is not None:
        yield snippet


def _text(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _edit(path: str, arguments: Mapping[str, Any], tools: FileTools) -> Iterator[FileChange]:
    old, new = _text(arguments, tools.old), _text(arguments, tools.new)
    if old and new is not None:
        every = any(arguments.get(name) is True for name in tools.everywhere)
        yield Edited(path, old, new, every)
    elif old == "" and new is not None:
        yield Written(path, new)


def _read(path: str, arguments: Mapping[str, Any], result: str, tools: FileTools) -> Iterator[FileChange]:
    text = opened(result)
    lines = lines_of(text)
    if shown := numbered(path, lines):
        if sum(1 for line in lines if line.strip()) >= 2 * len(shown.lines) + 8:
            return  # numbers that stand in the text itself
        yield Shown(path, shown.start, shown.lines, _ends(shown, lines, arguments, tools))
    elif len(arguments) == 1 and _is_text(text):  # anything else it was asked for may be a part, or no text
        yield Shown(path, 1, tuple(lines), ends=True)


def _ends(shown: Shown, lines: Sequence[str], arguments: Mapping[str, Any], tools: FileTools) -> bool:
    """Whether a read showed the file up to its end."""
    behind = False
    for line in reversed(lines):
        if (match := numbered("", [line])) is not None:
            behind = match.start == (shown.start or 0) + len(shown.lines) - 1
            break
        if _CUT.search(line):
            return False
    asked = [name for name in (*tools.offset, *tools.limit) if arguments.get(name) is not None]
    limit = arguments.get("limit")
    if isinstance(limit, int) and not isinstance(limit, bool) and "end_line" not in asked:
        return behind and len(shown.lines) < limit
    return behind and not set(asked) & set(tools.limit) and len(shown.lines) < _WHOLE_READ


def _is_text(text: str) -> bool:
    """Whether a result without numbers can be a file's text: not what a tool says about it, and not binary."""
    return not (_CUT.search(text) or "\x00" in text or "\ufffd" in text or text.startswith(_SAYS_INSTEAD))


def _snippet(path: str, result: str) -> Shown | None:
    """The numbered lines around an edit that some tools print."""
    at = result.find("cat -n")
    return numbered(path, result[at:].split("\n")[1:]) if at >= 0 else None


def _by_script(arguments: Mapping[str, Any], result: str, tools: FileTools, *, failed: bool) -> Iterator[FileChange]:
    script, folder = _text(arguments, tools.script), _text(arguments, tools.folder) or ""
    if script is None and isinstance(code := arguments.get("input") or arguments.get("code"), str):
        calls = list(_calls_in(code))
        if len(calls) != 1:
            return
        script, folder = calls[0]
    if script is None:
        return
    if patch_in(script) and failed:
        return
    output = "" if failed or _CUT.search(result[:400]) or _CUT.search(result[-400:]) else opened(result)
    yield from changed_by_script(script, output, folder)


def _calls_in(code: str) -> Iterator[tuple[str, str]]:
    """Scripts, with their folders, that a program hands to a shell tool as JSON."""
    for call in _JSON_CALL.finditer(code):
        try:
            value, _ = json.JSONDecoder().raw_decode(code, call.end())
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(script := value.get("cmd") or value.get("command"), str):
            folder = value.get("workdir")
            yield script, folder if isinstance(folder, str) else ""
        elif isinstance(value, str) and patch_in(value):
            yield value, ""


def _unescaped(patch: str) -> str:
    """A patch inside a program's string literal has its line breaks escaped."""
    return patch if "\n" in patch[:80] else patch.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")


def opened(result: str) -> str:
    """A result without the frame that harnesses put around what a command printed."""
    if (frame := _CODEX_FRAME.match(result)) is not None:
        return result[frame.end() :].removeprefix("\n") if result.startswith("Script") else result[frame.end() :]
    if (frame := _BASH_FRAME.match(result)) is not None:
        return frame.group(1)
    if result.lstrip()[:1] in "{[" and len(result) < 1 << 20:
        try:
            value = json.loads(result)
        except (ValueError, RecursionError):
            return result
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        inner = (value.get("output") or value.get("text")) if isinstance(value, dict) else None
        return inner if isinstance(inner, str) else result
    return _SHELL_NOTE.sub("", result)
