"""Scans JSON into nodes that know where they stand in the text, also where the text breaks off.

A node is a range of the text, so values keep their spelling. What was open where the text ended is closed there and
marked as not whole. What follows the value, or cannot be JSON, is left to the caller.
"""

import re
from dataclasses import dataclass, field

from pagefold.encode.notation.json_value import scan_string

_SPACE = re.compile(r"[ \t\r\n]*")
_ATOM = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity")
_DEEP = 100
_MOSTLY = 0.5  # of a text that has to be JSON for it to be cut as JSON


@dataclass(slots=True)
class Node:
    """A value from `start` up to `end`. `begin` is where its key begins, or `start` where it has no key."""

    kind: str  # "{", "[", '"' or "0"
    begin: int
    start: int
    end: int
    key: str | None = None
    whole: bool = True
    children: list["Node"] = field(default_factory=list)


class _Broken(Exception):  # noqa: N818 - the text ended or stopped being JSON: no error, but where reading ends
    pass


def scan(text: str) -> Node | None:
    """Returns the object or list that a text is or begins with; None where it begins with neither."""
    at = _skip(text, 0)
    if text[at : at + 1] not in ("{", "["):
        return None
    scanner = _Scanner(text)
    try:
        return scanner.value(at, at, None, 0)
    except _Broken:
        root = scanner.closed()
    return root if root is not None and root.children else None


def scan_mostly_json(text: str) -> Node | None:
    """Does the same for a text of which at least half is JSON; returns None for others."""
    root = scan(text)
    return root if root is not None and root.end >= _MOSTLY * len(text) else None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[Node] = []

    def value(self, begin: int, at: int, key: str | None, depth: int) -> Node:
        sign = self.text[at : at + 1]
        if sign in ("{", "[") and depth < _DEEP:
            return self._container(Node(sign, begin, at, at + 1, key), depth)
        if sign == '"':
            return Node('"', begin, at, self._string(at)[1], key)
        atom = _ATOM.match(self.text, at)
        # A number that the text ends with may have been cut off: it is not shown as if it were whole.
        if atom is None or atom.end() == len(self.text):
            raise _Broken
        return Node("0", begin, at, atom.end(), key)

    def _container(self, node: Node, depth: int) -> Node:
        self.open.append(node)
        close = "}" if node.kind == "{" else "]"
        at = _skip(self.text, node.start + 1)
        if self.text[at : at + 1] != close:
            while True:
                child = self._child(node, at, depth)
                node.children.append(child)
                node.end = child.end
                at = _skip(self.text, child.end)
                if self.text[at : at + 1] != ",":
                    break
                at = _skip(self.text, at + 1)
            if self.text[at : at + 1] != close:
                raise _Broken
        node.end = at + 1
        self.open.pop()
        return node

    def _child(self, node: Node, at: int, depth: int) -> Node:
        if node.kind == "[":
            return self.value(at, at, None, depth + 1)
        key, end = self._string(at)
        colon = _skip(self.text, end)
        if self.text[colon : colon + 1] != ":":
            raise _Broken
        return self.value(at, _skip(self.text, colon + 1), key, depth + 1)

    def _string(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] != '"':
            raise _Broken
        try:
            text, end = scan_string(self.text, at + 1, False)
        except ValueError as error:
            raise _Broken from error
        return text, end

    def closed(self) -> Node | None:
        """What was open, closed where reading stopped: each holds the one that was open within it."""
        while self.open:
            node = self.open.pop()
            node.whole = False
            if not self.open:
                return node
            if node.children:
                self.open[-1].children.append(node)
                self.open[-1].end = node.end
        return None


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at
