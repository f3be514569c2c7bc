"""The kit that drives real agents (../shared/agents), and the programs it found on this machine."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from tests.shared import SHARED

KIT = SHARED / "agents"


FOLDER = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parent.parent.parent / ".agents").absolute()


def programs() -> dict[str, tuple[str, Path]]:
    bundled = sorted(FOLDER.glob("venv/lib/python3*/site-packages/claude_agent_sdk/_bundled/claude"))
    found = {
        "claude-code (npm)": ("claude", FOLDER / "node_modules/.bin/claude"),
        "claude-code (wheel)": ("claude", bundled[0] if bundled else FOLDER / "absent"),
        "codex": ("codex", FOLDER / "node_modules/.bin/codex"),
        "opencode": ("opencode", FOLDER / "node_modules/.bin/opencode"),
    }
    return {name: (agent, path) for name, (agent, path) in found.items() if path.exists()}


PROGRAMS = programs()


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
