"""HTML that is built of elements: every text is escaped, and only what was built here is taken as it is."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

Child: TypeAlias = "str | int | Iterable[Child] | None"

# Shapes end themselves: inside a drawing, one that did not would hold those after it.
_VOID = frozenset(("input", "meta", "link", "br", "rect", "path", "line"))


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def el(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """One element. `class_` is class, and `_` in other names is `-`; None and False leave an attribute out."""
    told = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{told}/>" if name in _VOID else f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Child) -> Html:
    if children is None:
        return Html()
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return Html(escape(str(children)))
    return Html("".join(map(joined, children)))
