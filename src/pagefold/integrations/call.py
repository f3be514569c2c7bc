"""What the model proxy does, inside the process of the client: one call of a model API, from its body to its answer.

`ModelCalls` holds what is known of all conversations, `steps` is one call as a generator that does no I/O. It yields
what is to be done and gets back what came of it, so that blocking and asynchronous clients share it. Where a step of
pagefold fails, the client's own request is sent, and the fault is counted.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias

from pagefold.adapters.given_store import given_store
from pagefold.adapters.library import Library
from pagefold.adapters.model_prices import ModelPrices
from pagefold.adapters.steady_time import steady_time
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import Policy
from pagefold.errors import StoreError
from pagefold.frozen import frozen
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.recalling import RecallTurn
from pagefold.model_proxy.saving import Saving
from pagefold.model_proxy.totals import Ending, Totals
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.store import Store
from pagefold.wire.api_paths import asked_at
from pagefold.wire.apis import APIS

_REFUSED = frozenset((400, 413, 422))
_LAST_EVENT = b"message_stop"


@frozen
class Work:
    """Run this; it takes a while. Gets what it returns."""

    run: Callable[[], Any]


@frozen
class Send:
    """Send the request, with this body if it is not None. Gets the `Head` of the answer."""

    body: bytes | None
    asks_in_turn: bool = False


@frozen
class Head:
    """The status of an answer, its content type, and whether its body is not compressed."""

    status: int
    content_type: str
    legible: bool


@frozen
class Read:
    """Read the next piece of the answer. Gets it, or b"" at its end."""


@frozen
class Give:
    """Give the client this piece of its answer. The first one also gives it the head of the answer sent last."""

    data: bytes


Step: TypeAlias = Work | Send | Read | Give
Steps: TypeAlias = Generator[Step, Any, None]


def api_path(path: str) -> str:
    """The API that is asked at a path, whatever stands before it, by its own path; "" where it is none of them."""
    if (asked := asked_at(path)) is not None:
        return "" if asked.upstream == "bedrock" else path  # which is signed already, as it is
    plain = path.partition("?")[0]
    return next((api for api in APIS if plain.endswith((api, api.removeprefix("/v1")))), "")


class ModelCalls:
    """What calls of one client share: the policy, the conversations, the store. Threads may share it.

    `window` is how many tokens fit; without it, what is known of the model. `store` is a file, a store, or nothing to
    keep pages in memory. The model's calls of context tools are answered inside a turn `recall_rounds` times at most;
    with 0 none are offered.
    """

    def __init__(
        self,
        *,
        window: int = 0,
        policy: str | Policy = "economic",
        store: Store | str | Path | None = None,
        recall_rounds: int = 4,
    ) -> None:
        opened = given_store(store) or MemoryStore()
        library = Library(opened)
        keeper = PageKeeper(library)
        policy = policy_named(policy) if isinstance(policy, str) else policy
        self.conversations = Conversations(
            policy, store=opened, window=window, known=ModelPrices(), recall_rounds=recall_rounds
        )
        self.saving, self.answers = Saving(keeper, keeper.write_back), RecallAnswers(library, alone=True)
        self.totals, self.faults = Totals(), list[Exception]()
        self.lock = RLock()

    def steps(self, path: str, body: bytes) -> Steps:
        """One POST to the API of this path."""
        return _Call(self, Exchange("POST", path, body, self.conversations)).steps(len(body))


class _Call:
    def __init__(self, calls: ModelCalls, exchange: Exchange) -> None:
        self._calls, self._exchange = calls, exchange
        self._faulty, self._down = False, 0

    def steps(self, bytes_up: int) -> Steps:
        ending = Ending.ABANDONED
        try:
            derived = yield Work(partial(self._fail_open, self._derive))
            yield from self._answer(derived)
            ending = Ending.WHOLE
        finally:
            self._fail_open(self._finish, ending, bytes_up)

    def _answer(self, derived: bytes | None) -> Steps:
        exchange = self._exchange
        head = yield Send(derived, self._turn is not None)
        if head.status in _REFUSED and head.legible and (exchange.may_shrink or exchange.holds_reasoning):
            refusal = yield from _all()
            other = yield Work(partial(self._fail_open, self._mended, head.status, refusal))
            if other is None:
                exchange.answer_began(head.status, head.content_type)
                exchange.hear(refusal)
                yield self._given(refusal)
                return
            head = yield Send(other, self._turn is not None)
        exchange.answer_began(head.status, head.content_type, legible=head.legible)
        turn = self._turn
        if turn is not None and head.status == 200 and head.legible:
            turn.view.stream = turn.view.stream and "json" not in head.content_type.lower()
            yield from self._converse(turn)
            return
        while data := (yield Read()):
            self._hear(data)
            yield self._given(data)
        self._fail_open(self._note_reasoning)

    def _converse(self, turn: RecallTurn) -> Steps:
        """Gives the client a turn without the calls of context tools, which are answered here."""
        while True:
            while data := (yield Read()):
                shown = self._fail_open(turn.feed, data)
                if given := data if self._faulty else shown:
                    self._hear(given)
                    yield self._given(given)
            rest = self._fail_open(turn.answered) or b""
            if self._faulty or not turn.calls:
                break
            unseen = turn.view.unseen
            following = yield Work(partial(self._fail_open, self._answer_calls, turn))
            if following is None:
                rest = rest or unseen  # the client acts next
                break
            head = yield Send(following, asks_in_turn=True)
            if head.status != 200 or not head.legible:
                refusal = yield from _all()
                rest = self._fail_open(turn.view.broken, refusal) or refusal
                break
        if turn.done:
            self._fail_open(self._exchange.remember_turn, steady_time())
        if rest:
            self._hear(rest)
            yield self._given(rest)
        self._fail_open(self._note_reasoning)

    @property
    def _turn(self) -> RecallTurn | None:
        return None if self._faulty else self._exchange.turn

    def _given(self, data: bytes) -> Give:
        self._down += len(data)
        return Give(data)

    def _hear(self, data: bytes) -> None:
        if self._exchange.listening:
            self._fail_open(self._exchange.hear, data)
            if _LAST_EVENT in data:  # clients may stop reading here, and ask again
                self._fail_open(self._note_reasoning)

    def _derive(self) -> bytes | None:
        exchange = self._exchange
        if not exchange.derives or not exchange.read(steady_time()):
            return None
        return self._saved(exchange.derive(steady_time()))

    def _mended(self, status: int, refusal: bytes) -> bytes | None:
        other = self._exchange.smaller(status, refusal) or self._exchange.without_refused(
            status, refusal, steady_time()
        )
        return None if other is None else self._saved(other)

    def _answer_calls(self, turn: RecallTurn) -> bytes | None:
        exchange, answers = self._exchange, self._calls.answers
        texts: Sequence[str] = [answers(call.name, call.arguments, exchange.name, exchange.done) for call in turn.calls]
        following = exchange.go_on(texts, steady_time())
        return None if following is None else self._saved(following)

    def _saved(self, derived: bytes | None) -> bytes | None:
        """The request once its pages are stored, or where they cannot be, one that does not name them."""
        try:
            self._calls.saving.save(self._exchange)
        except StoreError as error:
            self._calls.faults.append(error)
            return self._exchange.without_store()
        return derived

    def _note_reasoning(self) -> None:
        if self._exchange.binds_elsewhere:
            self._exchange.note_reasoning()
            self._calls.conversations.notebook.save(steady_time())

    def _finish(self, ending: Ending, bytes_up: int) -> None:
        now = steady_time()
        seen = self._exchange.finish(ending, bytes_up=bytes_up, bytes_down=self._down, now=now)
        self._calls.totals += Totals.of(seen)
        self._calls.conversations.notebook.save(now)

    def _fail_open(self, step: Callable[..., Any], *given: object) -> Any:
        """Runs a step of pagefold. If it raises, keeps the error, goes on without pagefold and returns None."""
        if self._faulty:
            return None
        try:
            with self._calls.lock:
                return step(*given)
        except Exception as error:  # noqa: BLE001 - the single fail-open point of this surface
            self._faulty = True
            self._calls.faults.append(error)
            return None


def _all() -> Generator[Step, Any, bytes]:
    """All that is left of an answer."""
    pieces: list[bytes] = []
    while data := (yield Read()):
        pieces.append(data)
    return b"".join(pieces)
