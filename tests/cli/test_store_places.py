"""`pagefold store` on a database: copied into it and back, verified, and never shown with the password."""

import json
from pathlib import Path

import pytest

from pagefold.cli import main
from tests.postgres import running_postgres


def test_a_store_goes_to_postgres_and_back_and_no_password_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, back = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    (tmp_path / "text").write_text("a needle")
    with running_postgres() as server:
        url = server.new_schema().replace("pagefold@", "pagefold:geheim@")
        assert main(["store", "put", str(tmp_path / "text"), "--store", here]) == 0
        handle = capsys.readouterr().out.strip()
        digests = []
        for source, target in ((here, url), (url, back)):
            assert main(["store", "copy", source, target, "--json"]) == 0
            out = capsys.readouterr().out
            assert "geheim" not in out
            digests.append(json.loads(out)["digest"])
        assert digests[0] == digests[1]
        for command in (["verify"], ["stats"], ["migrate"], ["collect"]):
            assert main(["store", *command, "--store", url]) == 0
        assert main(["store", "copy", here, url]) == 1
        assert main(["store", "backup", "x", "--store", url]) == 2
        assert main(["recall", handle, "--all-projects", "--store", url]) == 0
        shown = capsys.readouterr()
    assert "a needle" in shown.out
    assert "1 page," in shown.out
    assert "geheim" not in shown.out + shown.err
