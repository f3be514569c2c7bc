"""Every command that a page shows exists as it is shown: parsed by the real parser, with targets, files and options."""

import importlib
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagefold import cli
from pagefold.settings.knobs import KNOBS
from tests.docs.pages import NAMES, ROOT, blocks, commands, inline

OTHERS = {"cat", "cd", "claude", "codex", "curl", "export", "kill", "opencode", "source", "git", "psql", "pg_dump"}
"""Programs of others that pages may show."""
PRINTED = {"", "text"}
_OURS = re.compile(rf"(?:\$ )?(?:pagefold ({'|'.join(cli.COMMANDS)})|make|python3? -m bench\.\w+|python3? bench/\w+)\s")
_INCOMPLETE = ("the following arguments are required", "expected one argument", "expected at least one argument")
MAKE = (ROOT / "Makefile").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def shown(page: Path) -> Iterator[tuple[list[str], bool]]:
    """The commands of a page: all of its scripts, those of ours in what is printed, and those that sentences mention,
    which may be a command's beginning."""
    for block in blocks(page):
        if block.language == "sh":
            yield from ((words, False) for words in commands(block.text))
        elif block.language in PRINTED:
            lines = [line for line in block.text.splitlines() if _OURS.match(f"{line} ") and "[OPTIONS]" not in line]
            for line in lines:
                yield from ((words, False) for words in commands(re.split(r"\s{2,}", line)[0]))
    for code in inline(page):
        if re.match(r"(pagefold|make|python -m bench\.\w+)( |$)", code) and not re.search(r"…|\.\.\.", code):
            yield from ((words, True) for words in commands(code))


def wrong(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with a command, or nothing."""
    # Brackets are what may be left out, and one letter is any number.
    words = ["1" if word == "N" else word for word in map(_without_brackets, words)]
    match words:
        case ["pagefold", *rest]:
            return _refused(rest, capsys)
        case ["make", *targets]:
            names = [word for word in targets if "=" not in word]
            missing = [name for name in names if not re.search(rf"^{re.escape(name)}:", MAKE, re.M)]
            return f"no target {missing}" if missing else ""
        case ["python" | "python3", "-m", module, *rest] if module.startswith("bench."):
            return _unknown_options(ROOT / f"{module.replace('.', '/')}.py", rest)
        case ["python" | "python3" | ".venv/bin/python", script, *rest] if "/" in script:
            return _unknown_options(ROOT / script, rest)
        case ["python" | "python3", *_]:
            return ""
        case ["pip", "install", what]:
            extra = re.fullmatch(r"pagefold\[(\w+)\]", what)
            return "" if what == "." or (extra and extra[1] in EXTRAS) else f"no extra {what}"
        case [program, *_] if program in OTHERS or shutil.which(program) is None:
            return "" if program in OTHERS else f"unknown program {program}"
    return ""


def _without_brackets(word: str) -> str:
    return word if "[" in word[1:] else word.removeprefix("[").removesuffix("]")


def _refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    if words and words[0] not in cli.COMMANDS:
        return "" if words[0].startswith("-") or words == ["COMMAND"] else f"no command {words[0]}"
    try:
        cli.parser(words[0] if words else None).parse_args(words or ["--help"])
    except SystemExit as ended:
        return capsys.readouterr().err if ended.code else ""
    return ""


def _unknown_options(file: Path, words: list[str]) -> str:
    files = [file] if file.is_file() else list(file.with_suffix("").glob("*.py"))
    if not files:
        return f"no file {file.name}"
    said = "".join(one.read_text(encoding="utf-8") for one in files)
    unknown = [word for word in words if word.startswith("--") and f'"{word.partition("=")[0]}"' not in said]
    return f"{file.name} has no {unknown}" if unknown else ""


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_a_page_shows_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for words, mentioned in shown(ROOT / name):
        said = wrong(words, capsys)
        if said and not (mentioned and any(part in said for part in _INCOMPLETE)):
            found[" ".join(words)] = said

    assert found == {}


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_example_in_the_help_of_a_command_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = importlib.import_module(f"pagefold.cli.{name}").__doc__ or ""
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in said.partition("Example")[2].splitlines()[1:]]
    found = {" ".join(words): wrong(words, capsys) for words in commands("\n".join(lines))}

    assert found
    assert {command: what for command, what in found.items() if what} == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_that_a_page_names_exists(name: str) -> None:
    known = {".".join(path) for path in KNOBS} | {".".join(path[:-1]) for path in KNOBS}
    sections = {path[0] for path in KNOBS if len(path) > 1}
    named = {found[1] for code in inline(ROOT / name) if (found := re.match(r"(\w+\.[a-z_]+)(?: = .*)?$", code))}
    # `prefetch.dollars` is the one that docs/extending.md adds.
    others = {one for one in named if one.endswith((".py", ".json", ".toml"))} | {"prefetch.dollars"}

    assert {one for one in named - others - known if one.partition(".")[0] in sections} == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pagefold fly", "no command fly"),
        ("pagefold serve --prot 1", "unrecognized arguments: --prot"),
        ("make tea", "no target"),
        ("python -m bench.nothing", "no file"),
        ("python -m bench.codecs --nothing", "has no"),
        ("pip install 'pagefold[nothing]'", "no extra"),
        ("frobnicate", "unknown program"),
        ("X=1 pagefold run claude; pagefold stat", "no command stat"),
        (
            "cat >f <<'END'\nnot a command\nEND\npagefold lab provider --port 1 --scrip f | pagefold nothing",
            "no command",
        ),
    ],
)
def test_a_command_that_does_not_exist_is_seen(text: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(found in wrong(words, capsys) for words in commands(text))
