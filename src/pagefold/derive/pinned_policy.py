"""With what a history began: the policy with all its settings, and the head; written down, and read back.

An upgrade, another settings file or a longer list of tools must not move the prefix of a history that is under way. So
what it was first derived with is noted before its first request leaves, and whoever derives it later goes by the note.
What a request asks for itself (its model, a policy, a window) is part of the note's name instead: who asks for
something else gets it.

`VERSION` goes up when the same history under the same settings comes to give other bytes; a new setting whose default
is not what was done before counts as that. A version that can no longer be derived is not read: the history goes on
with what is derived today. That moves its prefix once, and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from pagefold.derive.policies import LIVE, policy_named
from pagefold.derive.policy import Policy
from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object, as_string

VERSION = 9
_DERIVED = frozenset((VERSION,))

LOST = "how this history began is not known"
PASSED = "this history began with what is no longer derived"


@dataclass(frozen=True, slots=True)
class PinnedPolicy:
    """`at` is when the history began: the same first request long afterwards begins another history. `offers` says
    whether its requests offer context tools: tools are a part of the prefix, and stay what they were. `arm` is its
    group in a trial, or "": it stays in it, also where it is resumed or forked."""

    policy: Policy
    head: int = 0
    at: float = 0.0
    offers: bool = False
    arm: str = ""

    def to_json(self) -> str:
        """Raises ValueError for a policy that could not be read back."""
        if self.policy.name not in LIVE:
            raise ValueError(f"{self.policy.name} is no policy of the library's own")
        said: dict[str, Any] = {"version": VERSION, "policy": self.policy.name, "head": self.head, "at": self.at}
        said |= {"offers": True} if self.offers else {}
        said |= {"arm": self.arm} if self.arm else {}
        return json_text.dumps(said | {"settings": _said(self.policy)})


def parse(text: str) -> PinnedPolicy | None:
    """Returns the pinned policy of a note, or None if this version cannot run it or the note is another kind."""
    try:
        said = as_object(json_text.parse(text))
        if said.get("version") not in _DERIVED or said.get("policy") not in LIVE:
            return None
        policy = _like(policy_named(said["policy"]), as_object(said.get("settings")))
        arm = as_string(said.get("arm"))
        return PinnedPolicy(policy, int(said["head"]), float(said["at"]), said.get("offers") is True, arm)
    except (WireError, LookupError, TypeError, ValueError):
        return None


_SET = "set"


def _said(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _said(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, frozenset):
        return {_SET: sorted(map(_said, value))}
    return [_said(part) for part in value] if isinstance(value, tuple) else value


def _like(example: Any, said: Any) -> Any:
    """Returns a value of a note, with the type of an example. Raises TypeError or ValueError if it has another type."""
    if is_dataclass(example) and not isinstance(example, type):
        if not isinstance(said, Mapping):
            raise TypeError(f"expected the parts of {type(example).__name__}")
        if odd := said.keys() - {item.name for item in fields(example)}:
            raise ValueError(f"{type(example).__name__} has no {', '.join(sorted(odd))}")
        return replace(example, **{name: _like(getattr(example, name), part) for name, part in said.items()})
    found = _frozen(said)
    if isinstance(example, float) and type(found) is int:
        return float(found)
    if example is not None and found is not None and type(found) is not type(example):
        raise TypeError(f"expected {type(example).__name__}, found {type(found).__name__}")
    return found


def _frozen(said: Any) -> Any:
    if isinstance(said, list):
        return tuple(map(_frozen, said))
    return frozenset(map(_frozen, said[_SET])) if isinstance(said, Mapping) else said
