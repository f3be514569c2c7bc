"""Finds the list that a JSON result is about, extracts what strategies ask about its entries, and sums up parts of it.

Issues, merge requests, diffs, comments and discussions are recognised by their members, under the names that the usual
providers give them; any other list of objects is a list of items. Ages count from the newest entry, never from a clock.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pagefold.encode.trim.strategy import ItemFacts

_PATH = ("new_path", "path", "filename", "file_path", "old_path", "file")
_ACTIVITY = ("user_notes_count", "comments_count", "comments", "comment_count", "notes_count", "upvotes", "reactions")
_TOUCHED = ("updated_at", "updatedAt", "last_activity_at", "modified", "created_at", "createdAt")
_TITLE = ("title", "summary", "name", "key", "id", "iid", "number")
_DAY = 86_400


class ItemKind(StrEnum):
    ISSUES = "issues"
    MERGE_REQUESTS = "MRs"
    DIFFS = "diffs"
    COMMENTS = "comments"
    DISCUSSIONS = "discussions"
    ITEMS = "items"


@dataclass(frozen=True, slots=True)
class JsonItems:
    """The list a result is about. `path` are the keys that lead to it from the root; `values` are its entries."""

    kind: ItemKind
    path: tuple[str, ...]
    values: tuple[Any, ...]

    def facts(self) -> list[ItemFacts]:
        """Returns what strategies may ask about each entry."""
        touched = [_moment(_first(value, _TOUCHED)) for value in self.values]
        newest = max((at for at in touched if at is not None), default=0.0)
        return [
            ItemFacts(
                path=str(_first(value, _PATH) or ""),
                resolved=_resolved(value),
                activity=_number(_first(value, _ACTIVITY)),
                days=None if at is None else (newest - at) / _DAY,
            )
            for value, at in zip(self.values, touched, strict=True)
        ]

    def summary(self, first: int, last: int) -> str:
        """Describes the entries from one index to another in a few words."""
        some = self.values[first : last + 1]
        span = f"{first + 1}-{last + 1}" if last > first else f"{first + 1}"
        if self.kind in (ItemKind.ISSUES, ItemKind.MERGE_REQUESTS):
            states = Counter(str(_first(value, ("state", "status"))) for value in some)
            return f"{self.kind} #{span} ({', '.join(f'{n} {state}' for state, n in states.most_common(3))})"
        if self.kind is ItemKind.DIFFS:
            return f"diffs {span}: {_folders(some)}"
        if self.kind is ItemKind.DISCUSSIONS:
            done = sum(1 for value in some if _resolved(value))
            return f"discussions {span} ({len(some) - done} unresolved, {done} resolved)"
        return f"{self.kind} {span}"


def items_of(value: Any) -> JsonItems | None:
    """Returns the list of objects that a result is or holds, the longest of several; None where it holds none."""
    lists = [
        (path, entries)
        for path, entries in _lists(value, (), 0)
        if len(entries) >= 2 and sum(isinstance(entry, Mapping) for entry in entries) >= 0.8 * len(entries)
    ]
    if not lists:
        return None
    path, entries = max(lists, key=lambda each: (len(each[1]), -len(each[0])))
    return JsonItems(_kind(entries), path, tuple(entries))


def _lists(value: Any, path: tuple[str, ...], depth: int) -> list[tuple[tuple[str, ...], list[Any]]]:
    if isinstance(value, list):
        return [(path, value)]
    if not isinstance(value, Mapping) or depth > 2:
        return []
    return [found for key, inner in value.items() for found in _lists(inner, (*path, key), depth + 1)]


def _kind(entries: Sequence[Any]) -> ItemKind:
    keys = set(next((entry for entry in entries if isinstance(entry, Mapping)), {}))
    if keys & {"diff", "patch"} and keys & set(_PATH):
        return ItemKind.DIFFS
    if keys & {"notes", "comments"} and isinstance(_first(entries[0], ("notes", "comments")), list):
        return ItemKind.DISCUSSIONS
    if keys & {"source_branch", "target_branch", "merged_at", "head"} and "title" in keys:
        return ItemKind.MERGE_REQUESTS
    if "title" in keys and keys & {"state", "status"}:
        return ItemKind.ISSUES
    return ItemKind.COMMENTS if "body" in keys and keys & {"author", "user"} else ItemKind.ITEMS


def _folders(some: Sequence[Any]) -> str:
    paths = [str(_first(value, _PATH) or "?") for value in some]
    folders = Counter("/".join(path.split("/")[:-1][:3]) or "." for path in paths)
    names = ", ".join(f"{folder}/* ({n})" for folder, n in folders.most_common(3))
    texts = [str(_first(value, ("diff", "patch")) or "") for value in some]
    lines = [line for text in texts for line in text.split("\n")]
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    taken = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"{names}, +{added}/-{taken}"


def _first(value: Any, keys: Sequence[str]) -> Any:
    if not isinstance(value, Mapping):
        return None
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _resolved(value: Any) -> bool | None:
    own = _first(value, ("resolved", "is_resolved", "isResolved"))
    if isinstance(own, bool):
        return own
    notes = _first(value, ("notes", "comments"))
    if not isinstance(notes, list):
        return None
    resolved = [bool(note["resolved"]) for note in notes if isinstance(note, Mapping) and "resolved" in note]
    return all(resolved) if resolved else None


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("total_count")
    if isinstance(value, list):
        return float(len(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _moment(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
