"""Every snippet of a page works: Python runs, settings load, JSON and YAML parse."""

import ast
import gc
import json
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from pagefold import config
from pagefold.errors import ConfigError
from tests.docs.pages import NAMES, ROOT, blocks

REQUEST = {"model": "claude-opus-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
GIVEN: dict[str, dict[str, Any]] = {
    "docs/codecs.md": {"text": "1\tone\n2\ttwo\n" * 40},
    "docs/trim.md": {"text": "a line of a log\n" * 2_000, "task": "mend the log"},
    "docs/provider.md": {"body": json.dumps(REQUEST).encode()},
}
"""What a page takes for granted."""
PRELUDE = {
    "docs/extending.md": (
        "import re\nfrom dataclasses import dataclass\n"
        "from pagefold.encode.codec import Codec, Inner, common_prefix\n"
        "from pagefold.settings.rules import number, setting\n"
    )
}
"""What its snippets import at the top of the files they are parts of."""
ELSEWHERE = {"tests/derive/test_extending.py": "class Newest("}
"""Snippets that another test compares and runs."""
FRAMEWORKS = {"create_agent", "Agent", "ClaudeAgentOptions", "litellm", "httpx"}
"""Names of frameworks that the development environment does not have; `make integrations` runs those examples."""


def python(name: str) -> list[str]:
    return [block.text for block in blocks(ROOT / name) if block.language == "python"]


def framework_is_missing(error: Exception) -> bool:
    if isinstance(error, ImportError):
        return not str(error.name).startswith("pagefold")
    return getattr(error, "name", "") in FRAMEWORKS or "is not installed here" in str(error)


def missing_names(code: str) -> list[str]:
    """Names that a snippet imports from pagefold and that are not there, where it cannot be run."""
    wanted = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pagefold")
        for alias in node.names
    ]
    sources = {module: ROOT / "src" / f"{module.replace('.', '/')}" for module, _ in wanted if module}
    texts = {
        module: path.with_suffix(".py").read_text() if path.with_suffix(".py").is_file() else ""
        for module, path in sources.items()
    }
    return [f"{module}.{one}" for module, one in wanted if module and f" {one}" not in texts[module]]


@pytest.mark.parametrize("name", [name for name in NAMES if python(name)])
def test_every_python_snippet_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "AGENTS.md").write_text("Never push to main.")
    names: dict[str, Any] = {"__name__": "snippet", **GIVEN.get(name, {})}
    exec(PRELUDE.get(name, ""), names)
    for code in python(name):
        if any(mark in code for mark in ELSEWHERE.values()):
            continue
        if "async for" in code:  # of a framework, inside a function of the reader's
            assert missing_names(code) == []
            continue
        try:
            exec(compile(code, name, "exec"), names)
        except (ImportError, NameError, ConfigError) as error:
            if not framework_is_missing(error):
                raise
            assert missing_names(code) == []
    names.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a snippet need not close what it opens
        gc.collect()


def test_snippets_that_another_test_compares_are_there() -> None:
    for file, mark in ELSEWHERE.items():
        assert mark in (ROOT / file).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_snippet_of_settings_loads(name: str, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(ROOT / name)):
        if block.language == "toml":
            tomllib.loads(block.text)
            file = tmp_path / f"{number}.toml"
            file.write_text(block.text)
            config.load({"config": str(file)}, {"HOME": str(tmp_path)}, tmp_path)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language in ("yaml", "yml"):
            assert yaml.safe_load(block.text)
