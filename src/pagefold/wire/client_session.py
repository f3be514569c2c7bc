"""The name that a client gives its session, in the headers of a request: sub-agents and resumed sessions share it.

Claude Code and Codex write the same name into their logs. What names no session is "".
"""

import re
from collections.abc import Mapping

_HEADERS = (b"x-claude-code-session-id", b"session-id", b"session_id", b"x-session-id", b"x-session-affinity")
_NAME = re.compile(rb"[A-Za-z0-9_.:-]{8,100}")


def client_session(headers: Mapping[bytes, bytes]) -> str:
    """Returns the session's name. `headers` have lower-case names."""
    for header in _HEADERS:
        name = headers.get(header)
        if name is not None and _NAME.fullmatch(name):
            return name.decode()
    return ""
