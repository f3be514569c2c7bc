"""What the referee knows of models: the table in `models.toml`, by the name that a request gives."""

import re
from collections.abc import Sequence
from functools import lru_cache

from pagefold.frozen import frozen
from pagefold.package_data import package_toml

_TABLE = package_toml("pagefold.provider", "models.toml")

BETAS: frozenset[str] = frozenset(beta for betas in _TABLE["betas"].values() for beta in betas)
"""Values of the `anthropic-beta` header that the API takes."""


@frozen
class ClaudeModel:
    """One row of the table; the file says what its columns mean."""

    match: str
    prefix_check: bool
    thinking: Sequence[str]
    thinks: str
    reads: str
    keeps: bool
    window: int
    output: int
    cacheable: int
    strict: bool
    system_turns: bool


@frozen
class OpenaiModel:
    """One row of the table for OpenAI."""

    match: str
    breakpoints: bool
    reasons: bool
    keeps: bool
    window: int
    cacheable: int


@frozen
class GeminiModel:
    """One row of the table for Gemini."""

    match: str
    signs: bool
    window: int
    cacheable: int


_GEMINI = [GeminiModel(**row) for row in _TABLE["gemini"]]
_OPENAI = [OpenaiModel(**row) for row in _TABLE["openai"]]
_CLAUDE = [ClaudeModel(**row) for row in _TABLE["claude"]]


@lru_cache(maxsize=500)
def claude_model(name: str) -> ClaudeModel | None:
    """The row of a model; None for a name that is no Claude model."""
    return next((row for row in _CLAUDE if re.search(row.match, name)), None)


@lru_cache(maxsize=2000)
def reads_thinking(reader: str, maker: str) -> bool:
    """Whether one model reads thinking that another (or the same) made."""
    row = claude_model(reader)
    if row is None or reader == maker or claude_model(maker) is row:
        return True
    return re.search(row.reads, maker) is not None or maker.startswith("claude-haiku-5-5")


@lru_cache(maxsize=500)
def openai_model(name: str) -> OpenaiModel | None:
    """The row of a model; None for a name that is no model of OpenAI."""
    return next((row for row in _OPENAI if re.search(row.match, name)), None)


@lru_cache(maxsize=500)
def gemini_model(name: str) -> GeminiModel | None:
    """The row of a model; None for a name that is no model of Gemini."""
    return next((row for row in _GEMINI if re.search(row.match, name)), None)
