"""Scripted answers: a list of turns that the model says one after the other, whichever API it is asked through.

A turn is an object with any of `text`, `thinking`, `tool_call` and `tool_calls` (`{"name", "input"}`). Which turn comes
next is read from the request: call ids name their turn, and answers without calls are counted after the newest of them.
So a retry gets the same answer, a fork its own, and a proxy may leave out older turns. Two names work with every agent:
`$shell` `{"command"}` and `$read` `{"path"}` become the tool that the request offers for it. After the last turn the
model says "End of script."; a request that offers no tools gets a fixed sentence where the turn would call one.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.frozen import frozen
from pagefold.provider.answer import DEFAULT_THINKING, Answer, AnswerCall
from pagefold.provider.offered_tools import offered_tools
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object, as_string

_LAST = Answer("End of script.")
_ASIDE = Answer("Noted.")
_CALL_ID = re.compile(r'"(?:id|call_id|tool_use_id|tool_call_id)":"call_t(\d+)c\d+"')
_SHELLS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "scripted"},
    "bash": lambda command: {"command": command, "description": "scripted"},
    "exec_command": lambda command: {"cmd": command},
    "run_shell_command": lambda command: {"command": command, "description": "scripted"},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "exec": lambda command: {"input": f"text(await tools.exec_command({json_text.dumps({'cmd': command})}))"},
}
_READERS = {"Read": "file_path", "read": "filePath", "read_file": "file_path"}


@frozen
class Script:
    """The turns of a script, as answers. Called with a request it returns the next of them."""

    turns: Sequence[Answer]

    def __call__(self, number: int, request: Mapping[str, Any]) -> Answer:
        at = _next_turn(request)
        turn = self.turns[at] if at < len(self.turns) else _LAST
        if not turn.calls:
            return turn
        offered = offered_tools(request)
        if not offered:
            return _ASIDE
        calls = [_named(call, f"call_t{at:04}c{place}", offered) for place, call in enumerate(turn.calls)]
        return Answer(turn.text, calls, turn.thinking)


def parse_script(text: str, name: str) -> Script:
    """Raises ConfigError where it is no script, and says where."""
    try:
        listed = json_text.parse(text)
    except WireError as error:
        raise ConfigError(f"{name}: expected a JSON list of turns ({error})") from error
    if not isinstance(listed, list):
        raise ConfigError(f"{name}: expected a JSON list of turns, found {type(listed).__name__}")
    return Script([_turn(value, f"{name}: turn {at}") for at, value in enumerate(listed)])


def _turn(value: Any, where: str) -> Answer:
    turn = as_object(value)
    known = ("text", "thinking", "tool_call", "tool_calls")
    odd = [key for key in turn if key not in known]
    if not turn or odd:
        reason = f"found {', '.join(odd)}" if odd else "found nothing of it"
        raise ConfigError(f"{where}: expected an object with any of {', '.join(known)}; {reason}")
    listed = [turn["tool_call"]] if "tool_call" in turn else as_list(turn.get("tool_calls"))
    calls: list[AnswerCall] = []
    for call in map(as_object, listed):
        if not as_string(call.get("name")) or not isinstance(call.get("input", {}), dict):
            raise ConfigError(f"{where}: a call is an object with a name and, as input, an object")
        calls.append(AnswerCall(call["name"], call.get("input", {})))
    return Answer(as_string(turn.get("text")), calls, as_string(turn.get("thinking")) or DEFAULT_THINKING)


def _next_turn(request: Mapping[str, Any]) -> int:
    """The turn after the newest one that stands in the request."""
    newest = counted = -1
    items = as_list(request.get("messages") or request.get("input") or request.get("contents"))
    last_role = ""
    for item in map(as_object, items):
        role = as_string(item.get("role")) or ("user" if "output" in item else "assistant")
        role = "assistant" if role == "model" else role
        turns = [int(turn) for turn in _CALL_ID.findall(json_text.dumps(item))]
        if turns and max(turns) > newest:
            newest = counted = max(turns)
        elif role == "assistant" and last_role != "assistant" and item.get("type") != "reasoning":
            counted += 1
        last_role = role if item.get("type") != "reasoning" else last_role
    return counted + 1


def _named(call: AnswerCall, identity: str, offered: Collection[str]) -> AnswerCall:
    """The call with the name and arguments of the tool that is offered for it."""
    command = as_string(call.arguments.get("command"))
    if call.name == "$read":
        reader = next((name for name in _READERS if name in offered), None)
        if reader is not None:
            return AnswerCall(reader, {_READERS[reader]: call.arguments.get("path")}, identity)
        command = f"cat {call.arguments.get('path')}"
    if call.name in ("$read", "$shell"):
        shell = next((name for name in _SHELLS if name in offered), "Bash")
        return AnswerCall(shell, _SHELLS[shell](command), identity)
    return AnswerCall(call.name, call.arguments, identity)
