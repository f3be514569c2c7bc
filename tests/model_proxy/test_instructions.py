"""Instruction files that the user configured: what they say stands in every request that the proxy sends on."""

from contextlib import closing
from pathlib import Path

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.cli.serve_setup import proxy_for
from pagefold.errors import ConfigError
from pagefold.model_proxy.server import running
from pagefold.settings.sections import ServeSettings, Settings
from tests.model_proxy.conversation import body, history
from tests.model_proxy.upstream import ANSWER, answers, ask, upstream, whole


def sent(folder: Path, turns: range, **headers: str) -> list[bytes]:
    """Requests of one conversation as they reach the model, through a proxy that was started anew."""
    with upstream(answers(whole(ANSWER))) as model, closing(Library(open_store(folder / "store.sqlite3"))) as library:
        serve = ServeSettings(
            policy="economic", window=9_000, instructions=f"{folder / 'AGENTS.md'}, ", anthropic_url=model.url
        )
        proxy = proxy_for(Settings(serve=serve), library)
        with running(proxy) as url:
            for number in turns:
                assert ask(url, body=body(history(number)), **headers)[0] == 200
        assert proxy.totals.faults == 0
        return [received.body for received in model.received]


def test_they_stand_in_every_request_and_a_history_keeps_those_it_began_with(tmp_path: Path) -> None:
    rules = tmp_path / "AGENTS.md"
    rules.write_text("# Rules\nNever push to main.\n", encoding="utf-8")
    first = sent(tmp_path, range(1, 14))
    rules.write_text("# Rules\nPush at will.\n", encoding="utf-8")
    then = sent(tmp_path, range(14, 30))

    assert [request.count(b"Never push to main.") for request in first + then] == [1] * 29
    assert not any(b"Push at will." in request for request in then)
    assert any(b"pagefold wrote this message" in request for request in then)


def test_who_names_another_policy_is_held_to_them_too(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Rules\nNever push to main.\n", encoding="utf-8")

    requests = sent(tmp_path, range(1, 30), x_pagefold="fifo")

    assert all(b"Never push to main." in request for request in requests)
    assert b"Never push to main." not in sent(tmp_path, range(1, 2), x_pagefold="off")[0]


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (ServeSettings(instructions="AGENTS.md"), r"serve\.instructions: expected a policy that folds; .* is lossless"),
        (ServeSettings(policy="economic", instructions="nowhere.md"), r"instructions: nowhere\.md cannot be read"),
    ],
)
def test_what_could_not_hold_is_refused_at_the_start(serve: ServeSettings, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        proxy_for(Settings(serve=serve), None)
