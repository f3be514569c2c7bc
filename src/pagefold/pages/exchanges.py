"""Tool calls with what became of them, and the files they touched, kept up message by message.

`Work` is a value: every step returns a new one. It holds what an agent has done so far, in the order in which results
came in.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import Any

from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.pages.copies_told import WorkingCopies
from pagefold.pages.copy_folders import ENVIRONMENT, stated_folder
from pagefold.pages.files.changes import Act, Doubted, FileChange
from pagefold.pages.files.file_tools import KNOWN_TOOLS, Does, FileTools, file_tools, text_under
from pagefold.pages.files.folders import START, Folders, perhaps_put_back
from pagefold.pages.files.model import FileModel
from pagefold.pages.files.own_tools import OwnTools
from pagefold.pages.files.patch import patch_in, patched_files
from pagefold.pages.files.recognise import changes_of, script_folders, script_of, shell_folders_after
from pagefold.pages.outcome import CallEnding, Outcome, ending_of
from pagefold.pages.voices import Voice, without_reminders, words_of
from pagefold.pages.working_copy import ScriptSeen, copies_after
from pagefold.printable import printable
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of

_OF_A_SHELL = "<task_type>local_bash</task_type>"  # what Claude Code waited for is no agent
_RESULTS = (BlockKind.RESULT, BlockKind.OTHER)
_CLIENTS = (Role.SYSTEM, Role.DEVELOPER)
_answered_at = attrgetter("answered")


@frozen
class Exchange:
    """One call and its result. `called` and `answered` are their places in the history.

    `label` is the call as a person would say it, on one line; `purpose` is what the agent said it was for; `paths` are
    the files it showed or changed; `delegated` where an agent of its own was asked, `asked_user` where the user was.
    """

    name: str
    label: str
    purpose: str
    called: int
    answered: int
    call_id: str
    ending: CallEnding
    act: Act = Act.OTHER
    paths: tuple[str, ...] = ()
    delegated: bool = False
    asked_user: bool = False

    @property
    def line(self) -> str:
        """The exchange on one line: the call and what became of it."""
        return f"{self.label}: {self.ending.text}"


@frozen
class OpenCall:
    name: str
    arguments: Mapping[str, Any] = field(compare=False)
    place: int


@frozen
class Work:
    """All exchanges so far, calls without a result, the files as they are now, and the last stated plan.

    `agents` are those that were sent to work and may change files, by what they are for: they may still be at it when
    their call has returned, until a notification tells of their end.
    """

    exchanges: Log[Exchange] = field(default_factory=Log)
    open: Mapping[str, OpenCall] = field(default_factory=dict)
    files: FileModel = field(default_factory=FileModel)
    plan: int = -1  # the place of the message that last stated a plan
    agents: Mapping[str, Doubted] = field(default_factory=dict)
    tools: FileTools = KNOWN_TOOLS  # by which files are shown and changed
    copies: WorkingCopies = field(default_factory=WorkingCopies)  # what git last told of them
    folders: Folders = START  # where the shell that keeps its folder may stand

    def after(self, message: Message, place: int) -> "Work":
        """The work after one more message of the history."""
        work = self
        for index, block in enumerate(message.blocks):
            if block.kind is BlockKind.TEXT and (message.role in _CLIENTS or block.text.startswith(ENVIRONMENT)):
                work = replace(work, copies=work.copies.beginning_in(stated_folder(block.text)))
            if block.kind is BlockKind.CALL:
                arguments = arguments_of(block)
                calls = {**work.open, block.call_id: OpenCall(block.name, arguments, place)}
                plan = place if steps_of(block.name, arguments, self.tools) is not None else work.plan
                work = replace(work, open=calls, plan=plan)
            elif block.kind is BlockKind.RESULT and block.call_id in work.open:
                work = _answered(work, _whole(message.blocks, index), place)
            elif block.kind is BlockKind.TEXT and message.role is Role.USER and (work.agents or work.folders != START):
                work = _spoken_to(work, without_reminders(block.text), place)
        return work

    def answered_between(self, start: int, end: int) -> list[Exchange]:
        """The exchanges whose results came from one place up to another, in order."""
        first = bisect_left(self.exchanges, start, key=_answered_at)
        return self.exchanges[first : bisect_left(self.exchanges, end, first, key=_answered_at)]


def result_of(message: Message, call_id: str) -> Block | None:
    """All that a message says in answer to a call, as one block: its texts, and parts that are none as their JSON."""
    for index, block in enumerate(message.blocks):
        if block.call_id == call_id and block.kind is BlockKind.RESULT:
            return _whole(message.blocks, index)
    return None


def _whole(blocks: Sequence[Block], index: int) -> Block:
    """The first text of a result with what else the result says. Its parts stand side by side."""
    first, start, end = blocks[index], index, index + 1
    while first.call_id and start and blocks[start - 1].call_id == first.call_id:
        start -= 1
    while first.call_id and end < len(blocks) and blocks[end].call_id == first.call_id:
        end += 1
    if end - start == 1:
        return first
    text = "\n".join(block.text for block in blocks[start:end] if block.kind in _RESULTS and block.text)
    return first if first.text == text else replace(first, text=text, path=(), within=None)


def work_of(messages: Iterable[Message], own: OwnTools = ()) -> Work:
    """The work of a whole history. `own` are the user's own tools."""
    work = Work(tools=file_tools(own))
    for place, message in enumerate(messages):
        work = work.after(message, place)
    return work


