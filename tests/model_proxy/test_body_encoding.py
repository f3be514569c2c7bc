"""Requests whose bodies are compressed: read and derived like others, within bounds, or passed on as they came."""

import gzip
import json
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold import zstd
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.body_encoding import NOT_READ, encoded, legible
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import TOO_LARGE
from pagefold.model_proxy.http import ILLEGIBLE, decoder_for
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.model_proxy.conversation import history
from tests.model_proxy.upstream import ANSWER, QUESTION, USAGE, answers, ask, proxied, upstream, whole

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstd.decompress,
    "gzip": gzip.decompress,
    "x-gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "identity": bytes,
}


@given(st.binary(), st.sampled_from(sorted(COMPRESS)))
def test_what_is_encoded_is_read_by_us_and_by_others(body: bytes, encoding: str) -> None:
    assert legible(COMPRESS[encoding](body), encoding, len(body)) == (body, "")
    assert DECOMPRESS[encoding](encoded(body, encoding)) == body


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "deflate"])
def test_a_few_bytes_that_become_very_many_are_not_read(encoding: str) -> None:
    bomb = COMPRESS[encoding](bytes(50_000_000))
    assert len(bomb) < 100_000
    assert legible(bomb, encoding, 1_000_000) == (None, TOO_LARGE)


def test_a_window_longer_than_http_allows_is_not_read() -> None:
    parameters = zstd.CompressionParameter
    body = zstd.ZstdCompressor(options={parameters.window_log: 27, parameters.content_size_flag: 0})
    assert legible(body.compress(b"x" * 100) + body.flush(), "zstd", 1000) == (None, NOT_READ)


def test_a_body_that_breaks_off_is_not_read() -> None:
    assert legible(zstd.compress(b"x" * 100)[:-3], "zstd", 1000) == (None, NOT_READ)


def test_what_follows_the_end_of_an_answer_is_illegible() -> None:
    decode = decoder_for("zstd")
    assert decode is not None
    assert decode(zstd.compress(b"whole")) == b"whole"
    with pytest.raises(ILLEGIBLE):
        decode(b"more")


def test_frames_that_follow_each_other_are_one_body() -> None:
    assert legible(zstd.compress(b"one ") + zstd.compress(b"two"), "zstd", 100) == (b"one two", "")


@pytest.mark.parametrize("encoding", ["br", "zstd, gzip", "zstd", "gzip"])
def test_what_cannot_be_read_passes_as_it_came_and_is_counted(encoding: str) -> None:
    body = b"\x00no such body"
    with proxied(answers(whole(ANSWER))) as (proxy, url, model):
        assert ask(url, body=body, content_encoding=encoding)[2] == ANSWER

    assert model.received[0].body == body
    assert (b"content-encoding", encoding.encode()) in model.received[0].headers
    assert proxy.totals.unread == {NOT_READ: 1}
    assert proxy.totals.faults == 0


@pytest.mark.parametrize("encoding", sorted(COMPRESS))
def test_a_compressed_request_is_read_and_passes_byte_for_byte_where_nothing_is_derived(encoding: str) -> None:
    body = COMPRESS[encoding](QUESTION)
    with proxied(answers(whole(ANSWER))) as (proxy, url, model):
        assert ask(url, body=body, content_encoding=encoding)[2] == ANSWER

    assert model.received[0].body == body
    assert (proxy.totals.usage, proxy.totals.unread, proxy.totals.messages) == (USAGE, {}, 1)


@pytest.mark.parametrize("encoding", sorted(COMPRESS))
def test_a_derived_request_is_compressed_as_the_clients_was(encoding: str) -> None:
    asked = json.dumps({"model": "claude-sonnet-4-5", "messages": history(4)}).encode()
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(policy_named("lossless")))
        with running(proxy) as url:
            plain = ask(url, body=asked)
            packed = ask(url, body=COMPRESS[encoding](asked), content_encoding=encoding)

    as_plain, as_packed = model.received
    assert plain[2] == packed[2] == ANSWER
    assert len(as_plain.body) < len(asked)
    assert DECOMPRESS[encoding](as_packed.body) == as_plain.body
    assert (b"content-encoding", encoding.encode()) in as_packed.headers
    assert (b"content-length", b"%d" % len(as_packed.body)) in as_packed.headers
