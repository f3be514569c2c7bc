"""Files and folders that cannot be read."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pagefold.config import load
from pagefold.settings.sections import Settings
from tests.config.loading import refusal_of


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so where the tests run as root they step down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="modes do not keep a reader out there")
def test_a_file_that_may_not_be_read_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "pagefold.toml").write_text("window = 1")
        (folder / "pagefold.toml").chmod(0)

        with as_nobody():
            message = refusal_of({}, {}, folder)

    assert message == "pagefold.toml: cannot be read: Permission denied"


@pytest.mark.skipif(sys.platform == "win32", reason="modes do not keep a reader out there")
def test_a_parent_that_may_not_be_searched_is_passed_over() -> None:
    with tempfile.TemporaryDirectory() as name:
        closed = Path(name) / "closed"
        (closed / "below").mkdir(parents=True)
        (closed / "pagefold.toml").write_text("window = 1")
        closed.chmod(0)
        try:
            with as_nobody():
                settings = load({}, {}, closed / "below").settings
        finally:
            closed.chmod(0o755)

    assert settings == Settings()


def test_a_folder_or_a_dangling_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "pagefold.toml").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pagefold.toml").symlink_to("gone")

    assert refusal_of({}, {}, tmp_path / "a") == "pagefold.toml: cannot be read: Is a directory"
    assert refusal_of({}, {}, tmp_path / "b") == "pagefold.toml: cannot be read: No such file or directory"
