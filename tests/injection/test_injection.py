"""200 injected texts, after lossless forms, a fold and a recall: by rule none is anybody's but the tool's."""

import json
import re

import pytest

from pagefold import Context
from pagefold.encode.choose import decode, encode
from pagefold.encode.recall_reply import reply_to_recall
from pagefold.encode.trim import trim
from pagefold.pages.ledger import Ledger
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.page import handle_of
from pagefold.pages.search import SearchHit, SearchResults
from tests.injection import reader
from tests.injection.texts import TEXTS

OURS = re.compile(r"\[as it is\]|\[(?:R\d+|lines \d+-\d+|R\d+ lines \d+-\d+)\]|\[[A-Za-z].*\]")
every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def test_there_are_two_hundred() -> None:
    assert len(set(TEXTS.values())) == 200


@every_text
def test_in_a_lossless_form_no_line_is_pagefolds_that_pagefold_did_not_write(text: str) -> None:
    for ledger in (None, Ledger()):
        shown = encode(text, tool="Bash cat notes", ledger=ledger)
        back = decode(shown.text, ledger)
        assert back == text or json.loads(back) == json.loads(text), "and its bytes come back"
        written = [line for whose, line in reader.form(shown.text) if whose == "pagefold"]
        assert len(written) <= 2, written
        assert all(OURS.fullmatch(line) for line in written), written
        body = "\n".join(line for whose, line in reader.form(shown.text) if whose == "tool")
        assert not reader.NOTICE.match(body) or shown.text.startswith("[as it is]\n")


@every_text
def test_in_a_trimmed_result_only_the_frame_is_pagefolds(text: str) -> None:
    long = "\n".join([*(f"line {n} of a long log" for n in range(400)), text, *(f"row {n} ERROR" for n in range(400))])
    shown = trim(long, 2_000, tool="Bash", keywords=frozenset(("push", "user"))).text.split("\n")
    end = next(index for index, line in enumerate(shown) if line.startswith("[missing: "))
    assert shown[0].startswith("[part of Bash")
    assert not [line for line in shown[1:end] if reader.NOTICE.match(line) and not line.startswith("[left out: $")]


def folded(text: str) -> tuple[Context, str]:
    context = Context(9_000)
    context.add({"role": "user", "content": "Mend the mill."})
    for turn in range(30):
        result = text if turn % 3 == 0 else "\n".join(f"stone_{turn}_{n} is worn by {turn * n}" for n in range(60))
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": f'{{"at": "{turn}"}}'}}
        context.add({"role": "assistant", "content": f"I look at stone_{turn}.", "tool_calls": [call]})
        context.add({"role": "tool", "tool_call_id": f"c{turn}", "content": result})
        request = context.request()
        digests = [m["content"] for m in request if m["role"] == "user" and "pagefold wrote this" in m["content"][:60]]
        if digests and turn > 6:
            return context, digests[-1]
    raise AssertionError("nothing was folded")


SAID = {"user": {"Mend the mill."}, "assistant": {f"I look at stone_{turn}." for turn in range(30)}}


@every_text
def test_after_a_fold_user_and_assistant_have_said_what_they_said(text: str) -> None:
    context, digest = folded(text)
    for whose, line in reader.digest(digest):
        assert whose != "nobody", line
        if whose == "user":
            assert line in SAID["user"]
        elif whose == "assistant":
            assert any(said in line for said in SAID["assistant"]) or line.startswith("look "), line
        elif whose == "account":
            assert re.match(r"look \d+: |left out among these, all of which went well: ", line), line
        else:
            assert whose in ("pagefold", "tool"), line
    handle = re.findall(r"pf-[a-z2-7]{10}", digest)[0]
    listed = context.recall(handle).split("\n")
    for entry in listed[1:]:
        if match := re.search(r"message \d+, (user|you): (.*)", entry):
            assert match[2] in SAID["user" if match[1] == "user" else "assistant"], entry
    for one in re.findall(r"^(pf-[a-z2-7]{10}) message \d+, called", "\n".join(listed), re.M)[:4]:
        found = list(reader.recalled(context.recall(one)))
        assert not [line for whose, line in found if whose in ("user", "assistant")], "a result is nobody's words"
        assert "\n".join(line for whose, line in found if whose == "tool") in (text, *_others())


def _others() -> list[str]:
    return ["\n".join(f"stone_{turn}_{n} is worn by {turn * n}" for n in range(60)) for turn in range(30)]


@every_text
def test_after_a_recall_the_page_is_the_tools_and_every_byte_of_it(text: str) -> None:
    store = MemoryPages()
    page = store.put(text.encode("utf-8", "surrogatepass"))
    found = list(reader.recalled(reply_to_recall(store, handle_of(page)).text))
    assert "\n".join(line for whose, line in found if whose == "tool") == text
    assert [line for whose, line in found if whose != "tool"] in ([], ["[as it is]"])


@every_text
def test_a_hit_of_a_search_shows_no_line_that_looks_like_another(text: str) -> None:
    store = MemoryPages()
    hit = SearchHit(store.put(b"x"), text, None, "h", (), 1.0, 1, text)
    first, *rest = SearchResults("push", (hit,)).text.split("\n")
    assert first.startswith(f"1. {hit.handle} from ")
    assert all(line.startswith("    ") for line in rest)
