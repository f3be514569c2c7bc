"""Problems are told once a minute for each kind, as a sentence or as JSON."""

import json

from pagefold.adapters.problem_log import ProblemLog


def test_each_kind_is_told_once_a_minute_and_all_are_counted() -> None:
    told: list[str] = []
    now = [0.0]
    log = ProblemLog(told.append, clock=lambda: now[0])
    for second in range(70):
        now[0] = float(second)
        log("store full", "no room")
        if second == 3:
            log("store late", "no answer")

    assert told == ["pagefold: no room", "pagefold: no answer", "pagefold: no room (59 more like this were not told)"]
    assert log.counts == {"store full": 70, "store late": 1}


def test_a_line_of_json_has_a_time_and_a_kind() -> None:
    told: list[str] = []
    ProblemLog(told.append, as_json=True, wall_clock=lambda: 0.0)("store full", "no room")

    assert json.loads(told[0]) == {
        "at": "1970-01-01T00:00:00.000+00:00",
        "program": "pagefold",
        "problem": "store full",
        "text": "no room",
        "left_out": 0,
    }
