"""The pure half of the model proxy: one exchange, from the request that arrives to the end of its answer.

An exchange is shown the request and says what goes upstream: the client's own bytes, or what a policy derived from
them. It is then shown the answer, piece by piece as it passes by, and ends as one frozen `Seen`. What it cannot read is
not an error: those bytes go through as they came, and `Seen.unread` says what was not understood.
"""

from collections.abc import Sequence
from dataclasses import replace

from pagefold.derive.notebook import Begun
from pagefold.derive.policy import NOTHING, Decision
from pagefold.errors import ConfigError, WireError
from pagefold.log import Log
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.deriving import Derivation, Derivations
from pagefold.model_proxy.marks import with_marks
from pagefold.model_proxy.recalling import RecallTurn, offered, turn_of
from pagefold.model_proxy.request_cache import ParsedRequest, RequestCache
from pagefold.model_proxy.totals import NO_PREFIX, NO_WORK, NOT_RECKONED, Ending, Seen, Work
from pagefold.model_proxy.turn_recorder import ExchangeRecord
from pagefold.pages.journal import Boundary
from pagefold.pages.page import Page, PageId
from pagefold.pages.pins import Pins
from pagefold.wire import sse
from pagefold.wire.apis import api_at
from pagefold.wire.message import Message, Usage

READ_BYTES = 32 << 20
"""Of a request or an answer, decoded, more than this is passed on without being read: no provider takes more."""

OFF = "off"
_NAME_CHARACTERS = 100
_UNBEGUN = Begun(None)
_NO_MESSAGES, _NO_LINKS = Log[Message](), Log[bytes]()


