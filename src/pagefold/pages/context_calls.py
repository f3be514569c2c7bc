"""Answers the agent's calls that pin, plan, prefer and reset: arguments in; a page, new pins and a sentence out.

A call that cannot be followed is refused with a reason and changes nothing. Pins follow from the history: the same
calls give the same pins, in any process.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pagefold.pages.context_tools import PIN, PLAN, PREFER, RESET, SERVERS, ContextTool, own_name
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.pages.pins import Pins
from pagefold.pages.producers import Producer, RefusalReason, Refused, Source, Statement, constrain, plan, prefer
from pagefold.wire.message import BlockKind, Message, Role

MOST_STATEMENTS = 64
"""Constraints, and preferences, that an agent may hold by its tools: with more it would drown the user's own."""
_LONGEST_SUMMARY = 200_000


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call did. `page` is to be put into the store; `text` is the tool's answer."""

    pins: Pins
    page: Page
    text: str


@dataclass(frozen=True, slots=True)
class ResetAsked:
    """The agent wants to go on from its summary."""

    page: Page
    text: str


CallOutcome: TypeAlias = Answered | ResetAsked | Refused


def answer(name: str, arguments: str | Mapping[str, Any], pins: Pins) -> CallOutcome:
    """Returns what one call does to the pins. `arguments` may be the JSON text as it came."""
    call = _CALLS.get(name)
    if call is None:
        return Refused(RefusalReason.UNKNOWN_TOOL, f"There is no tool {name!r} here.")
    tool, act = call
    given = _given(tool, arguments)
    return given if isinstance(given, Refused) else act(given, pins)


def step(pins: Pins, message: Message, servers: Collection[str] = SERVERS) -> Pins:
    """Returns the pins after one more message of the history, which may hold calls of the agent. Tools of `servers`
    alone are followed."""
    if message.role is not Role.ASSISTANT:
        return pins
    for block in message.blocks:
        if block.kind is BlockKind.CALL and (name := own_name(block.name, servers)):
            answered = answer(name, block.text, pins)
            if isinstance(answered, Answered):
                pins = answered.pins
    return pins


def _pin(given: Mapping[str, Any], pins: Pins) -> CallOutcome:
    made = constrain(**given, source=_by(PIN))
    said = "Every request carries this constraint from now on; only the user can take it back."
    return _stated(made, pins.constraints, pins, said)


def _prefer(given: Mapping[str, Any], pins: Pins) -> CallOutcome:
    made = prefer(**given, source=_by(PREFER))
    return _stated(made, pins.preferences, pins, "This preference is held.")


def _stated(made: Statement | Refused, known: tuple[Statement, ...], pins: Pins, said: str) -> CallOutcome:
    if isinstance(made, Refused):
        return made
    held = pins.holding(made)
    own = sum(1 for other in known if other.source.producer is Producer.TOOL)
    if held != pins and own >= MOST_STATEMENTS:
        return Refused(
            RefusalReason.TOO_MANY, f"{own} of these are held already, and that is the most: none was added."
        )
    return Answered(held, made.page, f"{said} ({made.page.handle})")


def _plan(given: Mapping[str, Any], pins: Pins) -> CallOutcome:
    made = plan(**given, source=_by(PLAN))
    if isinstance(made, Refused):
        return made
    at = f" at step {made.current} of {len(made.steps)}" if made.current else ""
    return Answered(pins.holding(made), made.page, f"The plan is held{at}. ({made.page.handle})")


def _reset(given: Mapping[str, Any], pins: Pins) -> CallOutcome:
    summary = given["summary"].strip()
    if not summary:
        return Refused(RefusalReason.EMPTY, "The summary is empty: nothing would be left to go on from.")
    if len(summary) > _LONGEST_SUMMARY:
        said = f"The summary has {len(summary)} characters; at most {_LONGEST_SUMMARY} are held: say it shorter."
        return Refused(RefusalReason.TOO_LONG, said)
    page = Page.of(PageKind.CONVERSATION, summary, RESET.name)
    return ResetAsked(page, f"From the next request on this summary stands for what came before it. ({page.handle})")


_CALLS: Mapping[str, tuple[ContextTool, Callable[[Mapping[str, Any], Pins], CallOutcome]]] = {
    PIN.name: (PIN, _pin),
    PLAN.name: (PLAN, _plan),
    PREFER.name: (PREFER, _prefer),
    RESET.name: (RESET, _reset),
}
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "array": list}


def _given(tool: ContextTool, arguments: str | Mapping[str, Any]) -> dict[str, Any] | Refused:
    """Checks the arguments against the tool's schema."""
    value = _parsed(arguments)
    if not isinstance(value, Mapping):
        return Refused(RefusalReason.WRONG_TYPE, f"The arguments of {tool.name} are a JSON object.")
    properties = tool.arguments["properties"]
    for name in tool.arguments["required"]:
        if name not in value:
            return Refused(RefusalReason.EMPTY, f"{tool.name} needs {name!r}.")
    for name, given in value.items():
        if name not in properties:
            expected = ", ".join(properties)
            return Refused(RefusalReason.UNKNOWN_ARGUMENT, f"{tool.name} has no {name!r}: expected {expected}.")
        shape = properties[name]
        if not _fits(given, shape):
            of = "strings" if shape["type"] == "array" else ""
            kind = f"a list of {of}" if of else f"one {shape['type']}"
            return Refused(RefusalReason.WRONG_TYPE, f"{name!r} of {tool.name} has to be {kind}.")
    return dict(value)


def _fits(given: Any, shape: Mapping[str, Any]) -> bool:
    if not isinstance(given, _TYPES[shape["type"]]) or isinstance(given, bool):
        return False
    return not isinstance(given, list) or all(isinstance(item, str) for item in given)


def _parsed(arguments: str | Mapping[str, Any]) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None  # refused as no object


def _by(tool: ContextTool) -> Source:
    return Source(Producer.TOOL, tool.name)
