"""Summaries by a model: used where they say something, by the hash of what they summarise; else the digest stands."""

from dataclasses import replace
from typing import Any

import pytest

from pagefold.derive.policies.incremental import Incremental
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Derived, Notes
from pagefold.derive.summary import Wanted, refused, wanted
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from tests.derive.loops import SUMMARY, WINDOW, folded, text


@pytest.mark.parametrize("policy", [Reset(WINDOW), Incremental(WINDOW)], ids=lambda policy: policy.name)
def test_a_summary_takes_the_place_of_the_digest_and_keeps_the_way_back(policy: Any) -> None:
    state, plain = folded(policy)
    page = max(wanted(plain, 800), key=lambda one: len(one.page.content)).page

    after, derived = policy.request(state, Notes(summaries=((page.id, SUMMARY),)))

    assert SUMMARY.strip() in text(derived.append)
    assert page.handle in text(derived.append)
    assert derived.pages == plain.pages
    assert after.tokens == policy.request(state)[0].tokens + counted(derived) - counted(plain)


def counted(derived: Derived) -> int:
    from pagefold.tokens import FRAME, counter

    return sum(counter("o200k").count(message.text) + FRAME for message in derived.append)


@pytest.mark.parametrize("said", ["", "  \n", "Fine.", "word " * 9_000])
def test_a_summary_that_says_nothing_or_too_much_leaves_the_digest(said: str) -> None:
    policy = Reset(WINDOW)
    state, plain = folded(policy)

    summaries = tuple((one.page.id, said) for one in wanted(plain, 800))

    assert policy.request(state, Notes(summaries=summaries))[1] == plain


def test_a_summary_of_something_else_is_not_used() -> None:
    policy = Reset(WINDOW)
    state, plain = folded(policy)
    other = Page.of(PageKind.CONVERSATION, "something else")

    assert policy.request(state, Notes(summaries=((other.id, SUMMARY),)))[1] == plain


def test_the_gate_says_why() -> None:
    source = "one fact after another " * 400

    assert "50 are the least" in refused("short", source, 500)
    assert "500 are the most" in refused("word " * 700, source, 500)
    assert "no shorter" in refused("a b c", "a b c", 500)
    assert refused("word " * 100, source, 500) == ""


def test_a_record_that_goes_on_is_summarised_after_what_is_known_of_its_beginning() -> None:
    page = Page.of(
        PageKind.CONVERSATION, '[the 4 messages before these: context_recall("pf-abcdefghij")]\n{"role":"user"}'
    )
    asked = Wanted(page, 100)

    assert asked.before == "pf-abcdefghij"
    assert asked.source({}) == '{"role":"user"}'
    assert asked.source({"pf-abcdefghij": "Earlier."}).startswith("What came before, in short:\nEarlier.\n")
    assert Wanted(replace(page, content=b"plain"), 100).source({"pf-abcdefghij": "x"}) == "plain"
