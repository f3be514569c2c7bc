"""`pagefold forget`, as a user runs it."""

import json
from pathlib import Path

import pytest

from pagefold.adapters.stores import open_store
from pagefold.pages.scope import StoreScope
from tests.cli.program import pagefold


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "store.sqlite3", scope=StoreScope("", str(tmp_path)))
    store.pages.put(b"zebra in January", history="old\x1b[2J", now=1_800_000.0)
    store.scoped(StoreScope("", "/other")).pages.put(b"otter", history="other", now=1_900_000_000.0)
    store.close()
    return tmp_path


def answer(home: Path, *arguments: str, code: int = 0) -> dict[str, object]:
    done = pagefold("forget", *arguments, "--json", "--store", home / "store.sqlite3", home=home, code=code)
    shown: dict[str, object] = json.loads(done.stdout)
    return shown


def test_what_would_go_is_told_then_forgotten_and_then_there_is_nothing(home: Path) -> None:
    planned = answer(home, "--before", "2001-01-01", "--dry-run")
    assert (planned["sessions"], planned["pages"], planned["dry_run"]) == (["old\x1b[2J"], 1, True)
    assert b"zebra" in (home / "store.sqlite3").read_bytes()
    shown = pagefold("forget", "--project", "--dry-run", "--store", home / "store.sqlite3", home=home).stdout
    assert b"would go: 1 session; 1 page," in shown
    assert b"\x1b" not in shown

    assert answer(home, "--project")["pages"] == 1
    assert b"zebra" not in (home / "store.sqlite3").read_bytes()
    assert b"otter" in (home / "store.sqlite3").read_bytes()
    assert answer(home, "--project", code=1)["pages"] == 0
    assert answer(home, "other")["sessions"] == ["other"]
    assert answer(home, "other", code=1)["sessions"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a SESSION, --project or --before DATE"),
        (("s", "--before", "90d"), "a SESSION goes whole"),
        (("--before", "soon"), "'soon': expected a date such as 2026-01-31, or 90d"),
    ],
)
def test_a_request_that_says_too_little_or_too_much_removes_nothing(
    home: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = pagefold("forget", *arguments, "--store", home / "store.sqlite3", home=home, code=2)
    assert words in done.stderr.decode()


def test_joined_projects_are_not_forgotten_as_one(home: Path) -> None:
    command = ("forget", "--project", "--store", home / "store.sqlite3")
    done = pagefold(*command, home=home, code=2, PAGEFOLD_STORE_PROJECTS="joined")
    assert "nothing tells one project" in done.stderr.decode()
