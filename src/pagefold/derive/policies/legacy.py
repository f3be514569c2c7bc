"""legacy: the pipeline that older agents use, request by request: transforms, a cascade of cuts, terminal truncation.

Old thinking goes, repeated results point at the first, blank lines of old answers collapse. Above the budget everything
before the active tail becomes one summary, with fewer and fewer last messages kept; where that does not fit, payloads
are cut in the middle. It stands behind the floors of this project: pairs stay whole, what the system says, the pins and
the task stand in every request, and what was left out is announced and recalled.

Its known failures are kept: a single prompt leaves no prefix to summarise, and every request is derived anew, so that
above the budget nearly every one moves.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pagefold.derive.bound_reasoning import common
from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.entry import as_it_came, counted, label_of
from pagefold.derive.pairing import Paired, Pairing, add_message, settle_open_calls
from pagefold.derive.policies.folding import instructed, usable_of
from pagefold.derive.policy import NOTHING, Abilities, Decision, Derived, Notes
from pagefold.derive.task import is_substantive
from pagefold.encode.codec import PLAIN, first_line
from pagefold.encode.own_lines import quoted as quoted_line
from pagefold.log import Log
from pagefold.pages import context_calls
from pagefold.pages.context_tools import SERVERS
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel, classify
from pagefold.pages.page import Page
from pagefold.pages.pins import Pins
from pagefold.pages.producers import PinnedItem
from pagefold.tokens import counter
from pagefold.wire import apis, json_text
from pagefold.wire.message import Block, BlockKind, Message, Role, user_text

_CASCADE = (16, 12, 8, 6, 3, 1)
_LAST = 4
_CAPS = (262_144, 131_072, 65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024)
_TASK_CAP = 16_384
_OVERSIZED = 0.35
_SUMMARY = 0.25
_REPEATED = 256
_BRIEF = 240
_CONTENTS = 10
_NEW = {"repeats": 8, "blanks": 6}  # how many of the last messages a transform leaves alone
_RULE = re.compile(r"[-=_*~#\s]{3,}")
_SMALLER = 0.7


@dataclass(frozen=True, slots=True)
class Item:
    """One message, as it is shown, and what the transforms make of that when it is old."""

    message: Message
    shown: Message
    old: Message
    tokens: int
    old_tokens: int
    digest: str = ""  # of a long result
    brief: str = ""

    @property
    def opens(self) -> bool:
        return not any(block.kind is BlockKind.RESULT for block in self.message.blocks)


@dataclass(frozen=True, slots=True)
class State:
    log: Log[Item] = field(default_factory=Log)
    pairing: Pairing = field(default_factory=Pairing)
    sent: tuple[Message, ...] = ()
    head: int = 0
    pins: Pins = field(default_factory=Pins)
    told: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class _View:
    """A request under way: the messages, the pages they recall and what was decided."""

    messages: list[Message]
    pages: list[Page] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Legacy:
    window: int = 200_000
    prices: Prices = ASSUMED
    tokens: str = "o200k"
    name: str = "legacy"
    instructions: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    context_servers: tuple[str, ...] = field(default=SERVERS, kw_only=True)

    abilities: ClassVar[Abilities] = Abilities(folds=True, pins=True)

    def begin(self, head: int = 0) -> State:
        return State(head=head, pins=instructed(self.instructions))

    def step(self, state: State, message: Message) -> State:
        return self._entered(state, add_message(state.pairing, message))

    def pin(self, state: State, *held: PinnedItem) -> State:
        """The state in which these are held: they stand in every request."""
        return replace(state, pins=state.pins.holding(*held))

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        state = self._entered(state, settle_open_calls(state.pairing))
        usable = usable_of(self.window, counter(self.tokens))
        if notes.smaller:
            usable = min(usable, int(self._cost(state.sent) * _SMALLER))
        room = usable - state.head
        view = self._fitting(state, room)
        cost = self._cost(view.messages)
        short = f"what has to stay is {cost - room:,} tokens more than the window holds" if cost > room else ""
        same = common(state.sent, view.messages)
        reason = "derived anew" if same < len(state.sent) else ""
        after = replace(state, sent=tuple(view.messages), told=())
        decisions = (*state.told, *view.decisions)
        destroyed = Boundary.COMPACTION if reason else None
        new = tuple(view.messages[same:])
        return after, Derived(same, new, reason, tuple(view.pages), decisions, short, destroyed, state.pins)

    def _entered(self, state: State, found: Paired) -> State:
        log, pins = state.log, state.pins
        for message in found.messages:
            log = log.with_items((self._item(message),))
            pins = context_calls.step(pins, message, self.context_servers)
        told = (*state.told, *found.decisions)
        return replace(state, log=log, pairing=found.pairing, pins=pins, told=told)

    def _item(self, message: Message) -> Item:
        shown = as_it_came(message)
        old = _without_blanks(_without_thinking(message)) if message.role is Role.ASSISTANT else shown
        tokens = counted(shown, self.tokens)
        results = [block for block in message.blocks if block.kind is BlockKind.RESULT and block.path]
        long = len(results) == 1 and len(results[0].text) >= _REPEATED
        digest = hashlib.sha256(results[0].text.encode("utf-8", "surrogatepass")).hexdigest() if long else ""
        return Item(
            message, shown, old, tokens, tokens if old is shown else counted(old, self.tokens), digest, _brief(message)
        )

    def _cost(self, messages: Sequence[Message]) -> int:
        return sum(counted(message, self.tokens) for message in messages)

    def _fitting(self, state: State, room: int) -> _View:
        """The first of the ways to send the history that fits, or the last."""
        log = state.log
        if self._estimate(log, 0) + self._pins(state) <= room:
            return self._view(state, 0)
        for keep in _CASCADE:
            cut = _tail(log, keep)
            if cut and self._estimate(log, cut) + self._pins(state) + self._floors(log, cut) <= room:
                view = self._view(state, cut)
                if self._cost(view.messages) <= room:
                    return view
        return self._truncated(state, room)

    def _estimate(self, log: Log[Item], cut: int) -> int:
        """About what the messages from a cut on cost; repeated results are not reckoned."""
        last = len(log) - _NEW["blanks"]
        return sum(item.old_tokens if at < last else item.tokens for at, item in enumerate(log[cut:], cut))

    def _floors(self, log: Log[Item], cut: int) -> int:
        return sum(log[place].tokens for place in _floor(log, cut))

    def _pins(self, state: State) -> int:
        return counted(user_text(state.pins.block), self.tokens) if state.pins.held else 0

    def _view(self, state: State, cut: int) -> _View:
        log = state.log
        view = _View([])
        floor = _floor(log, cut)
        view.messages.extend(log[place].shown for place in floor)
        view.decisions.extend(Decision(place, ResidencyLevel.FULL, "it stays whatever is left out") for place in floor)
        if state.pins.held:
            view.messages.append(user_text(state.pins.block))
        left = [place for place in range(cut) if place not in floor]
        if left:
            summary, page = self._summary(log, left)
            view.messages.append(summary)
            view.pages.append(page)
            view.decisions.extend(Decision(place, ResidencyLevel.STRUCTURED, "summarised") for place in left)
        seen: dict[str, str] = {}
        for place in range(cut, len(log)):
            view.messages.append(self._shown(log, place, seen, view))
        return view

    def _shown(self, log: Log[Item], place: int, seen: dict[str, str], view: _View) -> Message:
        item = log[place]
        message = item.old if place < len(log) - _NEW["blanks"] else item.shown
        if item.digest:
            index, block = next((at, one) for at, one in enumerate(message.blocks) if one.kind is BlockKind.RESULT)
            first = seen.setdefault(item.digest, block.call_id)
            if first != block.call_id and place < len(log) - _NEW["repeats"]:
                size = len(block.text.encode("utf-8", "surrogatepass"))
                said = f"[DEDUP] identical to tool_call_id={first} ({size} bytes)"
                view.decisions.append(Decision(place, ResidencyLevel.COMPRESSED, f"identical to {first}"))
                return message.with_text(index, said)
        if place == len(log) - 1 and item.tokens > _OVERSIZED * self.window:
            view.decisions.append(Decision(place, ResidencyLevel.STRUCTURED, "the last message is oversized"))
            return _capped(message, int(_OVERSIZED * self.window * 3), view.pages)
        return message

    def _summary(self, log: Log[Item], left: Sequence[int]) -> tuple[Message, Page]:
        page = Page.of(PageKind.CONVERSATION, "\n".join(log[place].message.raw for place in left), "folded messages")
        budget = int(_SUMMARY * self.window)
        count = counter(self.tokens).count
        lines: list[str] = []
        for place in reversed(left):
            line = f"[{place}] {log[place].brief}"
            budget -= count(line) + 1
            if budget < 0:
                break
            lines.append(line)
        asked = [place for place in left if log[place].message.role is Role.USER and log[place].opens]
        contents = [f"  [turn {place}] {log[place].brief[:70]}" for place in asked[:_CONTENTS]]
        if len(asked) > _CONTENTS:
            contents.append(f"  … plus {len(asked) - _CONTENTS} more user turns")
        head = (
            f"[AUTO CONTEXT COMPRESSION] turns {left[0]}-{left[-1]}, {len(left)} messages, were compressed. "
            f'context_recall("{page.handle}") gives them back.'
        )
        users = ["[DROPPED-RANGE INDEX] User turns in that range:", *contents] if contents else []
        return user_text("\n".join([head, *reversed(lines), *users])), page

    def _truncated(self, state: State, room: int) -> _View:
        """Terminal truncation: the last messages with their payloads cut, ever shorter until they fit."""
        log = state.log
        cut = _boundary(log, max(0, len(log) - _LAST))
        whole = self._view(state, cut)
        view = whole
        for cap in _CAPS:
            view = _View([], list(whole.pages), list(whole.decisions))
            for message in whole.messages:
                task = message.role is Role.USER and is_substantive(message) and cap > _CAPS[-1]
                view.messages.append(_capped(message, max(cap, _TASK_CAP) if task else cap, view.pages))
            if self._cost(view.messages) <= room:
                break
        view.decisions.append(Decision(cut, ResidencyLevel.STRUCTURED, "[CONTEXT TRUNCATED] payloads are cut"))
        return view


def _tail(log: Log[Item], keep: int) -> int:
    """Where the active tail begins: at the latest user turn that says what to do, or before the last messages."""
    asked = [place for place, item in enumerate(log) if item.message.role is Role.USER and is_substantive(item.message)]
    anchor = asked[-1] if asked else len(log)
    return _boundary(log, min(anchor, max(0, len(log) - keep)))


def _boundary(log: Log[Item], place: int) -> int:
    while 0 < place < len(log) and not (
        log[place].opens
        and not (log[place].message.role is Role.ASSISTANT and log[place - 1].message.role is Role.ASSISTANT)
    ):
        place -= 1
    return place


def _floor(log: Log[Item], cut: int) -> list[int]:
    """What stays before the cut: what the system says, and the first and the latest task."""
    asked = [
        place
        for place, item in enumerate(log)
        if item.message.role is Role.USER and item.opens and is_substantive(item.message)
    ]
    task = {asked[0], asked[-1]} if asked else set[int]()
    return [place for place in range(cut) if place in task or classify(log[place].message) is PageKind.BOOTSTRAP]


def _without_thinking(message: Message) -> Message:
    """An old answer without its thinking, where something else is left of it."""
    if not any(block.kind is BlockKind.THINKING for block in message.blocks):
        return message
    value = json_text.as_object(json_text.parse(message.raw))
    parts = json_text.as_list(value.get("content"))
    kept = [part for part in parts if json_text.as_object(part).get("type") not in ("thinking", "redacted_thinking")]
    if not kept or len(kept) == len(parts):
        return message
    raw = json_text.dumps({**value, "content": kept})
    return replace(apis.api_of(value).parse_message(raw), place=message.place)


def _without_blanks(message: Message) -> Message:
    """An old answer without runs of blank lines and rules; code between fences stays as it is."""
    for index, block in enumerate(message.blocks):
        if block.kind is BlockKind.TEXT and block.path and "\n" in block.text:
            text = "\n".join(_collapsed(block.text))
            if text != block.text:
                message = message.with_text(index, text)
    return message


def _collapsed(text: str) -> Iterator[str]:
    fenced = blank = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and _RULE.fullmatch(line):
            continue
        elif not fenced and not line.strip():
            if blank:
                continue
            blank = True
            yield ""
            continue
        blank = False
        yield line


def _brief(message: Message) -> str:
    """A message on one line: who said it, and how it begins. What a tool returned is not told as the user's words."""
    shown = [block for block in message.blocks if block.kind is not BlockKind.THINKING]
    who: str = message.role
    if message.role is Role.USER:
        words = [block for block in shown if block.kind is BlockKind.TEXT]
        who, shown = (who, words) if words else (Role.TOOL, shown)
    return f"{who}: {' | '.join(filter(None, map(_begun, shown)))}"[:_BRIEF]


