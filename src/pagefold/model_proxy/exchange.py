"""The part of the model proxy without network I/O: one exchange, from the request to the end of its answer.

An `Exchange` gets the request and returns what to send upstream: the client's own bytes, or what a policy derived from
them. It then gets the answer, piece by piece as it passes, and ends as one frozen `Seen`. What it cannot parse is not
an error: those bytes pass as they came, and `Seen.unread` names what was not understood.
"""

from collections.abc import Sequence
from dataclasses import replace

from pagefold.derive.notebook import Begun
from pagefold.derive.policy import NOTHING, Policy
from pagefold.derive.runner import NOTHING_UNSAVED, Unsaved
from pagefold.errors import ConfigError, WireError
from pagefold.log import Log
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.deriving import Derivation, Derivations, Nearest
from pagefold.model_proxy.marks import with_marks
from pagefold.model_proxy.recalling import RecallTurn, offered, turn_of
from pagefold.model_proxy.request_cache import ParsedRequest, RequestCache
from pagefold.model_proxy.totals import NO_PREFIX, NO_WORK, NOT_RECKONED, Ending, Seen, Work
from pagefold.model_proxy.turn_recorder import ExchangeRecord
from pagefold.wire import sse
from pagefold.wire.apis import APIS
from pagefold.wire.message import Message, Usage

READ_BYTES = 32 << 20
TOO_LARGE = "request too large"
"""Of a request or an answer, decoded, more than this is passed on without being read: no provider takes more."""

OFF = "off"
_NAME_CHARACTERS = 100
_UNBEGUN = Begun(None)
_NO_MESSAGES, _NO_HASHES = Log[Message](), Log[bytes]()


