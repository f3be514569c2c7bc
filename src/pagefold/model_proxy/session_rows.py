"""Gathers one row of numbers for each session, from its exchanges: what it cost, and in a trial also how it went.

Only what a request has more than the one before it is looked at. Sessions are known by the name that the client gives,
else by their first messages. `take` hands over what was gathered since the last time.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pagefold.derive.session_row import SessionRow
from pagefold.lock import Lock
from pagefold.model_proxy.totals import Seen
from pagefold.model_proxy.turn_recorder import ExchangeRecord
from pagefold.pages.files.file_tools import KNOWN_TOOLS, Does
from pagefold.pages.outcome import Outcome, ending_of
from pagefold.pages.voices import Voice, without_reminders, words_of
from pagefold.wire.message import Block, BlockKind, Message, Role

_HISTORIES = 2_000
_CALLS = 5_000
_WAITED = 600.0  # seconds; a tool that seems to take longer waits for somebody
_CHANGES = frozenset((Does.EDIT, Does.WRITE, Does.PATCH))
_CORRECTS = re.compile(
    r"\A\W*(?:no\b|nope\b|wrong\b|stop\b|undo\b|revert\b|don'?t\b|do not\b|not (?:that|what|like)\b"
    r"|that'?s (?:not|wrong)\b|this is (?:not|wrong)\b|it (?:still )?(?:does ?n[o']t|doesn'?t) work"
    r"|still (?:broken|fails|wrong|not)\b"
    r"|you (?:forgot|missed|broke|should(?:n'?t| not)? have)\b|i (?:said|told you|meant|asked)\b|why did you\b)",
    re.IGNORECASE,
)
_INTERRUPTED = "[Request interrupted by user"


@dataclass(slots=True)
class FollowedHistory:
    """One history as far as it was seen; `heard` counts what its messages tell."""

    prefix_hash: bytes = b""
    seen: int = 0
    ended: float = 0.0
    calls: dict[str, Block] = field(default_factory=dict)
    shown: dict[tuple[str, str], int] = field(default_factory=dict)  # what a call returned, by its spelling

    def heard(self, row: SessionRow, message: Message) -> None:
        for block in message.blocks:
            if block.kind is BlockKind.CALL:
                if len(self.calls) >= _CALLS:
                    self.calls.clear()
                self.calls[block.call_id] = block
            elif block.kind is BlockKind.RESULT:
                self._returned(row, block)
            elif block.kind is BlockKind.TEXT and message.role is Role.USER:
                _said(row, block.text)

    def _returned(self, row: SessionRow, result: Block) -> None:
        call = self.calls.get(result.call_id)
        failed = ending_of(result.text, failed=result.failed).outcome is Outcome.FAILED
        row.results += 1
        row.errors += failed
        if call is None:
            return
        tool = KNOWN_TOOLS.find(call.name)
        if tool.does in _CHANGES if tool is not None else KNOWN_TOOLS.writes_by_name(call.name):
            row.edits += 1
            row.failed_edits += failed
            return
        spelling, shown = (call.name, call.text), hash(result.text)
        row.rereads += self.shown.get(spelling) == shown
        if len(self.shown) >= _CALLS:
            self.shown.clear()
        self.shown[spelling] = shown


class SessionRows:
    def __init__(self) -> None:
        self._rows: dict[str, SessionRow] = {}
        self._histories: dict[str, FollowedHistory] = {}
        self._lock = Lock()

    def saw(self, record: ExchangeRecord, seen: Seen, *, session: str, arm: str, began: float, now: float) -> None:
        """Takes one exchange. Of those that the provider did not answer nothing is counted."""
        parsed = record.parsed
        if seen.usage is None or not parsed.prefix_hashes.length:
            return
        name = session or parsed.root.asked.hex()
        row = SessionRow(name, arm, record.policy, seen.model, began=began, ended=now, turns=1)
        row.usd, row.usd_saved, row.saved = seen.reckoned.usd, seen.reckoned.usd_saved, seen.work.saved
        row.prompt, row.output, row.folds = seen.usage.prompt, seen.usage.output, seen.work.folds
        row.windows, row.weeks = seen.reckoned.windows, seen.reckoned.weeks
        if arm:
            self._look(row, record, began, now)
        self.keep([row])

    def keep(self, rows: Iterable[SessionRow]) -> None:
        """Adds rows to what is gathered: new ones, or some that were taken and could not be written."""
        with self._lock:
            for row in rows:
                self._rows.setdefault(row.session, SessionRow(row.session, row.arm)).add(row)

    def take(self) -> list[SessionRow]:
        """Returns what was gathered since the last call."""
        with self._lock:
            rows, self._rows = self._rows, {}
        return list(rows.values())

    def _look(self, row: SessionRow, record: ExchangeRecord, began: float, now: float) -> None:
        """Counts what came with this request, in the client's own words: what a policy made of them is not its work."""
        parsed = record.parsed
        messages, hashes = parsed.request.messages, parsed.prefix_hashes
        followed = self._followed(parsed.root.asked.hex())
        if followed.seen and not (followed.seen <= hashes.length and hashes[followed.seen - 1] == followed.prefix_hash):
            followed.seen = hashes.length - 1  # a fork, or edited: only its last message is new
        new = messages.since(followed.seen)
        for message in new:
            followed.heard(row, message)
        waited = began - followed.ended if followed.ended and not row.asks else 0.0
        row.seconds = max(0.0, now - began) + min(max(0.0, waited), _WAITED)
        followed.seen, followed.prefix_hash, followed.ended = hashes.length, hashes[-1], now

    def _followed(self, history: str) -> FollowedHistory:
        followed = self._histories.pop(history, None) or FollowedHistory()
        self._histories[history] = followed
        if len(self._histories) > _HISTORIES:
            del self._histories[next(iter(self._histories))]
        return followed


def _said(row: SessionRow, text: str) -> None:
    """A message in the user's place: what the client adds to it is not the user's."""
    if text.startswith(_INTERRUPTED):
        row.corrections += 1
        return
    said = words_of(without_reminders(text))
    if said.voice is Voice.USER and said.text:
        row.asks += 1
        row.corrections += _CORRECTS.match(said.text) is not None
