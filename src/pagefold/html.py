"""Builds HTML and SVG of elements. Every text is escaped, control and bidi characters too; only what was built here is
taken as it is."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from pagefold.printable import printable

HtmlChild: TypeAlias = "str | int | Iterable[HtmlChild] | None"

# Shapes end themselves: inside a drawing, one that did not would hold those after it.
_VOID = frozenset(("input", "meta", "link", "br", "rect", "path", "line", "circle", "polyline"))


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def el(name: str, /, *children: HtmlChild, **attributes: str | int | float | bool | None) -> Html:
    """Returns one element. `class_` is class, and `_` in other names is `-`; None and False leave an attribute out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(printable(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: HtmlChild) -> Html:
    if children is None:
        return Html()
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return Html(escape(printable(str(children))))
    return Html("".join(map(joined, children)))
