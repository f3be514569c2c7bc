"""The live view: sessions added up from events."""

from hypothesis import given
from hypothesis import strategies as st

from pagefold.telemetry.events import CallEvent, TracedFault, TracedRecall, TurnEvent
from pagefold.telemetry.live import LiveView, snapshot


def turn(session: str, at: float = 1.0, began: str = "", **more: object) -> TurnEvent:
    return TurnEvent(at=at, session=session, began=began, **{"status": 200, **more})  # type: ignore[arg-type]


def test_the_first_request_and_the_rest_of_a_conversation_are_one_session() -> None:
    live = LiveView()
    live.see(turn("first", tokens=10))
    live.see(turn("named", began="first", tokens=20))
    live.see(turn("named", began="first", tokens=30))
    assert [(one.name, one.turns, one.tokens) for one in live.newest()] == [("named", 3, 30)]


def test_two_conversations_that_begin_alike_are_two_sessions() -> None:
    live = LiveView()
    live.see(turn("first"))
    live.see(turn("first"))
    live.see(turn("one", began="first"))
    live.see(turn("other", began="first"))
    assert {one.name: one.turns for one in live.newest()} == {"one": 3, "other": 1}


def test_what_happened_is_told_with_its_reason_and_an_alert_is_no_fault() -> None:
    live = LiveView()
    faults = (
        TracedFault("duplicate_tool", "pf-a", "called again"),
        TracedFault("duplicate_alert", "pf-b", "it stands"),
    )
    recalls = (TracedRecall("pf-c", "by MCP"),)
    live.see(turn("a", fold="the window is full", faults=faults, recalls=recalls, cold=True, shrunk=True, status=500))
    told = [(one.what, one.page) for one in live.happened]
    assert told == [
        ("fold", ""),
        ("duplicate_tool", "pf-a"),
        ("duplicate_alert", "pf-b"),
        ("recall", "pf-c"),
        ("cold", ""),
        ("shrunk", ""),
        ("failed", ""),
    ]
    session = live.newest()[0]
    assert (session.faults, session.folds, session.recalls, session.failed) == (1, 1, 1, 1)
    assert live.faults == {"duplicate_tool": 1, "duplicate_alert": 1}


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99)), max_size=60), st.integers(1, 4), st.data())
def test_totals_count_every_event_once_whatever_is_let_go_and_whenever_they_are_asked_for(
    seen: list[tuple[str, int]], most: int, data: st.DataObject
) -> None:
    live = LiveView(most)
    for name, saved in seen:
        live.see(turn(name, saved=saved, fresh=1))
        if data.draw(st.booleans()):
            assert live.totals["turns"] == live.number
    assert len(live.sessions) <= most
    assert live.totals["saved"] == sum(saved for _, saved in seen)
    assert live.totals["turns"] == live.totals["fresh"] == len(seen)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20), st.integers(0, 20))
def test_what_changed_since_is_just_what_later_events_were_of(names: list[str], since: int) -> None:
    live = LiveView()
    for name in names:
        live.see(turn(name))
    assert {one.name for one in live.changed_since(since)} == set(names[since:])


def test_calls_of_an_mcp_proxy_are_a_session_too() -> None:
    live = LiveView()
    live.see(CallEvent(at=1.0, session="mcp-1", tool="Read", before=100, after=60))
    session = snapshot(live)["sessions"][0]
    assert (session["agent"], session["calls"], session["saved"]) == ("MCP", 1, 40)


def test_a_session_is_found_by_the_beginning_of_its_name_if_that_is_enough() -> None:
    live = LiveView()
    for name in ("abc1", "abc2", "xyz"):
        live.see(turn(name))
    assert [getattr(live.named(part), "name", None) for part in ("abc1", "abc", "x", "", "q")] == [
        "abc1",
        None,
        "xyz",
        None,
        None,
    ]
