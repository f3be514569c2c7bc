"""The kit that drives real agents (../shared/agents), and the programs it found on this machine."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shared import SHARED

KIT = SHARED / "agents"


FOLDER = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parent.parent.parent / ".agents").absolute()


def programs() -> dict[str, tuple[str, Path]]:
    placed = {
        "claude-code": ("claude", FOLDER / "node_modules/.bin/claude"),
        "claude-code (older)": ("claude", FOLDER / "older/node_modules/.bin/claude"),
        "codex": ("codex", FOLDER / "node_modules/.bin/codex"),
        "opencode": ("opencode", FOLDER / "node_modules/.bin/opencode"),
    }
    return {name: (agent, path) for name, (agent, path) in placed.items() if path.exists()}


PROGRAMS = programs()
"""The agents that are installed here: what drives each of them, and its program."""
CLAUDES = ("claude-code", "claude-code (older)")


def program_of(name: str) -> Path:
    """An agent's program; the test is skipped where it is not installed."""
    if name not in PROGRAMS:
        pytest.skip(f"no {name} in {FOLDER}: run `make agents`, or set AGENTS_DIR")
    return PROGRAMS[name][1]


def kit(name: str) -> Any:
    """A module of the kit."""
    spec = importlib.util.spec_from_file_location(f"kit_{name}", KIT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def answers_in(model: Any) -> list[Any]:
    """The requests of the conversation itself."""
    return [one for one in model.requests if one["api"] in ("anthropic", "chat", "responses") and not one.get("side")]
