"""What one tool call did to files, from its name, its arguments and its result.

`file_tools` says what a tool does; a tool that nobody has listed is known by its arguments and its name.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen
from pagefold.pages.files.changes import Doubted, Edited, FileChange, FileRemoved, Moved, Shown, Written
from pagefold.pages.files.commands import changed_by_script
from pagefold.pages.files.file_tools import KNOWN_TOOLS, ArgumentNames, Does, FileTool, FileTools, text_under
from pagefold.pages.files.folders import START, Folders, folders_after, placed
from pagefold.pages.files.frames import is_cut, is_framed, opened
from pagefold.pages.files.patch import compared_files, patch_in, patched_files
from pagefold.pages.files.printed import hits_in, numbered
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of
from pagefold.pages.outcome import CallEnding, Outcome

_JSON_CALL = re.compile(r"tools\.(\w+)\(\s*")
_WHOLE_READ = 2_000
_BETWEEN_FILES = "---"
_SAYS_INSTEAD = ("<system-reminder>", "EISDIR", "File unchanged", "Wasted call")


@frozen
class _FileCall:
    """A call with its result and what is known of its tool."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    failed: bool
    names: ArgumentNames
    tools: FileTools
    stated: frozenset[str] = frozenset()
    folders: Folders = START
    only_look: tuple[str, ...] = ()

    def text(self, names: Sequence[str]) -> str | None:
        return text_under(self.arguments, names)


def changes_of(
    name: str,
    arguments: Mapping[str, Any],
    result: str,
    ending: CallEnding,
    tools: FileTools = KNOWN_TOOLS,
    folders: Folders = START,
) -> Iterator[FileChange]:
    """What a call did to files. A call that was refused did nothing, nor one that failed or was interrupted, unless it
    ran a script or sent an agent: what these may have changed is in doubt. `folders` is where a shell that keeps
    its folder may stand."""
    if ending.outcome is Outcome.REFUSED or not ending.ran:
        return
    tool = tools.find(name) or FileTool(Does.FILE, tools.arguments)
    failed = ending.outcome not in (Outcome.OK, Outcome.UNCLEAR)
    stands = folders if name in tools.keep_folder or name in tools.follow_folder else START
    call = _FileCall(name, arguments, result, failed, tool.arguments, tools, tool.stated, stands, tool.only_look)
    if not failed or tool.does in _ALSO_FAILED:
        yield from _DONE_BY[tool.does](call)


def shell_folders_after(
    name: str,
    arguments: Mapping[str, Any],
    result: str,
    ending: CallEnding,
    tools: FileTools = KNOWN_TOOLS,
    folders: Folders = START,
) -> Folders:
    """Where the shell that keeps its folder may stand after a call."""
    script = text_under(arguments, tools.arguments.script) if name in tools.keep_folder else None
    if script is None or ending.outcome is Outcome.REFUSED:
        return folders
    return folders_after(script, result, folders, failed=ending.outcome in (Outcome.FAILED, Outcome.INTERRUPTED))


def script_of(arguments: Mapping[str, Any], tools: FileTools = KNOWN_TOOLS) -> str:
    """What a call gave to a shell: itself, or by a program; nothing where it gave none."""
    if (script := text_under(arguments, tools.arguments.script)) is not None:
        return script
    code = text_under(arguments, tools.arguments.code) or ""
    return "\n".join(script for script, _ in _calls_in(code) if not patch_in(script))


def script_folders(name: str, arguments: Mapping[str, Any], tools: FileTools, folders: Folders) -> Folders:
    """Where what a call gave to a shell may have begun, which otherwise keeps its folder as in `folders`."""
    if (folder := text_under(arguments, tools.arguments.folder)) is not None:
        return (folder,)
    if text_under(arguments, tools.arguments.script) is not None:
        return folders if name in tools.keep_folder else START
    within = tuple({folder for _, folder in _calls_in(text_under(arguments, tools.arguments.code) or "")})
    return within if len(within) == 1 else ()


def _by_agent(call: _FileCall) -> Iterator[FileChange]:
    """What an agent of its own may have done: it can change any file, unless it was told to look only."""
    prompt = call.text(call.names.prompt) or ""
    kind, task = call.text(call.names.agent) or "", call.text(("description", "task_name")) or ""
    if not call.tools.agents.only_looks(kind, task, prompt, call.only_look):
        what = task or kind
        yield Doubted("", f"the agent for {what!r}" if what else "an agent at work")


