"""The whole proxy over real pipes, in front of a server that has bad days."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagefold.encode import decode
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer, environment

ROWS = [{"id": n, "name": f"row {n}", "ok": True} for n in range(40)]


def proxied(folder: Path, *options: str, **environment: str) -> Peer:
    return Peer([*PAGEFOLD, *options, "--", *ODD], folder, environment)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


def test_a_result_comes_shorter_and_whole_and_is_found_again(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        shown = peer.text("rows", count=40)
        assert json.loads(decode(shown)) == ROWS
        assert len(shown) < 400
        end = time.monotonic() + 10
        while "pf-" not in (matches := peer.text("context_search", query='"row 39"')) and time.monotonic() < end:
            time.sleep(0.05)
        handle = matches.split()[1]
        assert json.loads(peer.text("context_recall", handle=handle)) == ROWS
        assert json.loads(peer.text("context_recall", handle=handle, path="$[39]")) == ROWS[39]
        assert peer.text("context_recall", handle=handle, find="row 39").startswith("[1 line with 'row 39']")
        assert peer.call("context_recall", handle=handle, lines="7-9")["result"]["isError"] is True
        assert "got several" in peer.text("context_recall", handle=handle, lines="1", find="row")
        assert "tokens saved" in peer.text("context_status")
        assert peer.call("context_recall", handle="pf-aaaaaaaaaa")["result"]["isError"] is True
        assert peer.end() == 0


def test_what_was_saved_is_told_by_stats(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools") as peer:
        peer.greet()
        peer.text("rows", count=40)
    done = subprocess.run(
        [sys.executable, "-m", "pagefold", "stats", "--json"],
        env=environment(tmp_path),
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    counted = json.loads(done.stdout)["mcp"]
    assert counted["calls"] == 1
    assert counted["tokens after"] < counted["tokens before"] / 3
    assert not (tmp_path / "data" / "pagefold" / "store.sqlite3").exists(), "with --no-tools nothing is kept"


def test_calls_in_flight_are_answered_when_the_server_dies_and_it_comes_again(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        first = peer.greet()["result"]["serverInfo"]["version"]
        for id in range(5):
            peer.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hang"}})
        answer = peer.call("die")
        assert "killed by signal 9" in answer["error"]["message"]
        failed = [json.loads(line)["id"] for line in peer.heard if b'"error"' in line]
        assert failed == [0, 1, 2, 3, 4, answer["id"]]
        assert peer.text("echo", text="still there") == "still there"
        assert gone(int(first))
        assert "exited with code 3" in peer.call("half")["error"]["message"]
        assert peer.text("echo", text="again") == "again"


def test_a_server_that_never_answers_ends_the_proxy(tmp_path: Path) -> None:
    with proxied(tmp_path, ODD_FAILS="1") as peer:
        peer.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        assert "exited with code 1" in peer.next()["error"]["message"]
        with pytest.raises(EOFError):
            peer.next()
        assert peer.child.wait(10) == 1
    assert "no such database" in peer.stderr


def test_a_program_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PAGEFOLD, "--", str(tmp_path / "nothing")],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"pagefold: {tmp_path / 'nothing'}: cannot be started: No such file or directory\n"


def test_garbage_between_messages_reaches_people_and_not_the_client(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        assert peer.text("garbage") == "after the garbage"
        assert all(line.startswith(b"{") for line in peer.heard)
    assert "Listening on nothing" in peer.stderr
    assert "starts" in peer.stderr


def test_progress_errors_and_unknown_methods_pass(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        peer.ask("tools/call", {"name": "progress", "_meta": {"progressToken": "p-1"}})
        notices = [json.loads(line) for line in peer.heard if b"notifications/progress" in line]
        assert [notice["params"] for notice in notices] == [{"progressToken": "p-1", "progress": n} for n in range(3)]
        error = peer.call("broken")["error"]
        assert error == {"code": -32001, "message": "no", "data": {"token": "s3cret"}}
        assert peer.ask("future/method")["error"]["code"] == -32601
        peer.send({"jsonrpc": "2.0", "method": "notifications/odd", "params": {"x": [1.10, "\u2028"]}})
        assert peer.next() == {"jsonrpc": "2.0", "method": "notifications/odd", "params": {"x": [1.10, "\u2028"]}}


def test_a_call_of_the_servers_reaches_the_client_and_its_answer_the_server(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        peer.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "sample"}})
        asked = peer.next()
        assert (asked["method"], asked["id"]) == ("sampling/createMessage", 1)
        peer.send({"jsonrpc": "2.0", "id": 1, "result": {"model": "m"}})
        assert peer.next()["result"]["content"][0]["text"] == 'the model said {"model": "m"}'


def test_thousands_of_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools") as peer:
        peer.greet()
        calls = [
            {
                "jsonrpc": "2.0",
                "id": id,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": str(id)}},
            }
            for id in range(3000)
        ]
        peer.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls))
        answers = [peer.next() for _ in calls]
        assert [answer["result"]["content"][0]["text"] for answer in answers] == [str(id) for id in range(3000)]


def test_a_gigabyte_is_refused_in_words_and_never_held(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools") as peer:
        peer.greet()
        answer = peer.call("large", bytes=1 << 30, seconds=60)
        assert answer["error"]["message"].startswith("pagefold: the answer has 1,073,741,")
        peak = Path(f"/proc/{peer.child.pid}/status").read_text().split("VmHWM:")[1].split()[0]
        assert int(peak) < 400_000, "kilobytes"
        assert peer.text("echo", text="and on") == "and on"


def test_a_large_result_below_the_limit_passes_as_it_came(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools") as peer:
        peer.greet()
        assert len(peer.text("large", bytes=20_000_000)) == 20_000_000


def test_a_client_that_does_not_read_holds_the_server_up_and_loses_nothing(tmp_path: Path) -> None:
    # Neither side of the proxy may grow with what the client leaves unread.
    script = "import sys,time; time.sleep(2); sys.stdout.buffer.write(sys.stdin.buffer.read())"
    ask = b"".join(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": id,
                "method": "tools/call",
                "params": {"name": "large", "arguments": {"bytes": 1 << 20}},
            }
        ).encode()
        + b"\n"
        for id in range(40)
    )
    hello = (
        json.dumps(
            {"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
        ).encode()
        + b"\n"
    )
    with subprocess.Popen(
        [*PAGEFOLD, "--no-tools", "--", *ODD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
    ) as proxy:
        assert proxy.stdin is not None
        proxy.stdin.write(hello + ask)
        proxy.stdin.close()
        slow = subprocess.run([sys.executable, "-c", script], stdin=proxy.stdout, capture_output=True, check=True)
        assert proxy.wait(20) == 0
    answers = [json.loads(line) for line in slow.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["h", *range(40)]


@pytest.mark.parametrize("sign", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_leaves_no_process_behind(sign: str, tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        server = int(peer.greet()["result"]["serverInfo"]["version"])
        child = int(peer.text("child"))
        assert alive(server)
        assert alive(child)
        peer.child.send_signal(getattr(signal, sign))
        assert peer.child.wait(10) == 0
        assert gone(server)
        assert gone(child)


def test_closed_input_ends_everything_even_a_server_that_does_not_listen(tmp_path: Path) -> None:
    stubborn = [sys.executable, "-c", "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"]
    began = time.monotonic()
    with Peer([*PAGEFOLD, "--", *stubborn], tmp_path) as peer:
        time.sleep(0.5)
        assert peer.end() == 0
    assert time.monotonic() - began < 9


def test_a_client_that_leaves_ends_everything(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        server = int(peer.greet()["result"]["serverInfo"]["version"])
        peer.child.kill()
        peer.child.wait()
        assert gone(server), "its input was closed"


def test_calls_that_are_open_at_the_end_are_still_answered(tmp_path: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rows"}},
    ]
    file = tmp_path / "said"
    file.write_text("\n".join(map(json.dumps, lines)))
    with file.open() as given, (tmp_path / "heard").open("wb") as heard:
        subprocess.run(
            [*PAGEFOLD, "--no-tools", "--", *ODD],
            stdin=given,
            stdout=heard,
            stderr=subprocess.DEVNULL,
            env=environment(tmp_path),
            check=True,
            timeout=20,
        )
    answers = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1]


def test_answers_of_a_server_that_has_ended_are_all_heard(tmp_path: Path) -> None:
    # Encoding takes longer than the server takes to say everything and go.
    asked = [{"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}]
    asked += [
        {"id": id, "method": "tools/call", "params": {"name": "rows", "arguments": {"count": 2000}}}
        for id in range(1, 9)
    ]
    done = subprocess.run(
        [*PAGEFOLD, "--no-tools", "--", *ODD],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked).encode(),
        capture_output=True,
        env=environment(tmp_path),
        check=True,
        timeout=60,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(range(9))


def test_tools_pass_untouched_where_the_user_says_so(tmp_path: Path) -> None:
    with proxied(tmp_path, "--as-is", "ro*, other") as peer:
        peer.greet()
        assert json.loads(peer.text("rows", count=40)) == ROWS


def test_references_are_off_alone_and_end_with_a_reset(tmp_path: Path) -> None:
    prose = "\n".join(f"The {n}th line says something that no other line says, {n * 7919}." for n in range(40))
    with proxied(tmp_path) as peer:
        peer.greet()
        assert [peer.text("echo", text=prose) for _ in range(2)] == [prose, prose]
    with proxied(tmp_path, "--references") as peer:
        peer.greet()
        first, second = (peer.text("echo", text=prose) for _ in range(2))
        assert first.endswith(prose.splitlines()[-1])
        assert len(second) < 200
        peer.text("context_reset", summary="All done.")
        assert len(peer.text("echo", text=prose)) > len(prose) / 2
        peer.send({"jsonrpc": "2.0", "method": "notifications/pagefold/compacted"})
        assert len(peer.text("echo", text=prose)) > len(prose) / 2


def test_a_twin_is_left_out_for_claude_code_and_kept_for_others(tmp_path: Path) -> None:
    for client, kept in (("claude-code", False), ("codex-mcp-client", False), ("cursor", True)):
        with proxied(tmp_path) as peer:
            peer.greet(client)
            assert ("structuredContent" in peer.call("twin")["result"]) is kept


def test_starting_does_not_wait_for_what_is_heavy(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        mapped = Path(f"/proc/{peer.child.pid}/maps").read_text()
    assert "python" in mapped
    assert not [library for library in ("aiohttp", "obstore", "httptools") if library in mapped]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_no_descriptor_stays_open_when_a_server_comes_and_goes(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools") as peer:
        peer.greet()
        counts = []
        for _ in range(4):
            peer.call("die")
            peer.text("echo", text="x")
            counts.append(len(list(Path(f"/proc/{peer.child.pid}/fd").iterdir())))
        assert max(counts[1:]) <= counts[0], counts


def test_without_a_store_everything_goes_on_and_it_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with proxied(tmp_path, "--budget", "200", "--store", str(tmp_path / "file" / "store")) as peer:
        peer.greet()
        prose = "\n".join(f"The {n}th line says {n * 7919}." for n in range(200))
        assert peer.text("echo", text=prose) == prose, "what could not be kept is not cut"
        assert json.loads(decode(peer.text("rows", count=5))) == ROWS[:5]
        assert peer.call("context_recall", handle="pf-aaaaaaaaaa")["result"]["isError"] is True
    assert peer.stderr.count("going on without the store") == 1


def held(folder: Path) -> list[tuple[str, str, str]]:
    listed = [sys.executable, "-m", "pagefold", "journal", "--json"]
    done = subprocess.run(listed, env=environment(folder), capture_output=True, check=True, cwd=folder)
    return [(line["key"], line["state"], line["boundary"]) for line in json.loads(done.stdout)["lines"]]


def test_what_the_agent_holds_is_written_back_at_a_reset_and_at_the_end_and_is_held_again(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        peer.greet()
        peer.text("context_pin", statement="Never push to main.")
        peer.text("context_reset", summary="All is well.")
        assert held(tmp_path) == [("constraints", "committed", "reset")]
        peer.text("context_plan", goal="Ship it", steps=["write", "test"])
        peer.text("context_plan", goal="Ship it", steps=["write", "test"], current=2)
        assert peer.end() == 0
    assert held(tmp_path) == [("constraints", "committed", "reset"), ("plan", "committed", "shutdown")]
    with proxied(tmp_path) as peer:
        peer.greet()
        status = peer.text("context_status")
        assert "Never push to main." in status
        assert "Current step, 2 of 2: test" in status
