"""What was said before the fold: the user's words whole as far as they fit, the answers that matter, the rest in short.

The answer that the latest short ask replies to stays whole: "do 2 and 3" means nothing without the list.
"""

import re
from collections.abc import Sequence

from pagefold.frozen import frozen
from pagefold.pages.pins import OPENING
from pagefold.wire.message import BlockKind, Message, Role

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_WHOLE_ANSWERS = 3
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z#*`\d-])")
_EXPANDED = re.compile(
    r"^(?:Base directory for this skill:|<command-(?:name|message)>|Caveat: The messages below|<local-command)"
)
GAP = "…"


@frozen
class Saying:
    """One message's words. `reason` says why they are whole, where they have to be."""

    place: int
    speaker: Role
    text: str
    reason: str = ""

    @property
    def whole(self) -> bool:
        return bool(self.reason)

    @property
    def is_user(self) -> bool:
        return self.speaker is not Role.ASSISTANT


def sayings(messages: Sequence[Message], cut: int) -> list[Saying]:
    """What user and assistant said before the cut, in order, with those marked that have to stay whole."""
    found: list[Saying] = []
    for place, message in enumerate(messages[:cut]):
        if message.role in (Role.USER, Role.ASSISTANT) and (text := words_of_message(message)):
            found.append(Saying(place, message.role, text))
    answers = [index for index, saying in enumerate(found) if not saying.is_user]
    whole = dict.fromkeys(answers[-_WHOLE_ANSWERS:], "one of the last answers")
    asks = [place for place, message in enumerate(messages) if message.role is Role.USER and words_of_message(message)]
    if asks:
        before = [index for index in answers if found[index].place < asks[-1]]
        whole |= dict.fromkeys(before[-1:], "what the latest ask replies to")
        whole |= {index: "the latest ask" for index, saying in enumerate(found) if saying.place == asks[-1]}
    return [Saying(s.place, s.speaker, s.text, whole.get(index, "")) for index, s in enumerate(found)]


def words_of_message(message: Message) -> str:
    """The text of a message without what a harness adds to it."""
    texts = [block.text for block in message.blocks if block.kind is BlockKind.TEXT]
    if message.place < 0:  # what is pinned stands in every request: no digest has to quote it
        texts = [text for text in texts if not text.startswith(OPENING)]
    return "\n".join(stripped for text in texts if (stripped := _REMINDER.sub("", text).strip()))


def is_expanded(text: str) -> bool:
    """Whether a harness wrote a user message: the text of a skill or of a command, which can be read again."""
    return _EXPANDED.match(text) is not None


def shortened(text: str, characters: int) -> str:
    """The head and the tail of a text, at line ends where possible, with a mark for what is left out."""
    if len(text) <= characters:
        return text
    head, tail = text[: characters * 2 // 3], text[len(text) - characters // 3 :]
    if "\n" in head[len(head) // 2 :]:
        head = head[: head.rindex("\n")]
    if "\n" in tail[: len(tail) // 2]:
        tail = tail[tail.index("\n") + 1 :]
    return f"{head}\n{GAP}\n{tail}"


def in_short(text: str) -> str:
    """The first and the last sentence of a text."""
    lines = [line for line in text.split("\n") if line.strip()]
    first = _SENTENCE.split(lines[0])[0]
    last = _SENTENCE.split(lines[-1])[-1]
    if len(lines) == 1 and first == last:
        return shortened(first, 400)
    gap = "" if len(lines) == 1 and len(first) + len(last) + 1 >= len(lines[0]) else f"\n{GAP}"
    return f"{shortened(first, 300)}{gap}\n{shortened(last, 300)}"
