"""Pages at their levels: what each kind promises, what it costs, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.representations import candidate, represent
from pagefold.encode.choose import decode
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page
from pagefold.pages.producers import PinnedPlan, Statement, constrain, plan

FILE = "\n".join(f"{number}\tdef function_{number}(argument):" for number in range(1, 200))
TALK = (
    "We looked at the matter for a while. It is what it is. The parser must accept empty input. "
    "That was a long day for all of us. Which port does it use? Port 8377 failed with EADDRINUSE, so it is 8378 now. "
) * 6


@pytest.mark.parametrize("kind", PageKind)
@pytest.mark.parametrize("level", ResidencyLevel)
def test_a_level_outside_the_path_is_refused_with_the_reason(kind: PageKind, level: ResidencyLevel) -> None:
    page = Page.of(kind, FILE, "Read a.py")
    if level in kind.degradation_path():
        assert represent(page, level).level is level
    else:
        with pytest.raises(ValueError, match=f"a {kind} page may not stand at {level}"):
            represent(page, level)


def test_compressed_is_lossless() -> None:
    rows = json.dumps([{"id": number, "state": "open"} for number in range(40)])
    shown = represent(Page.of(PageKind.EVIDENCE, rows), ResidencyLevel.COMPRESSED)
    assert json.loads(decode(shown.text)) == json.loads(rows)


@pytest.mark.parametrize("level", [ResidencyLevel.STRUCTURED, ResidencyLevel.POINTER])
def test_a_lossy_level_carries_the_handle(level: ResidencyLevel) -> None:
    page = Page.of(PageKind.EVIDENCE, FILE + "\nand some words more\n" * 200, "Read a.py")
    assert page.handle in represent(page, level).text


def test_a_constraint_keeps_its_statement_with_scope_and_source() -> None:
    held = constrain("Never delete a ledger entry.")
    assert isinstance(held, Statement)
    text = represent(held.page, ResidencyLevel.STRUCTURED).text
    assert "Never delete a ledger entry." in text
    assert "session" in text


def test_a_plan_keeps_its_goal_and_current_step() -> None:
    held = plan("Ship it", steps=["write", "test", "release"], current=2)
    assert isinstance(held, PinnedPlan)
    text = represent(held.page, ResidencyLevel.STRUCTURED).text
    assert "Ship it" in text
    assert "test" in text


def test_a_conversation_keeps_decisions_numbers_and_questions() -> None:
    text = represent(Page.of(PageKind.CONVERSATION, TALK), ResidencyLevel.STRUCTURED).text
    for kept in ("must accept empty input", "Which port does it use?", "Port 8377 failed with EADDRINUSE"):
        assert kept in text
    assert "That was a long day" not in text


@given(st.text(min_size=1, max_size=3000), st.sampled_from(PageKind))
def test_offers_follow_the_path_and_none_is_dearer_than_the_one_above(text: str, kind: PageKind) -> None:
    offers = candidate(Page.of(kind, text), 1.0).offers
    path = kind.degradation_path()
    assert [path.index(offer.level) for offer in offers] == sorted(path.index(offer.level) for offer in offers)
    assert offers[0].level is ResidencyLevel.FULL
    assert offers[-1].level is kind.min_fidelity()
    assert [offer.cost for offer in offers] == sorted((offer.cost for offer in offers), reverse=True)


@given(st.text(min_size=1))
def test_no_level_of_a_text_is_empty(text: str) -> None:
    page = Page.of(PageKind.CONVERSATION, text)
    assert all(represent(page, level).text for level in ResidencyLevel)
