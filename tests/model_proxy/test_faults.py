"""What goes wrong around a proxy that derives: the client sees what the provider sent, or one clear error."""

import gc
import http.client
import json
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_steady_store, open_store
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.errors import StoreError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.totals import Seen
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.pages.pins import Pins
from pagefold.pages.writeback import Scopes
from pagefold.wire.message import Message
from tests.model_proxy.conversation import Folding, Paging, body, history
from tests.model_proxy.upstream import ANSWER, EVENTS, STREAM_HEAD, answers, ask, chunk, connected, upstream, whole
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn


@dataclass(frozen=True)
class Broken:
    """A policy with a mistake in it."""

    name: str = "broken"

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> Any:
        return None

    def step(self, state: Any, message: Message) -> Any:
        raise KeyError(message.text)

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
        raise NotImplementedError


def test_a_mistake_of_ours_lets_the_clients_bytes_through_once_and_loudly() -> None:
    told: list[str] = []
    data = body(history(3))
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Broken()), report=told.append)
        with running(proxy) as url:
            for _ in range(3):
                status, headers, answer = ask(url, body=data)
                assert (status, answer) == (200, ANSWER)
                assert dict(headers)["x-pagefold-fault"] == "passed through as it came"

    assert [received.body for received in model.received] == [data] * 3
    assert proxy.totals.faults == 3
    assert len(told) == 1
    assert "KeyError at test_faults.py" in told[0]
    assert "function" not in told[0]


def broken_exchange(*given: object, **named: object) -> Exchange:
    raise KeyError(given)


def test_what_a_mistake_of_ours_lets_through_is_charged_all_the_same() -> None:
    charged: list[Seen] = []
    with upstream(answers(whole(ANSWER))) as model:
        upstreams = Upstreams({"anthropic": model.url})
        proxy = Proxy(upstreams, exchange=broken_exchange, report=lambda line: None)
        proxy.meter = lambda seen, headers: charged.append(seen)
        with running(proxy) as url:
            ask(url, body=body(history(3)))
            assert proxy.totals.requests == 1
    [seen] = charged
    assert seen.charge is not None
    assert seen.charge.prompt == len(body(history(3))) // 4
    assert seen.charge.output == len(ANSWER) // 4
    assert seen.charge.usd > 0


def test_what_a_mistake_of_ours_lets_through_and_the_provider_refuses_costs_nothing() -> None:
    charged: list[Seen] = []
    with upstream(answers(whole(b'{"error": "busy"}', status=b"429 Too Many Requests"))) as model:
        upstreams = Upstreams({"anthropic": model.url})
        proxy = Proxy(upstreams, exchange=broken_exchange, report=lambda line: None)
        proxy.meter = lambda seen, headers: charged.append(seen)
        with running(proxy) as url:
            assert ask(url, body=body(history(3)))[0] == 429
            assert proxy.totals.requests == 1
    assert charged == []


class FaultyAfterwards(Proxy):
    """A proxy with a mistake in what it does once a request is counted."""

    def fell_silent(self, *given: object, **named: object) -> None:
        raise KeyError(given)


def test_a_mistake_after_a_request_was_counted_counts_and_charges_it_no_second_time() -> None:
    charged: list[Seen] = []
    with upstream(answers(whole(ANSWER))) as model:
        proxy = FaultyAfterwards(Upstreams({"anthropic": model.url}), report=lambda line: None)
        proxy.meter = lambda seen, headers: charged.append(seen)
        with running(proxy) as url:
            assert ask(url, body=body(history(3)))[2] == ANSWER
            assert (proxy.totals.requests, proxy.totals.faults) == (1, 1)
    assert len(charged) == 1


def test_what_went_wrong_with_a_long_request_is_not_written_out_either(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    data = body(history(3, first="secret " * 10_000))
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Broken()))
        with running(proxy) as url:
            assert ask(url, body=data)[2] == ANSWER
    gc.collect()

    told = capfd.readouterr().err
    assert "KeyError at test_faults.py" in told
    assert (told.count("\n"), "secret" in told, caplog.text) == (1, False, "")


