"""What an exchange is charged to a budget where the provider's usage does not say it all.

A client that hangs up before the end of a stream, or asks for a stream without usage, has had the answer all the same.
So what is missing is reckoned from what passed: the prompt as it was estimated, and of the answer at least a token for
each piece of the stream. It may be too little or too much by some tokens; it is never nothing.
"""

from collections.abc import Mapping
from dataclasses import replace

from pagefold.derive.cost import Prices
from pagefold.frozen import frozen
from pagefold.wire.message import Usage

_PER_TOKEN = 4  # bytes of text
_PER_PIECE = 300  # bytes of a stream's piece that are not the model's words, at most


@frozen
class Charge:
    """Tokens, and what they cost in USD at list prices."""

    prompt: int
    cached: int
    output: int
    usd: float


def charge_of(
    usage: Usage | None,
    estimated: Mapping[str, int],
    prices: Prices,
    *,
    whole: bool,
    sent: int,
    came: int,
    pieces: int,
) -> Charge:
    """The charge of an exchange that the provider took. `whole`: whether the answer came to its end, so that usage says
    it all; `sent` and `came` are the bytes of both bodies, `pieces` those of a stream."""
    output = max(pieces, (came - _PER_PIECE * pieces) // _PER_TOKEN) if pieces else came // _PER_TOKEN
    if usage is None:
        usage = Usage(fresh=sum(estimated.values()) or sent // _PER_TOKEN, output=output)
    elif not whole:
        usage = replace(usage, output=max(usage.output, output))
    return Charge(usage.prompt, usage.cache_read, usage.output, prices.bill(usage))
