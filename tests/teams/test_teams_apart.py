"""Whatever two teams do on one server, neither is shown anything of the other, or counted for it.

Both say the same words in part, so that a cache, a page or a name that they shared would show.
"""

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.security.attack import Provider, calling, provider
from tests.teams.server import OPERATOR, TeamServer, settings_for, team_server

TEAMS = (0, 1)
WINDOW = 6000
_numbers = count()
_HANDLE = re.compile(r"pf-[a-z2-7]{10}")

# What a team does: it asks about a topic, recalls a page of a team, or searches for a word of one.
OPERATION = st.tuples(
    st.sampled_from(("ask", "ask", "recall", "search")),
    st.sampled_from(TEAMS),
    st.integers(0, 2),
    st.sampled_from(TEAMS),
)


@pytest.fixture(scope="module")
def model() -> Iterator[Provider]:
    with provider() as one:
        yield one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: Provider) -> Iterator[TeamServer]:
    folder = tmp_path_factory.mktemp("teams")
    with team_server(settings_for(folder, model.url, policy="economic", window=WINDOW)) as one:
        yield one


def result_of(word: str, number: int) -> str:
    rows = (
        f"src/{word}{number}/file{row}.py:{row}: def {word}_{row}(): return {row * 7919 % 1000}" for row in range(60)
    )
    return "\n".join(rows)


def request_about(word: str, topic: int) -> dict[str, Any]:
    """A conversation that is longer than the window, so that it is folded and its pages are stored. Two of its results
    hold the team's own word, and two are the same for all teams."""
    messages: list[Any] = [{"role": "user", "content": f"Look at {topic}."}]
    results = (result_of(word, topic), result_of("common", topic), result_of(word, topic + 10), result_of("common", 99))
    for number, result in enumerate(results):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Grep", "input": {"pattern": f"def {number}"}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    tools = [{"name": "Grep", "description": "Finds.", "input_schema": {"type": "object"}}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": messages}


def handles_of(server: TeamServer, token: str, word: str) -> set[str]:
    """The handles of pages with a word that the dashboard finds for a team."""
    return set(_HANDLE.findall(server.get(f"/pagefold/search?q={word}", token)[1]))


@settings(max_examples=5, deadline=None)
@given(st.lists(OPERATION, min_size=3, max_size=7))
def test_nothing_of_one_team_reaches_the_other(
    server: TeamServer, model: Provider, operations: list[tuple[str, int, int, int]]
) -> None:
    number = next(_numbers)
    names = [f"red{number}", f"blue{number}"]
    words = [f"crimson{number}x", f"azure{number}x"]
    tokens = [server.add(name) for name in names]
    asked, pages = [0, 0], [set[str](), set[str]()]
    for what, team, topic, whose in operations:
        before = len(model.bodies)
        if what == "recall":
            handle = min(pages[whose], default="pf-aaaaaaaaaa")
            model.answers = [calling("context_recall", handle=handle)]
        elif what == "search":
            model.answers = [calling("context_search", query=words[whose])]
        status, text, _ = server.post(request_about(words[team], topic), x_pagefold_token=tokens[team])
        assert status == 200
        asked[team] += 1
        pages[team] = handles_of(server, tokens[team], words[team])
        assert pages[team], "its own pages are found"
        sent = (json.dumps(model.bodies[before:]) + text).replace(f'"query": "{words[whose]}"', "")
        sent = sent.replace(f"No page speaks of '{words[whose]}'", "")
        assert words[1 - team] not in sent
    for team in TEAMS:
        _check_shown(server, tokens[team], names, words, team, asked)
        for handle in sorted(pages[team])[:3]:
            assert server.get(f"/pagefold/page/{handle}", tokens[team])[0] == 200
            assert server.get(f"/pagefold/page/{handle}", tokens[1 - team])[0] == 404
        assert not handles_of(server, tokens[1 - team], words[team])
    spent = [server.front.gate.spent(name).day.requests for name in names]  # type: ignore[attr-defined]
    assert spent == asked
    teams = json.loads(server.get("/pagefold/status", OPERATOR)[1])["teams"]
    assert [teams[name]["requests"] for name in names] == asked
    assert not any(word in server.get("/pagefold/", OPERATOR)[1] for word in words)


def _check_shown(
    server: TeamServer, token: str, names: list[str], words: list[str], team: int, asked: list[int]
) -> None:
    """All that the server shows a team is its own."""
    assert json.loads(server.get("/pagefold/status", token)[1])["requests"] == asked[team]
    live = json.loads(server.get("/pagefold/live.json", token)[1])
    assert live["totals"].get("turns", 0) == asked[team]
    metrics = server.get("/pagefold/metrics", token)[1]
    assert f"pagefold_requests_total {asked[team]}\n" in metrics
    pages = [server.get(path, token)[1] for path in ("/pagefold/", "/pagefold/sessions")]
    pages += [server.get(f"/pagefold/session/{session['name']}", token)[1] for session in live["sessions"]]
    for text in (json.dumps(live), metrics, *pages):
        assert words[1 - team] not in text
        assert names[1 - team] not in text
    assert bool(live["figures"]["pages"]) == bool(asked[team])