def test_a_page_is_in_the_store_before_its_request_leaves_and_stays_there(tmp_path: Path) -> None:
    library = Library(open_store(tmp_path / "store.sqlite3"))
    at_hand: list[int] = []

    def answer(connection: socket.socket) -> None:
        at_hand.append(library.status().pages)
        connection.sendall(whole(ANSWER))

    try:
        with upstream(answer) as model:
            proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Paging(window=2)), put=PageKeeper(library))
            with running(proxy) as url:
                for turns in range(5):
                    ask(url, body=body(history(turns)))
        assert at_hand == [0, 0, 0, 1, 1]
        assert library.store.pages.collect(before=time.time() + 9, max_bytes=0).pages == 0
    finally:
        library.close()


def pinned(turns: int) -> list[dict[str, Any]]:
    """A history in which the agent pins a rule in its first turn."""
    call = {
        "type": "tool_use",
        "id": "pin",
        "name": "mcp__pagefold__context_pin",
        "input": {"statement": "Never push."},
    }
    result = {"type": "tool_result", "tool_use_id": "pin", "content": "held"}
    first, *rest = history(turns)
    return [first, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}, *rest]


def test_what_the_agent_pinned_is_in_the_journal_before_a_folded_request_leaves(tmp_path: Path) -> None:
    library = Library(open_store(tmp_path / "store.sqlite3"))
    told: list[tuple[list[tuple[str, str | None]], int, int]] = []

    def answer(connection: socket.socket) -> None:
        lines: list[tuple[str, str | None]] = []
        with closing(library.store.open_journal(Scopes("").rules)) as journal:
            lines = [(str(line.state), line.boundary) for line in journal.lines()]
        sent = model.received[-1].body
        told.append((lines, sent.count(b"Never push."), sent.count(b"held by pagefold")))
        connection.sendall(whole(ANSWER))

    keeper, failing = PageKeeper(library), [True]

    def write_back(pins: Pins, boundary: Boundary, **more: Any) -> None:
        if failing and failing.pop():
            raise StoreError("the disk is full")
        keeper.write_back(pins, boundary, **more)

    policy = policy_named("fifo", window=9_000)
    try:
        with upstream(answer) as model:
            conversations = Conversations(policy, store=library.store, window=9_000)
            proxy = Proxy(
                Upstreams({"anthropic": model.url}),
                conversations,
                put=keeper,
                write_back=write_back,
                report=lambda line: None,
            )
            with running(proxy) as url:
                for turns in (2, 30, 30, 31):
                    ask(url, body=body(pinned(turns)))
    finally:
        library.close()
    committed = [("committed", "compaction")]
    assert told == [([], 1, 0), ([], 1, 1), (committed, 1, 1), (committed, 1, 1)]


def test_what_cannot_be_stored_is_not_folded_away() -> None:
    lost = True

    def put(pages: Sequence[Page], **more: Any) -> None:
        if lost:
            raise StoreError("the disk is full")

    data = body(history(6))
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(
            Upstreams({"anthropic": model.url}), Conversations(Paging(window=2)), put=put, report=lambda line: None
        )
        with running(proxy) as url:
            ask(url, body=data)
            lost = False
            ask(url, body=data)

    first, second = (received.body for received in model.received)
    assert first == data
    assert second.count(b"[folded]") > 0


def test_pages_that_wait_are_stored_when_the_store_is_back_at_the_very_end() -> None:
    lost, stored = True, list[Page]()

    def put(pages: Sequence[Page], **more: Any) -> None:
        if lost:
            raise StoreError("the disk is full")
        stored.extend(pages)

    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(
            Upstreams({"anthropic": model.url}),
            Conversations(Economic(window=3_000)),
            put=put,
            report=lambda line: None,
        )
        with running(proxy) as url:
            ask(url, body=body(history(12)))
    assert proxy.saving.waiting == 1
    lost = False
    proxy.store_is_back()

    assert stored
    assert proxy.saving.waiting == 0


