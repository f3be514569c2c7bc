"""Repairs a history so that every tool call is followed by its result, once, as providers demand.

A sound history passes untouched, message by message. In one that is not, an unanswered call gets a placeholder result,
a result that answers no call is dropped, with a Decision recording it, a repeated id gets another name, and messages
between a call and its results are held back until the results have come. An orphan result is also kept among the last
16, in case its call follows. The repair depends only on the messages so far, so what was sent never changes. A result
that arrives after its placeholder was sent is added as a user text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from pagefold.derive.policy import Decision
from pagefold.frozen import frozen
from pagefold.lock import APPENDING
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.voices import LATE
from pagefold.wire import apis, json_text
from pagefold.wire.api import CallFormat
from pagefold.wire.json_text import as_object
from pagefold.wire.message import BlockKind, Message, Role, user_text

UNAVAILABLE = "[tool result unavailable: this history holds none for the call]"
_call_id = attrgetter("call_id")
_EARLY = 16  # orphan results that are kept, in case their call follows


@frozen
class WaitingCall:
    """A call that waits for its result. `id` is the id in requests, `original_id` the one it came with."""

    id: str
    original_id: str
    message: Message


@frozen
class _Ids:
    """Persistent set: forked histories share its dicts, and each sees only what was added before its own length.

    `_known` has the place of each id, `_numbered` for an id that came again the number that the last id made of it ends
    with, and the place of that.
    """

    _known: dict[str, int] = field(default_factory=dict)
    _numbered: dict[str, tuple[int, int]] = field(default_factory=dict)
    _length: int = 0

    def __contains__(self, name: str) -> bool:
        return self._known.get(name, self._length) < self._length

    def with_call(self, call: str) -> tuple["_Ids", str]:
        """Returns the ids with one more, for a call that came with this id, and which it is: another, if it was
        taken."""
        name, number = call, 1
        if call in self:
            last, place = self._numbered.get(call, (1, self._length))
            number = last if place < self._length else 1
            while name in self:
                number += 1
                name = f"{call}_{number}"
        known, numbered = self._known, self._numbered
        with APPENDING:
            if len(known) != self._length:
                known = {other: place for other, place in known.items() if place < self._length}
                numbered = {other: last for other, last in numbered.items() if last[1] < self._length}
            known[name] = self._length
            if number > 1:
                numbered[call] = number, self._length
        return _Ids(known, numbered, self._length + 1), name


@frozen
class Pairing:
    """The state of the repair after the messages so far.

    `held` has (message, done) pairs waiting for results; done=False must still go through `take`. `placeholder_ids` are
    the ids whose result was replaced by a placeholder. `early` has orphan results whose call may follow.
    """

    open: tuple[WaitingCall, ...] = ()
    held: tuple[tuple[Message, bool], ...] = ()
    placeholder_ids: frozenset[str] = frozenset()
    early: tuple[Message, ...] = ()
    ids: _Ids = field(default_factory=_Ids)

    @property
    def waits(self) -> bool:
        return bool(self.open or self.held)


@frozen
class Paired:
    """The messages that may be sent now, in order, and a decision for each repair."""

    pairing: Pairing
    messages: tuple[Message, ...] = ()
    decisions: tuple[Decision, ...] = ()


def add_message(pairing: Pairing, message: Message) -> Paired:
    """Adds the next message of a history."""
    if not pairing.waits and not any(map(_call_id, message.blocks)):
        return Paired(pairing, (message,))
    repair = _Repair(pairing)
    repair.take(message)
    repair.drain()
    return repair.done()


def settle_open_calls(pairing: Pairing) -> Paired:
    """Answers open calls with placeholders and releases what was held back: a request is about to be made."""
    if not pairing.waits:
        return Paired(pairing)
    repair = _Repair(pairing)
    while repair.pairing.waits:
        repair.give_up()
        repair.drain()
    return repair.done()


def call_format(message: Message) -> CallFormat:
    """Returns how the API of a message spells calls and results."""
    return apis.api_of(as_object(json_text.parse(message.raw))).calls


def broken(messages: Sequence[Message]) -> str:
    """Returns why a provider would refuse the calls and results of these messages, or ""."""
    waiting: dict[str, Message] = {}
    seen: set[str] = set()
    for at, message in enumerate(messages):
        results = _results(message)
        for result in results:
            if result not in waiting:
                return f"message {at} answers {result!r}, which is not open"
            del waiting[result]
        calls = _ids(message, BlockKind.CALL)
        if waiting and (not results or _mixed(message)):
            beside = message.role is Role.ASSISTANT and call_format(next(iter(waiting.values()))).answers_in_items
            if not beside:
                return f"message {at} comes while {next(iter(waiting))!r} is open"
        for call in calls:
            if call in seen:
                return f"message {at} calls {call!r} a second time"
            seen.add(call)
            waiting[call] = message
    return f"{next(iter(waiting))!r} is never answered" if waiting else ""


def _ids(message: Message, kind: BlockKind) -> list[str]:
    return [block.call_id for block in message.blocks if block.kind is kind and block.call_id]


def _results(message: Message) -> list[str]:
    """Returns the id of the call for each result in a message. One result may have several texts."""
    if message.role is Role.TOOL:
        return _ids(message, BlockKind.RESULT)[:1]
    found: list[str] = []
    before: tuple[str, Any] | None = None
    for block in message.blocks:
        if block.kind is BlockKind.RESULT and block.call_id:
            spot = (block.call_id, block.path[:2])
            if spot != before or not block.path:
                found.append(block.call_id)
            before = spot
    return found


def _mixed(message: Message) -> bool:
    """Whether a message has texts besides results."""
    return any(block.kind is not BlockKind.RESULT and not block.call_id for block in message.blocks)


@dataclass(slots=True)
class _Repair:
    """The repair of one step, in progress."""

    pairing: Pairing
    messages: list[Message] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def done(self) -> Paired:
        return Paired(self.pairing, tuple(self.messages), tuple(self.decisions))

    def take(self, message: Message) -> None:
        if results := _results(message):
            self._answer(message, results)
        elif self.pairing.open and not self._may_interleave(message):
            self._hold(message, done=False)
        elif calls := _ids(message, BlockKind.CALL):
            self._call(message, calls)
        else:
            self.messages.append(message)

    def drain(self) -> None:
        """Releases held messages until a call is open."""
        while self.pairing.held and not self.pairing.open:
            (message, done), *held = self.pairing.held
            self.pairing = replace(self.pairing, held=tuple(held))
            if done:
                self.messages.append(message)
            else:
                self.take(message)

    def give_up(self) -> None:
        """Answers every open call with a placeholder."""
        calls = self.pairing.open
        formats = {id(call.message): call_format(call.message) for call in {id(c.message): c for c in calls}.values()}
        for call in calls:
            self.messages.append(formats[id(call.message)].result(call.id, UNAVAILABLE, call.message))
            self._record(call.message, f"no result came for {call.original_id}", ResidencyLevel.FULL)
        placeholder_ids = self.pairing.placeholder_ids.union(call.original_id for call in calls)
        self.pairing = replace(self.pairing, open=(), placeholder_ids=placeholder_ids)

    def _may_interleave(self, message: Message) -> bool:
        """Whether a message may come between a call and its result, as items of one answer may in some APIs."""
        return (
            message.role is Role.ASSISTANT
            and not self.pairing.held
            and call_format(self.pairing.open[0].message).answers_in_items
        )

    def _hold(self, message: Message, *, done: bool) -> None:
        self.pairing = replace(self.pairing, held=(*self.pairing.held, (message, done)))

    def _record(self, message: Message, why: str, level: ResidencyLevel) -> None:
        self.decisions.append(Decision(message.place, level, why))

    def _call(self, message: Message, calls: Sequence[str]) -> None:
        ids, names = self.pairing.ids, list[str]()
        for call in calls:
            ids, name = ids.with_call(call)
            names.append(name)
        if names != list(calls):
            message = _renamed(message, names)
            self._record(message, "a call whose id was taken has another", ResidencyLevel.FULL)
        waiting = [WaitingCall(name, call, message) for name, call in zip(names, calls, strict=True)]
        early, rest = list[Message](), self.pairing.early
        if rest:
            early = [result for result in rest if _results(result)[0] in calls]
            rest = tuple([result for result in rest if result not in early])
        self.pairing = replace(self.pairing, open=(*self.pairing.open, *waiting), ids=ids, early=rest)
        self.messages.append(message)
        for result in early:
            self._answer(result, _results(result))

    def _answer(self, message: Message, results: Sequence[str]) -> None:
        waiting = dict(enumerate(self.pairing.open))
        places: dict[str, list[int]] = {}
        for place, call in reversed(waiting.items()):
            places.setdefault(call.original_id, []).append(place)
        names: dict[int, str] = {}  # of the results that answer something
        for at, result in enumerate(results):
            if first := places.get(result):
                names[at] = waiting.pop(first.pop()).id
        self.pairing = replace(self.pairing, open=tuple(waiting.values()))
        kept = message if list(names.values()) == list(results) else _with_results(message, names)
        if kept is not None and waiting and names and _mixed(kept):
            answers, words = _parted(kept)
            self.messages.append(answers)
            self._hold(words, done=True)
        elif kept is not None and waiting and not names:
            self._hold(kept, done=True)
        elif kept is not None:
            self.messages.append(kept)
        for at, result in enumerate(results):
            if at not in names:
                self._orphan_result(message, result, alone=len(results) == 1 and kept is None)

    def _orphan_result(self, message: Message, result: str, *, alone: bool) -> None:
        """Handles a result that answers no open call."""
        pairing = self.pairing
        if result in pairing.placeholder_ids:
            self.pairing = replace(pairing, placeholder_ids=pairing.placeholder_ids - {result})
            self._hold(_late(message, result), done=True)
            self._record(message, f"the result of {result} came late and is said in words", ResidencyLevel.FULL)
        elif result in pairing.ids:
            self._record(message, f"dropped: {result} had been answered", ResidencyLevel.POINTER)
        elif message.place == 0 and alone:
            # A request has to begin with the user: this history began after the call.
            self._hold(_late(message, result), done=True)
            self._record(message, f"the call of {result} is not here; its result is said in words", ResidencyLevel.FULL)
        else:
            self._record(message, f"dropped: nobody has called {result}", ResidencyLevel.POINTER)
            if alone:
                self.pairing = replace(pairing, early=(*pairing.early, message)[-_EARLY:])


def _parted(message: Message) -> tuple[Message, Message]:
    """Splits a message into its results and the rest, which has to wait for the results that are still missing."""
    results, rest = call_format(message).parted(message)
    return replace(results, place=message.place), rest


def _late(message: Message, result: str) -> Message:
    text = "\n".join(block.text for block in message.blocks if block.call_id == result)
    return user_text(f"{LATE}\n{text}")


def _renamed(message: Message, names: Sequence[str]) -> Message:
    """Returns the message with these ids for its calls."""
    value = as_object(json_text.parse(message.raw))
    api = apis.api_of(value)
    raw = json_text.replaced_each(message.raw, list(zip(api.calls.call_id_paths(value), names, strict=False)))
    return replace(api.parse_message(raw), place=message.place)


def _with_results(message: Message, names: Mapping[int, str]) -> Message | None:
    """Returns the message with only these results, under these ids, or None if nothing is left."""
    kept = call_format(message).with_results(message, names)
    return kept and replace(kept, place=message.place)
