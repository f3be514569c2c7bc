"""The prompt cache: breakpoints, look-back, lives, sizes and what each API reports of it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.prompt_cache import LIVES, LOOK_BACK, CachedPrefix, PromptCache
from pagefold.provider.referee import Referee
from tests.provider.talk import TOOLS, Talk, ask

LONG = "All the words of a long instruction that does not change. " * 200
MINUTE, HOUR = 60.0, 3600.0


def marked(text: str, life: str = "5m") -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": life}}]


def body(*messages: Any, system: Any = None, **members: Any) -> dict[str, Any]:
    listed = [{"role": ("user", "assistant")[at % 2], "content": content} for at, content in enumerate(messages)]
    system = {"system": marked(LONG) if system is None else system}
    return {"model": "claude-opus-5-5", "max_tokens": 100, **system, "messages": listed, **members}


def usage(referee: Referee, request: dict[str, Any], now: float = 0.0) -> tuple[int, int, int]:
    """Fresh, written and read tokens, as the API reports them."""
    reply = ask(referee, request, Answer("Yes.", thinking=""), now=now)
    assert reply.accepted, reply.message
    reported = reply.message["usage"]
    assert sum(reported["cache_creation"].values()) == reported["cache_creation_input_tokens"]
    return reported["input_tokens"], reported["cache_creation_input_tokens"], reported["cache_read_input_tokens"]


def test_what_was_written_is_read_and_the_rest_is_fresh() -> None:
    referee = Referee()
    fresh, written, read = usage(referee, body("Hi"))
    assert (fresh > 0, written > 1000, read) == (True, True, 0)
    assert usage(referee, body("Hi")) == (fresh, 0, written)
    assert usage(referee, body("Another question"))[2] == written


@pytest.mark.parametrize(("life", "seconds"), [("5m", 5 * MINUTE), ("1h", HOUR)])
def test_an_entry_lives_as_long_as_asked_for_after_its_last_use(life: str, seconds: float) -> None:
    referee = Referee()
    request = body("Hi", system=marked(LONG, life))
    written = usage(referee, request, now=0)[1]
    assert usage(referee, request, now=seconds - 1)[2] == written
    assert usage(referee, request, now=2 * seconds - 2)[2] == written
    assert usage(referee, request, now=3 * seconds)[1] == written


def test_a_request_for_no_tokens_keeps_an_entry_alive() -> None:
    referee = Referee()
    written = usage(referee, body("Hi"), now=0)[1]
    kept = ask(referee, body("Hi", max_tokens=0), Answer("Unsaid."), now=5 * MINUTE - 1)
    assert (kept.accepted, kept.message["content"], kept.message["usage"]["output_tokens"]) == (True, [], 0)
    assert usage(referee, body("Hi"), now=10 * MINUTE - 2)[2] == written


def test_a_clock_that_jumps_back_shortens_no_life_and_one_that_jumps_ahead_ends_it() -> None:
    referee = Referee()
    written = usage(referee, body("Hi"), now=10_000)[1]
    assert usage(referee, body("Hi"), now=0)[2] == written
    assert usage(referee, body("Hi"), now=10_299)[2] == written
    assert usage(referee, body("Hi"), now=1e12)[1] == written


def test_writes_are_reported_by_life() -> None:
    request = body(marked("A question " * 400), system=marked(LONG, "1h"))
    reported = ask(Referee(), request).message["usage"]["cache_creation"]
    assert reported["ephemeral_1h_input_tokens"] > reported["ephemeral_5m_input_tokens"] > 400


def test_a_prefix_below_the_least_size_is_not_cached_and_no_error() -> None:
    assert usage(Referee(), body("Hi", system=marked("Be brief.")))[1:] == (0, 0)


def test_other_tools_begin_the_cache_anew_and_another_choice_only_the_messages() -> None:
    referee = Referee()
    question = marked("A question " * 300)
    _, written, _ = usage(referee, body(question, tools=TOOLS))
    system = usage(referee, body("Hi", tools=TOOLS))[2]
    assert usage(referee, body(question, tools=TOOLS, tool_choice={"type": "none"}))[2] == system < written
    assert usage(referee, body(question, tools=[{**TOOLS[0], "name": "write"}]))[2] == 0


def test_an_entry_further_back_than_twenty_blocks_is_not_found() -> None:
    for blocks, is_found in ((LOOK_BACK - 3, True), (LOOK_BACK + 1, False)):
        referee = Referee()
        first = body(marked("Begin. " * 500), system="")
        first.pop("system")
        written = usage(referee, first)[1]
        more = [{"type": "text", "text": f"part {at}"} for at in range(blocks)]
        unmarked = {"role": "user", "content": "Begin. " * 500}
        last = {"role": "user", "content": [*more, *marked("and this")]}
        grown = {**first, "messages": [unmarked, {"role": "assistant", "content": "Yes."}, last]}
        assert usage(referee, grown)[2] == (written if is_found else 0)


def test_automatic_caching_moves_with_the_conversation() -> None:
    referee = Referee()
    talk = Talk(referee, system=LONG, members={"cache_control": {"type": "ephemeral"}})
    used = [talk.says(f"Question {at}").message["usage"] for at in range(4)]
    for before, after in itertools.pairwise(used):
        whole = before["cache_read_input_tokens"] + before["cache_creation_input_tokens"]
        assert after["cache_read_input_tokens"] == whole


def test_a_growing_tool_loop_reads_all_of_what_it_sent_before() -> None:
    talk = Talk(Referee(), system=marked(LONG, "1h"))
    talk.says("Go.", Answer(calls=[AnswerCall("read", {"path": "a"})]))
    last = 0
    for number in range(30):
        talk.results(f"content {number} " * 50)
        talk.messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        reply = talk.keep(talk.send(Answer(calls=[AnswerCall("read", {"path": str(number)})])))
        del talk.messages[-2]["content"][-1]["cache_control"]
        reported = reply.message["usage"]
        assert reported["cache_read_input_tokens"] >= last
        assert reported["input_tokens"] == 0
        last = reported["cache_read_input_tokens"] + reported["cache_creation_input_tokens"]
    assert set(talk.referee.totals.bill["claude-opus-5-5"].written) == {"1h"}


@st.composite
def prompts(draw: st.DrawFn) -> CachedPrefix:
    """Prefixes of one long prompt, with up to four breakpoints."""
    length = draw(st.integers(1, 60))
    places = draw(st.sets(st.integers(0, length - 1), max_size=4))
    lives = draw(st.sampled_from(("5m", "1h")))
    hashes = [b"%d" % at for at in range(length)]
    return CachedPrefix(hashes, [100 * (at + 1) for at in range(length)], [(at, lives) for at in sorted(places)])


@given(st.lists(st.tuples(prompts(), st.floats(0, 4000)), max_size=12))
def test_every_token_is_billed_once_and_nothing_is_read_that_was_not_written(
    requests: list[tuple[CachedPrefix, float]],
) -> None:
    cache, now = PromptCache(), 0.0
    written: dict[bytes, float] = {}
    for prompt, pause in requests:
        now += pause
        use = cache.use(prompt, now, shortest=300)
        assert use.read + use.write + use.fresh == prompt.totals[-1]
        assert min(use.read, use.fresh, *use.written.values(), 0) >= 0
        if use.read:
            key = prompt.hashes[prompt.totals.index(use.read)]
            assert now <= written[key] + LIVES["1h"]
        for at, _ in prompt.breakpoints:
            if prompt.totals[at] >= 300:
                written[prompt.hashes[at]] = now
        for key in prompt.hashes:
            if key in written and use.read >= 100 * (int(key) + 1):
                written[key] = now
