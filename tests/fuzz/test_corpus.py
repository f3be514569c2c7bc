"""The kept inputs of `make fuzz` pass, and a check fails where what it guards is broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fuzz.__main__ import TARGETS
from bench.fuzz.mutating import inputs
from pagefold.encode import cursor
from pagefold.errors import PagefoldError
from pagefold.mcp_proxy.lines import LineSplitter
from pagefold.wire import sse

KEPT = [(target.name, name) for target in TARGETS.values() for name, _ in target.corpus()]


@pytest.mark.parametrize(("target", "name"), KEPT)
def test_a_kept_input_passes(target: str, name: str) -> None:
    TARGETS[target].run(dict(TARGETS[target].corpus())[name])


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=15)
@given(st.data())
def test_and_so_do_some_mutations_of_them(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(inputs(TARGETS[name])))


def failing(target: str) -> bool:
    try:
        for _, data in TARGETS[target].corpus():
            TARGETS[target].run(data)
    except (AssertionError, LookupError, PagefoldError):
        return True
    return False


def test_a_byte_lost_between_events_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    split = sse.EventSplitter.split
    monkeypatch.setattr(sse.EventSplitter, "split", lambda self, data: split(self, data.replace(b": ping", b": pin")))
    assert failing("streams")


def test_a_line_that_depends_on_the_cuts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = LineSplitter.feed
    monkeypatch.setattr(LineSplitter, "feed", lambda self, data: feed(self, data)[:3])
    assert failing("mcp")


def test_a_cursor_that_skips_a_character_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    members = cursor._members
    monkeypatch.setattr(cursor, "_members", lambda text: members(text) | {"a": members(text)["a"] + 1})
    assert failing("cursors")


def test_a_project_that_sets_what_is_the_users_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagefold.config.layers.may_set", lambda path, value: True)
    assert failing("settings")
