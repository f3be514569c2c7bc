"""Looks who listens on a port of this computer: another pagefold, something else, or nobody."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

from pagefold.loopback import is_loopback_url

_SECONDS = 1.0


def is_free(port: int) -> bool:
    """Whether something could listen on this port now; 0 is any that is free."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def is_open_pagefold(port: int) -> bool:
    """Whether a pagefold serves there that asks for no token."""
    answer = _asked(port, "/pagefold/live")
    return answer.get("program") == "pagefold" and not answer.get("token")


def is_pagefold_address(address: str, usual: int) -> bool:
    """Whether an address is a pagefold's on this computer: one serves there, or nobody listens and the port is the
    usual one."""
    port = port_here(address)
    if not port:
        return False
    return is_pagefold(port) or (port == usual and is_free(port))


def port_here(address: str) -> int:
    """The port of an address of this computer; 0 where it is another's, or names none."""
    try:
        return (urlsplit(address).port or 0) if is_loopback_url(address) else 0
    except ValueError:  # a port that is none
        return 0


def shown_address(address: str) -> str:
    """An address as people may see it: without the user and the password that it may name."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that cannot be read"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def is_pagefold(port: int) -> bool:
    """Whether a pagefold serves there, with a token or without."""
    return _asked(port, "/pagefold/live").get("program") == "pagefold"


def requests_at(port: int) -> int | None:
    """How many requests the pagefold that serves there has seen; None where it does not say."""
    return _asked(port, "/pagefold/status").get("requests")


def _asked(port: int, path: str) -> dict[str, Any]:
    """What is answered there, where that is an object of JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return answer if isinstance(answer, dict) else {}
