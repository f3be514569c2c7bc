"""The part of the model proxy without network I/O: one exchange, from the request to the end of its answer.

An `Exchange` gets the request and returns what to send upstream: the client's own bytes, or what a policy derived from
them; both without reasoning that the provider would refuse there. It then gets the answer, piece by piece as it passes,
and ends as one frozen `Seen`. What it cannot parse is not an error: those bytes pass as they came, and `Seen.unread`
names what was not understood.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pagefold.derive.bound_reasoning import AS_IT_CAME
from pagefold.derive.notebook import Begun
from pagefold.derive.pinned_policy import PASSED
from pagefold.derive.policy import NOTHING, Policy
from pagefold.derive.runner import NOTHING_UNSAVED, Unsaved
from pagefold.derive.trial import Arm
from pagefold.errors import ConfigError, WireError
from pagefold.log import Log
from pagefold.model_proxy.answer_headers import headers_of
from pagefold.model_proxy.answer_reader import AnswerReader
from pagefold.model_proxy.conversations import AS_IT_IS, Conversations, History
from pagefold.model_proxy.derivation import Acceptance, Derivation, last_folded
from pagefold.model_proxy.deriving import Derivations, Nearest
from pagefold.model_proxy.recalling import RecallTurn, turn_of
from pagefold.model_proxy.request_body import body_of
from pagefold.model_proxy.request_cache import ParsedRequest, RequestCache
from pagefold.model_proxy.store_question import question_of
from pagefold.model_proxy.totals import NO_PREFIX, NO_WORK, NOT_RECKONED, NOTHING_CACHED, Ending, Seen, Work
from pagefold.model_proxy.turn_recorder import ExchangeRecord
from pagefold.pages import exchanges
from pagefold.wire.api_paths import asked_at
from pagefold.wire.message import Message

TOO_LARGE = "request too large"

OFF = "off"
_NAME_CHARACTERS = 100
_UNBEGUN = Begun(None)
_NO_MESSAGES, _NO_HASHES = Log[Message](), Log[bytes]()


class Exchange(AnswerReader):
    """One exchange. A body of None cannot be read, `unread` says why; `wish`, `window` and `session` are what its
    headers say. `arm` is its group in a trial, or ""."""

    def __init__(
        self,
        method: str,
        path: str,
        body: bytes | None,
        conversations: Conversations,
        *,
        wish: str = "",
        window: int = 0,
        unread: str = "",
        session: str = "",
    ) -> None:
        self._asked = asked = asked_at(path) if method == "POST" else None
        super().__init__(asked.api if asked else None)
        self._said_by_path = (asked.model, asked.stream) if asked else ("", None)
        self.refusal, self.arm, self.session = "", "", session
        self._body, self._conversations, self._wish, self._window = body, conversations, wish, window
        self._parsed: ParsedRequest | None = None
        self._unread = unread
        self._policy: Policy | None = None  # as it was set or named; None where the request goes on as it came
        self._derivations: Derivations | None = None
        self._nearest: Nearest | None = None
        self._derivation: Derivation | None = None
        self._begun = _UNBEGUN
        self._messages, self._prefix_hashes = _NO_MESSAGES, _NO_HASHES  # the history that is derived from
        self.turn: RecallTurn | None = None
        self._written = frozenset[int]()  # of that history, what the client did not write so
        self._shrunk = self._refused = False
        if self.api is not None and wish != OFF:
            try:
                self._policy = conversations.policy_for(wish)
            except ConfigError:
                self.refusal = f"x-pagefold names no policy; it is {OFF} or one of the names that pagefold replay knows"

    @property
    def derives(self) -> bool:
        """Whether the request may go on other than it came: a policy is asked, or reasoning in it may be refused."""
        return self._policy is not None or self.holds_reasoning

    @property
    def holds_reasoning(self) -> bool:
        """Whether the request may hold reasoning that is bound to what stands before it."""
        reasoning = self.api.reasoning if self.api is not None else None
        return reasoning is not None and self._body is not None and any(map(self._body.__contains__, reasoning.signs))

    def question(self, now: float = 0.0) -> Callable[[], object] | None:
        """What to ask of the store before the request is read, by the store's own thread; None where all is known."""
        parsed, policy = self._read(self._conversations.request_cache), self._policy
        if parsed is None or parsed.continued or policy is None:
            return None
        return question_of(self._conversations, parsed, self._asked_for(parsed), policy, now)

    def _asked_for(self, parsed: ParsedRequest) -> tuple[object, ...]:
        return (self._wish, self._window, "clears") if parsed.clears else (self._wish, self._window)

    def read(self, now: float = 0.0) -> int:
        """Reads the request. Returns how many characters deriving processes, at least 1; 0 if nothing is derived."""
        conversations = self._conversations
        parsed = self._read(conversations.request_cache)
        if parsed is None or parsed.continued:
            self._policy = None
            return 0
        if self._policy is None:
            if not parsed.bound:
                return 0
            self._derivations = conversations.as_it_came(parsed.api.name)
            self._nearest = self._derivations.nearest(parsed.request.messages, parsed.prefix_hashes)
            return self._nearest.fresh or 1
        api, clears = parsed.api.name, parsed.clears
        self._begun = conversations.begun(parsed, self._asked_for(parsed), now)
        pinned = self._begun.beginning
        self.arm = "" if self._wish else conversations.arm(self._begun, parsed, self.session, now)
        if pinned is not None or self.arm == Arm.HELD_OUT:
            self._derivations = conversations.cached_derivations(api, pinned.policy if pinned else AS_IT_IS)
        else:
            long = conversations.prices_of(parsed).long
            self._derivations = conversations.derivations_for(
                api, self._policy, self._window, parsed.request.model, alone=clears, bound=parsed.bound, long=long
            )
        self._nearest = self._derivations.nearest(
            parsed.request.messages, parsed.prefix_hashes, pinned.head if pinned else None, parsed.after
        )
        return self._nearest.fresh or 1

    def derive(self, now: float = 0.0) -> bytes | None:
        """Returns what goes upstream in place of the client's bytes, or None where those do."""
        if self._derivations is None or self._parsed is None:
            return None
        parsed, begun, conversations = self._parsed, self._begun, self._conversations
        if self._policy is None:
            self._messages, self._prefix_hashes = parsed.request.messages, parsed.prefix_hashes
            return self._derived(now)
        conversations.renew(parsed.name, now)
        hides = self._asked and self._asked.hides_calls and self.arm != Arm.HELD_OUT
        rounds = conversations.rounds(begun) if hides else 0
        self._messages, self._prefix_hashes, self._written = conversations.history(parsed, rounds)
        self.turn = turn_of(parsed.api, parsed.request, rounds) if rounds else None
        if begun.beginning is None or begun.unnoted:
            offers, arm = self.turn is not None, self.arm
            beginning = conversations.begin(self._derivations, parsed, begun, now, offers=offers, arm=arm)
            self._begun = Begun(beginning)
            if beginning.policy != self._derivations.policy:  # another instance was first, with other settings
                self._derivations = conversations.cached_derivations(parsed.api.name, beginning.policy)
                self._nearest = None
        return self._derived(now, begun.reason)

    @property
    def began_elsewhere(self) -> bool:
        """Whether the history began with a version of pagefold whose derivation this one cannot make."""
        return self._begun.reason == PASSED

    @property
    def may_fold(self) -> bool:
        """Whether deriving may take long although little is new."""
        derivations, decided = self._derivations, self._conversations.notebook.decided
        return derivations is not None and derivations.may_fold(self._nearest, decided)

    is_read = property(lambda self: self._parsed is not None)
    is_first_sight = property(lambda self: self._nearest is None or self._nearest.cached is None)

    def fall_back(self) -> bytes | None:
        """Returns what is sent after deriving has failed: the last folded request with what came since, or None."""
        parsed = self._parsed
        if parsed is None:
            return None
        self._derivation, self.turn = None, None
        nearest = self._nearest.cached if self._nearest is not None else None
        self._messages, self._prefix_hashes = parsed.request.messages, parsed.prefix_hashes
        acceptance = self._conversations.acceptance(parsed, frozenset(), offers=False, stored=False)
        if nearest is not None and nearest.derivation.moves and not self._written:
            self._derivation = last_folded(nearest.derivation, self._messages, acceptance)
        elif self.holds_reasoning:
            plain = self._conversations.as_it_came(parsed.api.name)
            self._derivation = plain.derive(self._messages, self._prefix_hashes, acceptance=acceptance)
        return self._rendered(self._derivation) if self._derivation is not None else None

    def go_on(self, texts: Sequence[str], now: float = 0.0) -> bytes | None:
        """Takes the answers of context tools. Returns the request that continues the turn; None if the client acts."""
        assert self.turn is not None
        assert self._parsed is not None
        messages = self._parsed.api.linked(self.turn.results(texts), self._messages)
        if not messages:
            return None
        self.note_reasoning()
        hashes = self._conversations.request_cache.message_hashes.prefix_hashes(messages, self._prefix_hashes[-1])
        self._written |= frozenset(range(self._messages.length, self._messages.length + len(messages)))
        self._messages = self._messages.with_items(messages)
        self._prefix_hashes = self._prefix_hashes.with_items(hashes)
        return self._derived(now)

    def remember_turn(self, now: float = 0.0) -> None:
        """Stores a turn with its recalls, which the client did not see: it sends the turn back without them."""
        note = self.turn.note() if self.turn else None
        if note is not None and self._parsed is not None:
            self._conversations.notebook.put_said(self._parsed.prefix_hashes[-1], *note, now, self.name)

    def _derived(self, now: float, begun_anew: str = "") -> bytes | None:
        """Derives the request. `begun_anew`: why it may differ from what was sent earlier in the conversation."""
        derivations, parsed, pinned = self._derivations, self._parsed, self._begun.beginning
        assert derivations is not None
        assert parsed is not None
        folds = derivations.policy.abilities.folds
        notes = self._conversations.known_now(parsed, self._prefix_hashes, now) if folds else NOTHING
        derivation = derivations.derive(
            self._messages,
            self._prefix_hashes,
            pinned.head if pinned else 0,
            notes,
            characters=len(parsed.request.body),
            nearest=self._nearest,
            acceptance=self._acceptance(),
        )
        if begun_anew and derivation.changed:
            derivation = replace(derivation, begun_anew=begun_anew)
        if derivation.newly_bare or (
            self.holds_reasoning and parsed.bound and (derivation.moved or self.is_first_sight)
        ):
            self._conversations.note_left_out(parsed, derivation)
        self._derivation = derivation
        return self._rendered(self._derivation)

    def _acceptance(self) -> Acceptance:
        assert self._parsed is not None
        return self._conversations.acceptance(self._parsed, self._written, offers=self.turn is not None)

    def smaller(self, status: int, answer: bytes) -> bytes | None:
        """Returns a smaller request, once, if this refusal means that the request is too long; else None."""
        derivations, history = self._derivations, History(self._messages, self._prefix_hashes)
        if not self.may_shrink or self._parsed is None or derivations is None:
            return None
        if not self._parsed.api.is_too_long(status, answer):
            return None
        derivation = self._conversations.shrink(derivations, history, self.name, self._acceptance())
        if derivation is None:
            return None
        self._shrunk, self._derivation = True, derivation
        return self._rendered(derivation)

    def without_store(self) -> bytes | None:
        """Returns the request without pages that could not be stored; None where it is sent as it came."""
        derivations = self._derivations
        if derivations is None or not derivations.policy.abilities.spares:
            return self.fall_back()
        history = History(self._messages, self._prefix_hashes)
        without = self._conversations.without_store(derivations, history, self.name, self._acceptance())
        self._derivation = without or self._derivation
        return self._rendered(self._derivation) if self._derivation is not None else None

    def without_refused(self, status: int, answer: bytes, now: float = 0.0) -> bytes | None:
        """Returns the request without reasoning that this refusal says is bound to something else, once; else None."""
        reasoning = self.api.reasoning if self.api is not None and not self._refused else None
        place = reasoning.refused_from(status, answer) if reasoning is not None else None
        parsed = self._read(self._conversations.request_cache) if place is not None else None
        if parsed is None:
            return None
        if self._derivation is None or self._derivations is None:
            self._derivations = self._conversations.as_it_came(parsed.api.name)
            self._messages, self._prefix_hashes = parsed.request.messages, parsed.prefix_hashes
            sent: Sequence[Message] = self._messages
        else:
            sent = [each.source for each in self._derivation.sent]
        self._refused, self._nearest = True, None
        self._conversations.note_refused(parsed, sent[place:])
        return self._derived(now)

    @property
    def may_shrink(self) -> bool:
        """Whether a refusal of the request could be answered with a smaller one."""
        policy = self._derivations.policy if self._derivations is not None else self._policy
        return policy is not None and policy.abilities.folds and not self._shrunk

    @property
    def name(self) -> str:
        """The name of its conversation in the store."""
        return self._parsed.name if self._parsed is not None else ""

    def done(self) -> exchanges.Work:
        """What has been done in its conversation up to now."""
        own = self._derivations.file_tools if self._derivations is not None else ()
        return exchanges.work_of(self._messages, own)

    @property
    def record(self) -> ExchangeRecord | None:
        """What the decision trace records of the exchange; None if the request was not read."""
        if (parsed := self._parsed) is None:
            return None
        derivation = self._derivation
        if derivation is None or self._derivations is None:
            return ExchangeRecord(parsed, parsed.request.messages, parsed.prefix_hashes, None, "as it came", False)
        name, recalls = self._derivations.policy.name if self._policy else "as it came", self.turn is not None
        return ExchangeRecord(parsed, self._messages, self._prefix_hashes, derivation, name, recalls)

    @property
    def unsaved(self) -> Unsaved:
        """What has to be saved before the derived request leaves."""
        return self._derivation.unsaved if self._derivation is not None else NOTHING_UNSAVED

    def saved(self) -> None:
        """Marks all that was unsaved as saved."""
        if self._derivation is not None and self._derivations is not None and self._prefix_hashes:
            self._derivations.saved(self._prefix_hashes[-1])
            self._derivation = replace(self._derivation, unsaved=NOTHING_UNSAVED)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The x-pagefold-* headers of the answer."""
        if self._derivations is None or self._derivation is None:
            return []
        policy = self._derivations.policy.name if self._policy is not None else ""
        return headers_of(self._derivation, policy, sent_again=self._refused)

    def _rendered(self, derivation: Derivation) -> bytes | None:
        assert self._parsed is not None
        folds = self._derivations is not None and self._derivations.policy.abilities.folds
        return body_of(self._parsed, self._messages, derivation, offers=self.turn is not None, folds=folds)

    def _read(self, request_cache: RequestCache) -> ParsedRequest | None:
        if self.api is None or self._parsed is not None or self._unread:
            return self._parsed
        if self._body is None:
            self._unread = TOO_LARGE
            return None
        try:
            self._parsed = request_cache.read(self.api, self._body, *self._said_by_path)
        except WireError:
            self._unread = "request not understood"
        return self._parsed

    @property
    def binds_elsewhere(self) -> bool:
        """Whether reasoning in the answer is bound to something else than the client's own bytes."""
        return self._derivation is not None and self._derivation.change != AS_IT_CAME

    def note_reasoning(self) -> None:
        """Notes to what the reasoning of the answer is bound, as far as the answer was heard. What is bound to the
        client's own bytes needs no note."""
        reasoning, derivation = self.api.reasoning if self.api else None, self._derivation
        if reasoning is None or derivation is None or not self.binds_elsewhere:
            return
        if self.turn is not None:
            keys: Sequence[str] = [key for message in self.turn.last_said for key in reasoning.keys(message)]
        else:
            keys = self.reasoning_keys(reasoning)
        if keys:
            self._conversations.notebook.note_made_under(keys, derivation.change, self.name)

    def finish(self, ending: Ending, *, bytes_up: int = 0, bytes_down: int = 0, now: float = 0.0) -> Seen:
        parsed = self._parsed or self._read(self._conversations.request_cache_aside)
        if ending is Ending.ABANDONED and self._events is not None and self._events.ended:
            ending = Ending.WHOLE  # some clients hang up as soon as they have read that it ended
        usage, stop, model, error = self.read_answer(ending)
        work, prefix, check, cached = NO_WORK, NO_PREFIX, NOT_RECKONED, NOTHING_CACHED
        estimated: Mapping[str, int] = {}
        if parsed is not None and 200 <= self._status < 300:
            work, reckoner = self._work(), self._conversations.reckoner
            reported = None if work.recalls else usage  # the usage of several requests tells nothing about one
            reckoned = reckoner.reckon(parsed, reported, derived=self._derivation, now=now)
            estimated, prefix, check = reckoned.estimated, reckoned.prefix, reckoned.check
            cached = reckoned.cached if usage else cached
            if self._derivations is not None and self._derivations.policy.abilities.folds:
                self._conversations.note_use(parsed, reckoned.cached.life, now)
        whole, charge = ending is Ending.WHOLE and not error, None
        if check is NOT_RECKONED or not whole:
            prices = self._conversations.prices_of(parsed) if parsed else self._conversations.prices(model)
            charge = self.charge(usage, estimated, prices, whole=whole, sent=bytes_up, came=bytes_down)
        check = self._conversations.with_limits(check, self._limits)
        return Seen(  # in their order: by their names it takes three times as long
            self.api.name if self.api else "other",
            ending,
            self._status,
            (model or (parsed.request.model if parsed else ""))[:_NAME_CHARACTERS],
            self._stream,
            parsed.request.messages.length if parsed else 0,
            bytes_up,
            bytes_down,
            estimated,
            prefix,
            work,
            check,
            usage,
            stop,
            error,
            (self._unread or self._answer_unread) if self.api is not None else "",
            self._limits,
            cached,
            charge,
        )

    def _work(self) -> Work:
        derivation, recalls = self._derivation, self.turn.done if self.turn else 0
        if derivation is None or not (derivation.changed or derivation.moved or recalls):
            return NO_WORK
        changed, folds, saved = int(derivation.changed), int(bool(derivation.reason)), max(0, derivation.saved_tokens)
        return Work(changed, folds, saved, int(self._shrunk), recalls, derivation.newly_bare, int(self._refused))