def _spoken_to(work: Work, text: str, place: int) -> Work:
    """The work after a text in the user's place. An agent that reports may have changed files until then, and the
    folder of the shell; a user who speaks may have gone on with the session in a new process, in which a shell stands
    where it first did."""
    words = words_of(text)
    if words.voice is Voice.AGENT and words.speaker in work.agents:
        files = work.files.after((work.agents[words.speaker],), place)
        work = replace(work, files=files, copies=work.copies.after_a_change(place))
    restarted = text and words.voice in (Voice.USER, Voice.SUMMARY, Voice.AGENT)
    return replace(work, folders=perhaps_put_back(work.folders)) if restarted else work


def _answered(work: Work, result: Block, place: int) -> Work:
    """The work after the result of an open call."""
    call = work.open[result.call_id]
    script = script_of(call.arguments, work.tools)
    told = result.failed and not work.tools.may_be_a_servers(call.name)  # by the client, not by whoever failed
    ending = ending_of(result.text, failed=result.failed, script=script, by_client=told)
    changes = tuple(changes_of(call.name, call.arguments, result.text, ending, work.tools, work.folders))
    tool = work.tools.find(call.name)
    does = tool.does if tool is not None else Does.NOTHING
    if does is Does.WAIT:
        changes = tuple(work.agents.values())
    exchange = Exchange(
        call.name,
        label_of(call.name, call.arguments),
        text_under(call.arguments, work.tools.arguments.purpose) or "",
        call.place,
        place,
        result.call_id,
        ending,
        act_of(changes),
        tuple(dict.fromkeys(change.path for change in changes if change.path)),
        delegated=does is Does.DELEGATE or (does is Does.WAIT and _OF_A_SHELL not in result.text[:400]),
        asked_user=does is Does.ASK_USER and work.tools.of_client(call.name) is not None,
    )
    agents = work.agents
    if exchange.delegated and (doubt := next((change for change in changes if isinstance(change, Doubted)), None)):
        agents = {**agents, exchange.purpose: doubt}
    left = {id_: other for id_, other in work.open.items() if id_ != result.call_id}
    files = work.files.after(changes, place) if changes else work.files
    folders = shell_folders_after(call.name, call.arguments, result.text, ending, work.tools, work.folders)
    folders = perhaps_put_back(folders) if exchange.delegated else folders  # its own commands are put back there
    copies = work.copies
    if ending.outcome is not Outcome.REFUSED:
        began = script_folders(call.name, call.arguments, work.tools, work.folders)
        seen = ScriptSeen(script, result.text, began, ending.outcome is Outcome.OK)
        changed = any(change.paths and change.act is not Act.SHOWED for change in changes)
        copies = copies_after(copies, seen, place, changed=changed)
    exchanges = work.exchanges.with_items((exchange,))
    return replace(work, exchanges=exchanges, open=left, files=files, agents=agents, copies=copies, folders=folders)


def act_of(changes: tuple[FileChange, ...]) -> Act:
    acts = {change.act for change in changes}
    return next((act for act in (Act.CHANGED, Act.SHOWED) if act in acts), Act.OTHER)


def steps_of(name: str, arguments: Mapping[str, Any], tools: FileTools) -> list[Any] | str | None:
    """The steps of a plan that a call states; None where it states none."""
    tool = tools.find(name)
    names = tool.arguments.steps if tool else tools.arguments.steps
    return next((steps for key in names if isinstance(steps := arguments.get(key), list | str)), None)


def label_of(name: str, arguments: Mapping[str, Any], longest: int = 160) -> str:
    """A call on one line: the tool and its short arguments. An agent is told by what it is for: the orders of several
    may begin alike. Behind a script its folder is named as such, and no number: it would pass for a part of it."""
    words, tool = [name], KNOWN_TOOLS.find(name)
    if tool is not None and tool.does is Does.DELEGATE and (purpose := text_under(arguments, tool.arguments.purpose)):
        arguments = {"": purpose}
    names = KNOWN_TOOLS.arguments
    is_script = text_under(arguments, names.script) is not None
    for key, value in arguments.items():
        if key in names.purpose or isinstance(value, bool | list | dict) or (is_script and not isinstance(value, str)):
            continue
        text = f"(in {value})" if is_script and key in names.folder else str(value)
        if patch := patch_in(text):
            words += (change.path for change in patched_files(patch))
            continue
        words.append(text if "\n" not in text else f"{text.strip().partition(chr(10))[0]} …")
    label = printable(" ".join(words).strip(), keep="\t")
    return label if len(label) <= longest else label[: longest - 1] + "…"