def _by_any_file_tool(call: _FileCall) -> Iterator[FileChange]:
    """What a tool did that is known by its arguments only."""
    if any(name in call.arguments for name in call.names.elsewhere):
        return
    if call.text(call.names.script) is None and any(_patches(call.arguments)):
        yield from _by_patch(call)
    elif call.text(call.names.path) is None:
        yield from _by_program(call)
    elif call.failed:
        return
    elif _is_edit(call):
        yield from _by_edit(call)
    elif call.tools.writes_by_name(call.name) or call.arguments.get("command") == "create":
        yield from _by_write(call)
    elif any(name in call.arguments for name in call.names.pattern):
        yield from _by_search(call)
    elif call.tools.reads_by_name(call.name) or call.arguments.get("command") == "view":
        yield from _by_read(call)
    else:
        yield from _snippet(call)


def _patches(arguments: Mapping[str, Any]) -> Iterator[str]:
    return (patch for value in arguments.values() if isinstance(value, str) and (patch := patch_in(value)))


def _by_patch(call: _FileCall) -> Iterator[FileChange]:
    if not call.failed:
        yield from (change for patch in _patches(call.arguments) for change in patched_files(patch))


def _is_edit(call: _FileCall) -> bool:
    lists = any(isinstance(call.arguments.get(name), list) for name in call.names.edits)
    return lists or call.text(call.names.old) is not None


def _by_edit(call: _FileCall) -> Iterator[FileChange]:
    path, arguments = call.text(call.names.path), call.arguments
    if path is None or any(arguments.get(name) is True for name in call.names.dry_run):
        return
    edits = next((edits for name in call.names.edits if isinstance(edits := arguments.get(name), list)), [arguments])
    yield from (change for edit in edits if isinstance(edit, Mapping) for change in _edit(path, edit, call.names))
    yield from _snippet(call)


def _edit(path: str, arguments: Mapping[str, Any], names: ArgumentNames) -> Iterator[FileChange]:
    old, new = text_under(arguments, names.old), text_under(arguments, names.new)
    if old and new is not None:
        every = any(arguments.get(name) is True for name in names.everywhere)
        yield Edited(path, old, new, every)
    elif old == "" and new is not None:
        yield Written(path, new)


def _by_write(call: _FileCall) -> Iterator[FileChange]:
    path, content = call.text(call.names.path), call.text(call.names.content)
    if path is not None and content is not None:
        yield Written(path, content)


def _by_move(call: _FileCall) -> Iterator[FileChange]:
    path, to = call.text(call.names.path), call.text(call.names.to)
    if path is not None and to is not None:
        yield Moved(path, to)


def _by_removal(call: _FileCall) -> Iterator[FileChange]:
    if (path := call.text(call.names.path)) is not None:
        yield FileRemoved(path)


def _by_search(call: _FileCall) -> Iterator[FileChange]:
    path = call.text(call.names.path) or ""
    hits = hits_in(call.result, path if "." in path.rpartition("/")[2] else "")
    yield from placed(hits, call.folders or START, "")


def _by_diff(call: _FileCall) -> Iterator[FileChange]:
    """What a tool showed that compares the files as they are with others."""
    folder = call.text(call.names.folder) or ""
    yield from (change.placed(folder) for change in compared_files(opened(call.result)))


def _by_anything(call: _FileCall) -> Iterator[FileChange]:
    yield Doubted("", call.name)


def _by_nothing(call: _FileCall) -> Iterator[FileChange]:
    yield from ()


def _by_read(call: _FileCall) -> Iterator[FileChange]:
    path = call.text(call.names.path)
    if path is None:
        yield from _by_reading_several(call)
        return
    text = opened(call.result)
    lines = lines_of(text)
    if shown := numbered(path, lines):
        if sum(1 for line in lines if line.strip()) >= 2 * len(shown.lines) + 8:
            return  # numbers that stand in the text itself
        yield Shown(path, shown.start, shown.lines, _ends(shown, lines, call))
    elif not _asks_for_part(call) and _is_text(text):
        yield Shown(path, 1, tuple(lines), ends=True)


def _by_reading_several(call: _FileCall) -> Iterator[FileChange]:
    """Files that one call showed, each behind a line with its path and a colon; nothing where their borders are not
    certain, or where one of them could not be read."""
    listed = next((value for name in call.names.paths if isinstance(value := call.arguments.get(name), list)), [])
    paths, text = [path for path in listed if isinstance(path, str)], opened(call.result)
    heads = [f"{path}:\n" for path in paths]
    if not paths or not _is_text(text) or not text.startswith(heads[0]):
        return
    starts = [0]
    for head in heads[1:]:
        border = f"\n{_BETWEEN_FILES}\n{head}"
        if text.count(border) != 1 or (at := text.find(border)) < starts[-1]:
            return
        starts.append(at + len(border) - len(head))
    for path, head, start, following in zip(paths, heads, starts, [*starts[1:], 0], strict=True):
        end = following - len(f"\n{_BETWEEN_FILES}\n") if following else len(text)
        yield Shown(path, 1, tuple(lines_of(text[start + len(head) : end].removesuffix("\n"))), ends=True)


