"""What the model proxy knows of all conversations: parsed requests, runs of policies, costs and notes.

All of it is a cache of work, except notes, which go through the store. Thrown away, or in another process, the same
requests come out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pagefold.derive.bound_reasoning import AS_IT_CAME, NOWHERE, change_after
from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.models import Known
from pagefold.derive.notebook import Begun, CacheUse
from pagefold.derive.pinned_policy import PinnedPolicy
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.folding import usable_of
from pagefold.derive.policies.identity import Identity
from pagefold.derive.policy import NOTHING, Notes, Policy, configured, window_of
from pagefold.derive.prefix_hashes import NO_HASH
from pagefold.derive.room import crowded
from pagefold.derive.runner import as_it_is
from pagefold.derive.trial import arm_of
from pagefold.encode.choose import REFERRING, may_be_form, says
from pagefold.log import Log
from pagefold.model_proxy.derivation import NOTHING_BOUND, Acceptance, Derivation
from pagefold.model_proxy.deriving import Derivations
from pagefold.model_proxy.history_memory import DEFAULT_BYTES, PROGRAM_BYTES, HistoryMemory
from pagefold.model_proxy.notebook import ProxyNotebook
from pagefold.model_proxy.recalling import UpstreamTurn, gist, offered
from pagefold.model_proxy.request_cache import ParsedRequest, RequestCache
from pagefold.model_proxy.totals import CostCheck
from pagefold.model_proxy.usage_estimate import CostEstimator
from pagefold.pages.page import id_of
from pagefold.pages.store import RENEW_SECONDS, Store
from pagefold.tokens import counter
from pagefold.wire.apis import APIS_BY_NAME
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.quota import NO_LIMITS, Limits, LimitsUse

_REMEMBERED = 20_000
_POLICIES = 50
_BODIES = 4  # the part of memory that parsed requests may take, each about twice the bytes of its body
_HEAD_STEP = 4096
"""Heads are taken for as long as the next multiple of this: one that changes a little moves no fold point."""
AS_IT_IS = Identity()


class History(NamedTuple):
    """Messages, the prefix hash of each, and the places of those that the client did not write so."""

    messages: Log[Message]
    hashes: Log[bytes]
    written: frozenset[int] = frozenset()


class Conversations:
    """`policy` derives requests; without one every request is left as it came. `store` keeps notes. Context tools are
    answered inside a turn as often as `recall_rounds` says, if at all.

    How much fits is what the request says, else `window`, else what is `known` of the model, else what the policy was
    made with. Prices are those `known` of the model, else assumed. `memory` is how many bytes the process may take, in
    which there are so many `sharers`. `trial` is the share of new sessions that go on as they came, to be compared with
    the others."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        store: Store | None = None,
        window: int = 0,
        memory: int = DEFAULT_BYTES,
        sharers: int = 1,
        recall_rounds: int = 0,
        known: Callable[[str], Known | None] = lambda model: None,
        trial: float = 0.0,
    ) -> None:
        self.policy, self.window, self.recall_rounds, self.trial = policy, window, recall_rounds, trial
        self._known, self._store = known, store
        self.memory_bytes, left = memory, max(memory - PROGRAM_BYTES, memory // 4) // sharers
        self.memory = HistoryMemory(left - left // _BODIES)
        bodies = left // _BODIES // 4
        self.request_cache = RequestCache(bodies)
        # What nobody derives is read when it is counted, maybe in another thread, and two must not extend one history.
        self.request_cache_aside = RequestCache(bodies, message_hashes=self.request_cache.message_hashes)
        self.reckoner = CostEstimator(self.prices_of)
        self.limits_use = LimitsUse()
        self.notebook = ProxyNotebook(store.notes if store else None)
        self._derivations: dict[tuple[str, Policy], Derivations] = {}
        self._known_begun: dict[tuple[object, ...], Begun] = {}
        self._said: dict[bytes, UpstreamTurn | None] = {}
        self._bound_models: set[str] = set()
        self._renewed: dict[str, float] = {}
        self.crowded = ""  # the last history whose window has too little room beside its head, in a sentence

    def prices_of(self, reading: ParsedRequest) -> Prices:
        """What tokens of this request cost: by its model, and the cache life that it asks for."""
        marks = reading.api.marks
        return self.prices(reading.request.model, long=marks is not None and marks.asks_long(reading.request))

    def prices(self, model: str, *, long: bool = False) -> Prices:
        """What tokens of this model cost where the longer life of the cache is asked for, or not."""
        known = self._known(model)
        return (known.prices if known else ASSUMED).lived(long=long)

    def with_limits(self, check: CostCheck, limits: Limits) -> CostCheck:
        """The cost of an exchange with what was used of a subscription's windows since the one before."""
        if limits is NO_LIMITS:
            return check
        windows, weeks = self.limits_use.increase(limits)
        return replace(check, windows=windows, weeks=weeks)

    def policy_for(self, name: str = "") -> Policy | None:
        """The policy that a client names, or the one that was set; None where requests are only observed, whatever a
        client names. Raises ConfigError for a name that is no policy's."""
        named = policy_named(name) if name else self.policy
        return named if self.policy is not None else None

    def derivations_for(
        self,
        api: str,
        policy: Policy,
        window: int = 0,
        model: str = "",
        *,
        alone: bool = False,
        bound: bool = True,
        long: bool = False,
    ) -> Derivations:
        """The derivations by a policy, fitted to this model and window, and to a cache of the `long` life. `alone` is
        for requests of which the provider may clear results: nothing may refer to what it clears. `bound`: the model
        may refuse reasoning that a fold has moved."""
        if policy.abilities.folds:
            known = self._known(model)
            fitted: dict[str, Any] = {"prices": self.prices(model, long=long)}
            fitted["window"] = window or self.window or (known and known.window) or window_of(policy)
            if known:
                fitted["tokens"] = known.tokens
            if policy.abilities.unbinds:
                fitted["binds_reasoning"] = bound
            ours: Any = self.policy
            if policy.abilities.pins and ours.abilities.pins:  # who names another policy is held to the same
                fitted["instructions"] = ours.instructions
                fitted["context_servers"] = ours.context_servers
            if policy.abilities.shows_files and ours.abilities.shows_files:
                fitted["file_tools"] = ours.file_tools
            policy = configured(policy, **fitted)
        elif alone and policy.abilities.encodes:
            encoding: Any = policy
            policy = configured(policy, without=encoding.without | REFERRING)
        return self.cached_derivations(api, policy)

    def cached_derivations(self, api: str, policy: Policy) -> Derivations:
        """The derivations by a policy, of requests of this API."""
        derivations = self._derivations.get((api, policy))
        if derivations is None:
            folds = policy.abilities.folds
            shown = plain = APIS_BY_NAME[api].plain if folds else as_it_is
            if policy.abilities.encodes and self._store is not None:
                shown = lambda message: self.with_original_results(plain(message))  # noqa: E731
            derivations = (
                Derivations(
                    policy,
                    noted=self.notebook.get,
                    shown=shown,
                    memory=self.memory,
                    saved_fold=self.notebook.saved_fold,
                )
                if folds
                else Derivations(policy, shown=shown, memory=self.memory)
            )
            self._derivations[api, policy] = derivations
            if len(self._derivations) > _POLICIES:  # a client may name any window
                self._derivations.pop(next(iter(self._derivations)), None)
        return derivations

    def as_it_came(self, api: str) -> Derivations:
        """The derivations of requests that go on as they came, but for reasoning that is bound to something else."""
        return self.cached_derivations(api, AS_IT_IS)

    def acceptance(
        self, reading: ParsedRequest, written: frozenset[int], *, offers: bool, stored: bool = True
    ) -> Acceptance:
        """What decides which reasoning may stand in a request. `offers`: context tools are added to it. Without the
        store, what this process remembers has to do."""
        if not reading.bound and reading.request.model not in self._bound_models:
            return NOTHING_BOUND
        base = change_after(AS_IT_CAME, *offered(reading.api)) if offers else AS_IT_CAME
        made_under = self.notebook.made_under if stored else self.notebook.remembered_made_under
        return Acceptance(reading.api.reasoning, made_under, base, written)

    def note_refused(self, reading: ParsedRequest, messages: Sequence[Message]) -> None:
        """Notes that the provider refused the reasoning of these messages."""
        self._bound_models.add(reading.request.model)
        self.notebook.note_made_under(_reasoning_keys(reading, messages), NOWHERE, reading.name)

    def note_left_out(self, reading: ParsedRequest, derivation: Derivation) -> None:
        """Notes what does not stand in a request and of which nothing is known: then it stays out whatever comes."""
        kept = {sent.place for sent in derivation.sent if not sent.bare}
        gone = [message for place, message in enumerate(derivation.over) if place not in kept]
        keys = _reasoning_keys(reading, gone)
        unknown = [key for key in keys if self.notebook.made_under(key) is None]
        self.notebook.note_made_under(unknown, NOWHERE, reading.name)

    def rounds(self, begun: Begun) -> int:
        """How often context tools are answered inside a turn of this history; 0 where it does not offer them."""
        if begun.beginning is None:
            return self.recall_rounds
        return (self.recall_rounds or 1) if begun.beginning.offers else 0

    def with_original_results(self, message: Message) -> Message:
        """A message with what the MCP proxy was told by its tools in place of the forms it made of that.

        So references are made here alone, where it is known what stands in the request, and forms are made once. The
        store is not believed: a text that does not decode to the page which it is said to stand for stays as it is.
        """
        if self._store is None:
            return message
        for index, block in enumerate(message.blocks):
            if block.kind is BlockKind.RESULT and block.path and may_be_form(block.text):
                content = self._store.pages.original_of(id_of(block.text.encode("utf-8", "surrogatepass")))
                original = None if content is None else content.decode("utf-8", "surrogatepass")
                if original is not None and says(block.text, original):
                    message = message.with_text(index, original)
        return message

    def history(self, reading: ParsedRequest, rounds: int) -> History:
        """The messages to derive from: the client's, with what was really said where it saw a turn as one message.
        `rounds`: how often context tools are answered inside a turn, if at all."""
        messages, hashes = reading.request.messages, reading.prefix_hashes
        view = reading.api.turn
        if not rounds or view is None:
            return History(messages, hashes)
        parse = reading.api.parse_message
        history: list[Message] = []
        results: list[Message] = []
        written: list[int] = []
        at, changed = 0, False
        while at < len(messages):
            end = _answer_end(messages, at)
            if end > at and (really_sent := self._said_in(messages, hashes, at, end)):
                history += map(parse, really_sent.messages)
                written += range(len(history) - len(really_sent.messages), len(history))
                results, changed = list(map(parse, really_sent.results)), True
            elif end > at:
                kept = view.standing(messages[at:end])
                history += kept
                results, changed = [], changed or len(kept) < end - at
            else:
                end = at + 1
                joined = view.joined(results, messages[at]) if results else [messages[at]]
                written += range(len(history), len(history) + len(joined)) if results else ()
                history += joined
                results = []
            at = end
        if not changed:
            return History(messages, hashes)
        hashes = Log(self.request_cache.message_hashes.prefix_hashes(history))
        return History(Log(reading.api.linked(history)), hashes, frozenset(written))

    def _said_in(self, messages: Sequence[Message], hashes: Sequence[bytes], at: int, end: int) -> UpstreamTurn | None:
        """What was really said in the answer from `at` to `end`."""
        key = hashes[end - 1]
        if key not in self._said:
            if len(self._said) >= _REMEMBERED:
                self._said.clear()
            self._said[key] = self.notebook.said(hashes[at - 1] if at else NO_HASH, gist(messages[at:end]))
        return self._said[key]

    def arm(self, begun: Begun, reading: ParsedRequest, session: str, now: float) -> str:
        """The group of a trial to which a history belongs; "" where there is none. A session that the client has named
        is in one group with all its histories: what began before decides."""
        if begun.beginning is not None:
            if session and begun.beginning.arm:  # resumed under another name, its sub-agents go with it
                self.notebook.arm(session, begun.beginning.arm, now)
            return begun.beginning.arm
        if not self.trial or reading.answered:  # only what begins now is drawn
            return ""
        arm = arm_of(session or reading.root.asked.hex(), self.trial)
        return self.notebook.arm(session, arm, now) if session else arm

    def begun_as_known(self, reading: ParsedRequest, asked: tuple[object, ...]) -> Begun | None:
        """The same where this process knows it; else None."""
        return self._known_begun.get((reading.answered, reading.api.name, reading.request.model, asked))

    def begun(self, reading: ParsedRequest, asked: tuple[object, ...], now: float) -> Begun:
        """How this history began, where it was `asked` for by its headers as it is now."""
        if (known := self.begun_as_known(reading, asked)) is not None:
            return known
        key = (reading.answered, reading.api.name, reading.request.model, asked)
        if not reading.prefix_hashes:
            return Begun(None)
        begun = self.notebook.begun(reading.root, "\n".join(map(str, (*key[1:3], *asked))), now)
        if reading.answered and begun.beginning and not begun.unnoted:  # from here on nothing changes it
            if len(self._known_begun) >= _REMEMBERED:
                self._known_begun.clear()
            self._known_begun[key] = begun
        return begun

    def begin(
        self, derivations: Derivations, reading: ParsedRequest, begun: Begun, now: float, *, offers: bool, arm: str = ""
    ) -> PinnedPolicy:
        """What the history is derived with from here on; noted, where it was not yet."""
        beginning = begun.beginning
        if beginning is None:
            head = sum(self.reckoner.head(reading).values()) if derivations.policy.abilities.folds else 0
            beginning = PinnedPolicy(derivations.policy, -(-head // _HEAD_STEP) * _HEAD_STEP, now, offers, arm)
            if window := window_of(beginning.policy):
                folding: Any = beginning.policy
                usable = usable_of(window, counter(folding.tokens))
                self.crowded = crowded(beginning.head, usable, window) or self.crowded
        return self.notebook.put_begun(begun, beginning, now, reading.name) if begun.unnoted else beginning

    def is_cold(self, reading: ParsedRequest, now: float) -> bool:
        """Whether the provider's cache has expired since any instance sent this conversation; not where nothing is
        known of it."""
        last = self.notebook.used(reading.name, now) if reading.answered else None
        return last is not None and last.is_over(now)

    def note_use(self, reading: ParsedRequest, life: float, now: float) -> None:
        """Notes that the provider has just answered a request of this conversation, and cached it for so long. Only a
        policy that folds asks for it."""
        if reading.answered:
            self.notebook.note_use(reading.name, CacheUse(now, life))

    def renew(self, history: str, now: float) -> None:
        """Notes a turn of a conversation, once in a while: what it was given handles of is kept for as long as that
        goes on. Raises StoreError."""
        if self._store is not None and history and now - self._renewed.get(history, -RENEW_SECONDS) >= RENEW_SECONDS:
            if len(self._renewed) >= _REMEMBERED:
                self._renewed.clear()
            self._renewed[history] = now
            self._store.pages.renew(history, now)

    def known_now(self, reading: ParsedRequest, hashes: Log[bytes], now: float) -> Notes:
        """Returns what a folding policy is to know of this request: decided once, by whichever instance is first."""
        if not hashes or not reading.answered:  # what begins now has no cache
            return NOTHING
        return self.notebook.decide(hashes[-1], lambda: Notes(cold=self.is_cold(reading, now)), now, reading.name)

    def shrink(
        self, derivations: Derivations, history: History, name: str, acceptance: Acceptance
    ) -> Derivation | None:
        """A smaller request than the one that the provider found too long, or None where the policy has none."""
        return self._derive_otherwise(
            derivations, history, name, acceptance, lambda notes: replace(notes, smaller=True)
        )

    def without_store(
        self, derivations: Derivations, history: History, name: str, acceptance: Acceptance
    ) -> Derivation | None:
        """The request without pages that could not be stored, or None where it names none."""
        return self._derive_otherwise(
            derivations, history, name, acceptance, lambda notes: replace(notes, unstored=True)
        )

    def _derive_otherwise(
        self,
        derivations: Derivations,
        history: History,
        name: str,
        acceptance: Acceptance,
        known: Callable[[Notes], Notes],
    ) -> Derivation | None:
        """The request derived again, knowing more; noted, if that makes another request of it."""
        notes = known(self.notebook.get(history.hashes[-1]))
        derivation = derivations.again(history.messages, history.hashes, notes, acceptance)
        if derivation is not None:
            self.notebook.put(history.hashes[-1], notes, 0.0, name)
        return derivation


def _reasoning_keys(reading: ParsedRequest, messages: Sequence[Message]) -> list[str]:
    reasoning = reading.api.reasoning
    return [key for message in messages for key in reasoning.keys(message)] if reasoning is not None else []


def _answer_end(messages: Sequence[Message], at: int) -> int:
    """Where the answer ends that begins at `at`: one message, or several in a row."""
    while at < len(messages) and messages[at].role is Role.ASSISTANT:
        at += 1
    return at
