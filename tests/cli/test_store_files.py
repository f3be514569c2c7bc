"""`pagefold store verify`, `backup`, `restore` and `encrypt`, as a user runs them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.model_proxy_lock import hold_model_proxy_lock
from pagefold.adapters.stores import open_store
from tests.cli.program import pagefold

KEY = "5e" * 32


def store(home: Path, *arguments: object, code: int = 0, key: str = "") -> Any:
    environment = {"PAGEFOLD_STORE_KEY": key} if key else {}
    command = ("store", *arguments, "--json", "--store", home / "store.sqlite3")
    return json.loads(pagefold(*command, home=home, code=code, stdin=b"", **environment).stdout or b"null")


def test_a_copy_is_made_put_back_and_encrypted_and_damages_are_told(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(open_store(path)) as opened:
        page = opened.pages.put(b"zebra", history="h")

    assert store(tmp_path, "verify")["damages"] == []
    assert store(tmp_path, "backup", "copy.sqlite3")["pages"] == 1
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DELETE FROM contents")
    assert [page in damage["what"] for damage in store(tmp_path, "verify", code=1)["damages"]] == [True]
    with hold_model_proxy_lock(LocalFiles(path).model_proxy_lock):
        store(tmp_path, "restore", "copy.sqlite3", code=1)
    assert len(store(tmp_path, "restore", "copy.sqlite3")["replaced"]) == 1
    store(tmp_path, "encrypt", code=2)
    store(tmp_path, "encrypt", key=KEY)
    assert store(tmp_path, "verify", key=KEY)["pages"] == 1
    assert b"zebra" not in path.read_bytes()
    store(tmp_path, "backup", code=2)


def test_a_copy_of_a_damaged_store_is_refused_in_one_sentence(tmp_path: Path) -> None:
    pagefold("store", "put", "-", "--store", "s.db", home=tmp_path, stdin=b"one")
    pagefold("store", "put", "-", "--store", "s.db", home=tmp_path, stdin=b"two")
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("UPDATE contents SET stored = x'00'")

    said = pagefold("store", "copy", "s.db", "t.db", home=tmp_path, code=1).stderr.decode()

    assert len(said.splitlines()) == 1
    assert "is damaged, and nothing was copied" in said
