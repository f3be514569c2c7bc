"""Who is let in: whoever shows the key, from this machine.

The key is `serve.token` where that is set, and otherwise one that is made once and kept beside the store, readable by
its owner alone: other users of the machine can reach a loopback port too. It is shown as `?key=…` once, after which a
cookie stands for it, or in the header `x-pagefold-token`, or as a bearer. A page of another site can neither read nor
frame anything here: its requests come under another name or say where they are from, and are refused.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pagefold.errors import StoreError
from pagefold.loopback import is_loopback_url

COOKIE = "pagefold_key"
_KEY_BYTES = 24
_MOST = 200


def key_in(path: Path) -> str:
    """Returns the dashboard's key in this file; it is made where there is none. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_text(encoding="ascii", errors="replace").strip()
            if key:
                return key
            made = os.open(path, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(made, "w", encoding="ascii") as file:
            key = secrets.token_urlsafe(_KEY_BYTES)
            file.write(key)
            return key
    except OSError as error:
        raise StoreError(f"the key {path} cannot be made or read ({error.strerror})") from error


@dataclass(frozen=True, slots=True)
class DashboardAuth:
    """`local`: only names of this machine are answered to."""

    key: str
    local: bool = True

    @property
    def cookie(self) -> str:
        """What stands for the key in a browser: cookies go to every port of a machine, the key itself does not."""
        return hmac.new(self.key.encode(), b"pagefold dashboard", hashlib.sha256).hexdigest()

    def is_foreign(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether another site is asking, through the browser of somebody who is let in."""
        host = headers.get(b"host", b"").decode("latin-1")
        if self.local and not is_loopback_url(f"//{host}"):
            return True
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and urlsplit(origin).netloc != host:
            return True
        site = headers.get(b"sec-fetch-site", b"none")
        # A link from elsewhere may open a page; nothing else of another site may ask.
        return site in (b"cross-site", b"same-site") and headers.get(b"sec-fetch-mode") != b"navigate"

    def lets_in(self, headers: Mapping[bytes, bytes]) -> bool:
        shown = headers.get(b"x-pagefold-token", b"")
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            shown = shown or bearer.strip()
        return self.fits(shown) or _same(_cookie(headers).encode(), self.cookie.encode())

    def fits(self, key: bytes) -> bool:
        return _same(key[:_MOST], self.key.encode())


def _same(one: bytes, other: bytes) -> bool:
    return hmac.compare_digest(one, other)


def _cookie(headers: Mapping[bytes, bytes]) -> str:
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
