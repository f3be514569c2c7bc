"""Which agents that are sent out change no files: by their type, by what they are told, and by what they are for.

An agent that may change files puts all that is known of them in doubt; one that only looks must not, or nothing that
was read before it is certain any more. Where nothing tells, an agent may change files.
"""

import re
from collections.abc import Collection

from pagefold.frozen import frozen

_WORDS = re.compile(r"[^\W\d_]+")
_TOLD_TO_LOOK = re.compile(
    r"\bread[- ]only(?:\s*[.!;,:)—-]|"
    r"\s+(?:analysis|audit|check|exploration|investigation|mode|pass|research|review|task)\b)"
    r"|\bdo not (?:edit|modify|write|change) (?:any |the )?(?:files?|anything)\b"
    r"(?!\s+(?:below|beyond|beside|else|except|in|inside|not|other|outside|that|under|which|you)\b)"
    r"|\bno edits\b",
    re.IGNORECASE,
)
_BEFORE_AN_ORDER = r"(?:^\W*(?:\d+[.)]\s+)?|[.;:!?,*]\s+|\b(?:and|then|to|or|must|should|also|please)\s+)"


@frozen
class LookingAgents:
    """`types` are the types of agents that change nothing; so do those with one of the `roles` in the name of their
    type. A `task` that begins with one of these words changes nothing either if none of the `orders` is in it."""

    types: frozenset[str]
    roles: frozenset[str]
    tasks: frozenset[str]
    orders: re.Pattern[str]

    def only_looks(self, kind: str, task: str, prompt: str, own_types: Collection[str] = ()) -> bool:
        """Whether an agent of this kind changes nothing with this prompt. `own_types` are of the user's settings."""
        if kind in own_types or kind.lower() in self.types or not self.roles.isdisjoint(_words(kind)):
            return True
        if _TOLD_TO_LOOK.search(prompt):
            return True
        first = next(iter(_words(task)), "")
        return bool(prompt) and first in self.tasks and not self.orders.search(prompt)


def orders_in(words: Collection[str]) -> re.Pattern[str]:
    """What finds one of these words where it may be an order."""
    return re.compile(
        rf"{_BEFORE_AN_ORDER}(?:{'|'.join(sorted(map(re.escape, words)))})\b", re.IGNORECASE | re.MULTILINE
    )


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
