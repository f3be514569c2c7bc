"""A session of OpenCode without its thinking, as a copy under ids of its own.

Thinking that was made behind pagefold is bound to what pagefold sent. OpenCode sends it back unchanged when it goes on
without pagefold, and today's models refuse that. The copy holds everything else, so it can go on anywhere. OpenCode
keeps what it has of a session that it imports again; therefore the ids are new, and the same for the same session.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.transcripts.opencode import looks_like

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"((?:ses|msg|prt)_[0-9a-f]{12})([0-9A-Za-z]{14})")
"""An id of OpenCode: its kind and time, by which it is ordered, and random characters."""


def without_thinking(text: str) -> tuple[str, str, int]:
    """Returns what `opencode export` printed without thinking, the id of that session, and how much thinking it had.

    Raises WireError where it is no such text."""
    session = json_text.parse(text)
    if not looks_like(session) or not isinstance(session["info"].get("id"), str):
        raise WireError("expected what `opencode export` prints")
    left = 0
    for message in session["messages"]:
        parts = message.get("parts") if isinstance(message, dict) else None
        if not isinstance(parts, list) or not isinstance(message.get("info"), dict):
            raise WireError("a message of OpenCode has parts and info")
        kept = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "reasoning")]
        left += len(parts) - len(kept)
        message["parts"] = kept
    ids = {id: _renewed(id) for id in _own_ids(session)}
    return json_text.dumps(_replaced(session, ids)), ids[session["info"]["id"]], left


def _own_ids(session: Mapping[str, Any]) -> list[str]:
    owners = [session["info"]]
    for message in session["messages"]:
        owners += [message["info"], *message["parts"]]
    return [str(owner["id"]) for owner in owners if isinstance(owner, dict) and "id" in owner]


def _renewed(id: str) -> str:
    parts = _ID.fullmatch(id)
    if parts is None:
        raise WireError(f"{id[:60]!r}: expected an id of OpenCode, such as ses_ and 26 characters")
    digest = hashlib.sha256(id.encode()).digest()
    return parts[1] + "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:14])


def _replaced(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(member, ids) for key, member in value.items()}
    if isinstance(value, list):
        return [_replaced(member, ids) for member in value]
    return ids.get(value, value) if isinstance(value, str) else value
