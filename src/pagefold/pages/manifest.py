"""Names of a session's objects in the history sink, and the manifest that lists its pages in order.

    {prefix}{session}/pages/{twelve letters of the id}/{id}      a content as it is, so that a part of it can be read
    {prefix}{session}/manifest/{hash}.jsonl                      some of its pages: kind, name, order

Every object is named by the hash of its content and never changes, so writers need no lock, a retry does no harm, and a
manifest grows by parts. A handle gives the first twelve letters of an id, so one listing finds the page it names.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pagefold.errors import WireError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_range

_FORMAT = 1
_KNOWN_OF_ID = 12
_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_LONGEST = 200
_OF_PRINCIPAL = "=of-"
_NO_SESSION = ("=hash-", _OF_PRINCIPAL, "=bodies")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One page of a session; `place` is its order in the store it was sent from."""

    page: PageId
    kind: PageKind | None
    name: str
    bytes: int
    first_put: float
    place: int


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """Some entries of a session, as one store sent them."""

    session: str
    store: str
    entries: tuple[ManifestEntry, ...]


def prefix_for(prefix: str, principal: str) -> str:
    """Returns the beginning of the keys of a principal's sessions. That of this machine's user needs no name there."""
    return f"{prefix}{_OF_PRINCIPAL}{hashlib.sha256(principal.encode()).hexdigest()[:32]}/" if principal else prefix


def folder_of(prefix: str, session: str) -> str:
    """Returns the folder of a session, whose name may be any text. Raises ValueError for an empty one."""
    if not session:
        raise ValueError("a session in object storage needs a name")
    spelled = session.encode("utf-8", "surrogatepass")
    # What is no letter, digit, _ or - is written =2F, so that no name leaves its folder or means another one.
    safe = "".join(chr(byte) if _PLAIN.match(bytes([byte])) else f"={byte:02X}" for byte in spelled)
    return prefix + (safe if len(safe) <= _LONGEST else "=hash-" + hashlib.sha256(spelled).hexdigest())


def session_of(folder: str) -> str | None:
    """Returns the session that a folder is named after; None where the name is a hash and only the manifest tells, and
    for the folder of another principal's sessions and of large contents."""
    name = folder.rstrip("/").rpartition("/")[2]
    if name.startswith(_NO_SESSION):
        return None
    spelled = re.sub(rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), name.encode())
    return spelled.decode("utf-8", "surrogatepass")


def page_key(folder: str, page: PageId) -> str:
    return f"{folder}/pages/{page[:_KNOWN_OF_ID]}/{page}"


def handle_folder(folder: str, handle: str) -> str | None:
    """Returns the folder of the pages that a handle may name; None where it is no handle."""
    span = id_range(handle)
    return None if span is None else f"{folder}/pages/{span[0][:_KNOWN_OF_ID]}"


def named_by(handle: str, keys: Iterable[str]) -> list[PageId]:
    """Returns the pages among these keys that the handle names."""
    span = id_range(handle)
    ids = (key.rpartition("/")[2] for key in keys)
    return [] if span is None else sorted(PageId(page) for page in ids if span[0] <= page < span[1])


def render_part(part: ManifestPart) -> bytes:
    head = {"pagefold": _FORMAT, "session": part.session, "store": part.store}
    lines = [head, *map(asdict, part.entries)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def part_key(folder: str, content: bytes) -> str:
    return f"{folder}/manifest/{hashlib.sha256(content).hexdigest()}.jsonl"


def parse_part(content: bytes) -> ManifestPart:
    """Raises WireError."""
    try:
        head, *lines = (json.loads(line) for line in content.splitlines())
        if head["pagefold"] != _FORMAT:
            raise WireError(f"a manifest of format {head['pagefold']!r}: expected {_FORMAT}")
        return ManifestPart(head["session"], head["store"], tuple(map(_entry, lines)))
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"not a session's manifest: {error!r}") from error


def in_order(parts: Iterable[ManifestPart]) -> list[ManifestEntry]:
    """Returns every page once, in the order of its store; of several stores, the one that began first goes first."""
    by_store: dict[str, list[ManifestEntry]] = {}
    for part in parts:
        by_store.setdefault(part.store, []).extend(part.entries)
    stores = sorted(by_store, key=lambda store: (min(entry.first_put for entry in by_store[store]), store))
    in_turn: dict[PageId, ManifestEntry] = {}
    for store in stores:
        for entry in sorted(by_store[store], key=lambda entry: (entry.place, entry.first_put)):
            in_turn.setdefault(entry.page, entry)
    return list(in_turn.values())


def _entry(fields: dict[str, Any]) -> ManifestEntry:
    kind = PageKind(fields["kind"]) if fields["kind"] is not None else None
    page, name, length, place = (fields[key] for key in ("page", "name", "bytes", "place"))
    if not re.fullmatch("[0-9a-f]{64}", page):
        raise ValueError(f"{page!r} is no page id")
    return ManifestEntry(PageId(page), kind, str(name), int(length), float(fields["first_put"]), int(place))


def sessions_of(folders: Sequence[str]) -> list[str]:
    """Returns the sessions that folders are named after, sorted."""
    return sorted(session for session in map(session_of, folders) if session)
