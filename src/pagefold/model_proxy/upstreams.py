"""Where requests may go: a table of upstreams by name, and which of them a request goes to.

Promises: host and scheme are those of an upstream in the table, whatever a client wrote; path and query are the
client's.
"""

from collections.abc import Mapping
from functools import lru_cache

from yarl import URL

from pagefold.model_proxy.http import Headers
from pagefold.wire.api_paths import asked_at
from pagefold.wire.apis import APIS, accounts, providers

_QUERIES = (b"", b"beta=true", b"alt=sse")
_VERSION = b"/v1"


class Upstreams:
    """The upstreams, as addresses by name. `paths` are the names of those that requests at a path, or below it, go to.

    A client that has logged in at a provider goes where the provider takes its accounts, whatever the path: its token
    is for nobody else. Other requests go by the paths that were given, then by what their path says of the API and who
    serves it, then by the paths that providers have besides, else to the first in the table. Where an upstream has no
    address there is no target.
    """

    def __init__(self, addresses: Mapping[str, str], paths: Mapping[str, str] | None = None) -> None:
        self.addresses = dict(addresses)
        self._own, self._routes = _longest_first(paths or {}), _longest_first(_provider_paths())
        self._headers = {provider.header.encode(): name for name, provider in providers().items() if provider.header}
        self._shared = {
            path.encode(): name
            for name, provider in providers().items()
            for path in provider.shared_paths
            if self.addresses.get(name)
        }
        self._accounts = {account.header.encode(): account.name for account in accounts()}
        self._default = next(iter(self.addresses), "")

    def target(self, path: bytes, query: bytes, headers: Headers) -> URL | None:
        """The address that a request goes to, or None where no upstream takes it."""
        return self.at(self.name_of(path, headers), path, query)

    def at(self, name: str, path: bytes, query: bytes) -> URL | None:
        """The address of a path at the upstream of this name, or None where that has no address."""
        address = self.addresses.get(name, "")
        path = path.removeprefix(_VERSION) if name in self._accounts.values() else path
        # Only of queries that cannot hold a key is anything remembered.
        return _cached_target(address, path, query) if query in _QUERIES else _target(address, path, query)

    def name_of(self, path: bytes, headers: Headers) -> str:
        """The name of the upstream that a request goes to; it may have no address."""
        if account := next((self._accounts[header] for header, _ in headers if header in self._accounts), ""):
            return account
        if (name := _first(self._own, path) or _asked(path) or _first(self._routes, path)) is not None:
            return name
        for route, name in self._shared.items():
            if path == route or path.startswith(route + b"/"):
                # A key must not end up with another provider, whose clients are known by a header.
                others = (self._headers.get(header) for header, _ in headers)
                return next(filter(None, others), name)
        return self._default


def _provider_paths() -> dict[str, str]:
    """The upstream of each path that a provider has."""
    found = {path: api.provider.name for path, api in APIS.items()}
    return found | {path: name for name, provider in providers().items() for path in provider.paths}


def _longest_first(paths: Mapping[str, str]) -> list[tuple[bytes, bytes, str]]:
    """Each path, how what is below it begins, and its upstream. One below another may have an upstream of its own."""
    return [(path.encode(), f"{path}/".encode(), paths[path]) for path in sorted(paths, key=len)[::-1]]


def _first(routes: list[tuple[bytes, bytes, str]], path: bytes) -> str | None:
    return next((name for route, below, name in routes if path == route or path.startswith(below)), None)


def _asked(path: bytes) -> str | None:
    asked = asked_at(path.decode("latin-1"))
    return asked.upstream if asked is not None else None


def _target(address: str, path: bytes, query: bytes) -> URL | None:
    base = URL(address)
    if not base.raw_authority:
        return None
    above = base.raw_path.rstrip("/")
    if path.startswith(b"/v1/"):  # an address may be given with the API's version or without it
        above = above.removesuffix(_VERSION.decode())
    return URL.build(
        scheme=base.scheme,
        authority=base.raw_authority,
        path=above + path.decode("ascii"),
        query_string=query.decode("ascii"),
        encoded=True,
    )


_cached_target = lru_cache(maxsize=256)(_target)
