"""Virtual memory for the context of LLM agents. Everything an agent reads is a page."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagefold.context import Context
    from pagefold.integrations.http_client import wrap
    from pagefold.stateless import Deriver, derive

__all__ = ["Context", "Deriver", "__version__", "derive", "wrap"]

__version__ = "0.1.0"

# Whoever only asks for the version does not pay for the rest.
_FROM = {"Context": "context", "Deriver": "stateless", "wrap": "integrations.http_client"}


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(import_module(f"pagefold.{_FROM[name]}"), name)
    raise AttributeError(f"module 'pagefold' has no attribute {name!r}")


class _CallablePackage(ModuleType):
    """The package `pagefold.derive`, which holds the pure core, is also the function `pagefold.derive`: one name can
    only be one thing, so the package can be called. See `stateless.derive`."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return import_module("pagefold.stateless").derive(*given, **named)


import_module("pagefold.derive").__class__ = _CallablePackage
