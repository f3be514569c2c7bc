"""What the README promises a newcomer: names that exist, pictures that are small, two commands on its first screen."""

import runpy
from pathlib import Path

import pytest

from pagefold.pages.context_tools import CONTEXT_TOOLS
from tests.docs.pages import ROOT, links

README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = ROOT / "docs" / "pictures"
DRAWINGS = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["DRAWINGS"]


def test_every_tool_that_the_mcp_proxy_adds_is_named() -> None:
    assert [tool.name for tool in CONTEXT_TOOLS if f"`{tool.name}`" not in README] == []


def test_the_first_screen_says_what_it_is_what_it_saves_what_is_not_shown_and_how_to_stop() -> None:
    first = README.partition("\n## ")[0]

    for said in ("For whom", "What it saves", "What has not been shown", "How to stop", " % less"):
        assert said in first
    assert [line.split()[1] for line in first.splitlines() if line.startswith("pagefold ")] == ["report", "run"]
    assert len(first.splitlines()) < 45


def test_pictures_are_small_and_all_of_them_are_shown() -> None:
    shown = {(ROOT / target).resolve() for target in links(ROOT / "README.md")}
    for page in ROOT.glob("docs/*.md"):
        shown |= {(page.parent / target).resolve() for target in links(page)}

    assert {file.name for file in PICTURES.iterdir() if file.stat().st_size > 150_000} == set()
    assert {file for file in PICTURES.iterdir() if file not in shown} == set()


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_current(name: str) -> None:
    written = Path(PICTURES, f"{name}.svg").read_text(encoding="utf-8")

    assert written == DRAWINGS[name]() + "\n", f"docs/pictures/{name}.svg is stale: make pictures"


@pytest.mark.parametrize("command", ["top", "dashboard", "serve"])
def test_nothing_stands_on_one_line_behind_a_command_that_goes_on_until_it_is_stopped(command: str) -> None:
    assert f"pagefold {command};" not in README


@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md"])
def test_init_is_said_to_change_files_at_once_and_how_to_see_the_change_before(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    (said,) = (line for line in lines if "shows" in line and "init" in line)
    assert "at once" in said
    assert "--dry-run" in said
