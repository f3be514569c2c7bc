"""Looks who listens on a port of this computer: another pagefold, something else, or nobody."""

import http.client
import json
import socket

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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/pagefold/live")
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(answer, dict) and answer.get("program") == "pagefold" and not answer.get("token")
