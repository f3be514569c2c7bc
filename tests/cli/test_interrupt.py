"""Ctrl-C ends every command that works long within a second, as a user sends it: to the whole group of processes."""

import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagefold.adapters.stores import open_store
from tests.cli.leaves import leaves

_SECONDS = 1.0
_LINES = 400
_STORED = 100_000
_PAGEFOLD = [sys.executable, "-m", "pagefold"]

ANALYSES = [
    f"{words} LOGS --jobs {jobs}"
    for words in ("replay --policy economic", "report", "compare", "tune", "export")
    for jobs in (1, 2)
]
ON_A_STORE = [
    "store verify --store STORE",
    "store copy STORE copied.db",
    "store backup kept.db --store STORE",
    "store restore STORE --store new.db",
]
STUDIES = ["lab solve --simulate --sizes 32k", "lab clawvm"]
ASKING = [
    "lab reading --endpoint URL --model m",
    "lab likelihood --endpoint URL --model m",
    "lab solve --endpoint URL --model m --sizes 12k",
]
READING = ["encode -", "decode -", "hook", "statusline", "store put -"]
SERVERS = ["serve --port 0", "serve --port 0 --workers 2", "dashboard", "mcp --http 0 -- cat", "lab provider"]
SHORT = [
    *("demo", "trial", "doctor", "stats", "config", "tools", "journal", "restore", "search word"),
    *(
        "recall pf-aaaaaaaaaa",
        "forget --project",
        "store status",
        "store stats",
        "store send s",
        "store collect",
        "store migrate",
    ),
    *("store encrypt", "team set a", "team list", "team use a", "token create a", "token list", "token revoke a"),
    *("token audit", *(leaf for leaf in leaves() if leaf.startswith("init "))),
]
"""Commands that do little however much there is, or whose work is a few statements of the database."""


def _recording(path: Path, sessions: int, turns: int) -> Path:
    """Sessions that take far longer to work through than the test waits."""
    with path.open("w", encoding="utf-8") as file:
        for session in range(sessions):
            messages: list[dict[str, object]] = [{"role": "user", "content": f"task {session}"}]
            for turn in range(turns):
                call = {"id": f"c{turn}", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
                text = "\n".join(
                    f"{session}/{turn}: line {line} of module_{line * turn % 97}" for line in range(_LINES)
                )
                messages.append({"role": "assistant", "content": f"turn {turn}", "tool_calls": [call]})
                messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text})
            messages.append({"role": "assistant", "content": "done"})
            file.write(json.dumps({"id": f"s{session}", "messages": messages}) + "\n")
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of sessions under several names, since a replay alone takes little time."""
    folder = tmp_path_factory.mktemp("logs")
    long = _recording(folder / "long.jsonl", sessions=8, turns=120)
    for name in range(12):
        (folder / f"{name}.jsonl").symlink_to(long)
    return folder


@pytest.mark.parametrize("words", ANALYSES)
def test_ctrl_c_ends_a_long_command_within_a_second(words: str, recording: Path, tmp_path: Path) -> None:
    if words.startswith("export"):
        pytest.importorskip("pyarrow")
    with started([*_PAGEFOLD, *words.replace("LOGS", str(recording)).split()], tmp_path) as run:
        at_work(run, 0.15)  # more of it would be the work itself, which others of its processes may do
        time.sleep(2)  # the imports are over, and work is under way in every process
        assert_ends(run, 130)


def started(words: list[str], home: Path) -> "subprocess.Popen[bytes]":
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env={**environment, "ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none"},
        start_new_session=True,
    )


def at_work(run: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Waits until a program has had so much processor time, which tells more than a clock on a busy machine."""
    stat = Path(f"/proc/{run.pid}/stat")
    if not stat.exists():
        time.sleep(3 * seconds)
        return
    until = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < until:
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        if (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") >= seconds:
            return
        time.sleep(0.02)


def assert_ends(run: "subprocess.Popen[bytes]", code: int) -> None:
    assert run.poll() is None, "it ended by itself: too little work"
    began = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    took = time.monotonic() - began

    assert run.returncode == code, said.decode()
    assert b"Traceback" not in said
    assert took < _SECONDS * waits(), f"{took:.2f} s at {waits():.1f} programs a processor"


def waits() -> float:
    """Where more programs want to run than there are processors, each waits for its turn."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.fixture(scope="module")
def large_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that takes many seconds to read; its rows are written past the program, which would take longer."""
    path = tmp_path_factory.mktemp("store") / "large.sqlite3"
    store = open_store(path)
    store.pages.put(b"a page", history="h", now=1.0)
    store.close()
    db = sqlite3.connect(path)
    db.create_function("sha", 1, lambda text: hashlib.sha256(text.encode()).hexdigest())
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < {_STORED})"
    db.execute(f"{numbers} INSERT INTO contents SELECT i, CAST(printf('page %d', i) AS BLOB) FROM n")
    page = "sha(printf('page %d', i)), i, length(printf('page %d', i)), length(printf('page %d', i)), 1.0"
    db.execute(f"{numbers} INSERT INTO pages SELECT {page} FROM n")
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize("words", ON_A_STORE)
def test_ctrl_c_ends_work_on_a_store_within_a_second(words: str, large_store: Path, tmp_path: Path) -> None:
    with started([*_PAGEFOLD, *words.replace("STORE", str(large_store)).split()], tmp_path) as run:
        at_work(run, 0.5)
        assert_ends(run, 130)


