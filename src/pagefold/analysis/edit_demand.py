"""Finds edits whose text the request no longer held: what the answer replaced had been shown, and was folded away.

Such an edit is tried from memory and refused, or the file is read once more. An edit counts where every line that it
replaces stood in the recorded history before it; its text is gone where one of them stands nowhere in the derived
request. A line is the same with and without its number. Before the first fold a request holds all that was said, in
whatever form, and nothing is gone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pagefold.derive.policy import Derived
from pagefold.pages.facts import opened
from pagefold.pages.files.changes import Edited, FileChange, Patched, Written
from pagefold.pages.files.recognise import changes_of
from pagefold.pages.outcome import CallEnding, Outcome
from pagefold.tokens import Counter
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of
from pagefold.wire.transcripts import Session

_PLACE = re.compile(r"[ \t]*(?:[^\s:]+:)?\d+(?:→|\t|:|\||-) ?")  # what tools put before a line of a file
_DONE = CallEnding(Outcome.OK)


class EditsNeeded(NamedTuple):
    """How many edits an answer made, and of how many the text was gone; what would have to be fetched for these, in
    tokens of the smallest recorded messages that held it, and what the model would have to write again."""

    edits: int = 0
    gone: int = 0
    again: int = 0
    written_again: int = 0


NONE_NEEDED = EditsNeeded()


def edits_needed(session: Session, requests: Iterable[Derived], counter: Counter) -> Iterator[EditsNeeded]:
    """Yields what the edits of each answer needed of the request that was sent for it."""
    replaced = [list(_replaced(message)) for message in session.messages]
    wanted = frozenset(line for texts in replaced for _, lines in texts for line in lines)
    if not wanted:
        yield from (NONE_NEEDED for _ in requests)
        return
    standing, holders = _Standing(wanted), dict[str, tuple[int, int]]()
    sent, waiting = list[Message](), iter(requests)
    for place, (message, texts) in enumerate(zip(session.messages, replaced, strict=True)):
        if message.role is Role.ASSISTANT:
            derived = next(waiting)
            sent[derived.keep :] = derived.append
            known = [(call, lines) for call, lines in texts if holders.keys() >= set(lines)]
            held = wanted if len(sent) == place or not known else standing.lines_of_all(sent)
            yield _needed(known, held, holders, counter)
        found = standing.lines(message)
        here = (counter.count(message.text) if found else 0, place)
        for line in found:
            holders[line] = min(here, holders.get(line, here))


def _needed(
    texts: Sequence[tuple[Block, tuple[str, ...]]],
    held: frozenset[str],
    holders: Mapping[str, tuple[int, int]],
    counter: Counter,
) -> EditsNeeded:
    """What edits of these texts needed of a request that held these lines. `holders` are the tokens and the place of
    the smallest message that held each."""
    absent = [(call, line) for call, lines in texts if (line := next((it for it in lines if it not in held), None))]
    again = sum(tokens for tokens, _ in {holders[line] for _, line in absent})
    return EditsNeeded(len(texts), len(absent), again, sum(counter.count(call.text) for call, _ in absent))


def _replaced(message: Message) -> Iterator[tuple[Block, tuple[str, ...]]]:
    """The edits in an answer: the call, and the lines that it replaces or leans on."""
    for block in message.blocks if message.role is Role.ASSISTANT else ():
        if block.kind is BlockKind.CALL:
            for change in changes_of(block.name, arguments_of(block), "", _DONE):
                for text in _taken_away(change):
                    if lines := tuple(stripped for line in text if (stripped := line.strip())):
                        yield block, lines


def _taken_away(change: FileChange) -> list[Sequence[str]]:
    if isinstance(change, Edited):
        return [change.old.split("\n")]
    # A hunk that changes nothing only says where the next one stands.
    return [old for old, new in change.hunks if old != new] if isinstance(change, Patched) else []


class _Standing:
    """Which of the wanted lines each message holds; each message is looked at once, and kept so that its id stays."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._known: dict[int, tuple[Message, frozenset[str]]] = {}

    def lines(self, message: Message) -> frozenset[str]:
        known = self._known.get(id(message))
        if known is None:
            held = self._wanted.intersection(line for text in _texts(message) for line in _lines(text))
            known = self._known[id(message)] = message, held
        return known[1]

    def lines_of_all(self, messages: Iterable[Message]) -> frozenset[str]:
        return frozenset[str]().union(*map(self.lines, messages))


def _texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if block.kind is BlockKind.CALL:
            yield from _strings(arguments_of(block))
            for change in changes_of(block.name, arguments_of(block), "", _DONE):
                yield from _put_there(change)
        yield opened(block.text)


def _put_there(change: FileChange) -> Iterator[str]:
    """The texts that a change leaves in a file, and that its call holds."""
    if isinstance(change, Edited):
        yield change.new
    elif isinstance(change, Written):
        yield change.text
    elif isinstance(change, Patched):
        yield from ("\n".join(new) for _, new in change.hunks)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield line.strip()
        if place := _PLACE.match(line):
            yield line[place.end() :].strip()
