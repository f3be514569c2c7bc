"""The whole history in, what to send next out: for callers that keep their messages themselves.

Nothing has to be kept between two calls. A `Deriver` remembers how far it was with the histories it saw last, so that a
call costs its new messages; without that memory the same bytes come out. It folds by what the history says alone and
never by the clock. What was folded away is recalled from memory for as long as the history is remembered, and from
`store`, where one is given, for as long as that keeps it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from pagefold.adapters.given_store import given_store
from pagefold.adapters.model_prices import ModelPrices
from pagefold.context import Context
from pagefold.context_report import Report
from pagefold.derive.policy import Policy
from pagefold.errors import WireError
from pagefold.pages.context_tools import RECALL, ContextTool
from pagefold.pages.store import Store
from pagefold.tokens import counter_for
from pagefold.wire import json_text
from pagefold.wire.message import Message

WINDOW = 200_000
"""How many tokens fit into a model of which nothing is known."""
_REMEMBERED = 64
_DERIVERS = 16
_HEAD_STEP = 4096  # heads are taken for as long as the next multiple: one that changes a little moves no fold
_BEGINNING = 3  # messages that tell one conversation from another in the store


class Deriver:
    """Derives requests of many conversations, each by its messages alone. Threads may share it.

    `window` is how many tokens fit; without it, what is known of the model. `policy` and `store` are those of
    `Context`. Whoever serves several users with one Deriver shares its recalls between them: give each their own.
    """

    recall_tool: ContextTool = RECALL
    """The tool by which a model asks for what was folded: name, description and JSON schema. `recall` answers it."""

    def __init__(
        self, *, window: int = 0, policy: str | Policy = "economic", store: Store | str | Path | None = None
    ) -> None:
        self._window, self._policy = window, policy
        self._owns = isinstance(store, str | Path)
        self._store = given_store(store)
        self._windows = ModelPrices()
        self._contexts: dict[bytes, Context] = {}
        self._busy = Lock()

    def derive(self, messages: Sequence[Mapping[str, Any]], *, model: str = "", head: int = 0) -> list[dict[str, Any]]:
        """What to send in place of these messages, in their own spelling. `head` is how many tokens stand before them:
        the system prompt and the tools, where they are not messages. Raises WireError for what is no message, and
        WindowError where the least that has to stay does not fit."""
        return [json_text.parse(message.raw) for message in self.messages(messages, model=model, head=head)]

    def messages(self, messages: Sequence[Mapping[str, Any]], *, model: str = "", head: int = 0) -> list[Message]:
        """As `derive`, but each with its `place` in the history; pagefold's own have -1."""
        with self._busy:
            keys = _keys(messages, model)
            known = next((at for at in range(len(keys), 0, -1) if keys[at - 1] in self._contexts), 0)
            context = self._contexts.pop(keys[known - 1]) if known else self._begin(keys, model, head)
            context.add(*messages[known:])
            derived = context.request_messages(cold=False)
            if keys:
                self._contexts[keys[-1]] = context
            if len(self._contexts) > _REMEMBERED:
                self._contexts.pop(next(iter(self._contexts))).close()
            return derived

    def recall(self, handle: str, **part: Any) -> str:
        """What a handle in a derived request stands for; words where it stands for nothing. `part` is as for
        `Context.recall`: lines, path, find, cursor, budget."""
        with self._busy:
            contexts = [*reversed(self._contexts.values())]
            context = next((each for each in contexts if each.holds(handle)), None)
            return (context or (contexts[0] if contexts else Context())).recall(handle, **part)

    def report(self) -> Report:
        """What was sent and saved in the conversations that are remembered."""
        with self._busy:
            reports = [context.report() for context in self._contexts.values()]
        return sum(reports, Report())

    def close(self) -> None:
        """Forgets all conversations, and closes the store that was opened here."""
        with self._busy:
            for context in self._contexts.values():
                context.close()
            self._contexts.clear()
            if self._owns and self._store is not None:
                self._store.close()

    def _begin(self, keys: Sequence[bytes], model: str, head: int) -> Context:
        known = self._windows(model) if model and not self._window else None
        window = self._window or (known.window if known else 0) or WINDOW
        name = keys[min(len(keys), _BEGINNING) - 1].hex()[:24] if keys else "empty"
        head = -(-head // _HEAD_STEP) * _HEAD_STEP
        return Context(
            window, policy=self._policy, store=self._store, model=model, head=head, history=f"derived-{name}"
        )


def derive(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str = "",
    window: int = 0,
    head: int = 0,
    policy: str | Policy = "economic",
    store: Store | None = None,
) -> list[dict[str, Any]]:
    """What to send in place of these messages: Chat Completions, Anthropic or Responses dictionaries, and the same come
    back.

    >>> derive([{"role": "user", "content": "What does parse() return?"}], model="gpt-5")
    [{'role': 'user', 'content': 'What does parse() return?'}]

    Call it with the whole history before every request, and keep that history as it is. `window` is how many tokens
    fit; without it, what is known of the model. `head` is how many tokens stand before the messages: the system prompt
    and the tools, where they are not messages. `store` keeps what was folded beyond this process. Raises WireError for
    what is no message, and WindowError where the least that has to stay does not fit.
    """
    by: tuple[Any, Any] = (policy, store)
    return _deriver(window, *by).derive(messages, model=model, head=head)


def tokens_of(*texts: str, model: str = "") -> int:
    """How many tokens these texts take: for `head`."""
    counter = counter_for(model)
    return sum(counter.count(text) for text in texts)


@lru_cache(maxsize=_DERIVERS)
def _deriver(window: int, policy: Any, store: Any) -> Deriver:
    return Deriver(window=window, policy=policy, store=store)


def _keys(messages: Sequence[Mapping[str, Any]], model: str) -> list[bytes]:
    """For each message what names the history up to it."""
    keys: list[bytes] = []
    before = sha256(model.encode()).digest()
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise WireError(f"messages[{place}]: expected an object with a role, got {type(message).__name__}")
        text = json_text.bytes_of(json_text.dumps(message))
        before = sha256(before + sha256(text).digest()).digest()
        keys.append(before)
    return keys
