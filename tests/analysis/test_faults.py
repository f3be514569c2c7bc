"""Faults over recordings: what a policy lets go of, seen from the answers and calls that came later."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from pagefold.analysis.faults import observe
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes, Policy
from pagefold.pages.faults import FaultKind, FaultObserver, PageFault
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, handle_of, id_of
from pagefold.tokens import counter
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Session, parse_line

FILE = "def parse_header(line_number):\n    return line_number\n"
OTHER = "class TokenCounter:\n    pass\n"


@dataclass(frozen=True, slots=True)
class Recent:
    """Sends the newest messages alone; `said` stands in place of everything older."""

    keep: int
    said: str = ""
    pages: tuple[Page, ...] = ()
    name: str = "recent"

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> tuple[Message, ...]:
        return ()

    def step(self, state: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
        return (*state, message)

    def request(self, state: tuple[Message, ...], notes: Notes = NOTHING) -> tuple[tuple[Message, ...], Derived]:
        older, newest = state[: -self.keep], state[-self.keep :]
        said = [session(user(self.said), answer("")).messages[0]] if self.said and older else []
        return state, Derived(0, (*said, *newest), "every request anew", self.pages)


def session(*messages: dict[str, Any]) -> Session:
    return parse_line(json.dumps({"id": "s", "messages": messages}), name="s")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(call_id: str, path: str, name: str = "Read") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"path": path})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": "Read", "content": text}


BEGUN = (user("look around"), call("1", "a.py"), result("1", FILE), call("2", "b.py"), result("2", OTHER))
NEEDED = (*BEGUN, answer("the parser is parse_header"))
AGAIN = (*BEGUN, call("3", "a.py"), result("3", FILE), answer("done"))
ELSEWHERE = (*BEGUN, call("3", "a.py", name="cat"), result("3", FILE), answer("done"))
SYSTEM = ({"role": "system", "content": "you are project_assistant"}, *NEEDED)
HANDLE = handle_of(id_of(FILE.encode()))


PIECE = Page.of(PageKind.EVIDENCE, FILE + OTHER)


def observed(messages: Sequence[dict[str, Any]], policy: Policy) -> tuple[FaultObserver, tuple[PageFault, ...]]:
    recorded = session(*messages)
    return observe(recorded, SessionReplay(recorded, Terms(policy, ASSUMED, counter("o200k"))))


def kinds(messages: tuple[dict[str, Any], ...], policy: Policy) -> list[str]:
    return [fault.kind for fault in observed(messages, policy)[1]]


@pytest.mark.parametrize(
    ("messages", "policy", "expected"),
    [
        (NEEDED, Recent(99), []),
        (NEEDED, Recent(2), ["refetch"]),
        (NEEDED, Recent(2, said=f"older: {HANDLE}"), []),
        (NEEDED, Recent(2, said="parse_header is in a.py"), []),
        (NEEDED, Recent(2, said=f"older: {PIECE.handle}"), ["refetch"]),
        (NEEDED, Recent(2, said=f"older: {PIECE.handle}", pages=(PIECE,)), []),
        (AGAIN, Recent(99), ["duplicate_alert"]),
        (AGAIN, Recent(2), ["duplicate_tool"]),
        (AGAIN, Recent(2, said=f"older: {HANDLE}"), ["duplicate_tool"]),
        (ELSEWHERE, Recent(99), []),
        (ELSEWHERE, Recent(2), ["refetch"]),
    ],
)
def test_what_a_policy_let_go_of_is_a_fault_where_it_was_needed_again(
    messages: tuple[dict[str, Any], ...], policy: Policy, expected: list[str]
) -> None:
    assert kinds(messages, policy) == expected


def test_a_system_prompt_that_a_fold_left_out_is_missed_at_every_request_after_it() -> None:
    observer, faults = observed(SYSTEM, Recent(2))

    assert observer.counts[FaultKind.POST_COMPACTION_BOOTSTRAP] == 2
    assert [fault.turn for fault in faults if fault.kind is FaultKind.POST_COMPACTION_BOOTSTRAP] == [2, 3]


def test_a_page_found_by_its_handle_is_a_hit_that_took_a_recall() -> None:
    observer, _ = observed(NEEDED, Recent(2, said=f"older: {HANDLE}"))

    assert (observer.hits, observer.recalls, observer.faults) == (1, 1, 0)


def test_a_fault_names_the_page_and_the_turn_it_was_needed_at() -> None:
    _, (fault,) = observed(NEEDED, Recent(2))

    assert (fault.page, fault.turn) == (id_of(FILE.encode()), 3)


@pytest.mark.parametrize("name", ["identity", "lossless"])
@pytest.mark.parametrize("messages", [NEEDED, AGAIN, ELSEWHERE, SYSTEM])
def test_a_policy_that_lets_go_of_nothing_has_no_fault(name: str, messages: tuple[dict[str, Any], ...]) -> None:
    observer, _ = observed(messages, policy_named(name))

    assert observer.faults == 0
    assert observer.turn == sum(1 for message in messages if message["role"] == Role.ASSISTANT)