@pytest.mark.parametrize("words", STUDIES)
def test_ctrl_c_ends_a_study_within_a_second(words: str, tmp_path: Path) -> None:
    with started([*_PAGEFOLD, *words.split()], tmp_path) as run:
        at_work(run, 1.0)
        assert_ends(run, 130)


@pytest.mark.parametrize("words", ASKING)
def test_ctrl_c_ends_waiting_for_a_model_that_never_answers_within_a_second(words: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as model:
        model.settimeout(60)
        url = f"http://127.0.0.1:{model.getsockname()[1]}"
        with started([*_PAGEFOLD, *words.replace("URL", url).split()], tmp_path) as run:
            asked, _ = model.accept()
            with asked:
                assert_ends(run, 130)


@pytest.mark.parametrize("words", READING)
def test_ctrl_c_ends_waiting_for_input_within_a_second(words: str, tmp_path: Path) -> None:
    with started([*_PAGEFOLD, *words.split()], tmp_path) as run:
        at_work(run, 0.03)
        time.sleep(waits())  # for what to read, which takes no time of a processor
        assert_ends(run, 130)


def test_ctrl_c_ends_watching_within_a_second(tmp_path: Path) -> None:
    with started([*_PAGEFOLD, "top"], tmp_path) as run:
        at_work(run, 0.2)
        time.sleep(1)
        assert_ends(run, 130)


def test_ctrl_c_ends_an_agent_and_its_proxy_within_a_second(tmp_path: Path) -> None:
    with started([*_PAGEFOLD, "run", "sh", "-c", "echo here; exec sleep 60"], tmp_path) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"here\n"
        assert_ends(run, 130)


@pytest.mark.parametrize("words", SERVERS)
def test_ctrl_c_ends_a_server_within_a_second_once_it_says_that_it_runs(words: str, tmp_path: Path) -> None:
    with started([*_PAGEFOLD, *words.split()], tmp_path) as run:
        told = run.stderr if words == "lab provider" else run.stdout
        assert told is not None
        assert b"ends it" in told.readline()
        assert_ends(run, 0)


def test_ctrl_c_ends_an_mcp_server_on_stdio_within_a_second(tmp_path: Path) -> None:
    with started([*_PAGEFOLD, "mcp", "--", "cat"], tmp_path) as run:
        at_work(run, 0.1)
        time.sleep(waits())
        assert_ends(run, 0)


@pytest.mark.parametrize("words", SHORT)
def test_a_command_that_does_little_has_soon_ended_or_ends_by_ctrl_c_without_a_traceback(
    words: str, tmp_path: Path
) -> None:
    with started([*_PAGEFOLD, *words.split()], tmp_path) as run:
        at_work(run, 0.15)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=_SECONDS * waits())

    assert b"Traceback" not in said


def test_every_command_is_here() -> None:
    """A command that is added has to say here how it is kept at work, or that it does little."""
    words = [*ANALYSES, *ON_A_STORE, *STUDIES, *ASKING, *READING, *SERVERS, *SHORT, "run", "top"]

    assert {leaf for leaf in leaves() if not any(f"{one} ".startswith(f"{leaf} ") for one in words)} == set()
