"""Notes, and what the provider was really sent in a turn that the client saw as one message.

Both are kept in the store under the prefix hash of their history.
"""

from pagefold.derive import notebook
from pagefold.errors import WireError
from pagefold.model_proxy.recalling import UpstreamTurn
from pagefold.model_proxy.resuming import NewestFold
from pagefold.wire import json_text


class ProxyNotebook(notebook.Notebook):
    """Raises StoreError where the store does."""

    def save_newest_fold(self, fold: NewestFold, now: float, history: str) -> None:
        """Saves a fold, if that is possible now: then its history need not be derived from the beginning where it is
        seen for the first time."""
        if (saved := fold.to_save()) is not None:
            self.save_fold(fold.answered, fold.policy, saved, now, history)

    def said(self, prefix_hash: bytes, gist: str) -> UpstreamTurn | None:
        """What was really said in the turn that a client saw as a message of this gist, after this history."""
        content = self.notes.newest(_name_of_turn(prefix_hash, gist))
        try:
            return None if content is None else UpstreamTurn.parse(json_text.text_of(content))
        except WireError:
            return None

    def put_said(self, prefix_hash: bytes, gist: str, said: UpstreamTurn, now: float, history: str = "") -> None:
        content = said.to_json().encode("utf-8", "surrogatepass")
        self.notes.put(_name_of_turn(prefix_hash, gist), content, now=now, history=history)


def _name_of_turn(prefix_hash: bytes, gist: str) -> str:
    return f"turn-{prefix_hash.hex()}-{gist}"
