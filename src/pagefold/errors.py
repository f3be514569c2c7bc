"""One root and five kinds of error, told apart by what the caller does next.

A mistake of pagefold itself is an `assert` or a built-in error and belongs to none of these.
"""


class PagefoldError(Exception):
    """Root of everything this package raises on purpose."""


class WireError(PagefoldError):
    """Bytes are not what they claim to be. The caller passes them on untouched."""


class ConfigError(PagefoldError):
    """The user has to change something: the message names the place, the value and what would do. Exit code 2."""


class UpstreamError(PagefoldError):
    """The other side failed or refused. The caller relays `status` as it came."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class StoreError(PagefoldError):
    """The store cannot be used. The message names the file and what to do; the caller goes on without it.

    `kind` is one word for what is wrong, by which errors are counted: "locked", "full", "damaged" and others.
    """

    def __init__(self, message: str, *, kind: str = "failed") -> None:
        super().__init__(message)
        self.kind = kind


class DeniedError(StoreError):
    """The store refuses us: trying again with the same key will not help."""


class RecallError(PagefoldError):
    """What an agent asked to be recalled cannot be given as asked. The message is for the agent, and final."""


class WindowError(PagefoldError):
    """What always has to stay is more than the window holds. The caller takes a larger window, or says less."""
