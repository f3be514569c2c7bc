"""What is to be done while a conversation is silent, and the request that would keep its cache alive.

Where an API has no such request (`CacheMarks.filling`), and where it would refuse it, nothing is sent.
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
from pagefold.wire.apis import APIS_BY_NAME

_CALLS = "tool_use"
_LEFT_BY_FOLD = 0.45  # of a prompt, on recorded sessions
_LEAST = 4_096  # tokens: below this a cold cache costs next to nothing


@frozen
class IdlePlan:
    """For a conversation whose last request is `body`; its first request was named `began`, before it was answered.
    `sent` counts the keep-alives since."""

    api: Api
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
    api = APIS_BY_NAME.get(seen.api)
    if api is None or api.marks is None or seen.ending is not Ending.WHOLE or usage is None or not prices.life:
        return None
    if usage.cache_read + usage.cache_write < _LEAST:
        return None
    prices = prices.lived(long=2 * usage.cache_write_long > usage.cache_write) if usage.cache_write else prices
    resume = resume_of(prices, usage.prompt, round(_LEFT_BY_FOLD * usage.prompt) if folds else None)
    silences = AFTER_CALL if seen.stop == _CALLS else AFTER_ANSWER
    name, began = conversation_names(parsed)
    return IdlePlan(api, name, began, parsed.prefix_hashes, parsed.request.model, body, prices, resume, silences)


def conversation_names(parsed: ParsedRequest) -> tuple[str, str]:
    """The name of a request's conversation, and the one that its first request had, which was not answered yet."""
    return parsed.name, parsed.prefix_hashes[parsed.first - 1].hex() if parsed.first else ""


def keep_alive_body(body: bytes, api: Api) -> bytes | None:
    """A request that reads what this one has cached, and gets no answer; None where the API would refuse it."""
    try:
        return api.marks.filling(api.parse_request(body)) if api.marks is not None else None
    except WireError:
        return None
