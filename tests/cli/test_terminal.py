"""Commands on a real terminal: styles, a progress bar that goes away, and a screen that is given back."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagefold.adapters import recordings
from pagefold.cli.progress import bar

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def on_a_terminal(*arguments: str, home: Path, until: bytes = b"", **more: str) -> tuple[str, int]:
    """What a command writes on a terminal of 100 cells, and its exit code. It is interrupted when `until` was seen."""
    import pty

    terminal, other = pty.openpty()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
    command = [sys.executable, "-m", "pagefold", *arguments]
    with subprocess.Popen(
        command, stdin=other, stdout=other, stderr=other, cwd=home, env=environment | more
    ) as process:
        os.close(other)
        seen, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # how Linux says that nobody writes any more
                break
            if until and until in seen:
                process.send_signal(signal.SIGINT)
                until = b""
        code = process.wait(10)
    os.close(terminal)
    return seen.decode().replace("\r\n", "\n"), code


def test_a_table_is_styled_and_the_progress_bar_is_gone(tmp_path: Path) -> None:
    log = recordings.example().read_bytes()
    (tmp_path / "logs.jsonl").write_bytes(log * 3)
    seen, code = on_a_terminal("replay", "logs.jsonl", home=tmp_path)
    assert code == 0
    assert "replay" in seen
    assert "━" in seen or "─" in seen
    assert "\x1b[1mWhat was sent" in seen
    shown = seen.rpartition("\r\x1b[K")[2]
    assert "━" not in shown
    assert "─" not in shown


def test_nobody_who_wants_no_colours_gets_them(tmp_path: Path) -> None:
    (tmp_path / "logs.jsonl").write_bytes(recordings.example().read_bytes())
    plain, _ = on_a_terminal("replay", "logs.jsonl", home=tmp_path, NO_COLOR="1")
    assert "What was sent" in plain
    assert "\x1b[1m" not in plain
    dumb, _ = on_a_terminal("replay", "logs.jsonl", home=tmp_path, TERM="dumb")
    assert "\x1b" not in dumb


def test_top_takes_the_screen_and_gives_it_back(tmp_path: Path) -> None:
    seen, code = on_a_terminal("top", "--store", "s.db", home=tmp_path, until=b"No session has been seen yet")
    assert code == 130
    assert seen.index("\x1b[?1049h") < seen.index("No session") < seen.index("\x1b[?1049l")
    assert seen.index("\x1b[?25l") < seen.index("\x1b[?25h")
    assert "Traceback" not in seen


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [
        (0, 10, "replay " + "─" * 40 + " 0/10 0:00:30 a"),
        (5, 10, "replay " + "━" * 20 + "─" * 20 + " 5/10 0:00:30 left 0:00:30 a"),
        (12, 10, "replay " + "━" * 40 + " 12/12 0:00:30 left 0:00:00 a"),
        (3, 0, "replay " + "─" * 40 + " 3/3 0:00:30 a"),
    ],
)
def test_a_bar_says_how_much_is_done_and_left(done: int, total: int, said: str) -> None:
    assert bar("replay", done, total, 30.0, "a") == said
    assert bar("replay", done, total, 30.0, "\x1b[2K") == said[:-1] + "\\x1b[2K"
