"""The library in one class: add messages, ask for the next request, recall what was folded.

A context holds one history. Messages may be Chat Completions, Anthropic or Responses dictionaries; requests come back
in the same spelling. What a request's handles recall is in the store before the request is returned. The clock is asked
for one thing only, how long ago the last request was: a cache that has expired is the best moment to fold.

A history that is added again, in another process on the same store, goes on as it was: it is asked for a request before
each answer in it, as it was asked then, with the policy and the notes of that time. What was pinned is in the journal
before anything is folded away, and a context of the same history, store and project begins with it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pagefold.adapters.given_store import given_store
from pagefold.adapters.instructions import instructions_in
from pagefold.adapters.steady_time import steady_time
from pagefold.context_report import Account, MessageStanding, Report, standing
from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.learned import SHIPPED
from pagefold.derive.notebook import Notebook
from pagefold.derive.pinned_policy import PinnedPolicy
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import NOTHING, Decision, Derived, Notes, Policy, configured, window_of
from pagefold.derive.prefix_hashes import NO_HASH, prefix_hashes_of, raw_prefix_hashes, root_of
from pagefold.derive.runner import Run, as_it_is, begin, replay_messages
from pagefold.errors import ConfigError, WindowError
from pagefold.pages import producers
from pagefold.pages.files.own_tools import OwnTools, own_tools
from pagefold.pages.journal import Boundary, Flushed
from pagefold.pages.kinds import PageKind
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import HANDLE, Page, PageId
from pagefold.pages.pins import NONE, Pins
from pagefold.pages.producers import PinnedItem, Refused, Scope
from pagefold.pages.recall import Recalled, recall
from pagefold.pages.search import SearchResults
from pagefold.pages.store import RENEW_SECONDS, Store
from pagefold.pages.writeback import Scopes, Writeback
from pagefold.tokens import counter_for
from pagefold.wire import json_text
from pagefold.wire.apis import binds_reasoning, message_of, spelled_alike
from pagefold.wire.message import BlockKind, Message

if TYPE_CHECKING:
    from pagefold.pages.exchanges import Work

_T = TypeVar("_T")
NO_TOOLS: Mapping[str, Mapping[str, Any]] = {}
_TITLE = re.compile(r"\[(R\d+)[ \]]")
_FOLDS = "expected a policy that folds, such as economic"


class Context:
    """One history, and what the model reads of it next.

    >>> context = Context(window=200_000)
    >>> context.add({"role": "user", "content": "What does parse() return?"})
    >>> context.request()
    [{'role': 'user', 'content': 'What does parse() return?'}]

    `store` is a file, a store, or nothing to keep pages in memory; a file is closed by `close`, or at the end of a
    `with` block. `model` names the tokenizer, and what tokens cost where no `prices` are given; `head` is what stands
    before all messages, in tokens: the system prompt and the tools, where they are not messages themselves. Every
    section of the files in `instructions` is a constraint. `project` names what pins of that scope are shared by.
    `file_tools` says what tools of your own agent do to files, as `[file_tools.NAME]` does in a settings file:
    `{"open_document": {"does": "read", "path": ["document"]}}`.
    """

    def __init__(
        self,
        window: int = 200_000,
        *,
        policy: str | Policy = "economic",
        store: Store | str | Path | None = None,
        model: str = "",
        head: int = 0,
        prices: Prices | None = None,
        history: str = "context",
        project: str = "",
        instructions: Sequence[str | Path] = (),
        file_tools: Mapping[str, Mapping[str, Any]] = NO_TOOLS,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._counter = counter_for(model)
        prices = prices or _listed_prices(model)
        if isinstance(policy, str):
            told = replace(SHIPPED, file_tools=_own_file_tools(file_tools))
            policy = policy_named(policy, window=window, prices=prices, tokens=self._counter.name, learned=told)
            if policy.abilities.unbinds:
                policy = configured(policy, binds_reasoning=binds_reasoning(model))
        self._prices, self._clock = prices, clock
        self._owns = isinstance(store, str | Path)
        self._store = given_store(store) or MemoryStore()
        self._writeback = Writeback(self._store, Scopes(history, project))
        self._notebook = Notebook(self._store.notes)
        self._renewed = -RENEW_SECONDS
        self._history, self._head = history, head
        self._asked_for = f"{history}\n{model}\n{policy.name}\n{window_of(policy)}"
        self._messages: list[Message] = []
        self._prefix_hashes: list[bytes] = []
        self._hashes_raw = False  # whether the history began under the hashes of an earlier version
        self._pinned_policy: PinnedPolicy | None = None
        self._answered = False  # and so noted under what no other history has
        self._stepped = 0  # messages that the policy has been shown
        self._waiting: list[PinnedItem] = []  # to be pinned as soon as the history has begun
        if policy.abilities.pins:
            self._waiting += self._writeback.read().held
            policy = configured(policy, instructions=instructions_in(instructions))
        elif instructions:
            raise ConfigError(f"instructions: {_FOLDS}; this one is {policy.name}")
        self._run: Run[Message] = begin(policy, head, spoke=True)
        self._decisions: tuple[Decision, ...] = ()
        self._account = Account(self._counter, prices)
        self._asked: float | None = None
        self._missed: list[PageId] = []
        self._flushed: Flushed | None = None  # once it is closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> Flushed:
        """Writes back what is held and closes the store that was opened here; one that was given stays open. What was
        rejected, and why, is in the answer. Closing again gives the same answer."""
        if self._flushed is None:
            self._flushed = self._writeback.write(self.pins, Boundary.SHUTDOWN, now=self._clock())
            self._writeback.close()
            if self._owns:
                self._store.close()
        return self._flushed

    def add(self, *messages: Mapping[str, Any] | Message) -> None:
        """The next messages of the history, as they are sent to a provider or came from it."""
        for given in messages:
            message = given if isinstance(given, Message) else message_of(given, self._messages)
            self._messages.append(message)
            self._account.added(message)

    def request(self, window: int | None = None, *, cold: bool | None = None) -> list[dict[str, Any]]:
        """What to send next. `window` changes the window from here on. `cold` says that the provider's cache is lost;
        without it the clock tells. Raises WindowError where the least that has to stay does not fit."""
        return [json.loads(message.raw) for message in self.request_messages(window, cold=cold)]

    def request_messages(self, window: int | None = None, *, cold: bool | None = None) -> list[Message]:
        """`request` as parsed messages, each with its place in the history; those that pagefold wrote have -1."""
        now = self._clock()
        self._catch_up(now)
        if window is not None:
            self._resize(window)
        if cold is None:
            life = self._prices.life
            cold = self._asked is not None and life > 0 and now - self._asked > life
        prefix_hash = self._prefix_hashes[-1] if self._prefix_hashes else b""
        notes = Notes(cold=cold, recalled=tuple(self._missed))
        notes = self._notebook.get(prefix_hash) if notes == NOTHING else notes
        asked, before = self._run.ask(notes, as_it_is), self._sent
        assert asked.asked is not None
        derived = asked.asked.derived
        if derived.short:
            raise WindowError(derived.short)
        if notes != NOTHING:
            self._notebook.put(prefix_hash, notes, now, self._history)
        self._missed.clear()
        self._run = asked
        self._decide(derived)
        self._save(now)
        self._account.asked(self._head, before, self._sent, derived, cold=cold)
        self._asked = now
        return spelled_alike(list(self._sent))

    def recall(self, handle: str, **part: Any) -> str:
        """What a handle stands for: `pf-…` from a fold, or `R12` from the title of a result. What was folded comes with
        its place: what was asked, what came before and after it, and whether a file is still as it was. `lines`,
        `path`, `find`, `cursor` and `budget` ask for a part. Words are the answer where nothing can be given back."""
        from pagefold.encode.recall_reply import reply_to_recall  # noqa: PLC0415 - a third of what imports cost

        self._account.recalled()
        if not HANDLE.fullmatch(handle) and (text := self._titled(handle)) is not None:
            handle = self.keep(text)
        found = reply_to_recall(
            self._store.pages, handle, within=self._history, count=self._counter.count, work=self._done, **part
        )
        if found.page is not None:
            self._missed.append(found.page)
        return found.text

    def holds(self, handle: str) -> bool:
        """Whether a handle can be recalled here."""
        return isinstance(recall(self._store.pages, handle, within=self._history), Recalled)

    def search(self, query: str, limit: int = 5) -> str:
        """Where something was said or done before it was folded: by words, names, paths, tools, or by how a call ended
        (`failed`, `refused`, `interrupted`). The best first, each with the handle that recalls it."""
        return SearchResults(
            query, tuple(self._store.search_index.search(query, history=self._history, limit=limit))
        ).text

    def _done(self) -> "Work":
        from pagefold.pages.exchanges import work_of  # noqa: PLC0415 - see recall

        policy: Any = self._run.policy
        return work_of(self._messages, policy.file_tools if policy.abilities.shows_files else ())

    def keep(self, text: str, name: str = "") -> str:
        """Keeps a text in the store for this history; the handle that recalls it."""
        page = Page.of(PageKind.EVIDENCE, text, name)
        self._store.pages.put_held([page], history=self._history, now=self._clock())
        return page.handle

    def pin(self, statement: str, *, scope: Scope | str = Scope.SESSION) -> None:
        """A constraint that stands in every request from now on, whatever is folded."""
        self._take("pin", producers.constrain(statement, scope=scope))

    def plan(self, goal: str, steps: Sequence[str] = (), *, current: int = 1) -> None:
        """What is being done and at which step it is; takes the place of the plan before."""
        self._take("plan", producers.plan(goal, steps, current=current))

    def prefer(self, statement: str, *, scope: Scope | str = Scope.PROJECT) -> None:
        """What the user or the project likes, and is no rule."""
        self._take("prefer", producers.prefer(statement, scope=scope))

    @property
    def pins(self) -> Pins:
        """What is held: by the library, by the agent's own tools, by instruction files."""
        if not self._run.policy.abilities.pins:
            return NONE
        self._catch_up(self._clock())
        held: Pins = self._run.state.pins
        return held.holding(*self._waiting)

    def explain(self) -> list[MessageStanding]:
        """Why each message stands as it does."""
        known = {decision.place: decision for decision in self._decisions}
        sent = {message.place: message for message in self._sent if message.place >= 0}
        return [standing(at, message, known.get(at), sent.get(at)) for at, message in enumerate(self._messages)]

    def report(self) -> Report:
        return self._account.report

    async def request_async(self, window: int | None = None, *, cold: bool | None = None) -> list[dict[str, Any]]:
        """`request`, off the event loop."""
        return await _off_the_loop(self.request, window, cold=cold)

    async def recall_async(self, handle: str, **part: Any) -> str:
        return await _off_the_loop(self.recall, handle, **part)

    @property
    def _sent(self) -> Sequence[Message]:
        """The last request: the one that was asked for since the last message, or the one before."""
        return self._run.asked.request if self._run.asked is not None else self._run.sent

    def _catch_up(self, now: float) -> None:
        """Shows the policy what was added, and asks it where an answer shows that it was asked."""
        added = self._messages[len(self._prefix_hashes) :]
        if self._hashes_raw:
            self._prefix_hashes += raw_prefix_hashes(added, self._prefix_hashes[-1])
        else:
            before = self._prefix_hashes[-1] if self._prefix_hashes else NO_HASH
            self._prefix_hashes += prefix_hashes_of([json_text.parse(message.raw) for message in added], before)
        if self._messages and not self._answered:
            self._begin(now)
        start = self._stepped
        new = [replace(message, place=place) for place, message in enumerate(self._messages[start:], start)]
        self._run = replay_messages(self._run, new, start, self._ask_again)
        self._stepped = len(self._messages)

    def _ask_again(self, place: int, at: Run[Message]) -> Run[Message]:
        """Asks as it was asked before the answer at a place was given."""
        asked = at.ask(self._notebook.get(self._prefix_hashes[place - 1]), as_it_is)
        assert asked.asked is not None
        self._decide(asked.asked.derived)
        return asked

    def _begin(self, now: float) -> None:
        """Begins with what the history began with, and notes that: under its first request, then its first answer."""
        root = root_of(self._messages, self._prefix_hashes)
        begun = self._notebook.begun(root, self._asked_for, now)
        if self._pinned_policy is None:
            if begun.beginning is None:
                raw = raw_prefix_hashes(self._messages)
                earlier = self._notebook.begun(root_of(self._messages, raw), self._asked_for, now)
                if earlier.beginning is not None:
                    begun, self._prefix_hashes, self._hashes_raw = earlier, raw, True
            self._pinned_policy = begun.beginning or PinnedPolicy(self._run.policy, self._head, now)
            self._head = self._pinned_policy.head
            self._run = begin(self._pinned_policy.policy, self._head, spoke=True)
            self._pin_waiting()
        if begun.unnoted:
            self._notebook.put_begun(begun, self._pinned_policy, now, self._history)
        self._answered = root.answered is not None

    def _decide(self, derived: Derived) -> None:
        if derived.decisions:  # a fold decides anew about everything
            self._decisions = (*(() if derived.reason else self._decisions), *derived.decisions)

    def _save(self, now: float) -> None:
        """Saves what the request names and what a fold would lose. Where that fails, the next request tries again."""
        if now - self._renewed >= RENEW_SECONDS:
            self._store.pages.renew(self._history, now)
            self._renewed = now
        asked = self._run.asked
        unsaved = asked.unsaved if asked is not None else self._run.unsaved
        if unsaved.pages:
            self._store.pages.put_held(unsaved.pages, history=self._history, now=now)
        if unsaved.boundary is not None:
            self._writeback.write(self.pins, unsaved.boundary, now=now)
        self._run = self._run.saved()

    def _pin_waiting(self) -> None:
        """Pins what waits to be pinned, in what was asked for already too."""
        if self._waiting:
            policy: Any = self._run.policy
            held = tuple(self._waiting)
            self._run = self._run.map_states(lambda state: policy.pin(state, *held))
            self._waiting.clear()

    def _take(self, what: str, held: PinnedItem | Refused) -> None:
        if isinstance(held, Refused):
            raise ConfigError(f"{what}: {held.text}")
        if not self._run.policy.abilities.pins:
            raise ConfigError(f"{what}: {_FOLDS}; this one is {self._run.policy.name}")
        now = self._clock()
        self._catch_up(now)
        self._waiting.append(held)
        if self._messages:
            self._pin_waiting()
        self._writeback.stage(self.pins, now=now)

    def _resize(self, window: int) -> None:
        if self._run.policy.abilities.folds:
            self._run = replace(self._run, policy=configured(self._run.policy, window=window))

    def _titled(self, title: str) -> str | None:
        """The whole of the newest result that stands under this title."""
        for message in reversed(self._sent):
            for index, block in enumerate(message.blocks):
                found = _TITLE.match(block.text) if block.kind is BlockKind.RESULT else None
                if found and found[1] == title and 0 <= message.place < len(self._messages):
                    return self._messages[message.place].blocks[index].text
        return None


def _listed_prices(model: str) -> Prices:
    if not model:
        return ASSUMED
    from pagefold.adapters.model_prices import ModelPrices  # noqa: PLC0415 - where no model is named, nothing is read

    return ModelPrices().prices(model)


def _own_file_tools(tables: Mapping[str, Mapping[str, Any]]) -> OwnTools:
    if not tables:
        return ()
    from pagefold.settings.knobs import file_tool_tables  # noqa: PLC0415 - all settings: a quarter of what imports cost

    return own_tools(file_tool_tables(tables))


async def _off_the_loop(work: Callable[..., _T], *given: Any, **named: Any) -> _T:
    import asyncio  # noqa: PLC0415 - whoever awaits this has imported it; the others need not

    return await asyncio.to_thread(work, *given, **named)
