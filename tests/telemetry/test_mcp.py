"""The MCP proxy in the trace and in the metrics, over its real streams."""

from pathlib import Path

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import counters
from pagefold.telemetry.events import CallEvent
from pagefold.telemetry.metrics import of_mcp
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer
from tests.telemetry.trace_files import read

STORE = Path("data") / "pagefold" / "store.sqlite3"


def talk(folder: Path, **environment: str) -> None:
    with Peer([*PAGEFOLD, "--", *ODD], folder, environment) as client:
        client.greet()
        for _ in range(3):
            client.text("rows", count=40)


def test_every_call_is_told_in_tokens_and_the_tool_by_a_hash(tmp_path: Path) -> None:
    talk(tmp_path, PAGEFOLD_TELEMETRY_TRACE="true")
    events, damaged = read(LocalFiles(tmp_path / STORE).trace)
    assert damaged == 0
    calls = [event for event in events if isinstance(event, CallEvent)]
    assert len(calls) == 3
    assert len({call.session for call in calls}) == 1
    assert all(call.tool.startswith("#") and call.before > call.after > 0 for call in calls)


def test_asked_for_the_tool_is_named(tmp_path: Path) -> None:
    talk(tmp_path, PAGEFOLD_TELEMETRY_TRACE="true", PAGEFOLD_TELEMETRY_CONTENT="true")
    events = read(LocalFiles(tmp_path / STORE).trace)[0]
    assert {event.tool for event in events if isinstance(event, CallEvent)} == {"rows"}


def test_off_there_is_no_file_and_the_counts_are_the_metrics(tmp_path: Path) -> None:
    talk(tmp_path)
    assert not LocalFiles(tmp_path / STORE).trace.exists()
    counts = {one.name: one.count for one in counters.read(LocalFiles(tmp_path / STORE).counters)}
    told = {sample.name: sample.value for sample in of_mcp(counts)}
    assert told["pagefold_mcp_calls_total"] == 3
