"""`pagefold statusline`: prints the line that Claude Code shows below its prompt.

Claude Code runs it once `pagefold init claude-code --statusline` was run: it reads the client's JSON from standard
input and asks the model proxy that the session uses. The line says how much of the window is used, what was saved in
this session, for how long the provider's cache stays warm, and when and why the next fold comes. It never fails:
without a proxy it says so.

Examples:
  pagefold init claude-code --statusline
  echo '{}' | pagefold statusline
"""

import argparse
import json
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pagefold.wire import claude_status, json_text

_SECONDS = 0.5
_PORT = 8377


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, metavar="N", help="the proxy's port (default: ANTHROPIC_BASE_URL's, 8377)")


def run(options: argparse.Namespace) -> int:
    """The exit code is always 0: Claude Code shows nothing for a program that fails."""
    status = claude_status.parse(json_text.text_of(sys.stdin.buffer.read()))
    sessions = _sessions(options.port or _port())
    session = claude_status.session_of(status, sessions or ())
    said = claude_status.line(status, session, reached=sessions is not None, now=time.time())
    print(json.dumps({"line": said, "session": session}) if options.json else said)
    return 0


def _port() -> int:
    """The port of this computer to which Claude Code sends its requests, or the proxy's usual one."""
    from pagefold.config.computer import process_environment

    address = process_environment({}).get("ANTHROPIC_BASE_URL", "")
    with suppress(ValueError):  # an address that is none
        parts = urlsplit(address)
        if parts.hostname in ("127.0.0.1", "localhost") and parts.port:
            return parts.port
    return _PORT


def _sessions(port: int) -> list[dict[str, Any]] | None:
    """The sessions of the proxy there, the newest first; None where none answers."""
    try:
        # By hand, because importing an HTTP client takes longer than all of the rest.
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
            connection.sendall(b"GET /pagefold/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(partial(connection.recv, 1 << 16), b""))
        told = json.loads(answer.partition(b"\r\n\r\n")[2])
    except (OSError, ValueError):
        return None
    listed = told.get("sessions") if isinstance(told, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else None
