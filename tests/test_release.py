"""What a release says of its parts: every one is locked by a hash and has a licence that can be lived with."""

import re
from pathlib import Path

import pytest

from bench.installed import AIM, weights
from bench.licences import licence_of, locked_in, problems

_ROOT = Path(__file__).parents[1]


def test_every_requirement_is_locked_to_a_version_and_a_hash() -> None:
    for name in ("run.txt", "dev.txt", "demo.txt", "docs.txt"):
        text = (_ROOT / "requirements" / name).read_text()
        packages = re.split(r"\n(?=[\w])", text)

        assert len(packages) > 10
        assert [package for package in packages if "--hash=sha256:" not in package] == []
        assert not re.search(r"https?://|--index-url", text)


def test_what_is_installed_weighs_no_more_than_was_aimed_at() -> None:
    assert sum(plain for plain, _ in weights().values()) < AIM


@pytest.mark.parametrize("lock", ["run.txt", "demo.txt"])
def test_the_program_itself_needs_nothing_that_is_not_locked(lock: str) -> None:
    declared = (_ROOT / "pyproject.toml").read_text().split("dependencies = [")[1].split("]\n")[0]
    locked = locked_in((_ROOT / "requirements" / lock).read_text())

    names = re.findall(r'^  "([\w.-]+)', declared, re.M)
    assert names
    assert [name for name in names if name not in locked] == []


def test_a_bill_of_materials_that_says_something_else_than_the_lock_is_refused() -> None:
    free = {"name": "Free_Package", "version": "1.0", "licenses": [{"license": {"id": "MIT"}}]}
    other = {"name": "other", "version": "2", "licenses": [{"license": {"id": "AGPL-3.0-only"}}]}
    silent = {"name": "silent", "version": "3"}

    assert problems([free], {"free-package": "1.0"}) == []
    assert problems([free], {"free-package": "1.1"}) == ["free-package 1.0: requirements/run.txt locks 1.1"]
    assert problems([other, silent], {"other": "2", "silent": "3"}) == [
        "other 2: the licence is AGPL-3.0-only",
        "silent 3: the licence is not declared",
    ]
    assert licence_of({"name": "a", "licenses": [{"expression": "MIT OR Apache-2.0"}]}) == "MIT OR Apache-2.0"