class Exchange:
    """One exchange. A body of None cannot be read, `unread` says why; `wish` is what the client's own header asks for,
    `window` how many tokens it says fit, where it says that."""

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
    ) -> None:
        self.api = APIS.get(path) if method == "POST" else None
        self.refusal = ""
        self._body, self._conversations = body, conversations
        self._wish, self._window = wish, window
        self._parsed: ParsedRequest | None = None
        self._unread = unread
        self._policy: Policy | None = None  # as it was set or named; None where the request goes on as it came
        self._derivations: Derivations | None = None
        self._nearest: Nearest | None = None
        self._derivation: Derivation | None = None
        self._begun = _UNBEGUN
        self._messages, self._prefix_hashes = _NO_MESSAGES, _NO_HASHES  # the history that is derived from
        self.turn: RecallTurn | None = None
        self._shrunk = False
        self._status, self._stream = 0, False
        self._events: sse.StreamedAnswer | None = None
        self._whole = bytearray()
        self._heard_bytes = 0
        self._answer_unread = ""
        if self.api is not None and wish != OFF:
            try:
                self._policy = conversations.policy_for(wish)
            except ConfigError:
                self.refusal = f"x-pagefold names no policy; it is {OFF} or one of the names that pagefold replay knows"

    # ---- the way up

    @property
    def derives(self) -> bool:
        """Whether a policy is to be asked about this request."""
        return self._policy is not None

    def read(self, now: float = 0.0) -> int:
        """Reads the request. Returns how many characters deriving would process (at least 1), or 0 if nothing is to be
        derived."""
        conversations = self._conversations
        parsed = self._read(conversations.request_cache)
        if parsed is None or self._policy is None or parsed.continued:
            self._policy = None
            return 0
        api, clears = parsed.api.name, parsed.clears
        asked: tuple[object, ...] = (self._wish, self._window)
        self._begun = conversations.begun(parsed, (*asked, "clears") if clears else asked, now)
        pinned = self._begun.beginning
        if pinned is not None:
            self._derivations = conversations.cached_derivations(api, pinned.policy)
        else:
            self._derivations = conversations.derivations_for(
                api, self._policy, self._window, parsed.request.model, alone=clears
            )
        self._nearest = self._derivations.nearest(
            parsed.request.messages, parsed.prefix_hashes, pinned.head if pinned else None, parsed.after
        )
        return self._nearest.fresh or 1

    def derive(self, now: float = 0.0) -> bytes | None:
        """Returns what goes upstream in place of the client's bytes, or None where those do."""
        if self._derivations is None or self._parsed is None:
            return None
        self._messages, self._prefix_hashes = self._conversations.history(self._parsed)
        request = self._parsed.request
        rounds = self._conversations.recall_rounds
        self.turn = turn_of(self._parsed.api, request, rounds) if rounds else None
        begun = self._begun
        if begun.beginning is None or begun.unnoted:
            self._begun = Begun(self._conversations.begin(self._derivations, self._parsed, begun, now))
        return self._derived(now, begun.reason)

    def go_on(self, texts: Sequence[str], now: float = 0.0) -> bytes | None:
        """Takes the answers of context tools. Returns the request that continues the turn, or None if the client acts
        next."""
        assert self.turn is not None
        assert self._parsed is not None
        messages = self.turn.results(texts)
        if not messages:
            return None
        hashes = self._conversations.request_cache.message_hashes.prefix_hashes(messages, self._prefix_hashes[-1])
        self._messages, self._prefix_hashes = (
            self._messages.with_items(messages),
            self._prefix_hashes.with_items(hashes),
        )
        return self._derived(now)

    def remember_turn(self, now: float = 0.0) -> None:
        """Stores a turn with its recalls, which the client did not see: it sends the turn back without them."""
        note = self.turn.note() if self.turn else None
        if note is not None and self._parsed is not None:
            self._conversations.notebook.put_said(self._parsed.prefix_hashes[-1], *note, now)

    def _derived(self, now: float, restart_reason: str = "") -> bytes | None:
        """Derives the request. `restart_reason`: why it may differ from what was sent earlier in the conversation;
        becomes the derivation's reason if it changed."""
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
        )
        if restart_reason and derivation.changed:
            derivation = replace(derivation, reason=restart_reason)
        self._derivation = derivation
        return self._rendered(self._derivation)

    def smaller(self, status: int, answer: bytes) -> bytes | None:
        """Returns a smaller request, once, if this refusal means that the request is too long; else None."""
        if not self.may_shrink or self._parsed is None or not self._parsed.api.is_too_long(status, answer):
            return None
        conversations, derivations = self._conversations, self._derivations
        derivation = conversations.shrink(derivations, self._messages, self._prefix_hashes) if derivations else None
        if derivation is None:
            return None
        self._shrunk, self._derivation = True, derivation
        return self._rendered(derivation)

    @property
    def may_shrink(self) -> bool:
        """Whether a refusal of the request could be answered with a smaller one."""
        policy = self._derivations.policy if self._derivations is not None else self._policy
        return policy is not None and policy.abilities.folds and not self._shrunk

    @property
    def name(self) -> str:
        """The name of its conversation in the store."""
        return self._parsed.name if self._parsed is not None else ""

    @property
    def record(self) -> ExchangeRecord | None:
        """What the decision trace records of the exchange; None if the request was not read."""
        parsed, derivation = self._parsed, self._derivation
        if parsed is None:
            return None
        if derivation is None or self._derivations is None:
            return ExchangeRecord(parsed, parsed.request.messages, parsed.prefix_hashes, None, "as it came", False)
        name, recalls = self._derivations.policy.name, self.turn is not None
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
        told = [
            (b"x-pagefold-policy", self._derivations.policy.name.encode()),
            (b"x-pagefold-saved-tokens", b"%d" % self._derivation.saved_tokens),
        ]
        if self._derivation.reason:
            told.append((b"x-pagefold-fold", self._derivation.reason.encode("ascii", "replace")))
        return told

    def _rendered(self, derivation: Derivation) -> bytes | None:
        assert self._parsed is not None
        request = self._parsed.request
        own = self._messages.length == request.messages.length
        members = self._members_without_clearing() if self._parsed.clears else None
        if not derivation.changed and not self.turn and own and not members:
            return None
        api = self._parsed.api
        tools = offered(api) if self.turn else ()
        messages = derivation.messages
        if derivation.moves:
            messages = api.spelled(with_marks(derivation, api.marks) if api.marks else messages)
        return request.render(messages, tools, members)

    def _members_without_clearing(self) -> dict[str, str]:
        """Returns the request's members to replace so that the provider clears no tool results, if the policy folds.

        If the provider also cleared tool results, the request it sees would differ from the one priced and its cached
        prefix would be lost. So the clearing edit is removed; the client's other edits stay.
        """
        clearing = self._parsed.api.clearing if self._parsed else None
        folds = self._derivations is not None and self._derivations.policy.abilities.folds
        if self._parsed is None or clearing is None or not folds:
            return {}
        return {clearing.key: clearing.without(self._parsed.request.member(clearing.key))}

    def _read(self, request_cache: RequestCache) -> ParsedRequest | None:
        if self.api is None or self._parsed is not None or self._unread:
            return self._parsed
        if self._body is None:
            self._unread = TOO_LARGE
            return None
        try:
            self._parsed = request_cache.read(self.api, self._body)
        except WireError:
            self._unread = "request not understood"
        return self._parsed

    # ---- the way down

    def answer_began(self, status: int, content_type: str, *, legible: bool = True) -> None:
        """`legible`: whether the pieces that follow can be decoded."""
        self._status = status
        self._stream = content_type.lower().startswith("text/event-stream")
        if self.api is not None and self._stream:
            self._events = self.api.stream(gist=True)
        if not legible:
            self.not_legible()

    def not_legible(self) -> None:
        self._answer_unread = self._answer_unread or "answer in an encoding that is not read"

    @property
    def listening(self) -> bool:
        """Whether more of the answer is read."""
        return self.api is not None and not self._answer_unread

    def hear(self, data: bytes) -> None:
        """Reads the next piece of the answer, without its content encoding."""
        if self.api is None or self._answer_unread:
            return
        self._heard_bytes += len(data)
        if self._heard_bytes > READ_BYTES:
            self._answer_unread = "answer too large"
            self._whole.clear()
        elif self._events is None:
            self._whole += data
        else:
            try:
                self._events.feed(data)
            except WireError:
                self._answer_unread = "answer not understood"

    def finish(self, ending: Ending, *, bytes_up: int = 0, bytes_down: int = 0, now: float = 0.0) -> Seen:
        parsed = self._parsed or self._read(self._conversations.request_cache_aside)
        if ending is Ending.ABANDONED and self._events is not None and self._events.ended:
            ending = Ending.WHOLE  # some clients hang up as soon as they have read that it ended
        usage, stop, model, error = self._answer(ending)
        work, estimated, prefix, reckoned = NO_WORK, dict[str, int](), NO_PREFIX, NOT_RECKONED
        if parsed is not None and 200 <= self._status < 300:
            work = self._work()
            said = None if work.recalls else usage  # the usage of several requests tells nothing about one
            estimated, prefix, reckoned = self._conversations.reckoner.reckon(
                parsed, said, saved=work.saved, moved=bool(work.folds), now=now
            )
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
            reckoned,
            usage,
            stop,
            error,
            (self._unread or self._answer_unread) if self.api is not None else "",
        )

    def _work(self) -> Work:
        derivation, recalls = self._derivation, self.turn.done if self.turn else 0
        if derivation is None or not (derivation.changed or derivation.reason or recalls):
            return NO_WORK
        return Work(
            int(derivation.changed), int(bool(derivation.reason)), derivation.saved_tokens, int(self._shrunk), recalls
        )

    def _answer(self, ending: Ending) -> tuple[Usage | None, str, str, str]:
        """Returns usage, stop reason, model and kind of error, as far as the answer was read."""
        usage, stop, model, error = None, "", "", ""
        if self._status >= 400:
            error = (self.api.error_kind(bytes(self._whole)) if self.api else "") or f"status {self._status}"
        elif self.api is not None and self._events is not None and not self._answer_unread:
            response = self._events.response()
            usage, stop, model = response.usage, response.stop, response.model
            if not self._events.ended:
                error = self.api.error_kind(self._events.error.encode()) or "no end of message"
        elif self.api is not None and self.listening and ending is Ending.WHOLE:
            try:
                response = self.api.parse_response(bytes(self._whole))
            except WireError:
                self._answer_unread = "answer not understood"
            else:
                usage, stop, model = response.usage, response.stop, response.model
        return usage, stop, model, error if ending is Ending.WHOLE else str(ending)
