"""Where requests may go: a table of upstreams by name, and which of them a request goes to.

Promises: host and scheme are those of an upstream in the table, whatever a client wrote; path and query are the
client's.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from yarl import URL

from pagefold.model_proxy.http import Headers
from pagefold.wire.apis import APIS, accounts, providers

_QUERIES = (b"", b"beta=true")
_VERSION = b"/v1"


class Upstreams:
    """The upstreams, as addresses by name. `paths` are the names of those that requests at a path, or below it, go to.

    A client that has logged in at a provider goes where the provider takes its accounts, whatever the path: its token
    is for nobody else. Other requests go by their API to the upstream of its provider, then by the paths that providers
    have besides, else to the first in the table. Where an upstream has no address there is no target.
    """

    def __init__(self, addresses: Mapping[str, str], paths: Mapping[str, str] | None = None) -> None:
        self.addresses = dict(addresses)
        routes = {**{path: name for name, path in _provider_paths()}, **(paths or {})}
        # The longest path first: one below another may have an upstream of its own.
        self._routes = [(path.encode(), f"{path}/".encode(), routes[path]) for path in sorted(routes, key=len)[::-1]]
        self._headers = {provider.header.encode(): name for name, provider in providers().items() if provider.header}
        self._shared = {
            path.encode(): name
            for name, provider in providers().items()
            for path in provider.shared_paths
            if self.addresses.get(name)
        }
        self._accounts = {account.header.encode(): account.name for account in accounts()}
        self._default = next(iter(self.addresses.values()), "")

    def target(self, path: bytes, query: bytes, headers: Headers) -> URL | None:
        """The address that a request goes to, or None where no upstream takes it."""
        if account := next((self._accounts[header] for header, _ in headers if header in self._accounts), ""):
            address, path = self.addresses.get(account, ""), path.removeprefix(_VERSION)
        else:
            address = self._address(path, headers)
        # Only of queries that cannot hold a key is anything remembered.
        return _cached_target(address, path, query) if query in _QUERIES else _target(address, path, query)

    def _address(self, path: bytes, headers: Headers) -> str:
        for route, below, name in self._routes:
            if path == route or path.startswith(below):
                return self.addresses.get(name, "")
        for route, name in self._shared.items():
            if path == route or path.startswith(route + b"/"):
                # A key must not end up with another provider, whose clients are known by a header.
                others = (self._headers.get(header) for header, _ in headers)
                return self.addresses.get(next(filter(None, others), name), "")
        return self._default


def _provider_paths() -> Iterator[tuple[str, str]]:
    for path, api in APIS.items():
        yield api.provider.name, path
    for name, provider in providers().items():
        for path in provider.paths:
            yield name, path


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
