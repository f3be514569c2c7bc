"""Decides which requests the dashboard answers: those that show its key and do not come from another web site.

The key is `serve.token` if that is set, else one that is made once and kept beside the store, where only its owner can
read it: other users of the machine can reach a loopback port too. A browser shows it once as `?key=…` and then has a
cookie; programs send it in the header `x-pagefold-token` or as a bearer token. Requests of other sites carry a foreign
Host or Origin and are refused, so that such a site can neither read nor frame the dashboard.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pagefold.adapters.private_files import make_private
from pagefold.door import Door
from pagefold.errors import StoreError

COOKIE = "pagefold_key"
_KEY_BYTES = 24
_MOST = 200


def key_in(path: Path) -> str:
    """Returns the dashboard's key in this file, and makes it if there is none. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            make_private(path)
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
    """Checks requests against the key. With `local`, the Host of a request must be a name of this machine."""

    key: str
    local: bool = True

    @property
    def cookie(self) -> str:
        """The cookie's value: a hash of the key, because browsers send cookies to every port of a machine."""
        return hmac.new(self.key.encode(), b"pagefold dashboard", hashlib.sha256).hexdigest()

    def is_foreign(self, headers: Mapping[bytes, bytes]) -> bool:
        """Returns whether another web site sent this request through the user's browser."""
        return Door(self.local).is_foreign(headers)

    def lets_in(self, headers: Mapping[bytes, bytes]) -> bool:
        key = headers.get(b"x-pagefold-token", b"")
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            key = key or bearer.strip()
        return self.fits(key) or hmac.compare_digest(_cookie(headers).encode(), self.cookie.encode())

    def fits(self, key: bytes) -> bool:
        return hmac.compare_digest(key[:_MOST], self.key.encode())


def _cookie(headers: Mapping[bytes, bytes]) -> str:
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
