"""Writes the texts of a tool's result in their cheapest lossless form and leaves every other byte as it came.

Images, audio, resources, `structuredContent` and texts meant for the user alone pass unchanged. But a text that looks
like one of pagefold's own forms or hints, whoever wrote it and wherever, is marked as what it is.

Some clients show their model nothing but `structuredContent`. Where a text says the same value, such a client gets the
text alone: its model would otherwise be shown the more expensive of the two.
"""

import json
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

from pagefold.encode import choose
from pagefold.encode.choose import EncodedText
from pagefold.encode.codecs import TOP
from pagefold.encode.codecs.toon import ToonCodec
from pagefold.encode.cursor import read_cursor
from pagefold.encode.output_parameters import OutputRequest
from pagefold.encode.page_pieces import BudgetError, piece
from pagefold.encode.trim import trim
from pagefold.frozen import frozen
from pagefold.mcp_proxy.commands import Shorten
from pagefold.mcp_proxy.posing import marks, with_quoted_lines
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.pages.ledger import Ledger
from pagefold.pages.page import id_of
from pagefold.tokens import counter
from pagefold.wire import json_text


class Original(NamedTuple):
    """A text as the tool wrote it. `form` is what was shown in its place, if that says all of it without references."""

    text: str
    form: str = ""


@frozen
class Shortened:
    """The message as the client gets it, with what its texts cost in tokens before and after."""

    data: bytes
    before: int
    after: int
    skipped: int
    twins: int
    cut: int
    originals: tuple[Original, ...] = field(repr=False)
    ledger: Ledger | None = field(repr=False)


Keep = Callable[[str, str], bool]
quoted_lines = with_quoted_lines

_CODECS = frozenset(codec.name for codec in TOP) | {"numbered"}


def shortened(command: Shorten, ledger: Ledger | None = None, budget: int = 0, keep: Keep | None = None) -> Shortened:
    """`ledger`, if there is one, is what the model can still see; the one returned includes this result.

    A text over the budget is cut if `keep` has stored it first.
    """
    result = command.result
    failed = result.failed
    changes: list[tuple[int, int, str]] = []
    originals: list[Original] = []
    before = after = skipped = cut = 0
    for spot in result.texts():
        text: str = spot.value
        shown = _form(text, command, failed, ledger)
        part = _part(text, shown, command, budget, keep) if not failed else None
        if part is not None:
            shown, cut = part, cut + 1
        if ledger is not None:
            for entry in shown.ledger_entries:
                ledger = ledger.with_text(entry)
        alone = shown.text != text and part is None and not shown.references and not _requested_format(command)
        originals.append(Original(text, shown.text if alone else ""))
        skipped += len(shown.skipped)
        before, after = before + shown.before, after + shown.tokens
        if shown.text != text:
            changes.append((spot.start, spot.end, json_text.dumps(shown.text)))
    twin = _twin(result) if command.only_text else None
    if twin is not None:
        changes.append((*twin, ""))
    data = result.with_changes([*changes, *marks(result)])
    return Shortened(data, before, after, skipped, int(twin is not None), cut, tuple(originals), ledger)


def as_it_came(result: ToolResult) -> bytes:
    """A result whose texts are not encoded, those marked that could be taken for pagefold's."""
    return result.with_changes(marks(result, every=True))


def _form(text: str, command: Shorten, failed: bool, ledger: Ledger | None) -> EncodedText:
    """The cheapest form, or the one that the agent asked for."""
    match _requested_format(command):
        case "json":
            return choose.encode(text, tool=command.call.tool, failed=failed, without=_CODECS)
        case "toon":
            toon = ToonCodec().encode(text, str)
            if toon is not None:
                count = counter("o200k").count
                return EncodedText(toon, ("toon",), count(toon), count(text))
    return choose.encode(text, tool=command.call.tool, failed=failed, ledger=ledger)


def _requested_format(command: Shorten) -> str | None:
    """Returns the format that the agent asked for, or None."""
    return getattr(command.output_request, "format", None)


def _part(text: str, shown: EncodedText, command: Shorten, budget: int, keep: Keep | None) -> EncodedText | None:
    """The part of a text that fits the budget, or the chunk that was asked for; None where all of it fits."""
    request = command.output_request or OutputRequest()
    most = request.budget or budget
    if keep is None or not most or (shown.tokens <= most and not request.chunk) or not keep(text, command.call.tool):
        return None
    arguments = json_text.dumps(command.call.arguments)
    try:
        part = trim(text, most, tool=command.call.tool, arguments=arguments)
    except BudgetError:
        return None
    chunk, tokens = part.text, part.tokens
    if request.chunk and request.chunk > 1:
        if request.chunk - 2 >= len(part.chunks):
            chunk = f"There is no chunk {request.chunk}: this result has {len(part.chunks) + 1}."
        else:
            page = id_of(text.encode("utf-8", "surrogatepass"))
            cursor = read_cursor(part.chunks[request.chunk - 2].cursor, page, len(text))
            chunk = piece(text, cursor, counter("o200k").count).text
        tokens = counter("o200k").count(chunk)
    return EncodedText(chunk, ("trim",), tokens, shown.before or part.before)


def _twin(result: ToolResult) -> tuple[int, int] | None:
    """The span of `structuredContent` with its key and one comma, if a text says the same value."""
    members, raw = result.members, result.reply.raw
    place = next((place for place, spot in enumerate(members) if spot.key == "structuredContent"), None)
    if place is None or len(members) < 2:
        return None
    texts = (result.text_in(block) for block in result.blocks)
    if not any(text is not None and _says(text.value, members[place].value) for text in texts):
        return None
    if place:
        return members[place - 1].end, members[place].end
    opening = raw.rfind("{", 0, raw.rindex('"', 0, raw.rindex('"', 0, members[0].start)))
    return opening + 1, raw.index(",", members[0].end) + 1


def _says(text: Any, value: Any) -> bool:
    """Whether a text is this value as JSON, or the one value in a wrapper such as `{"result": …}`."""
    if not isinstance(text, str):
        return False
    wrapped = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if wrapped == text:
        return True
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return _spelled(parsed) in (_spelled(value), _spelled(wrapped))


def _spelled(value: Any) -> str:
    """The same text for equal JSON values only: Python takes 1, 1.0 and True for equal."""
    return json.dumps(value, sort_keys=True)
