"""Who speaks in a message whose role is "user": the user, an agent that reports, or the client itself.

Clients put their own words in the user's place: notifications, summaries of a compaction, texts of skills and commands.
A digest must not tell them as the user's. What the user typed behind the name of a command is the user's all the same.
"""

import re
from enum import StrEnum

from pagefold.frozen import frozen


class Voice(StrEnum):
    USER = "user"
    YOU = "you"
    AGENT = "agent"
    SUMMARY = "summary"
    CLIENT = "client"
    TOOL = "tool"


_REMINDERS = re.compile(r"<system-reminder>.*</system-reminder>\s*", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_BOOKKEEPING = re.compile(r"<(usage|tool-use-id|output-file)>.*?</\1>", re.DOTALL)
_NOTIFICATION = re.compile(r"\A<task-notification>(.*?)(?:</task-notification>|\Z)", re.DOTALL)
_FIELD = re.compile(r"<(summary|result|status)>(.*?)</\1>", re.DOTALL)
_NUMBERED = re.compile(r"\AChunk ID: \w+$", re.MULTILINE)
_AGENT_NAME = re.compile(r'\AAgent "(.*)" \w+\Z', re.DOTALL)
_COMMAND = "Background command"  # of which a client tells as it does of agents
_SUMMARY = "This session is being continued from a previous conversation"
INSTRUCTIONS = "# AGENTS.md instructions for "  # of the project, which a client puts in
_CLIENT_BEGINS = (
    "Base directory for this skill:",
    "Caveat: The messages below",
    "Operation stopped by hook",
    INSTRUCTIONS,
    "[Request interrupted by user",
)
_CLIENT_TAG = re.compile(
    r"<(?:command-(?:name|message|args)|local-command-\w+|bash-\w+|environment_context|recommended_plugins"
    r"|user_instructions|turn_aborted|subagent_notification)>"
)
_TYPED = re.compile(
    r"\A(?:\s*<command-(?:name|message)>[^<]*</command-(?:name|message)>)+\s*<command-args>(.+?)</command-args>\s*\Z",
    re.DOTALL,
)
_RAN = re.compile(r"\A<bash-input>(.+?)</bash-input>\s*\Z", re.DOTALL)
_EXPANDS = "<command-message>"  # with which a message begins whose command stands for a text; other commands run
_COMMAND_NAME = re.compile(r"<command-name>\s*(/?[\w:.-]+)\s*</command-name>")


@frozen
class Words:
    """What a message says without its frame. `speaker` is the agent's name where one reports, `behind` the command that
    the user typed them behind."""

    voice: Voice
    text: str
    speaker: str = ""
    behind: str = ""


LATE = "[The result of an earlier call, which came late]"
"""The first line of a message in the user's place that holds what a tool returned."""


def without_reminders(text: str) -> str:
    """A text in the user's place without what the client adds to it: from the first tag of a reminder to the end of the
    last. A reminder may quote a file, and what a file says must not become the user's words by closing the tag."""
    return _REMINDERS.sub("", text).strip() if "<system-reminder>" in text else text.strip()


def reminders_emptied(text: str) -> str:
    """A text with empty lines in place of what the client put into it: the orders of reminders are not quoted without
    their tags, and what a notification counts, or how a harness numbers its answers, is no name that anybody asks for.
    """
    text = _NUMBERED.sub("", text)
    for mark, put_in in (("<system-reminder>", _REMINDER), ("<task-notification>", _BOOKKEEPING)):
        if mark in text:
            text = put_in.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text


def expands(text: str) -> bool:
    """Whether a text in the user's place is the name of a command whose own text the client puts in behind it."""
    return text.startswith(_EXPANDS)


def words_of(text: str) -> Words:
    """The words of a message in the user's place, and whose they are."""
    if (notification := _NOTIFICATION.match(text)) is not None:
        fields = dict(_FIELD.findall(notification.group(1)))
        agent = _AGENT_NAME.match(fields.get("summary", ""))
        report = fields.get("result") or fields.get("summary") or notification.group(1)
        if fields.get("status", "completed") != "completed":
            report = f"({fields['status']}) {report}"
        voice = Voice.TOOL if fields.get("summary", "").startswith(_COMMAND) else Voice.AGENT
        return Words(voice, report.strip(), agent.group(1) if agent else "")
    if text.startswith(LATE):
        return Words(Voice.TOOL, text[len(LATE) :].strip())
    if text.startswith(_SUMMARY):
        return Words(Voice.SUMMARY, text)
    if (typed := _TYPED.match(text)) is not None and typed[1].strip():
        name = _COMMAND_NAME.search(text[: typed.start(1)])
        return Words(Voice.USER, typed[1].strip(), behind=name[1] if name else "a command")
    if (ran := _RAN.match(text)) is not None:
        return Words(Voice.USER, ran[1].strip(), behind="!")
    is_client = text.startswith(_CLIENT_BEGINS) or _CLIENT_TAG.match(text) is not None
    return Words(Voice.CLIENT if is_client else Voice.USER, text)
