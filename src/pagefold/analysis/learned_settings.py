"""Writes learned settings into a settings file, between two marks, in place of those that were learned before.

Everything outside the marks is the user's own and stays as it is, byte for byte.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields

from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.values import Priors
from pagefold.errors import ConfigError
from pagefold.settings.toml_text import toml_key, toml_value
from pagefold.settings.tools import FollowUpLink

BEGIN = "# ---- learned by pagefold tune: begin (replaced when it learns anew) ----"
END = "# ---- learned by pagefold tune: end ----"
_TABLES = ("values", "lasting", "folds", "references", "learned")
_FOLDS = {"miss": "miss_tokens", "least": "least_tokens", "cold": "cold_tokens", "horizon": "horizon_turns"}


def learned_lines(learned: Learned, links: Mapping[str, tuple[FollowUpLink, ...]]) -> str:
    """Returns the tables that differ from the shipped settings, as TOML; an empty text where nothing does."""
    lines = [*_values(learned), *_lasting(learned), *_folds(learned), *_references(learned), *_tools(learned, links)]
    return "\n".join([BEGIN, *lines, END, ""]) if lines else ""


def with_learned(text: str, block: str) -> str:
    """Returns a settings file with this block in place of its old one.

    Raises ConfigError where the user has such tables outside the marks.
    """
    before, mark, rest = text.partition(BEGIN)
    if mark:
        _, ended, after = rest.partition(END)
        if not ended:
            raise ConfigError(f"the file has the line {BEGIN!r} but not {END!r}: restore or remove both")
        after = after.removeprefix("\n")
    else:
        after = ""
    own = before.rstrip("\n") + ("\n\n" if before.strip() and after.strip() else "\n" if before.strip() else "") + after
    try:
        clash = [name for name in _TABLES if name in tomllib.loads(own)]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the file is not valid TOML: {error}") from error
    if clash:
        raise ConfigError(
            f"the file sets {', '.join(clash)} outside what tune wrote: take it out, or choose another -o"
        )
    if not block:
        return own
    return f"{own}\n{block}" if own.strip() else block


def _values(learned: Learned) -> Iterator[str]:
    if learned.priors != SHIPPED.priors:
        yield "[values]"
        yield from (f"{item.name} = {getattr(learned.priors, item.name)}" for item in fields(Priors))


def _lasting(learned: Learned) -> Iterator[str]:
    if learned.lasting != SHIPPED.lasting:
        yield "[lasting]"
        yield f"left = {list(learned.lasting.left)}"


def _folds(learned: Learned) -> Iterator[str]:
    if learned.folds != SHIPPED.folds:
        yield "[folds]"
        for item in fields(learned.folds):
            value = getattr(learned.folds, item.name)
            if value != getattr(SHIPPED.folds, item.name):
                yield f"{_FOLDS.get(item.name, item.name)} = {value}"


def _references(learned: Learned) -> Iterator[str]:
    if learned.forms.floor != SHIPPED.forms.floor:
        yield "[references]"
        yield f"floor_tokens = {learned.forms.floor}"


def _tools(learned: Learned, links: Mapping[str, tuple[FollowUpLink, ...]]) -> Iterator[str]:
    without = dict(learned.forms.without)
    for tool in sorted({*without, *links}):
        yield f"[{toml_key(('learned', tool))}]"
        if tool in without:
            yield f"without = {toml_value(tuple(sorted(without[tool])))}"
        if tool in links:
            yield "follow_up = ["
            yield from (f"  {toml_value(link)}," for link in links[tool])
            yield "]"
