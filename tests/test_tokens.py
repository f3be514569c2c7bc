"""The one counter: exact where it says so, marked where it estimates, never a download."""

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rs_bpe.bpe import openai

from pagefold import tokens
from pagefold.errors import ConfigError

_second_opinion = openai.o200k_base()


@given(st.text(max_size=400))
@settings(deadline=None, max_examples=300)
def test_o200k_counts_what_another_engine_counts(text: str) -> None:
    assert tokens.counter("o200k").count(text) == _second_opinion.count(text)


@pytest.mark.parametrize("text", ["<|endoftext|>", "a <|fim_prefix|> b", "x" * 9000, "\n" * 3000, "émoji 😀 日本"])
def test_words_that_look_like_control_tokens_are_only_text(text: str) -> None:
    assert tokens.counter("o200k").count(text) == _second_opinion.count(text)


def test_a_long_text_is_counted_the_same_from_the_cache() -> None:
    text = "def f(x):\n    return x\n" * 200
    fresh = tokens.counter("o200k")

    assert fresh.count(text) == fresh.count(text) == _second_opinion.count(text)


@given(
    st.text(max_size=400) | st.text("/\n\r[] a.1\u0301", max_size=20), st.sampled_from(["o200k", "cl100k", "claude-5"])
)
@settings(deadline=None, max_examples=300)
def test_a_text_below_a_header_is_counted_as_they_are_together(text: str, name: str) -> None:
    counter = tokens.counter(name)
    for below in (text, f"{text} and more words\n" * 40):
        for header in ("[R12]\n", "[R3 lines 1-9]\n[as it is]\n"):
            assert counter.count_below(header, below, counter.count(below)) == counter._count(header + below)


def test_the_cache_is_bounded() -> None:
    counter = tokens.Counter("x", len, exact=True, label="")
    for number in range(tokens._CACHED + 10):
        counter.count(f"{number:0600}")

    assert len(counter._cached) <= tokens._CACHED


@pytest.mark.parametrize("text", ["a\ud800b", "\udcff" * 600])
def test_a_lone_surrogate_counts_as_the_replacement_character(text: str) -> None:
    replaced = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)

    assert tokens.counter("o200k").count(text) == _second_opinion.count(replaced)


def test_an_estimate_says_that_it_is_one() -> None:
    for name in ("claude-3", "claude-5"):
        estimate = tokens.counter(name)
        assert not estimate.exact
        assert "estimated" in estimate.label
    assert tokens.counter("o200k").exact


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("The quick brown fox jumps over the lazy dog, and then it sleeps.", "prose"),
        ("for (int i = 0; i < n; ++i) { total += values[i].size(); }", "code"),
        ("2026-11-16 02:14:55,1042 3.14159 17 22 0x1f 99", "data"),
    ],
)
def test_the_claude_factor_follows_the_content(text: str, content: str) -> None:
    assert tokens.content_of(text) == content
    base = tokens.counter("o200k").count(text)
    assert tokens.counter("claude-5").count(text) == round(base * tokens._FACTORS[content][1])
    assert tokens.counter("claude-5").count(text) > tokens.counter("claude-3").count(text) > base


MIXED = st.text(st.one_of(st.characters(codec=None), st.sampled_from("aZ_09 \n\x1c.,;—“é٣\ud800😀")), max_size=60)


@given(MIXED)
@settings(deadline=None, max_examples=500)
def test_content_is_told_by_the_share_of_digits_and_marks(text: str) -> None:
    digits, marks = len(re.findall("[0-9]", text)), len(re.findall(r"[^\w\s]", text))
    share = 0.08 * len(text)

    assert tokens.content_of(text) == ("data" if digits >= share else "code" if marks >= share else "prose")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-6", "claude-3"),
        ("claude-opus-4-7-20260301", "claude-5"),
        ("claude-sonnet-4-20250514", "claude-3"),
        ("claude-3-5-haiku-20241022", "claude-3"),
        ("claude-sonnet-5", "claude-5"),
        ("claude-opus-5-5", "claude-5"),
        ("gpt-5-codex", "o200k"),
        ("gpt-4o-mini", "o200k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-3.5-turbo", "cl100k"),
        ("something-else", "o200k"),
    ],
)
def test_a_model_is_counted_by_its_own_family(model: str, name: str) -> None:
    assert tokens.counter_for(model).name == name


def test_an_unknown_counter_is_refused_with_the_names_that_would_do() -> None:
    with pytest.raises(ConfigError, match=r"tokens = 'gpt2': expected one of o200k, cl100k, claude-3, claude-5"):
        tokens.counter("gpt2")


def test_counting_opens_no_socket_and_reads_no_vocabulary_from_elsewhere() -> None:
    program = (
        "import sys\n"
        "def audit(event, args):\n"
        "    if event.startswith(('socket.', 'urllib.')): raise SystemExit(f'network: {event}')\n"
        "sys.addaudithook(audit)\n"
        "from pagefold import tokens\n"
        "print(tokens.counter('o200k').count('hello world'), tokens.counter('cl100k').count('hello world'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "2 2\n"