def _begun(block: Block) -> str:
    return label_of(block) if block.kind is BlockKind.CALL else " ".join(block.text[: 2 * _BRIEF].split())


def _capped(message: Message, cap: int, pages: list[Page]) -> Message:
    """The message with no text longer than the cap, in characters: half of it from the head, half from the tail. Of a
    result, lines that could be taken for the mark between them are quoted."""
    for index, block in enumerate(message.blocks):
        if block.kind not in (BlockKind.TEXT, BlockKind.RESULT) or not block.path or len(block.text) <= cap:
            continue
        text, result = block.text, block.kind is BlockKind.RESULT
        if result and first_line(text) == PLAIN:
            text = text[len(PLAIN) + 1 :]
        page = Page.of(PageKind.EVIDENCE, text, block.name)
        size = len(text.encode("utf-8", "surrogatepass"))
        halves = text[: cap // 2], text[len(text) - cap // 2 :]
        head, tail = map(_quoted, halves) if result else halves
        mark = f'\n[CONTEXT TRUNCATED: original_bytes={size}; context_recall("{page.handle}") returns all of it]\n'
        message = message.with_text(index, head + mark + tail)
        pages.append(page)
    return message


def _quoted(text: str) -> str:
    return "\n".join(map(quoted_line, text.split("\n")))
