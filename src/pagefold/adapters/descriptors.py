"""How many files and sockets this process may have open: raised as far as the system lets it, and respected."""

from contextlib import suppress
from types import ModuleType

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

_WANTED = 65_536
_WITHOUT_LIMITS = 2_048
_OWN = 48  # of the process itself: files of the store, the event loop, libraries
_MOST = 10_000
_LEAST = 4


def raise_limit() -> int:
    """Raises the soft limit as far as the hard one, and returns what may be open now."""
    if resource is None:
        return _WITHOUT_LIMITS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft == resource.RLIM_INFINITY:
        return _WANTED
    if wanted > soft:
        with suppress(ValueError, OSError):  # some systems have a lower bound of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def most_connections(descriptors: int) -> int:
    """How many clients can be served with so many descriptors: each needs one, and another for its upstream."""
    return max(_LEAST, min(_MOST, (descriptors - _OWN) // 2))
