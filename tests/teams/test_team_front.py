"""Teams on one server: who is let in, what reaches the provider, and what happens over a limit."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from pagefold.access.store import AccessState, MemoryAccess
from pagefold.access.team import AdministrativeAct, IssuedToken, Team, TeamUse, stored_hash, token_id
from pagefold.adapters.access_gate import AccessGate
from pagefold.derive import pinned_policy
from pagefold.errors import StoreError
from tests.security.attack import provider, request_of
from tests.teams.server import OPERATOR, SOON, settings_for, team_server

BODY = request_of("fine")


def test_only_a_valid_token_is_let_in_and_it_reaches_no_provider(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        token = server.add("red")
        for headers in ({}, {"x_pagefold_token": "pf_nothing"}, {"x_api_key": "sk-own"}, {"authorization": "Bearer x"}):
            status, text, _ = server.post(BODY, **headers)
            assert status == 401, headers
            assert json.loads(text)["error"]["type"] == "authentication_error"
        assert model.bodies == []

        assert server.post(BODY, x_pagefold_token=token, x_api_key="sk-own")[0] == 200
        assert server.post(BODY, x_pagefold_token=token, x_api_key="sk-own", x_other=token, x_more="1")[0] == 200
    assert [head["x-api-key"] for head in model.heads] == ["sk-own", "sk-own"]
    assert token not in json.dumps(model.heads)
    assert model.heads[1]["x-more"] == "1"


@pytest.mark.parametrize(
    ("path", "shown", "header", "sent"),
    [
        ("/v1/messages", "x_api_key", "x-api-key", "sk-server"),
        ("/v1/messages", "authorization", "x-api-key", "sk-server"),
        ("/v1/chat/completions", "authorization", "authorization", "Bearer sk-server"),
        ("/v1/responses", "authorization", "authorization", "Bearer sk-server"),
    ],
)
def test_a_token_in_place_of_a_key_is_replaced_by_the_servers(
    tmp_path: Path, path: str, shown: str, header: str, sent: str
) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        value = token if shown == "x_api_key" else f"Bearer {token}"
        assert server.post(BODY, path, **{shown: value})[0] == 200
        assert server.post(BODY, path, x_pagefold_token=token)[0] == 200
        own = "sk-own" if header == "x-api-key" else "Bearer sk-own"
        assert server.post(BODY, path, x_pagefold_token=token, **{header.replace("-", "_"): own})[0] == 200
    assert [head.get(header) for head in model.heads] == [sent, sent, own]
    assert token not in json.dumps(model.heads)


def test_a_token_in_place_of_a_key_that_the_server_does_not_hold_is_refused(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        status, text, _ = server.post(BODY, x_api_key=server.add("red"))
        assert (status, model.bodies) == (401, [])
        assert "holds no key of anthropic" in text
        assert (
            server.post(BODY, "/v1/messages?key=" + server.tokens["red"], x_pagefold_token=server.tokens["red"])[0]
            == 400
        )


def test_a_revoked_token_is_refused_within_a_second_and_a_new_one_taken(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        token = server.add("red")
        assert server.post(BODY, x_pagefold_token=token)[0] == 200
        [issued] = server.access.tokens()
        assert server.access.revoke(issued.id, AdministrativeAct(time.time(), "test", "token revoked", "red"))
        until = time.monotonic() + SOON
        while server.post(BODY, x_pagefold_token=token)[0] == 200:
            assert time.monotonic() < until
        assert server.post(BODY, x_pagefold_token=token)[0] == 401


def test_over_a_budget_the_team_is_told_so_and_others_go_on(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        red, blue = server.add("red", tokens_day=4), server.add("blue")
        statuses = []
        for _ in range(4):
            statuses.append(server.post(BODY, x_pagefold_token=red)[0])
            server.get("/pagefold/status", red)  # has it counted
        assert statuses == [200, 200, 429, 429]  # each is a token up and one down
        status, text, headers = server.post(BODY, x_pagefold_token=red)
        error = json.loads(text)["error"]
        assert (status, error["type"]) == (429, "rate_limit_error")
        assert error["message"].startswith("team red has used its budget of 4 tokens a day (4 used)")
        assert 0 < int(headers["retry-after"]) <= 86_400
        assert server.post(BODY, x_pagefold_token=blue)[0] == 200
        server.add("red", tokens_day=6)
        assert server.post(BODY, x_pagefold_token=red)[0] == 200
    assert len(model.bodies) == 4


def test_requests_a_minute_are_limited(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        red = server.add("red", requests_minute=3)
        if time.time() % 60 > 57:
            time.sleep(61 - time.time() % 60)
        statuses = [server.post(BODY, x_pagefold_token=red)[0] for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        headers = server.post(BODY, x_pagefold_token=red)[2]
        assert 1 <= int(headers["retry-after"]) <= 60
    assert len(model.bodies) == 3


def test_use_is_put_down_to_team_project_agent_and_model(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        red = server.add("red")
        server.post(BODY, x_pagefold_token=red, x_pagefold_project="api", user_agent="claude-cli/2.1")
        server.post(BODY, x_pagefold_token=red, x_pagefold_project="<b>", user_agent="codex/1")
        server.get("/pagefold/status", red)
        server.look()
        uses = {(use.team, use.project, use.agent, use.model): counts for use, counts in server.access.uses().items()}
        assert set(uses) == {
            ("red", "api", "Claude Code", "claude-sonnet-4-5"),
            ("red", "", "Codex", "claude-sonnet-4-5"),
        }
        assert {(counts.requests, counts.prompt, counts.output) for counts in uses.values()} == {(1, 1, 1)}
        assert all(counts.microusd > 0 for counts in uses.values())
        _, text = server.get("/pagefold/metrics", OPERATOR)
        labels = 'team="red",project="api",agent="Claude Code",model="claude-sonnet-4-5",what="requests"'
        assert f"pagefold_team_use_total{{{labels}}} 1" in text
    assert all("x-pagefold-project" not in head for head in model.heads)


def test_a_browser_opens_the_dashboard_of_its_team_by_a_cookie_that_holds_no_token(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        red = server.add("red", usd_day=5.0)
        server.post(BODY, x_pagefold_token=red)
        assert server.get("/pagefold/")[0] == 401
        status, _, headers = server.ask("GET", f"/pagefold/?key={red}", b"", {})
        cookie = headers["set-cookie"].split(";")[0]
        assert (status, headers["location"]) == (303, "/pagefold/")
        assert red not in cookie
        status, page = server.get("/pagefold/", cookie=cookie)
        assert status == 200
        assert "Team red has used" in page
        assert server.get("/pagefold/status", cookie=cookie)[0] == 200
        assert server.post(BODY, cookie=cookie)[0] == 401
        assert server.get("/pagefold/", cookie="pagefold_team=" + "0" * 64)[0] == 401


def test_the_operator_sees_every_team_in_figures_and_no_page(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url)) as server:
        for team in ("red", "blue"):
            server.post(BODY, x_pagefold_token=server.add(team, usd_month=9.0))
        status = json.loads(server.get("/pagefold/status", OPERATOR)[1])
        assert (status["requests"], {name: one["requests"] for name, one in status["teams"].items()}) == (
            2,
            {"red": 1, "blue": 1},
        )
        page = server.get("/pagefold/", OPERATOR)[1]
        assert "red" in page
        assert "of $9.00" in page
        assert server.get("/pagefold/search?q=fine", OPERATOR)[0] == 404
        assert server.post(BODY, x_pagefold_token=OPERATOR)[0] == 401


def test_without_the_access_store_nobody_new_is_let_in_and_those_known_are() -> None:
    access, away = MemoryAccess(), [True]
    token = "pf_" + "r" * 30
    access.set_team(Team("red"), AdministrativeAct(0.0, "test", "team added", "red"))
    issued = IssuedToken(token_id(stored_hash(token)), "red", "", 0.0)
    access.add_token(stored_hash(token), issued, AdministrativeAct(0.0, "test", "token created", "red"))

    def opened() -> MemoryAccess:
        if away[0]:
            raise StoreError("it is away", kind="away")
        return access

    problems: list[str] = []
    with closing(AccessGate(opened, report=lambda kind, line: problems.append(kind), poll_seconds=60)) as gate:
        assert gate.is_shut
        assert gate.team_of(token) is None
        away[0] = False
        assert gate.look()
        team = gate.team_of(token)
        assert team == Team("red")
        gate.add("red", "", "", "", TeamUse(requests=1))
        access.report = _away  # type: ignore[method-assign,assignment]
        assert not gate.look()
        assert not gate.look()
        assert gate.is_out
        assert gate.team_of(token) == team
        gate.add("red", "", "", "", TeamUse(requests=1))
        assert gate.spent("red").day.requests == 2
        del access.report
    assert sum(counts.requests for counts in access.uses().values()) == 2
    assert problems == ["access away", "access back", "access away", "access back"]


def _away(*asked: object) -> AccessState:
    raise StoreError("it is away", kind="away")


def test_what_is_handed_on_to_another_version_shows_the_teams_token_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider() as model, provider() as other:
        with team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
            token = server.add("red")
            assert server.post(BODY, x_pagefold_token=token)[0] == 200
        monkeypatch.setattr(pinned_policy, "VERSION", pinned_policy.VERSION + 1)
        monkeypatch.setattr(pinned_policy, "_DERIVED", frozenset((pinned_policy.VERSION,)))
        settings = settings_for(tmp_path, model.url, key="sk-server", other_version=other.url)
        with team_server(settings) as server:
            server.look()
            assert server.post(BODY, x_pagefold_token=token)[0] == 200
    assert (len(model.bodies), other.bodies) == (1, [BODY])
    assert other.heads[0]["x-pagefold-token"] == token
    assert "sk-server" not in json.dumps(other.heads)
