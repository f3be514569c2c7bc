"""What is to be done while a conversation is silent, and the request that would keep its cache alive.

That request is the last one with `max_tokens` 0, which the Messages API documents for filling its cache without an
answer. Other APIs have no such request here, and what an API refuses is not tried: then there is no plan.
"""

from dataclasses import replace

from pagefold.derive.cost import Prices
from pagefold.derive.idle import AFTER_ANSWER, AFTER_CALL, Idle, Resume, Silences, chosen, keep_alive_after, resume_of
from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.model_proxy.request_cache import ParsedRequest
from pagefold.model_proxy.totals import Ending, Seen
from pagefold.wire.api import Api
from pagefold.wire.apis import MESSAGES

_CALLS = "tool_use"
_LEFT_BY_FOLD = 0.45  # of a prompt, on recorded sessions
_LEAST = 4_096  # tokens: below this a cold cache costs next to nothing


@frozen
class IdlePlan:
    """For a conversation whose last request is `body`; its first request was named `began`, before it was answered.
    `sent` counts the keep-alives since."""

    conversation: str
    began: str
    hashes: Log[bytes]
    model: str
    body: bytes
    prices: Prices
    resume: Resume
    silences: Silences
    sent: int = 0

    @property
    def wait(self) -> float:
        """Seconds from the last use of the cache until something has to be decided."""
        return keep_alive_after(self.prices.life)

    def choice(self) -> Idle:
        """What to do when that time has passed once more."""
        silent = (self.sent + 1) * self.wait
        return chosen(self.resume, self.resume.warm, self.prices.life, silent, self.silences)

    def kept(self) -> "IdlePlan":
        """The plan after another keep-alive."""
        return replace(self, sent=self.sent + 1)


def idle_plan(parsed: ParsedRequest, body: bytes, seen: Seen, prices: Prices, *, folds: bool) -> IdlePlan | None:
    """The plan after an exchange with this `body` upstream; None where nothing is cached that would be worth keeping.
    `folds` says that a policy folds what is cold."""
    usage = seen.usage
    if seen.api != MESSAGES.name or seen.ending is not Ending.WHOLE or usage is None or not prices.life:
        return None
    if usage.cache_read + usage.cache_write < _LEAST:
        return None
    prices = prices.lived(long=2 * usage.cache_write_long > usage.cache_write) if usage.cache_write else prices
    resume = resume_of(prices, usage.prompt, round(_LEFT_BY_FOLD * usage.prompt) if folds else None)
    silences = AFTER_CALL if seen.stop == _CALLS else AFTER_ANSWER
    hashes = parsed.prefix_hashes
    began = hashes[parsed.first - 1].hex() if parsed.first else ""
    return IdlePlan(parsed.name, began, hashes, parsed.request.model, body, prices, resume, silences)


def keep_alive_body(body: bytes, api: Api = MESSAGES) -> bytes | None:
    """A request that reads what this one has cached, and gets no answer; None where the API would refuse it."""
    try:
        request = api.parse_request(body)
    except WireError:
        return None
    if "budget_tokens" in request.member("thinking") or not request.member("max_tokens"):
        return None  # a budget has to be smaller than `max_tokens`, and without it the cache would not be found
    return request.render(list(request.messages), members={"max_tokens": "0", "stream": "false"})