def test_pages_that_could_not_be_stored_wait_for_their_own_conversation() -> None:
    full = True
    tried: dict[str, set[bytes]] = {}
    stored: dict[str, set[bytes]] = {}

    def put(pages: Sequence[Page], *, history: str, **more: object) -> None:
        contents = {page.content for page in pages}
        tried.setdefault(history, set()).update(contents)
        if full:
            raise StoreError("the disk is full")
        stored.setdefault(history, set()).update(contents)

    def conversation(name: str, turns: int) -> bytes:
        messages = history(turns, first=f"I am {name}.")
        return body(json.loads(json.dumps(messages).replace("function", name)))

    with upstream(answers(whole(ANSWER))) as model:
        conversations = Conversations(Economic(window=3_000))
        proxy = Proxy(Upstreams({"anthropic": model.url}), conversations, put=put, report=lambda line: None)
        with running(proxy) as url:
            first = conversation("anne", 12)
            ask(url, body=first)
            full = False
            ask(url, body=conversation("bert", 12))
            of_bert = {name: set(pages) for name, pages in stored.items()}
            ask(url, body=conversation("anne", 13))

    in_the_outage = model.received[0].body.decode()
    assert len(in_the_outage) < len(first) // 2  # what the window forces is folded all the same
    assert "no recall (the store could not be written)" in in_the_outage
    (anne,), (bert,) = tried.keys() - of_bert.keys(), of_bert.keys()
    assert of_bert[bert]
    assert not any(b"anne" in content for content in of_bert[bert])
    assert stored[bert] == of_bert[bert]
    assert tried[anne] == stored[anne]
    assert any(b"anne" in content for content in stored[anne])
    assert not any(b"bert" in content for content in stored[anne])
    recalled = set(re.findall("pf-[a-z2-7]{10}", in_the_outage + model.received[2].body.decode()))
    assert recalled
    assert recalled <= {Page(PageKind.EVIDENCE, content).handle for content in stored[anne]}


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"529 Overloaded", b"500 Oops", b"400 Bad Request"])
def test_a_refusal_is_relayed_with_its_headers_and_counted_as_nothing_saved(status: bytes) -> None:
    error = b'{"type":"error","error":{"type":"rate_limit_error","message":"prompt is too long"}}'
    with upstream(answers(whole(error, b"retry-after: 7", status=status))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url:
            code, headers, answer = ask(url, body=body(history(4)))

    assert (code, answer, dict(headers)["retry-after"]) == (int(status[:3]), error, "7")
    assert len(model.received) == 1
    assert (proxy.totals.work.saved, proxy.totals.failed) == (0, 1)


def test_too_long_is_answered_by_one_smaller_request() -> None:
    error = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'
    replies = [whole(error, status=b"400 Bad Request"), whole(ANSWER)]
    with upstream(lambda connection: connection.sendall(replies.pop(0))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Folding(window=100)))
        with running(proxy) as url:
            assert ask(url, body=body(history(4)))[2] == ANSWER

    assert [received.body.count(b"[folded]") for received in model.received] == [0, 3]
    assert (proxy.totals.work.shrunk, proxy.totals.failed) == (1, 0)


def test_economic_itself_answers_too_long_with_one_smaller_fold_and_goes_on_from_there(tmp_path: Path) -> None:
    """The provider's window is smaller than the policy believes: nothing was folded until the provider refused."""
    error = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'
    replies = [whole(error, status=b"400 Bad Request"), whole(ANSWER), whole(ANSWER)]
    with upstream(lambda connection: connection.sendall(replies.pop(0))) as model:
        library = Library(open_store(tmp_path / "store.sqlite3"))
        proxy = Proxy(
            Upstreams({"anthropic": model.url}), Conversations(Economic(), store=library.store), put=PageKeeper(library)
        )
        with running(proxy) as url:
            status, headers, answer = ask(url, body=body(history(30)))
            assert (status, answer) == (200, ANSWER)
            assert ask(url, body=body(history(31)))[2] == ANSWER
        library.close()

    long, short, after = (received.body for received in model.received)
    assert dict(headers)["x-pagefold-fold"]
    assert len(short) < len(long) / 2
    assert pairs(short) == pairs(after) == []
    standing = json.loads(short)["messages"]
    assert json.loads(after)["messages"][: len(standing)] == standing
    assert (proxy.totals.work.shrunk, proxy.totals.faults, proxy.totals.failed) == (1, 0, 0)


def pairs(data: bytes) -> list[str]:
    """Calls without a result and results without a call."""
    blocks = [
        block
        for message in json.loads(data)["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return sorted(calls ^ {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"})


TOO_LONG = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'


