"""Started by Python itself where this folder is on its path: refuses every way to another computer, and notes it.

Python tells an audit hook of each connection and look-up of a name. uvloop would do both without Python, so it is not
there, and asyncio's own loop does them.
"""

import os
import sys
from pathlib import Path

_LOG = Path(os.environ["NETWORK_GUARD_LOG"])
_HERE = ("127.", "::1", "localhost", "0.0.0.0")


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path is a socket of this computer
    else:
        return
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and not name.startswith(_HERE):
        with _LOG.open("a", encoding="utf-8") as log:
            log.write(f"{event} {name} {sys.argv}\n")
        raise PermissionError(f"{event} {name}: this run may not leave the computer")


sys.addaudithook(_refuse)
sys.modules["uvloop"] = None  # type: ignore[assignment]