def _asks_for_part(call: _FileCall) -> bool:
    """Whether a read may have shown a part, or no text: any argument may say so, unless the tool's table tells which
    do."""
    if call.stated.isdisjoint(("offset", "limit")):
        return len(call.arguments) > 1
    return any(call.arguments.get(name) is not None for name in (*call.names.offset, *call.names.limit))


def _ends(shown: Shown, lines: Sequence[str], call: _FileCall) -> bool:
    """Whether a read showed the file up to its end."""
    behind = False
    for line in reversed(lines):
        if (match := numbered("", [line])) is not None:
            behind = match.start == (shown.start or 0) + len(shown.lines) - 1
            break
        if is_cut(line):
            return False
    asked = [name for name in (*call.names.offset, *call.names.limit) if call.arguments.get(name) is not None]
    limit = call.arguments.get("limit")
    if isinstance(limit, int) and not isinstance(limit, bool) and "end_line" not in asked:
        return behind and len(shown.lines) < limit
    return behind and not set(asked) & set(call.names.limit) and len(shown.lines) < _WHOLE_READ


def _is_text(text: str) -> bool:
    """Whether a result without numbers can be a file's text: not what a tool says about it, and not binary."""
    return not (is_cut(text) or "\x00" in text or "\ufffd" in text or text.startswith(_SAYS_INSTEAD))


def _snippet(call: _FileCall) -> Iterator[FileChange]:
    """The numbered lines around an edit that some tools print."""
    at, path = call.result.find("cat -n"), call.text(call.names.path)
    shown = numbered(path, call.result[at:].split("\n")[1:]) if at >= 0 and path is not None else None
    yield from [shown] if shown else []


def _by_program(call: _FileCall) -> Iterator[FileChange]:
    """What a program did that hands one script to a shell tool, or a shell tool that nobody has listed."""
    if call.text(call.names.script) is not None:
        yield from _by_shell(call)
    elif any(_patches(call.arguments)):
        yield from _by_patch(call)
    elif (code := call.text(call.names.code)) is not None:
        scripts = list(_calls_in(code))
        if len(scripts) == 1:
            script, folder = scripts[0]
            yield from _by_script(script, (folder,), call)


def _by_shell(call: _FileCall) -> Iterator[FileChange]:
    folder = call.text(call.names.folder)
    if (script := _script(call)) is not None:
        yield from _by_script(script, (folder,) if folder else call.folders, call)


def _script(call: _FileCall) -> str | None:
    """The script that a shell tool ran: a text, or the words of a command."""
    if (text := call.text(call.names.script)) is not None:
        return text
    words = next((value for name in call.names.script if isinstance(value := call.arguments.get(name), list)), [])
    if not words or not all(isinstance(word, str) for word in words):
        return None
    is_shell = len(words) == 3 and words[1] in ("-c", "-lc") and words[0].rpartition("/")[2] in shell_words().shells
    return words[2] if is_shell else shlex.join(words)


def _by_script(script: str, folders: Folders, call: _FileCall) -> Iterator[FileChange]:
    if patch_in(script) and call.failed:
        return
    result = call.result
    output = "" if call.failed or is_cut(result[:400]) or is_cut(result[-400:]) else opened(result)
    whole = is_framed(result)
    yield from changed_by_script(script, output, folders, failed=call.failed, printed=opened(result), whole=whole)


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


_DONE_BY: Mapping[Does, Callable[[_FileCall], Iterator[FileChange]]] = {
    Does.READ: _by_read,
    Does.WRITE: _by_write,
    Does.EDIT: _by_edit,
    Does.PATCH: _by_patch,
    Does.MOVE: _by_move,
    Does.REMOVE: _by_removal,
    Does.SEARCH: _by_search,
    Does.DIFF: _by_diff,
    Does.SHELL: _by_shell,
    Does.PROGRAM: _by_program,
    Does.CHANGE_ANY: _by_anything,
    Does.DELEGATE: _by_agent,
    Does.WAIT: _by_nothing,
    Does.ASK_USER: _by_nothing,
    Does.PLAN: _by_nothing,
    Does.NEW_TASK: _by_nothing,
    Does.TASK_STATE: _by_nothing,
    Does.FILE: _by_any_file_tool,
    Does.NOTHING: _by_nothing,
}
_ALSO_FAILED = frozenset((Does.SHELL, Does.PROGRAM, Does.DELEGATE, Does.FILE))
"""What may have changed files although it failed."""