def test_too_long_is_understood_in_however_many_pieces_it_comes_and_pages_are_stored_before_the_answer_to_it(
    tmp_path: Path,
) -> None:
    library = Library(open_store(tmp_path / "store.sqlite3"))
    at_hand: list[int] = []

    def answer(connection: socket.socket) -> None:
        at_hand.append(library.status().pages)
        if len(at_hand) > 1:
            return connection.sendall(whole(ANSWER))
        refusal = whole(TOO_LONG, status=b"400 Bad Request")
        connection.sendall(refusal[:-40])
        time.sleep(0.1)
        return connection.sendall(refusal[-40:])

    try:
        with upstream(answer) as model:
            proxy = Proxy(
                Upstreams({"anthropic": model.url}), Conversations(Paging(window=100)), put=PageKeeper(library)
            )
            with running(proxy) as url:
                assert ask(url, body=body(history(4)))[::2] == (200, ANSWER)
    finally:
        library.close()
    assert at_hand == [0, 1]


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"zstd", b"br"])
def test_a_refusal_that_cannot_be_read_is_relayed(encoding: bytes) -> None:
    refusal = whole(b"not encoded at all", b"content-encoding: " + encoding, status=b"400 Bad Request")
    with upstream(answers(refusal)) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Folding(window=100)))
        with running(proxy) as url:
            assert ask(url, body=body(history(4)))[::2] == (400, b"not encoded at all")
    assert proxy.totals.faults == 0


def test_too_long_twice_is_the_clients_to_know() -> None:
    error = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'
    with upstream(answers(whole(error, status=b"400 Bad Request"))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Folding(window=100)))
        with running(proxy) as url:
            assert ask(url, body=body(history(4)))[::2] == (400, error)

    assert len(model.received) == 2


def test_a_derived_request_that_is_cut_off_in_mid_stream_is_cut_off_for_the_client() -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(EVENTS[0]))
        connection.shutdown(socket.SHUT_RDWR)

    with upstream(answer) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url, connected(url) as connection:
            connection.request("POST", "/v1/messages", body(history(3)))
            response = connection.getresponse()
            with pytest.raises(http.client.IncompleteRead):
                response.read()

    assert proxy.totals.errors == {"cut off": 1}


@pytest.mark.parametrize("size", [3_000_000, 50_000_000])
def test_very_long_requests_go_through_read_or_not(size: int) -> None:
    text = "words " * (size // 6)
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url:
            assert ask(url, body=data)[2] == ANSWER

    assert len(model.received[0].body) == len(data)
    assert proxy.totals.faults == 0


def test_a_client_that_drips_its_request_holds_up_nobody() -> None:
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url:
            port = urlsplit(url).port
            assert port is not None
            dripping = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            for one in dripping:
                one.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            assert ask(url, body=body(history(2)))[2] == ANSWER
            for one in dripping:
                one.close()

    assert len(model.received) == 1


def test_long_work_on_one_request_does_not_hold_up_the_others() -> None:
    """What is large is derived beside the loop: a stream that runs meanwhile keeps flowing."""
    begun, end = threading.Event(), threading.Event()

    class Slow(Lossless):
        __slots__ = ()

        def step(self, state: Any, message: Message) -> Any:
            if "slow" in message.text:
                begun.set()
                assert end.wait(20)
            return super().step(state, message)

    slow = {"role": "user", "content": "slow " * 10_000}
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Slow()))
        with running(proxy) as url, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, url, body=body([slow]))
            assert begun.wait(20)
            assert ask(url, path="/v1/models", method="GET", body=None)[2] == ANSWER
            assert ask(url, body=body(history(1)), x_pagefold="off")[2] == ANSWER
            assert ask(url, body=body(history(1)))[2] == ANSWER
            end.set()
            assert waiting.result(20)[2] == ANSWER


def test_a_store_that_hangs_holds_up_one_turn_and_nobody_else(tmp_path: Path) -> None:
    path, deadline = tmp_path / "store.sqlite3", 0.9
    store = open_steady_store(path, deadline=deadline, report=lambda kind, line: None)
    library = Library(store)
    with upstream(answers(whole(ANSWER))) as model:
        conversations = Conversations(Economic(), store=store)
        proxy = Proxy(Upstreams({"anthropic": model.url}), conversations, put=PageKeeper(library), soon=library.soon)
        with running(proxy) as url, ThreadPoolExecutor(1) as pool:
            ask(url, body=body(history(1)))
            ask(url, body=body(history(2)))
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                waiting, began = pool.submit(ask, url, body=body(history(3))), time.monotonic()
                time.sleep(0.1)  # by then it waits for the store
                assert ask(url, body=body(history(1)), x_pagefold="off")[2] == ANSWER
                assert ask(url, path="/v1/models", method="GET", body=None)[2] == ANSWER
                assert not waiting.done()
                assert time.monotonic() < began + deadline / 2
                assert waiting.result(20)[2] == ANSWER
                other.execute("ROLLBACK")
    library.close()
    assert store.health().errors["late"] == 1
    assert proxy.totals_so_far.faults == 0


