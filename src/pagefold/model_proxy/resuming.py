"""Goes on with a history from its newest fold that was saved, instead of deriving all of it again.

What comes out is the same: `derive.policies.saved_fold` says what is written down and what is not.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from pagefold.derive.notebook import SavedFold
from pagefold.derive.pinned_policy import PinnedPolicy
from pagefold.derive.policy import Derived, Policy
from pagefold.derive.runner import NOTHING_UNSAVED, Asked, Run
from pagefold.log import Log
from pagefold.wire.message import Message, Role

Item = TypeVar("Item")


class NewestFold(NamedTuple):
    """The newest fold of a history: under what it is saved, and the state after it with what else is saved of it."""

    answered: bytes
    policy: PinnedPolicy
    prefix_hash: bytes
    messages: int
    came_tokens: int
    state: Any

    def to_save(self) -> SavedFold | None:
        """What is saved of it, or None where it could not be read back."""
        resuming: Any = self.policy.policy
        text = resuming.saved(self.state)
        return None if text is None else SavedFold(self.prefix_hash, self.messages, self.came_tokens, text)


def first_answer(messages: Log[Message], hashes: Sequence[bytes]) -> bytes | None:
    """The prefix hash of the first answer in a history."""
    for place, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            return hashes[place]
    return None


def goes_on_from(fold: SavedFold, messages: Log[Message], hashes: Sequence[bytes]) -> bool:
    """Whether a history begins with all that was folded, and its answer. Without that the fold itself is asked for,
    which has to be derived."""
    at = fold.messages
    if not 0 < at < messages.length or hashes[at - 1] != fold.prefix_hash:
        return False
    return messages[at].role is Role.ASSISTANT and messages[at - 1].role is not Role.ASSISTANT


def run_after(
    fold: SavedFold, policy: Policy, head: int, read: Sequence[Message], item: Callable[[Message], Item]
) -> Run[Item] | None:
    """The run of a history that was asked for this fold and is about to be answered. `read` are its messages up to
    there as the policy reads them. None where the state is not that of these messages."""
    resuming: Any = policy
    state = resuming.resumed(fold.state, read, head)
    if state is None:
        return None
    request = Log(map(item, (*state.front, *(entry.shown for entry in state.log.since(state.folded)))))
    return Run(policy, state, request, asked=Asked(state, request, Derived(request.length, ()), NOTHING_UNSAVED))
