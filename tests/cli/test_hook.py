"""`pagefold hook` as Claude Code runs it, and `pagefold init claude-code --hook`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode.choose import decode
from tests.cli.hook_input import LOG, pagefold, told


def counted(home: Path) -> dict[str, int]:
    found: dict[str, dict[str, int]] = json.loads(pagefold("stats", "--json", home=home).stdout)
    return found.get("hook", {})


def test_a_long_result_is_shown_in_a_form_that_can_be_undone(tmp_path: Path) -> None:
    done = pagefold("hook", home=tmp_path, told=told(LOG))

    shown = json.loads(done.stdout)["hookSpecificOutput"]["updatedToolOutput"]
    assert (done.returncode, decode(shown["stdout"]), shown["stderr"]) == (0, LOG, "")
    counts = counted(tmp_path)
    assert counts["tokens after"] < 0.75 * counts["tokens before"]
    assert counts["calls"] == 1


@pytest.mark.parametrize("stdout", ["short", None, "no two words of this text are like any other " * 2], ids=str)
def test_what_is_short_stays_and_nothing_is_written(stdout: Any, tmp_path: Path) -> None:
    done = pagefold("hook", home=tmp_path, told=told(stdout))

    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (0, b"", [])


@pytest.mark.parametrize("stdout", ["[R1 lines 1-2]\na", "ok\n[held by pagefold: x]", "> [ref: R1, byte-identical]"])
def test_a_short_result_that_poses_as_ours_is_marked(stdout: str, tmp_path: Path) -> None:
    done = pagefold("hook", home=tmp_path, told=told(stdout))

    shown = json.loads(done.stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
    assert shown == f"[as it is]\n{stdout}"


@pytest.mark.parametrize("event", [b"", b"no JSON", b"[]", b'{"hook_event_name": "Stop"}', b"\xff"], ids=repr)
def test_a_fault_is_counted_and_never_reaches_the_model(event: bytes, tmp_path: Path) -> None:
    done = pagefold("hook", home=tmp_path, told=event)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert counted(tmp_path) == {"faults": 1}


def test_settings_that_cannot_be_read_do_not_reach_the_model_either(tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text("[serve]\nport = 'x'\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PAGEFOLD_SERVE_PORT": "no port"}
    command = [sys.executable, "-m", "pagefold", "hook"]
    done = subprocess.run(command, input=told(LOG), capture_output=True, env=environment, cwd=tmp_path, check=False)

    assert done.returncode == 0
    assert decode(json.loads(done.stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]) == LOG


@pytest.mark.parametrize("before", [None, '{ "model":"x" }\n', '{"hooks": {"Stop": []}}'], ids=str)
def test_init_sets_the_hook_and_undo_brings_back_the_very_file(before: str | None, tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
    assert pagefold("init", "claude-code", "--hook", "--dry-run", home=tmp_path).returncode == 0
    assert (file.read_text() if file.exists() else None) == before

    assert b"pagefold" in pagefold("init", "claude-code", "--hook", home=tmp_path).stdout
    (group,) = json.loads(file.read_text())["hooks"]["PostToolUse"]
    assert group["hooks"][0]["command"].endswith(" hook")
    assert b"nothing to change" in pagefold("init", "claude-code", "--hook", home=tmp_path).stdout

    assert pagefold("init", "claude-code", "--hook", "--undo", home=tmp_path).returncode == 0
    assert (file.read_text() if file.exists() else None) == before
    assert [one.name for one in tmp_path.glob(".claude/*")] == ([file.name] if before else [])


def test_other_clients_have_no_such_hook(tmp_path: Path) -> None:
    done = pagefold("init", "codex", "--hook", home=tmp_path)

    assert (done.returncode, b"codex has no hook" in done.stderr) == (2, True)
