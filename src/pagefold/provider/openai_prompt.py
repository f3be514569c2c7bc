"""What an OpenAI prompt costs: its tokens, and what the prompt cache holds of it.

From GPT-5.6 on entries stand at breakpoints: explicit ones, and one at the end of the newest message that the model did
not write; up to four are written for each request, the latest, and an entry is found at any distance. Before that
every prefix is cached, read in steps of 128 tokens, and writing costs nothing. Requests with different
`prompt_cache_key`s share nothing (assumed: the key decides which machine is asked).
"""

from collections.abc import Sequence
from itertools import chain

from pagefold.provider.billing import Charge
from pagefold.provider.messages_content import hash_of
from pagefold.provider.models import OpenaiModel
from pagefold.provider.openai_content import Conversation, InputItem
from pagefold.provider.prompt_cache import CachedPrefix, PromptCache
from pagefold.wire.json_text import as_object

_WRITES = 4
_STEP = 128
_ANY_DISTANCE = 1 << 30


def cached_items(asked: Conversation, model: OpenaiModel, before: Sequence[InputItem]) -> CachedPrefix:
    """The prompt as the cache sees it. `before` are the items that the request goes on from."""
    items = [*before, *asked.items]
    begins = 0 if model.keeps else max((at for at, item in enumerate(items) if item.role == "user"), default=0)
    key = str(asked.members.get("prompt_cache_key", ""))
    last, total = hash_of(asked.model.encode(), key.encode("utf-8", "surrogatepass")), 0
    hashes, totals, explicit = [], [], []
    newest = -1
    for at, item in enumerate(chain(asked.head, items), -len(asked.head)):
        if item.kind == "reasoning" and at < begins:
            continue
        last, total = hash_of(last, item.content), total + item.tokens
        hashes.append(last)
        totals.append(total)
        explicit += [len(hashes) - 1] if item.breaks else []
        newest = len(hashes) - 1 if at >= 0 and not item.of_model else newest
    return CachedPrefix(hashes, totals, _breakpoints(asked, model, explicit, newest, len(hashes)))


def _breakpoints(
    asked: Conversation, model: OpenaiModel, explicit: list[int], newest: int, length: int
) -> list[tuple[int, str]]:
    if not model.breakpoints:
        return [(at, "5m") for at in range(length)]
    by_hand = as_object(asked.members.get("prompt_cache_options")).get("mode") == "explicit"
    chosen = explicit[-_WRITES:] if by_hand else [*explicit[-(_WRITES - 1) :], *([newest] if newest >= 0 else [])]
    return [(at, "30m") for at in sorted(set(chosen))]


def charge_for(cached: CachedPrefix, model: OpenaiModel, cache: PromptCache, now: float, output: int) -> Charge:
    """Uses the cache, and says how the tokens are billed."""
    use = cache.use(cached, now, shortest=model.cacheable, look_back=_ANY_DISTANCE)
    if model.breakpoints:
        return Charge(use.fresh, use.read, use.written, output)
    total = cached.totals[-1] if cached.totals else 0
    read = use.read - use.read % _STEP
    return Charge(total - read, read, {}, output)
