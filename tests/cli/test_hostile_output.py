"""What a session, a tool or a name holds steers no terminal and no page: commands driven with hostile content."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagefold.cli import output
from pagefold.html import el
from pagefold.printable import CONTROL, printable
from tests.cli.program import pagefold

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x9b31m\u202ekaerb\u2066\u200b[/bold][link=http://x]y[/link]"


def steers(text: str) -> list[str]:
    return [found for found in CONTROL.findall(text) if found not in "\n\t"]


def session(folder: Path) -> Path:
    call = {"id": "c", "type": "function", "function": {"name": HOSTILE, "arguments": json.dumps({"a": HOSTILE})}}
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": f"needle {HOSTILE}\n" * 40},
        {"role": "assistant", "content": "done"},
    ]
    file = folder / "s.jsonl"
    file.write_text(json.dumps({"id": HOSTILE, "messages": messages}) + "\n")
    return file


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=str)
def test_recorded_sessions_steer_no_terminal(flags: tuple[str, ...], tmp_path: Path) -> None:
    done = pagefold("replay", session(tmp_path).name, *flags, home=tmp_path)
    assert not steers(done.stdout.decode())
    assert not steers(done.stderr.decode())


def ended(*arguments: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    """A run with any exit code but that of a crash."""
    command = [sys.executable, "-m", "pagefold", *arguments]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, input=b"", capture_output=True, cwd=home, env=environment, timeout=120, check=False)
    assert b"Traceback" not in done.stderr
    return done


COMMANDS = [
    ("compare", "s.jsonl"),
    ("report", "s.jsonl"),
    ("tune", "s.jsonl"),
    ("export", "s.jsonl"),
    ("stats", "--store", "s.db"),
    ("store", "--history", HOSTILE.replace("\x00", ""), "--store", "s.db"),
    ("store", "collect", "--store", "s.db"),
    ("journal", "--store", "s.db"),
    ("doctor", "--store", "s.db"),
    ("config", "--config", f"{HOSTILE.replace('/', '')}.toml"),
    ("recall", HOSTILE, "--store", "s.db"),
    ("replay", f"{HOSTILE.replace('/', '')}.jsonl"),
    ("run", f"{HOSTILE.replace('/', '')}"),
    ("serve", "--port", "0", "--anthropic-url", HOSTILE),
    ("mcp", "--", HOSTILE.replace("/", "")),
    (HOSTILE,),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0][:7].encode("ascii", "ignore").hex())
def test_no_command_lets_a_session_a_name_or_an_argument_steer_the_terminal(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    session(tmp_path)
    (tmp_path / "page.txt").write_text(HOSTILE)
    pagefold("store", "put", "page.txt", "--history", HOSTILE, "--store", "s.db", home=tmp_path)
    done = ended(*arguments, home=tmp_path)
    said = done.stdout.decode() + done.stderr.decode()
    assert said
    assert not steers(said)


def test_what_a_server_writes_to_stderr_is_shown_as_text(tmp_path: Path) -> None:
    program = f"import sys; sys.stderr.write({HOSTILE!r} + ' end\\n')"
    done = ended("mcp", "--", sys.executable, "-c", program, home=tmp_path)
    assert " end" in done.stderr.decode()
    assert not steers(done.stderr.decode())


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=str)
def test_search_shows_pages_as_text(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(f"needle {HOSTILE}")
    pagefold("store", "put", "page.txt", "--history", "h", "--store", "s.db", home=tmp_path)
    done = pagefold("search", "needle", *flags, "--store", "s.db", home=tmp_path)
    assert b"needle" in done.stdout
    assert not steers(done.stdout.decode())


def test_a_table_follows_no_markup_and_shows_every_sign(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(output.table(HOSTILE, ["a"], [[HOSTILE]], total=[HOSTILE]), whole=True)
    shown = capsys.readouterr().out
    assert not steers(shown)
    assert shown.count("[/bold][link=http://x]y[/link]") == 3


def test_a_page_holds_text_alone() -> None:
    made = str(el("p", HOSTILE, "<b>", title=HOSTILE))
    assert not steers(made)
    assert "&lt;b&gt;" in made


@pytest.mark.parametrize(
    ("text", "shown"), [("a\tb\nc", "a\tb\nc"), ("\x1b[0m", "\\x1b[0m"), ("\u202e", "\\u202e"), ("é漢", "é漢")]
)
def test_what_is_text_stays(text: str, shown: str) -> None:
    assert printable(text) == shown