class Exchange:
    """One exchange. A body of None was too large to be kept; `wish` is what the client's own header asks for,
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
    ) -> None:
        self.api = api_at(method, path)
        self.refusal = ""
        self._body, self._conversations = body, conversations
        self._wish, self._window = wish, window
        self._reading: ParsedRequest | None = None
        self._unread = ""
        self._derivations: Derivations | None = None
        self._derivation: Derivation | None = None
        self._begun = _UNBEGUN
        self._messages, self._prefix_hashes = _NO_MESSAGES, _NO_LINKS  # the history that is derived from
        self._decided: tuple[Decision, ...] = ()
        self.turn: RecallTurn | None = None
        self._shrunk = False
        self._status, self._stream = 0, False
        self._events: sse.StreamedAnswer | None = None
        self._whole = bytearray()
        self._heard_bytes = 0
        self._deaf = ""
        if self.api is not None and wish != OFF:
            try:
                self._derivations = conversations.derivations_for(self.api.name, wish, window)
            except ConfigError:
                self.refusal = f"x-pagefold names no policy; it is {OFF} or one of the names that pagefold replay knows"

    # ---- the way up

    @property
    def derives(self) -> bool:
        """Whether a policy is to be asked about this request."""
        return self._derivations is not None

    def read(self, now: float = 0.0) -> int:
        """Reads the request. The characters that deriving it would have to work on: 0 where there is nothing to do."""
        conversations = self._conversations
        reading = self._read(conversations.request_cache)
        if reading is None or self._derivations is None or reading.continued:
            self._derivations = None
            return 0
        asked: tuple[object, ...] = (self._wish, self._window)
        if reading.clears or self._derivations.folds:  # by its model, which is known only now
            named, clears = reading.request.model, reading.clears
            self._derivations = conversations.derivations_for(
                reading.api.name, self._wish, self._window, named, alone=clears
            )
            assert self._derivations is not None
            asked = (*asked, "clears") if clears else asked
        self._begun = conversations.begun(reading, asked, now)
        began = self._begun.beginning
        if began is not None and began.policy is not self._derivations.policy:
            self._derivations = conversations.cached_derivations(reading.api.name, began.policy)
        return self._derivations.fresh(reading, began.head if began else None) or 1

    def derive(self, now: float = 0.0) -> bytes | None:
        """What goes upstream in place of the client's bytes, or None where those do."""
        if self._derivations is None or self._reading is None:
            return None
        self._messages, self._prefix_hashes = self._conversations.history(self._reading)
        request = self._reading.request
        self.turn = turn_of(self._reading.api, request, self._conversations.recall_rounds)
        begun = self._begun
        if begun.beginning is None or begun.unnoted:
            self._begun = Begun(self._conversations.begin(self._derivations, self._reading, begun, now))
        return self._derived(now, begun.reason)

    def go_on(self, texts: Sequence[str], now: float = 0.0) -> bytes | None:
        """The context tools are answered: the request that goes on with the turn, or None where the client is next."""
        assert self.turn is not None
        assert self._reading is not None
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
        """Notes what was really said in a turn with recalls, for when the client sends it back as it saw it."""
        note = self.turn.note() if self.turn else None
        if note is not None and self._reading is not None:
            self._conversations.notebook.put_said(self._reading.prefix_hashes[-1], *note, now)

    def _derived(self, now: float, moved: str = "") -> bytes | None:
        """`moved` is why what was sent before may have been derived in another way."""
        derivations, reading, beginning = self._derivations, self._reading, self._begun.beginning
        assert derivations is not None
        assert reading is not None
        notes = self._conversations.known_now(reading, self._prefix_hashes, now) if derivations.folds else NOTHING
        derivation = derivations.derive(
            self._messages, self._prefix_hashes, beginning.head if beginning else 0, notes, len(reading.request.body)
        )
        self._derivation = replace(derivation, reason=moved) if moved and derivation.changed else derivation
        self._decided = derivations.decided
        return self._rendered(self._derivation)

    def smaller(self, status: int, answer: bytes) -> bytes | None:
        """What to send after this refusal: once, if it says that the request is too long and the policy has less."""
        if not self.may_shrink or self._reading is None or not self._reading.api.is_too_long(status, answer):
            return None
        conversations, derivations = self._conversations, self._derivations
        derivation = conversations.shrink(derivations, self._messages, self._prefix_hashes) if derivations else None
        if derivation is None:
            return None
        self._shrunk, self._derivation = True, derivation
        self._decided = self._derivations.decided if self._derivations else ()
        return self._rendered(derivation)

    @property
    def may_shrink(self) -> bool:
        """Whether a refusal of the request could be answered with a smaller one."""
        return self._derivations is not None and self._derivations.folds and not self._shrunk

    @property
    def name(self) -> str:
        """By what its conversation is known in the store."""
        return self._reading.name if self._reading is not None else ""

    @property
    def told(self) -> ExchangeRecord | None:
        """What the decision trace tells of it; None where the request was not read."""
        if self._reading is None:
            return None
        derived = self._derivation is not None and self._derivations is not None
        return ExchangeRecord(
            self._reading,
            self._messages if derived else self._reading.request.messages,
            self._prefix_hashes if derived else self._reading.prefix_hashes,
            self._derivation,
            self._derivations.policy.name if derived and self._derivations else "as it came",
            self._decided,
            self.turn is not None,
        )

    @property
    def unsaved_pages(self) -> dict[PageId, Page]:
        """Pages that have to be in the store before the request leaves; what is put there is to be taken out here."""
        return self._derivations.unsaved_pages if self._derivations else {}

    @property
    def unsaved_pins(self) -> tuple[Pins, Boundary] | None:
        """What has to be in the journal before the request leaves, and why."""
        return self._derivations.unsaved_pins if self._derivations else None

    def written(self) -> None:
        assert self._derivations is not None
        self._derivations.unsaved_pins = None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the client is told about its request, besides the provider's own headers."""
        if self._derivations is None or self._derivation is None:
            return []
        told = [
            (b"x-pagefold-policy", self._derivations.policy.name.encode()),
            (b"x-pagefold-saved-tokens", b"%d" % self._derivation.saved),
        ]
        if self._derivation.reason:
            told.append((b"x-pagefold-fold", self._derivation.reason.encode("ascii", "replace")))
        return told

    def _rendered(self, derivation: Derivation) -> bytes | None:
        assert self._reading is not None
        request = self._reading.request
        own = self._messages.length == request.messages.length
        members = self._own_clearing() if self._reading.clears else None
        if not derivation.changed and not self.turn and own and not members:
            return None
        tools = offered(self._reading.api) if self.turn else ()
        api = self._reading.api
        marked = with_marks(derivation, api.marks) if api.marks else derivation.messages
        return request.render(api.spelled(marked), tools, members)

    def _own_clearing(self) -> dict[str, str]:
        """Where a policy folds, the provider must not clear results as well: what was reckoned to stand would be gone,
        and the prefix with it. Its other edits are the client's."""
        clearing = self._reading.api.clearing if self._reading else None
        if self._reading is None or clearing is None or not self._derivations or not self._derivations.folds:
            return {}
        return {clearing.key: clearing.without(self._reading.request.member(clearing.key))}

    def _read(self, request_cache: RequestCache) -> ParsedRequest | None:
        if self.api is None or self._reading is not None or self._unread:
            return self._reading
        if self._body is None:
            self._unread = "request too large"
            return None
        try:
            self._reading = request_cache.read(self.api, self._body)
        except WireError:
            self._unread = "request not understood"
        return self._reading

    # ---- the way down

    def answer_began(self, status: int, content_type: str, *, legible: bool = True) -> None:
        """`legible` says whether the pieces to come can be handed over decoded."""
        self._status = status
        self._stream = content_type.lower().startswith("text/event-stream")
        if self.api is not None and self._stream:
            self._events = self.api.stream(gist=True)
        if not legible:
            self.not_legible()

    def not_legible(self) -> None:
        self._deaf = self._deaf or "answer in an encoding that is not read"

    @property
    def listening(self) -> bool:
        """Whether more of the answer is of any use."""
        return self.api is not None and not self._deaf

    def hear(self, data: bytes) -> None:
        """The next piece of the answer, without its content encoding."""
        if self.api is None or self._deaf:
            return
        self._heard_bytes += len(data)
        if self._heard_bytes > READ_BYTES:
            self._deaf = "answer too large"
            self._whole.clear()
        elif self._events is None:
            self._whole += data
        else:
            try:
                self._events.feed(data)
            except WireError:
                self._deaf = "answer not understood"

    def finish(self, ending: Ending, *, bytes_up: int = 0, bytes_down: int = 0, now: float = 0.0) -> Seen:
        reading = self._reading or self._read(self._conversations.request_cache_aside)
        if ending is Ending.ABANDONED and self._events is not None and self._events.ended:
            ending = Ending.WHOLE  # some clients hang up as soon as they have read that it ended
        usage, stop, model, error = self._answer(ending)
        work, estimated, prefix, reckoned = NO_WORK, dict[str, int](), NO_PREFIX, NOT_RECKONED
        if reading is not None and 200 <= self._status < 300:
            work = self._work()
            said = None if work.recalls else usage  # what several requests cost says nothing about one
            estimated, prefix, reckoned = self._conversations.reckoner.reckon(
                reading, said, saved=work.saved, moved=bool(work.folds), now=now
            )
        return Seen(  # in their order: by their names it takes three times as long
            self.api.name if self.api else "other",
            ending,
            self._status,
            (model or (reading.request.model if reading else ""))[:_NAME_CHARACTERS],
            self._stream,
            reading.request.messages.length if reading else 0,
            bytes_up,
            bytes_down,
            estimated,
            prefix,
            work,
            reckoned,
            usage,
            stop,
            error,
            (self._unread or self._deaf) if self.api is not None else "",
        )

    def _work(self) -> Work:
        derivation, recalls = self._derivation, self.turn.done if self.turn else 0
        if derivation is None or not (derivation.changed or derivation.reason or recalls):
            return NO_WORK
        return Work(int(derivation.changed), int(bool(derivation.reason)), derivation.saved, int(self._shrunk), recalls)

    def _answer(self, ending: Ending) -> tuple[Usage | None, str, str, str]:
        """Usage, stop reason, model and kind of error, as far as they were heard."""
        usage, stop, model, error = None, "", "", ""
        if self._status >= 400:
            error = (self.api.error_kind(bytes(self._whole)) if self.api else "") or f"status {self._status}"
        elif self.api is not None and self._events is not None and not self._deaf:
            response = self._events.response()
            usage, stop, model = response.usage, response.stop, response.model
            if not self._events.ended:
                error = self.api.error_kind(self._events.error.encode()) or "no end of message"
        elif self.api is not None and self.listening and ending is Ending.WHOLE:
            try:
                response = self.api.parse_response(bytes(self._whole))
            except WireError:
                self._deaf = "answer not understood"
            else:
                usage, stop, model = response.usage, response.stop, response.model
        return usage, stop, model, error if ending is Ending.WHOLE else str(ending)
