"""`pagefold team` and `pagefold token`: what they say, keep and refuse."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import pagefold


def told(home: Path, *arguments: str) -> Any:
    return json.loads(pagefold(*arguments, "--json", home=home).stdout)


def test_a_token_is_made_listed_and_revoked_and_every_act_is_logged(tmp_path: Path) -> None:
    made = pagefold("team", "set", "red", "--usd-day", "20", "--tokens-month", "5m", home=tmp_path)
    assert made.stdout.decode() == "team red: $20.00 a day, 5.00 M tokens a month\n"
    token = told(tmp_path, "token", "create", "red", "--label", "ci")
    [listed] = told(tmp_path, "token", "list")
    assert (listed["id"], listed["team"], listed["label"], listed["revoked"]) == (token["id"], "red", "ci", 0.0)
    pagefold("token", "revoke", token["id"], home=tmp_path)
    again = pagefold("token", "revoke", token["id"], home=tmp_path, code=2)
    assert b"no valid token has the id" in again.stderr
    acts = told(tmp_path, "token", "audit")
    did = [(act["act"], act["team"]) for act in acts]
    assert did == [("team added", "red"), ("token created", "red"), ("token revoked", "red")]
    assert all("@" in act["actor"] for act in acts)
    [file] = tmp_path.rglob("store.access.sqlite3")
    with closing(sqlite3.connect(file)) as kept:
        text = "\n".join(kept.iterdump())
    assert token["id"] in text
    assert token["token"].startswith("pf_")
    assert token["token"] not in text


def test_a_limit_that_is_not_named_stays(tmp_path: Path) -> None:
    pagefold("team", "set", "red", "--usd-day", "20", home=tmp_path)
    pagefold("team", "set", "red", "--requests-minute", "60", home=tmp_path)
    [team] = told(tmp_path, "team", "list")
    assert (team["usd_day"], team["requests_minute"]) == (20.0, 60)
    for command in ("stats", "report"):
        assert told(tmp_path, command, "--team", "red")["uses"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("team", "set", "Red Team"), "team 'Red Team': expected up to 40 small letters"),
        (("team", "set", "red", "--usd-day", "-1"), "--usd-day: expected 0 or more, got -1"),
        (("token", "create", "blue"), "there is no team 'blue': pagefold team set NAME"),
        (("stats", "--team", "blue"), "--team = 'blue': expected one of (there are no teams yet)"),
        (("report", "--team", "blue"), "--team = 'blue': expected one of (there are no teams yet)"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in pagefold(*arguments, home=tmp_path, code=2).stderr.decode()
