"""Cache marks of a client in a request that was folded.

A mark says: what stands up to here will be sent again. It stays on its message; where the message was folded away, it
moves to the end of what stands in its place. So there are never more marks than the client set, and their order, which
providers ask for where lifetimes differ, stays.
"""

from pagefold.model_proxy.deriving import Derivation
from pagefold.wire.api import CacheMarks
from pagefold.wire.message import Message


def with_marks(derivation: Derivation, marks: CacheMarks) -> list[Message]:
    """The messages of a request, with the marks of messages that are in it no more."""
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
