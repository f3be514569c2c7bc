"""Forwards one request to the upstream and its answer back to the client.

A policy derives the request, and the model's recalls are answered. If a step (see `steps`) raises before a request was
sent, the client's own is sent, without reasoning that the provider would refuse; afterwards the answer passes as it
arrives.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, cast

import aiohttp
from yarl import URL

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.adapters.steady_time import steady_time
from pagefold.model_proxy.answer_listener import AnswerListener
from pagefold.model_proxy.aws_signing import Session
from pagefold.model_proxy.body_encoding import encoded, legible
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.finished import charge_unheard, tell
from pagefold.model_proxy.host import Host
from pagefold.model_proxy.http import (
    ILLEGIBLE,
    NOT_PASSED_ON,
    WISH_HEADER,
    ClientLeftError,
    EndsWithClient,
    Upload,
    asked_path,
    beginning,
    cause_of,
    decoder_for,
    not_to_add,
    passed_on,
    refuse,
    sendable,
    window_in,
)
from pagefold.model_proxy.recalling import RecallTurn
from pagefold.model_proxy.steps import AT_ONCE, Steps
from pagefold.model_proxy.totals import Ending, Totals
from pagefold.wire.api_paths import error_at
from pagefold.wire.client_session import client_session

_FAULT = [(b"x-pagefold-fault", b"passed through as it came")]
_READ_FASTER = 20  # parsing is about so much faster per byte than deriving: a body is bytes/20 characters of work
_LENGTH, _ENCODING = frozenset((b"content-length",)), frozenset((b"accept-encoding",))
_LEGIBLE = (b"accept-encoding", b"identity")
_ERROR_BYTES = 64 << 10
_LAST_EVENT = b"message_stop"
_REFUSED = frozenset((400, 413, 422))  # statuses by which providers refuse a request that is too long


class ProxiedRequest:
    """One request on its way to the upstream, and the answer on its way back."""

    def __init__(
        self,
        proxy: Host,
        session: Session,
        target: URL,
        scope: Event,
        named: Mapping[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        self._proxy, self._session, self._target = proxy, session, target
        self._scope, self._named, self._send, self._error = scope, named, send, error_at(scope["path"])
        self._upload = Upload(receive)
        self._encoding = named.get(b"content-encoding", b"").decode("latin-1").strip().lower()
        self._exchange: Exchange | None = None
        self._listener: AnswerListener | None = None
        self._steps = Steps(proxy)
        self._fell_back = self._handed_on = False
        self._may_hand_on = proxy.other_version.takes(named)
        self._ending = Ending.ABANDONED
        self._bytes_down, self._status, self._refused = 0, 0, b""
        self._upstream: tuple[list[tuple[str, str]], bytes] = [], b""
        self._began = self._ended = steady_time()
        self._counted = False

    async def run(self) -> None:
        try:
            body = await self._upload.read(self._proxy.read_bytes)
            self._steps.fail_open(self._begin, body if self._upload.whole else None)
            if self._exchange is not None and self._exchange.refusal:
                await refuse(self._send, 400, self._error("invalid_request_error", self._exchange.refusal))
                self._ending = Ending.WHOLE
                return
            derived = await self._derive()
            self._steps.fail_open(self._proxy.goes_on, self._exchange)
            with EndsWithClient(self._upload):
                given = await self._given_by_other(body) if self._began_elsewhere else None
                if given is None and self._began_elsewhere:  # nobody is left to go on with it as it began
                    self._may_hand_on = False
                    derived = await self._derive()
                await self._relay(body, derived, given)
        except ClientLeftError:
            pass
        finally:
            self._ended = steady_time()
            self._proxy.enqueue_finished(self)

    @property
    def held(self) -> int:
        """The bytes that are kept in memory until this request is counted."""
        return self._upload.bytes + self._bytes_down

    async def _derive(self) -> bytes | None:
        """Returns the request that a policy derived, or None where it is sent as it came."""
        exchange, steps = self._exchange, self._steps
        if exchange is None or not exchange.derives:
            return None
        await asyncio.sleep(0)  # parsing requests one after the other keeps the processor's caches warm
        if exchange.may_shrink or exchange.holds_reasoning:  # the last use of the cache, and bindings, are counted
            self._proxy.count_finished()
        work, waits = self._upload.bytes // _READ_FASTER, True
        if work <= AT_ONCE:
            waits = not await steps.ask_store(exchange, self._began)
        fresh, derived = await steps.run(self._read, work, waits=waits) or (0, None)
        if fresh > AT_ONCE:
            derived = await steps.run(exchange.derive, fresh, self._began)
        await steps.save(exchange)
        await asyncio.sleep(0)
        derived = await steps.storable(exchange, derived)
        return self._fall_back() if steps.failed else derived

    @property
    def _began_elsewhere(self) -> bool:
        """Whether the request is to be handed on to an instance of another version."""
        exchange = self._exchange
        return self._may_hand_on and exchange is not None and not self._steps.failed and exchange.began_elsewhere

    async def _given_by_other(self, body: bytes) -> aiohttp.ClientResponse | None:
        """The answer of an instance of another version, which counts and records the exchange; None without one."""
        answer = await self._proxy.other_version.answer(self._session, self._scope, body)
        if answer is None:
            return None
        self._exchange, self._handed_on, self._refused = None, True, answer.begun
        return answer.response

    def _fall_back(self) -> bytes | None:
        """Returns what is sent after a fault, or None where that is the client's own bytes."""
        if self._exchange is None or not self._exchange.is_read:
            return None
        self._steps.failed, self._fell_back = False, True
        return cast("bytes | None", self._steps.fail_open(self._exchange.fall_back))

    def _read(self) -> tuple[int, bytes | None]:
        """Reads the request, and derives it if that is quick. Returns the characters of work, and what was derived."""
        assert self._exchange is not None
        fresh = self._exchange.read(self._began)
        if self._began_elsewhere:
            return 0, None
        if fresh and self._exchange.may_fold:
            fresh = max(fresh, AT_ONCE + 1)
        return fresh, self._exchange.derive(self._began) if 0 < fresh <= AT_ONCE else None

    async def _relay(self, body: bytes, derived: bytes | None, given: aiohttp.ClientResponse | None = None) -> None:
        """Sends the request upstream, and the client what is answered there, or has been `given`."""
        try:
            response = given or await self._request(body, derived)
            while response.status in _REFUSED and (other := await self._other(response)):
                response = await self._request(body, other)
        except (aiohttp.ClientError, OSError) as error:
            await self._no_answer(error)
            return
        ended, turn = False, self._turn_in(response)
        try:
            if turn is not None:
                await self._converse(turn, response)
            else:
                await self._send(self._head(response))
                self._steps.fail_open(self._answer_began, response)
                if self._refused:
                    await self._give(self._refused)
                content = response.content
                while not ended and (data := await content.readany()):
                    ended = content.at_eof()  # then its end goes out with it
                    await self._give(data, more=not ended)
        except (aiohttp.ClientError, OSError) as error:
            self._ending = Ending.CUT_OFF  # without the end of the answer, the server closes the client's connection
            if turn is not None and not turn.stream:  # the client has nothing of it yet
                await self._no_answer(error)
            return
        finally:
            if not response.closed:
                response.close()
        self._ending = Ending.WHOLE
        if not ended:
            await self._send({"type": "http.response.body"})

    async def _no_answer(self, error: Exception) -> None:
        if self._upload.gone:
            raise ClientLeftError from error
        self._ending = Ending.UNREACHABLE
        host = self._target.host_port_subcomponent
        self._proxy.unanswered(host or "", cause := cause_of(error))
        said = self._error("api_error", f"pagefold got no answer from {host}: {cause}")
        await refuse(self._send, 502, said)

    async def _give(self, data: bytes, *, more: bool = True) -> None:
        listener, exchange = self._listener, self._exchange
        last = exchange is not None and exchange.binds_elsewhere and (not more or _LAST_EVENT in data)
        if listener is not None and last:  # before the client has all: its next request may reach another instance
            listener.add(data)
            self._steps.fail_open(self._note_reasoning)
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._bytes_down += len(data)
        if listener is not None and not last:
            listener.add(data)
            if listener.is_due:
                self._steps.fail_open(listener.show)

    def _note_reasoning(self) -> None:
        """Notes to what the reasoning of the answer is bound, and stores that unless the worker is busy: then later."""
        if self._exchange is None or self._listener is None or not self._exchange.binds_elsewhere:
            return
        self._listener.show()
        self._exchange.note_reasoning()
        if self._proxy.is_free():
            self._proxy.conversations.notebook.save(steady_time())

    # ---- recalls answered by the proxy

    def _turn_in(self, response: aiohttp.ClientResponse) -> RecallTurn | None:
        """Returns the conversation turn that this answer begins, if context tools were offered and it can be parsed."""
        turn = self._exchange.turn if self._exchange is not None and not self._steps.failed else None
        if turn is None or response.status != 200:
            return None
        if response.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
            return None
        if "json" in response.headers.get("content-type", "").lower():  # whatever was asked for
            turn.view.stream = False
        return turn

    async def _converse(self, turn: RecallTurn, response: aiohttp.ClientResponse) -> None:
        """Sends the client a conversation turn, answering calls of context tools until the client acts next."""
        if turn.stream:
            await self._send(self._head(response, _LENGTH))
            self._steps.fail_open(self._answer_began, response)
        last = response
        try:
            while True:
                rest = await self._round(turn, last)
                if not turn.calls or self._steps.failed:
                    break
                unseen = turn.view.unseen
                if (following := await self._answer_calls(turn)) is None:
                    rest = rest or unseen  # the client acts next, or a fault of pagefold ended the turn
                    break
                last = await self._request(b"", following)
                if last.status != 200:
                    rest = await self._broken(turn, last)
                    break
            if turn.done and self._exchange is not None:
                await self._steps.run_in_worker(self._exchange, self._exchange.remember_turn, steady_time())
            if not turn.stream:
                await self._send(self._head(last, _LENGTH))
                self._steps.fail_open(self._answer_began, last)
            if rest:
                await self._give(rest)
        finally:
            last.close()

    async def _round(self, turn: RecallTurn, response: aiohttp.ClientResponse) -> bytes:
        """Streams the client-visible part of one answer. Returns the bytes held back, sent if the client acts next."""
        async for data in response.content.iter_any():
            unseen = turn.view.unseen if turn.stream and not self._steps.failed else b""
            shown = self._steps.fail_open(turn.feed, data)
            if given := unseen + data if self._steps.failed else shown:
                await self._give(given)
        if self._steps.failed and turn.stream:
            return b""
        rest: bytes | None = self._steps.fail_open(turn.answered)
        return turn.view.unseen if rest is None else rest

    async def _answer_calls(self, turn: RecallTurn) -> bytes | None:
        """Answers the model's recalls. Returns the request that continues the turn, or None if the client acts next."""
        assert self._exchange is not None
        answers, exchange = self._proxy.answers, self._exchange
        asked = [partial(answers, call.name, call.arguments, exchange.name, exchange.done) for call in turn.calls]
        texts = await self._steps.run_in_worker(exchange, lambda: [answer() for answer in asked])
        if texts is None:
            return None
        following: bytes | None = await self._steps.run_in_worker(exchange, exchange.go_on, texts, steady_time())
        return await self._steps.storable(exchange, following) if following is not None else None

    async def _broken(self, turn: RecallTurn, response: aiohttp.ClientResponse) -> bytes:
        """Returns what the client gets after the provider refused to continue the turn."""
        told = await beginning(response, _ERROR_BYTES)
        broken: bytes | None = self._steps.fail_open(turn.view.broken, told)
        return told if broken is None else broken

    async def _other(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Returns another request in place of one that was refused as too long, or for its reasoning; or None."""
        exchange = self._exchange
        if exchange is None or self._refused or not (exchange.may_shrink or exchange.holds_reasoning):
            return None
        self._refused = await beginning(response, _ERROR_BYTES)
        other: bytes | None = await self._steps.run_in_worker(exchange, self._mended, response)
        other = await self._steps.storable(exchange, other) if other is not None else None
        if other is not None:
            self._refused = b""
            response.close()
        return other

    def _mended(self, refusal: aiohttp.ClientResponse) -> bytes | None:
        assert self._exchange is not None
        decode = decoder_for(refusal.headers.get("content-encoding", "").strip().lower())
        try:
            told = decode(self._refused) if decode else self._refused
        except ILLEGIBLE:
            return None
        smaller = self._exchange.smaller(refusal.status, told)
        return smaller or self._exchange.without_refused(refusal.status, told, steady_time())

    def _request(self, body: bytes, derived: bytes | None) -> Awaitable[aiohttp.ClientResponse]:
        dropped = NOT_PASSED_ON if derived is None else NOT_PASSED_ON | _LENGTH
        asks_in_turn = self._exchange is not None and self._exchange.turn is not None
        headers = passed_on(self._scope["headers"], dropped | _ENCODING if asks_in_turn else dropped)
        headers += [_LEGIBLE] if asks_in_turn else []  # the proxy has to parse the answer: it must not be compressed
        body = body if derived is None else encoded(derived, self._encoding)
        data: Any = sendable(body)
        if not self._upload.whole and derived is None:
            data = self._upload.rest(body)
        self._upstream = [(name.decode(), value.decode()) for name, value in headers], body
        return self._session.request(
            self._scope["method"],
            self._target,
            headers=self._upstream[0],
            data=data,
            allow_redirects=False,
            proxy=self._proxy.http_proxies.get(self._target.raw_authority),
            skip_auto_headers=not_to_add(self._named),
        )

    def _head(self, response: aiohttp.ClientResponse, dropped: frozenset[bytes] = frozenset()) -> Event:
        """Returns the status and headers that the client gets."""
        # Neither status has a body, but a 304 may tell the length of what it does not send.
        self._status = response.status
        headers = passed_on(response.raw_headers, _LENGTH if response.status in (204, 304) else dropped)
        if b"upgrade" in self._named:
            headers.append((b"connection", b"close"))  # the parser reads no second request behind an upgrade
        if self._exchange is not None and not self._steps.failed:
            headers += self._exchange.headers
        headers += _FAULT if self._steps.failed or self._fell_back else ()
        return {"type": "http.response.start", "status": response.status, "headers": headers}

    def _begin(self, body: bytes | None) -> None:
        wish = self._named.get(WISH_HEADER, b"").decode("ascii", "replace").strip().lower()
        conversations, path = self._proxy.conversations, asked_path(self._scope)
        window = window_in(self._named, given=bool(conversations.window))
        text, unread = legible(body, self._encoding, self._proxy.read_bytes)
        said = {"wish": wish, "window": window, "session": client_session(self._named)}
        self._exchange = self._proxy.exchange(self._scope["method"], path, text, conversations, unread=unread, **said)

    def _answer_began(self, response: aiohttp.ClientResponse) -> None:
        if self._exchange is None:
            return
        listener = AnswerListener(self._exchange)
        listener.began(response)
        self._listener = listener

    def _finish(self) -> None:
        assert self._exchange is not None
        self._note_reasoning()
        if self._listener is not None:
            self._listener.show()
        up, down = self._upload.bytes, self._bytes_down
        seen = self._exchange.finish(self._ending, bytes_up=up, bytes_down=down, now=self._ended)
        self._counted = True
        self._proxy.record_seen(seen, self._named)
        self._proxy.fell_silent(self._exchange, seen, self._target, self._upstream)
        tell(self._proxy, self._exchange, seen, self._named, self._began, self._ended)

    def count(self) -> None:
        if self._exchange is not None:
            self._steps.fail_open(self._finish)
        if not self._counted:
            up, down, left = self._upload.bytes, self._bytes_down, int(self._ending is Ending.ABANDONED)
            counts = Totals(requests=1, abandoned=left, bytes_up=up, bytes_down=down, handed_on=int(self._handed_on))
            self._proxy.add(counts)
            if 200 <= self._status < 300 and not self._handed_on:  # whoever it was handed on to charges it
                charge_unheard(self._proxy, self._scope, self._named, up, down)
