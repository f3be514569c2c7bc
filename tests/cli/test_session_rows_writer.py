"""Rows of sessions: none is lost where the file cannot be written for a while."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import session_rows
from pagefold.cli.session_rows_writer import gathering
from pagefold.derive.session_row import SessionRow
from pagefold.model_proxy.proxy import Proxy
from pagefold.settings.sections import Settings, StoreSettings


def test_rows_that_cannot_be_written_stay_gathered_and_stderr_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store.db"
    proxy = cast("Proxy", SimpleNamespace(session_rows=None))
    LocalFiles(store).counters.mkdir(parents=True)  # in the place of the file
    with gathering(proxy, Settings(store=StoreSettings(path=str(store))), "mill"):
        assert proxy.session_rows is not None
        proxy.session_rows.keep([SessionRow("s", turns=3)])

    assert "pagefold: " in capsys.readouterr().err
    assert [(row.session, row.turns) for row in proxy.session_rows.take()] == [("s", 3)]


def test_rows_are_written_with_their_project_at_the_end(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    proxy = cast("Proxy", SimpleNamespace(session_rows=None))
    with gathering(proxy, Settings(store=StoreSettings(path=str(store))), "mill"):
        assert proxy.session_rows is not None
        proxy.session_rows.keep([SessionRow("s", turns=3)])

    (row,) = session_rows.read(LocalFiles(store).counters)
    assert (row.session, row.turns, row.project) == ("s", 3, "mill")
