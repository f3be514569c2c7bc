"""Says whether a request may come in, for both proxies and the dashboard: by its Host, its Origin and its token.

A web page in the user's browser reaches a port of this machine too. It cannot choose the Host and Origin that the
browser sends, so a name that is not this machine's (DNS rebinding), or an origin other than the server's own, is
refused on every path. No answer of ours allows another origin (CORS), so asking for that is refused as well.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pagefold.loopback import is_loopback_url

TOKEN_HEADER = b"x-pagefold-token"
FOREIGN = "pagefold answers neither web pages of other origins nor requests for another host"
_MOST = 400  # bytes of a token that are compared


@dataclass(frozen=True, slots=True)
class Door:
    """With `local` the server listens on loopback alone, and the Host has to be a name of this machine. An empty token
    asks for none."""

    local: bool = True
    token: str = ""

    def is_foreign(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the request was sent by a web page of another origin, or for another host."""
        host = headers.get(b"host", b"")
        if self.local and not is_loopback_url(f"//{host.decode('latin-1')}"):
            return True
        if b"origin" in headers and _place(headers[b"origin"]) != host.lower():
            return True
        # A link on another site may open a page; its scripts, images and frames may not.
        elsewhere = headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
        return elsewhere and headers.get(b"sec-fetch-mode") != b"navigate"

    def lets_in(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the request shows the token."""
        shown = headers.get(TOKEN_HEADER, b"")[:_MOST]
        return not self.token or hmac.compare_digest(shown, self.token.encode())


def _place(origin: bytes) -> bytes:
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower().encode("latin-1")
    except ValueError:
        return b""