def test_pages_of_requests_that_are_derived_at_once_are_each_stored_for_their_own_conversation() -> None:
    begun, end = threading.Event(), threading.Event()
    stored: list[tuple[bytes, str]] = []

    class Slow(Paging):
        """Owes one page for each history: what was said first in it."""

        def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
            first = (*state[0], *state[1])[0].text
            if first.startswith("slow"):
                begun.set()
                assert end.wait(20)
            page = Page.of(PageKind.EVIDENCE, first[:4])
            state, derived = super().request(state, notes)
            return state, Derived(derived.keep, derived.append, derived.reason, (page,))

    def put(pages: Sequence[Page], *, history: str, **more: object) -> None:
        stored.extend((page.content, history) for page in pages)

    def asked(first: str) -> bytes:
        return body([{"role": "user", "content": first * 10_000}])

    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(Slow()), put=put)
        with running(proxy) as url, ThreadPoolExecutor(1) as pool:
            slow = pool.submit(ask, url, body=asked("slow"))
            assert begun.wait(20)
            for first in ("one ", "two "):  # neither waits for the slow one
                assert ask(url, body=asked(first))[2] == ANSWER
            end.set()
            assert slow.result(20)[2] == ANSWER

    assert proxy.totals.faults == 0
    assert len(dict(stored)) == len({history for _, history in stored}) == 3


def test_many_streams_at_once_are_bounded_in_memory() -> None:
    """Each stream is passed on as it comes: what the proxy keeps of it does not grow with its length."""
    piece = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        b'"text":"' + b"x" * 60_000 + b'"}}\n\n'
    )

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(EVENTS[0]))
        for _ in range(20):
            connection.sendall(chunk(piece))
        connection.sendall(chunk(EVENTS[1]) + chunk(EVENTS[2]) + chunk(b""))

    peak = 0

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.01):
            peak = max(peak, _resident_bytes())

    stop = threading.Event()
    with upstream(answer) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url, ThreadPoolExecutor(60) as pool:
            ask(url, body=body(history(1)))
            before = _resident_bytes()
            watcher = threading.Thread(target=watch)
            watcher.start()
            lengths = list(pool.map(lambda _: _drained(url), range(60)))
            stop.set()
            watcher.join()

    assert set(lengths) == {20 * len(piece) + sum(map(len, EVENTS))}
    assert peak - before < 60 * 20 * len(piece) // 2
    assert proxy.totals.usage.output == 61 * 2


def _resident_bytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def _drained(url: str) -> int:
    with connected(url) as connection:
        connection.request("POST", "/v1/messages", body(history(1)))
        response = connection.getresponse()
        length = 0
        while piece := response.read(65536):
            length += len(piece)
        return length


# ---- secrets

KEY, BEARER, PLANTED = "sk-ant-planted-in-a-header", "Bearer planted-too", "AKIAPLANTEDINARESULT"


def test_no_secret_reaches_logs_status_or_headers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    messages = [
        *history(2),
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": f"my key is {PLANTED}"},
    ]
    library = Library(open_store(tmp_path / "store.sqlite3"))
    answer: Callable[[str, Mapping[str, Any]], str] = RecallAnswers(library)
    try:
        model = ScriptedModel([ScriptedTurn("Yes.", "", [ScriptedCall("Bash", {"command": PLANTED})])] * 5)
        with running(model) as address:
            for policy in (policy_named("lossless"), policy_named("economic"), Broken()):
                conversations = Conversations(policy, store=library.store, recall_rounds=2)
                proxy = Proxy(
                    Upstreams({"anthropic": address}),
                    conversations,
                    put=PageKeeper(library),
                    answers=answer,
                    report=told.append,
                )
                with running(proxy) as url:
                    for data in (body(messages), body(messages, x=PLANTED)[:-9], PLANTED.encode()):
                        _, headers, _ = ask(url, body=data, x_api_key=KEY, authorization=BEARER)
                        told += [f"{name}: {value}" for name, value in headers]
                    status = ask(url, "GET", "/pagefold/status", None)[2].decode()
                told += [status, proxy.totals.to_json()]
    finally:
        library.close()
    out, err = capfd.readouterr()

    everything = "\n".join([*told, out, err])
    assert len(everything) > 1000
    assert [secret for secret in (KEY, BEARER, PLANTED) if secret in everything] == []
