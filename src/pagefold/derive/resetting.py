"""A reset that the agent asked for: a call of `context_reset`, with its summary, and never a mark in some text.

The call and its result stay where they are, so the summary stands for what came before it; everything before the call
is folded at the next request.
"""

from pagefold.derive.arrival import arguments_of
from pagefold.derive.entry import Entry
from pagefold.log import Log
from pagefold.pages.context_tools import RESET, own_name
from pagefold.wire.message import Block, BlockKind

REASON = "the agent reset its context"


def reset_asked(log: Log[Entry], since: int) -> int | None:
    """The place of the last call for a reset from `since` on: the next request begins there."""
    for place in range(len(log) - 1, max(since, 1) - 1, -1):
        if any(_asks(block) for block in log[place].message.blocks):
            first = place
            while first > since and log[first].own and log[first - 1].own:
                first -= 1
            return first
    return None


def _asks(block: Block) -> bool:
    if block.kind is not BlockKind.CALL or own_name(block.name) != RESET.name:
        return False
    summary = arguments_of(block).get("summary")
    return isinstance(summary, str) and bool(summary.strip())
