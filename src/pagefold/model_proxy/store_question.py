"""What deriving a request asks of the store, to be asked before and by the store's own thread.

Reading and deriving go on without the store then: what it said is remembered. Asked while a request is derived on the
event loop, a store that is busy with the pages of another conversation would hold up everyone.
"""

from collections.abc import Callable
from functools import partial

from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.request_cache import ParsedRequest


def question_of(
    conversations: Conversations, parsed: ParsedRequest, asked: tuple[object, ...], policy: Policy, now: float
) -> Callable[[], object] | None:
    """What has to be asked for this request, which was `asked` for so by its headers; None where all is known. Of a
    history without an answer nothing is asked here: what it begins with is noted while it is derived."""
    if not parsed.answered:
        return None
    begun = conversations.begun_as_known(parsed, asked)
    if begun is not None:
        policy = begun.beginning.policy if begun.beginning else policy
        decided = conversations.notebook.decided(parsed.prefix_hashes[-1])
        if not policy.abilities.folds or decided is not None:
            return None
    return partial(_ask, conversations, parsed, asked, policy, now)


def _ask(
    conversations: Conversations, parsed: ParsedRequest, asked: tuple[object, ...], policy: Policy, now: float
) -> None:
    begun = conversations.begun(parsed, asked, now)
    if (begun.beginning.policy if begun.beginning else policy).abilities.folds:
        conversations.known_now(parsed, parsed.prefix_hashes, now)
