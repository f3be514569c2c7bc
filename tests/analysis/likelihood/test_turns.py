"""The contexts that an answer is scored after, and which turns are drawn."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pagefold.analysis.likelihood.turns import LAST, NOTHING, ORIGINAL, ScoredTurn, chosen_turns, last_tokens, turns_of
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session, parse_line

JOB = ReplayJob(ASSUMED, "o200k", 1_000)
COUNT = counter("o200k")


def session(name: str, turns: int = 10) -> Session:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read the files and count their lines."}]
    for turn in range(turns):
        function = {"name": "Read", "arguments": json.dumps({"file_path": f"src/part_{turn}.py"})}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        said = f"Now I read part {turn} of the program."
        messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
        lines = (f"value_{turn}_{line} = compute({line * 7919 % 1000}, '{name}')" for line in range(30))
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "\n".join(lines)})
    messages.append({"role": "assistant", "content": f"That were {30 * turns} lines in all of {turns} files."})
    return parse_line(json.dumps({"id": name, "messages": messages}), name="made")


def drawn(
    sessions: list[Session], *, most: int = 200, seed: int = 1, policies: tuple[str, ...] = ("economic",)
) -> list[ScoredTurn]:
    return chosen_turns(sessions, JOB, policies, window=1_000, context=4_000, most=most, seed=seed)


def test_an_answer_is_scored_after_the_history_what_a_policy_sends_and_an_end_of_the_same_size() -> None:
    one = session("one")
    turns = turns_of(one, JOB, ("lossless", "economic"), window=1_000, context=4_000)

    assert turns
    for turn in turns:
        assert list(turn.contexts) == [ORIGINAL, "lossless", "economic", LAST, NOTHING]
        assert turn.answer.startswith("Now I read part")
        assert turn.answer not in turn.contexts[ORIGINAL]  # nothing of the answer is given away
        assert 1_000 < turn.tokens[ORIGINAL] < 4_100
        assert turn.tokens["economic"] <= 1_000
        assert turn.contexts[ORIGINAL].endswith(turn.contexts[LAST])
        assert turn.tokens["economic"] - 1 <= turn.tokens[LAST] <= turn.tokens["economic"]
        assert all(text.endswith("### assistant\n") for text in turn.contexts.values())


def test_what_fits_the_window_or_not_the_model_is_not_scored() -> None:
    assert not drawn([session("short", turns=1)])
    assert not chosen_turns([session("one")], JOB, ("economic",), window=9_000, context=20_000, most=9, seed=1)
    assert not drawn([session("one")], policies=("identity",))  # it sends the history itself


def test_the_same_seed_draws_the_same_turns_and_few_of_each_session() -> None:
    sessions = [session(f"s{number}", turns=16) for number in range(6)]
    few = drawn(sessions, most=8)

    assert few == drawn(list(reversed(sessions)), most=8)
    assert few == drawn(sessions)[:8]  # a larger draw goes on from a smaller one
    assert [turn.session for turn in few] != [turn.session for turn in drawn(sessions, most=8, seed=2)]
    assert max(map([turn.session for turn in drawn(sessions)].count, {turn.session for turn in few})) <= 6


@given(st.text(max_size=400), st.integers(0, 60))
def test_the_end_of_a_text_is_the_longest_that_fits(text: str, tokens: int) -> None:
    end = last_tokens(text, tokens, COUNT)

    assert text.endswith(end)
    assert COUNT.count(end) <= tokens
    longer = text[len(text) - len(end) - 1 :] if len(end) < len(text) else ""
    assert not longer or COUNT.count(longer) >= COUNT.count(end)
