"""Virtual memory for the context of LLM agents. Everything an agent reads is a page."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagefold.context import Context

__all__ = ["Context", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Whoever only asks for the version does not pay for the rest.
    if name == "Context":
        from pagefold.context import Context  # noqa: PLC0415

        return Context
    raise AttributeError(f"module 'pagefold' has no attribute {name!r}")
