"""The texts of a tool's answer in their cheapest lossless form; every other byte of the answer as it came.

Images, audio, resources and `structuredContent` pass. A text that is meant for the user alone passes too. A text that
looks like a form or hint of ours, whoever wrote it, is marked as being what it is.

Where a client shows its model nothing but `structuredContent`, and a text says the same value, the text is what it
gets: the model would be shown one of the two, and the dearer one.
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
from pagefold.encode.output_parameters import OutputRequest as Wish
from pagefold.encode.page_pieces import BudgetError, piece
from pagefold.encode.trim import trim
from pagefold.frozen import frozen
from pagefold.mcp_proxy.commands import Shorten
from pagefold.pages.ledger import Ledger
from pagefold.pages.page import id_of
from pagefold.tokens import counter
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import Spot, as_object


class Original(NamedTuple):
    """A text as the tool said it. `form` is what was shown in its place, where that says all of it by itself."""

    text: str
    form: str = ""


@frozen
class Shortened:
    """The answer as the client gets it, and what its texts cost before and after."""

    data: bytes
    texts: int = 0
    before: int = 0
    after: int = 0
    skipped: int = 0
    twins: int = 0
    cut: int = 0
    originals: tuple["Original", ...] = field(default=(), repr=False)
    ledger: Ledger | None = field(default=None, repr=False)


Encode = Callable[..., EncodedText]
Keep = Callable[[str, str], bool]

_CODECS = frozenset(codec.name for codec in TOP) | {"numbered"}


def shortened(
    command: Shorten,
    encode: Encode = choose.encode,
    ledger: Ledger | None = None,
    budget: int = 0,
    keep: Keep | None = None,
) -> Shortened:
    """`ledger`, where there is one, is what the model can still see; the one that comes back knows this answer too.

    A text that is over the budget is cut, if `keep` has kept it first.
    """
    raw = json_text.text_of(command.data)
    whole = json_text.opened(raw, jsonrpc.TEXTS)
    result = json_text.member(whole.value, "result") if json_text.is_object(raw, whole) else None
    if result is None or not json_text.is_object(raw, result):
        return Shortened(command.data, ledger=ledger)
    members: list[Spot] = result.value
    content = json_text.member(members, "content")
    if content is None or not json_text.is_array(raw, content):
        return Shortened(command.data, ledger=ledger)
    is_error = json_text.member(members, "isError")
    failed = is_error is not None and is_error.value is True
    changes: list[tuple[int, int, str]] = []
    originals: list[Original] = []
    before = after = skipped = cut = 0
    for block in content.value:
        spot = _text_of(raw, block)
        if spot is None:
            continue
        shown = _form(spot.value, command, failed, encode, ledger)
        part = _part(spot.value, shown, command, budget, keep) if not failed else None
        if part is not None:
            shown, cut = part, cut + 1
        if ledger is not None:
            for standing in shown.standing:
                ledger = ledger.with_text(standing)
        alone = shown.text != spot.value and part is None and not shown.references and not _wished(command)
        originals.append(Original(spot.value, shown.text if alone else ""))
        skipped += len(shown.skipped)
        before, after = before + shown.before, after + shown.tokens
        if shown.text != spot.value:
            changes.append((spot.start, spot.end, json_text.dumps(shown.text)))
    twin = _twin(raw, members, content) if command.only_text else None
    if twin is not None:
        changes = sorted([*changes, (*twin, "")])
    data = json_text.bytes_of(json_text.splice(raw, changes)) if changes else command.data
    twins = int(twin is not None)
    return Shortened(data, len(originals), before, after, skipped, twins, cut, tuple(originals), ledger)


def _form(text: str, command: Shorten, failed: bool, encode: Encode, ledger: Ledger | None) -> EncodedText:
    """The cheapest form, or the one that the agent asked for."""
    match _wished(command):
        case "json":
            return encode(text, tool=command.tool, failed=failed, without=_CODECS)
        case "toon":
            toon = ToonCodec().encode(text, str)
            if toon is not None:
                count = counter("o200k").count
                return EncodedText(toon, ("toon",), count(toon), count(text))
    return encode(text, tool=command.tool, failed=failed, ledger=ledger)


def _wished(command: Shorten) -> str | None:
    """The form that the agent asked for by name."""
    return getattr(command.wish, "format", None)


def _part(text: str, shown: EncodedText, command: Shorten, budget: int, keep: Keep | None) -> EncodedText | None:
    """The part of a text that fits the budget, or the chunk that was asked for; None where all of it fits."""
    wish = command.wish or Wish()
    most = wish.budget or budget
    if keep is None or not most or (shown.tokens <= most and not wish.chunk) or not keep(text, command.tool):
        return None
    arguments = json_text.dumps(command.call.arguments) if command.call else ""
    try:
        part = trim(text, most, tool=command.tool, arguments=arguments)
    except BudgetError:
        return None
    said, tokens = part.text, part.tokens
    if wish.chunk and wish.chunk > 1:
        if wish.chunk - 2 >= len(part.chunks):
            said = f"There is no chunk {wish.chunk}: this result has {len(part.chunks) + 1}."
        else:
            page = id_of(text.encode("utf-8", "surrogatepass"))
            cursor = read_cursor(part.chunks[wish.chunk - 2].cursor, page, len(text))
            said = piece(text, cursor, counter("o200k").count).text
        tokens = counter("o200k").count(said)
    return EncodedText(said, ("trim",), tokens, shown.before or part.before)


def _text_of(raw: str, block: Spot) -> Spot | None:
    """Where the text of a block stands, if it is a text that the model reads."""
    if not json_text.is_object(raw, block):
        return None
    spots: dict[str, Spot] = {spot.key: spot for spot in block.value}  # of two members of one name the last counts
    kind, text, notes = spots.get("type"), spots.get("text"), spots.get("annotations")
    if kind is None or kind.value != "text" or text is None or not isinstance(text.value, str):
        return None
    if notes is not None and as_object(notes.value).get("audience") == ["user"]:
        return None
    return text


def _twin(raw: str, members: list[Spot], content: Spot) -> tuple[int, int] | None:
    """The span of `structuredContent` with its key and one comma, where a text says the same."""
    place = next((at for at, spot in enumerate(members) if spot.key == "structuredContent"), None)
    if place is None or len(members) < 2:
        return None
    texts = (json_text.member(block.value, "text") for block in content.value if json_text.is_object(raw, block))
    if not any(text is not None and _says(text.value, members[place].value) for text in texts):
        return None
    if place:
        return members[place - 1].end, members[place].end
    opening = raw.rfind("{", 0, raw.rindex('"', 0, raw.rindex('"', 0, members[0].start)))
    return opening + 1, raw.index(",", members[0].end) + 1


def _says(text: Any, value: Any) -> bool:
    """Whether a text is this value as JSON, or the one that a wrapper such as `{"result": …}` holds."""
    if not isinstance(text, str):
        return False
    wrapped = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if wrapped == text:
        return True
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return _spelled(said) in (_spelled(value), _spelled(wrapped))


def _spelled(value: Any) -> str:
    """Equal for equal values alone: to Python 1, 1.0 and True are one."""
    return json.dumps(value, sort_keys=True)
