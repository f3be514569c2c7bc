"""Histories of a framework: its own messages in, its own messages out, and pagefold in between.

A framework's messages are spelled as dictionaries of a model API and derived. What pagefold left as it was comes back
as the very object it was. Where pagefold fails, the history comes back as it is; what failed is kept in `faults`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError
from pagefold.pages.store import Store
from pagefold.stateless import Deriver, tokens_of
from pagefold.wire import json_text

Item = TypeVar("Item")
RECALL = Deriver.recall_tool


class Histories(Generic[Item]):
    """`spell` writes a message as a dictionary of a model API; `rewrite` returns it as such a dictionary says, which
    was made of its own; `write` makes one of a text of the user. `window`, `policy` and `store` are those of `Deriver`.
    """

    def __init__(
        self,
        spell: Callable[[Item], dict[str, Any]],
        rewrite: Callable[[Item, Mapping[str, Any]], Item],
        write: Callable[[str], Item],
        *,
        window: int = 0,
        policy: str | Policy = "economic",
        store: Store | str | Path | None = None,
    ) -> None:
        self._spell, self._rewrite, self._write = spell, rewrite, write
        self.deriver = Deriver(window=window, policy=policy, store=store)
        self.faults: list[Exception] = []

    def derive(self, history: Sequence[Item], *, model: str = "", before: Sequence[str] = ()) -> list[Item]:
        """What to send in place of this history. `before` are texts that stand before it: system prompt and tools."""
        try:
            return self._derived(history, model, before)
        except Exception as error:  # noqa: BLE001 - the single fail-open point of this surface
            self.faults.append(error)
            return list(history)

    def _derived(self, history: Sequence[Item], model: str, before: Sequence[str]) -> list[Item]:
        spelled = [self._spell(item) for item in history]
        derived: list[Item] = []
        for message in self.deriver.messages(spelled, model=model, head=tokens_of(*before, model=model)):
            if message.place < 0:
                derived.append(self._write(message.text))
                continue
            item, value = history[message.place], json_text.parse(message.raw)
            derived.append(item if value == spelled[message.place] else self._rewrite(item, value))
        return derived

    def recall(self, handle: str, lines: str = "", path: str = "", find: str = "", cursor: str = "") -> str:
        """What the tool for recalls answers: a handle such as pf-abcdefghij in, the text it stands for out."""
        asked = {"lines": lines, "path": path, "find": find, "cursor": cursor}
        return self.deriver.recall(handle, budget=8_000, **{name: part for name, part in asked.items() if part})


def missing(framework: str, package: str) -> ConfigError:
    """The error of a module whose framework is not installed."""
    return ConfigError(f"pagefold.integrations: {framework} is not installed here: pip install {package}")
