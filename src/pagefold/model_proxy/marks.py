"""Moves a client's cache marks in a request that was folded.

A mark tells the provider to cache everything up to it. It stays on its message; where that was folded away, it moves to
the last message before that place. So there are never more marks than the client set, and they keep their order, which
providers require where lifetimes differ.
"""

from pagefold.model_proxy.derivation import Derivation
from pagefold.wire.api import CacheMarks
from pagefold.wire.message import Message


def with_marks(derivation: Derivation, marks: CacheMarks) -> list[Message]:
    """Returns the messages of a request, with the marks of messages that are no longer in it."""
    messages = derivation.messages
    places = [one.place for one in derivation.sent]
    if places == list(range(len(derivation.over))):
        return messages
    standing = set(places)
    for place, message in enumerate(derivation.over):
        mark = "" if place in standing else marks.of(message)
        if not mark:
            continue
        behind = next((at for at, other in enumerate(places) if other > place), len(places))
        if behind and not marks.of(messages[behind - 1]):
            messages[behind - 1] = marks.put(messages[behind - 1], mark) or messages[behind - 1]
    return messages
