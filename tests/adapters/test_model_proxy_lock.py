"""A lock that says that a model proxy works on a store: seen by other processes, and gone with whoever held it."""

import subprocess
import sys
from pathlib import Path

import pytest

from pagefold.adapters.model_proxy_lock import hold_model_proxy_lock, model_proxy_is_running
from pagefold.errors import StoreError

HOLD = """
import sys, time
from pathlib import Path
from pagefold.adapters.model_proxy_lock import hold_model_proxy_lock
with hold_model_proxy_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_store_is_served_while_somebody_says_so_however_they_end(tmp_path: Path) -> None:
    lock = tmp_path / "data" / "store.serving"
    assert not model_proxy_is_running(lock)
    children = [subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
        assert model_proxy_is_running(lock)
        for child in children:
            assert model_proxy_is_running(lock)
            child.kill()
            child.wait()
        assert not model_proxy_is_running(lock)
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert lock.stat().st_mode & 0o777 == 0o600


def test_asking_does_not_disturb_who_serves_later(tmp_path: Path) -> None:
    lock = tmp_path / "store.serving"
    with hold_model_proxy_lock(lock), hold_model_proxy_lock(lock):
        assert model_proxy_is_running(lock)
    assert not model_proxy_is_running(lock)
    with hold_model_proxy_lock(lock):
        assert model_proxy_is_running(lock)


def test_a_folder_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"), hold_model_proxy_lock(tmp_path / "file" / "s.db"):
        pass
