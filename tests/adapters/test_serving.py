"""A lock that says that a model proxy works on a store: seen by other processes, and gone with whoever held it."""

import subprocess
import sys
from pathlib import Path

import pytest

from pagefold.adapters.serving import beside, is_served, serving
from pagefold.errors import StoreError

HOLD = """
import sys, time
from pathlib import Path
from pagefold.adapters.serving import serving
with serving(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_store_is_served_while_somebody_says_so_however_they_end(tmp_path: Path) -> None:
    store = tmp_path / "data" / "store.sqlite3"
    assert not is_served(store)
    children = [subprocess.Popen([sys.executable, "-c", HOLD, str(store)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
        assert is_served(store)
        for child in children:
            assert is_served(store)
            child.kill()
            child.wait()
        assert not is_served(store)
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert beside(store).stat().st_mode & 0o777 == 0o600


def test_asking_does_not_disturb_who_serves_later(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite3"
    with serving(store), serving(store):
        assert is_served(store)
    assert not is_served(store)
    with serving(store):
        assert is_served(store)


def test_a_folder_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"), serving(tmp_path / "file" / "store.sqlite3"):
        pass
