"""Loops over words that a script itself lists, as the commands that they run one after another.

Refused are loops over what only the shell knows (patterns, variables of others, output of commands), loops that may end
early or hold other blocks, and loops whose output or input goes elsewhere as a whole.
"""

import re
from collections.abc import Collection, Sequence
from itertools import takewhile

_MOST_TURNS, _MOST_TOKENS = 40, 4_000
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_ONLY_THE_SHELL_KNOWS = re.compile(r"[*?\[\]{}`()]|\$(?!\w)|\A\$\w+\Z")  # a variable may hold several words
_NO_PLAIN_BODY = frozenset(("break", "continue", "exit", "return", "if", "while", "until", "for", "case", "select"))
_ENDS_A_COMMAND = frozenset((";", "&&"))
_HARMLESS = (["2", ">", "/dev/null"], ["2", ">&", "1"])  # where messages go does not matter


def unrolled(tokens: Sequence[str], refused: Collection[str]) -> list[str]:
    """The tokens of a script with its plain loops written out. A loop is left as it is that holds a `refused` token."""
    made: list[str] = []
    at = 0
    while at < len(tokens):
        turns, behind = _turns(tokens, at, made[-1] if made else ";", refused)
        if turns and len(made) + len(turns) <= _MOST_TOKENS:
            made += turns
            at = behind
        else:
            made.append(tokens[at])
            at += 1
    return made


def _turns(tokens: Sequence[str], at: int, before: str, refused: Collection[str]) -> tuple[list[str], int]:
    """The turns of the loop that begins at an index, and the index behind it; nothing where there is none to write
    out. Behind `&&` all of it stands behind `&&`: it runs only if what is before it went well."""
    if tokens[at] != "for" or before not in _ENDS_A_COMMAND or tokens[at + 2 : at + 3] != ["in"]:
        return [], at
    name, words = tokens[at + 1], list(takewhile(lambda word: word != ";", tokens[at + 3 :]))
    begin = at + 3 + len(words)
    while tokens[begin : begin + 1] == [";"]:
        begin += 1
    if tokens[begin : begin + 1] != ["do"] or "done" not in tokens[begin:]:
        return [], at
    end = tokens.index("done", begin)
    body = list(tokens[begin + 1 : end])
    while body[:1] == [";"]:
        body = body[1:]
    while body[-1:] == [";"]:
        body = body[:-1]
    behind = end + 1
    while tokens[behind : behind + 3] in _HARMLESS:
        behind += 3
    is_plain = _NAME.match(name) and body and not {*body} & {*_NO_PLAIN_BODY, *refused, "for", "&", "|&"}
    listed = 0 < len(words) <= _MOST_TURNS and not any(_ONLY_THE_SHELL_KNOWS.search(word) for word in words)
    if not is_plain or not listed or tokens[behind : behind + 1] not in ([], [";"], ["&&"]):
        return [], at
    if before == "&&":
        body = ["&&" if part == ";" else part for part in body]
    turns = [token for word in words for token in (before, f"{name}={word}", *body)]
    return turns[1:], behind
