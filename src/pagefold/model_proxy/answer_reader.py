"""Reads the answer of an exchange while it passes: usage, how it ended, and what its reasoning is known by.

Gets the answer piece by piece, decoded. What cannot be parsed is not an error: the answer passes all the same.
"""

from collections.abc import Mapping, Sequence

from pagefold.derive.cost import Prices
from pagefold.errors import WireError
from pagefold.model_proxy.charge import Charge, charge_of
from pagefold.model_proxy.totals import Ending
from pagefold.wire import aws_frames, sse
from pagefold.wire.api import Api, ReasoningFormat
from pagefold.wire.message import Usage
from pagefold.wire.quota import NO_LIMITS, Limits

READ_BYTES = 32 << 20
"""Of a request or an answer, decoded, more than this is passed on without being read: no provider takes more."""
_PIECE = b"data:"


class AnswerReader:
    """`api` is how the answer is written; None where it is not read at all."""

    def __init__(self, api: Api | None) -> None:
        self.api = api
        self._status, self._stream = 0, False
        self._limits = NO_LIMITS
        self._events: sse.StreamedAnswer | None = None
        self._frames: aws_frames.FrameReader | None = None
        self._whole = bytearray()
        self._heard_bytes = self._pieces = 0
        self._answer_unread = ""

    def answer_began(self, status: int, content_type: str, *, legible: bool = True, limits: Limits = NO_LIMITS) -> None:
        """`legible`: whether the pieces that follow can be decoded. `limits` is what the headers say of them."""
        self._status, self._limits = status, limits
        framed = content_type.lower().startswith(aws_frames.CONTENT_TYPE)
        self._frames = aws_frames.FrameReader() if framed else None
        self._stream = framed or content_type.lower().startswith("text/event-stream")
        if self.api is not None and self._stream:
            self._events = self.api.stream(gist=True)
        if not legible:
            self.not_legible()

    def not_legible(self) -> None:
        self._answer_unread = self._answer_unread or "answer in an encoding that is not read"

    @property
    def listening(self) -> bool:
        """Whether more of the answer is read."""
        return self.api is not None and not self._answer_unread

    def hear(self, data: bytes) -> None:
        """Reads the next piece of the answer, without its content encoding."""
        if self.api is None or self._answer_unread:
            return
        self._heard_bytes += len(data)
        if self._heard_bytes > READ_BYTES:
            self._answer_unread = "answer too large"
            self._whole.clear()
        elif self._events is None:
            self._whole += data
        else:
            try:
                data = self._frames.feed(data) if self._frames else data
                self._pieces += data.count(_PIECE)
                self._events.feed(data)
            except WireError:
                self._answer_unread = "answer not understood"

    def reasoning_keys(self, reasoning: ReasoningFormat) -> Sequence[str]:
        """Returns the keys of the reasoning that was heard since the last time."""
        if self._events is not None:
            keys, self._events.reasoning_keys = self._events.reasoning_keys, []
            return keys
        if not 200 <= self._status < 300 or not any(sign in self._whole for sign in reasoning.signs):
            return ()
        return reasoning.keys(self.api.parse_response(bytes(self._whole)).message) if self.api else ()

    def read_answer(self, ending: Ending) -> tuple[Usage | None, str, str, str]:
        """Returns usage, stop reason, model and kind of error, as far as the answer was read."""
        usage, stop, model, error = None, "", "", ""
        if self._status >= 400:
            error = (self.api.error_kind(bytes(self._whole)) if self.api else "") or f"status {self._status}"
        elif self.api is not None and self._events is not None and not self._answer_unread:
            response = self._events.response()
            usage, stop, model = response.usage, response.stop, response.model
            if self._events.limits is not NO_LIMITS:
                self._limits = self._events.limits  # later than the headers
            if not self._events.ended:
                error = self.api.error_kind(self._events.error.encode()) or "no end of message"
        elif self.api is not None and self.listening and ending is Ending.WHOLE:
            try:
                response = self.api.parse_response(bytes(self._whole))
            except WireError:
                self._answer_unread = "answer not understood"
            else:
                usage, stop, model = response.usage, response.stop, response.model
        return usage, stop, model, error if ending is Ending.WHOLE else str(ending)

    def charge(
        self,
        usage: Usage | None,
        estimated: Mapping[str, int],
        prices: Prices,
        *,
        whole: bool,
        sent: int,
        came: int,
    ) -> Charge | None:
        """Returns what a budget is charged where the usage alone does not say it; None where there was no answer."""
        if self.api is None or not 200 <= self._status < 300:
            return None
        return charge_of(usage, estimated, prices, whole=whole, sent=sent, came=came, pieces=self._pieces)
