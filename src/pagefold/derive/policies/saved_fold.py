"""The state of a history right after a fold, as JSON, and that state again from the JSON and the messages.

A history that is seen for the first time by a process has mostly been derived before. Deriving all its folds again
takes seconds where it is long; what the last of them came to is a few pages of text. What is read back equals what
deriving again comes to: whatever that may not be true of is not written down, and what does not fit the messages is not
read. Nothing else may depend on it: it is a cache, like the state itself.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from pagefold.derive.bound_reasoning import bared
from pagefold.derive.entry import Entry, Standings, as_it_came, label_of, result_label, with_call
from pagefold.derive.fold import TAIL_TURNS, Folded, alive_facts, encoded
from pagefold.derive.pairing import Paired, add_message, settle_open_calls
from pagefold.derive.policies.folding import Folding, State
from pagefold.derive.trim_tail import Encode, squeezed
from pagefold.derive.working_set.record import Record
from pagefold.log import Log
from pagefold.pages import context_calls
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.pages.page import PageId
from pagefold.wire.message import BlockKind, Message, Role, user_text

_turn = attrgetter("turn")


def said(state: State) -> dict[str, Any] | None:
    """What has to be written down of a state right after a fold; None where it could not be read back."""
    last, log = state.last, state.log
    if last is None or state.sent != log.length or len(last.log) != log.length or not _is_plain(state, last):
        return None
    record, ledger = last.record, last.above.ledger
    views = [ledger[index] for index in range(len(ledger))]
    return {
        "messages": log.length,
        "cut": last.cut,
        "stays": list(last.stays),
        "texts": [message.text for message in state.front[len(last.stays) :]],
        "tokens": state.tokens,
        "turn": state.turn,
        "recent": [entry.tokens for entry in log[_first_recent(state.turn, log, last.cut) : last.cut]],
        "calls": [list(call) for call in last.above.calls],
        "pins": state.pins.block,
        "views": [[view.label, view.first, list(view.lines), view.text] for view in views],
        "names": sorted(last.names),
        "shown": dict(last.shown),
        "record": list(record) if record is not None else None,
        "short": last.short,
        "trimmed_to": last.trimmed_to,
        "bare_from": last.bare_from,
    }


def state_after(
    policy: Folding, begun: State, known: Mapping[str, Any], messages: Sequence[Message], encode: Encode
) -> State | None:
    """The state after the fold at the end of these messages, of which this is known; None where it does not fit them.

    `begun` is the policy's state before the first message. Raises LookupError, TypeError or ValueError where what is
    known was not written by `said`.
    """
    state = _through(policy, begun, messages)
    cut, turn = int(known["cut"]), int(known["turn"])
    if state.log.length != known["messages"] or state.turn != turn or state.pins.block != known["pins"]:
        return None
    stays = tuple(map(int, known["stays"]))
    if not all(0 <= place < cut for place in stays) or not cut <= state.log.length:
        return None
    first, recent = _first_recent(turn, state.log, cut), [int(tokens) for tokens in known["recent"]]
    if len(recent) != cut - first:
        return None
    entries = state.log[:]
    for place, tokens in enumerate(recent, first):
        entries[place] = replace(entries[place], tokens=tokens)
    before, trimmed_to, bare_from = _standing_above(known), known["trimmed_to"], known["bare_from"]
    log, standings = encoded(Log(entries), cut, before, encode)
    if trimmed_to is not None:
        made = squeezed(log, cut, int(trimmed_to), before, encode, policy.tokens)
        log, standings = made.log, made.standings
    if bare_from is not None:
        log = bared(log, int(bare_from), policy.tokens)
    front = (*(as_it_came(log[place].message) for place in stays), *map(user_text, known["texts"]))
    names, record = frozenset(map(str, known["names"])), Record(*known["record"]) if known["record"] else None
    last = Folded(
        front,
        cut,
        log,
        standings,
        int(known["tokens"]),
        (),
        short=str(known["short"]),
        alive=alive_facts(names, log, cut, stays),
        record=record,
        shown={PageId(page): str(file) for page, file in known["shown"].items()},
        stays=stays,
        names=names,
        above=before,
        trimmed_to=trimmed_to,
        bare_from=bare_from,
    )
    return replace(
        state,
        log=log,
        standings=standings,
        front=front,
        folded=cut,
        sent=log.length,
        tokens=last.tokens,
        told=(),
        last=last,
    )


def _standing_above(known: Mapping[str, Any]) -> Standings:
    """What the last exchanges were encoded below: the views of the digest, and the calls before it."""
    ledger = Ledger()
    for label, begin, lines, text in known["views"]:
        ledger = ledger.with_text(LedgerEntry(label, tuple(lines), begin, text=text))
    return Standings(ledger, tuple([(str(call), str(label)) for call, label in known["calls"]]))


def _is_plain(state: State, last: Folded) -> bool:
    """Whether what stands can be made again of the messages and of texts."""
    front, log = state.front, state.log
    stays = [as_it_came(log[place].message).raw for place in last.stays]
    same = [message.raw for message in front[: len(stays)]] == stays
    own = front[len(last.stays) :]
    texts = all(message.place < 0 and message.raw == user_text(message.text).raw for message in own)
    return same and texts and not state.recalled and _is_labelled(log[: last.cut])


def _is_labelled(entries: Sequence[Entry]) -> bool:
    """Whether every result is called after its call: of the last calls each fold counts some twice, so that one which
    waited for its result very long may have been forgotten."""
    unnamed = dict[str, str]()
    for entry in reversed(entries):
        results = [block for block in entry.message.blocks if block.kind is BlockKind.RESULT]
        for block, label in zip(results, entry.labels, strict=False):
            if label == (block.name or "result"):
                unnamed[block.call_id] = label
        for block in entry.message.blocks if unnamed else ():
            if block.kind is BlockKind.CALL and unnamed.pop(block.call_id, None) not in (None, label_of(block)):
                return False
    return not unnamed


def _first_recent(turn: int, log: Log[Entry], cut: int) -> int:
    """The place of the first entry that a later fold may count among the last exchanges."""
    return bisect_right(log, turn - TAIL_TURNS, hi=cut, key=_turn)


def _through(policy: Folding, state: State, messages: Sequence[Message]) -> State:
    """The state after these messages and the request behind them as far as it follows from them alone: of what is
    folded nobody asks how it was shown, nor what it cost."""
    calls, entries, spoke = state.standings.calls, list[Entry](), False
    pairing, pins, turn = state.pairing, state.pins, state.turn

    def take(found: Paired) -> None:
        nonlocal calls, pairing, pins, turn
        pairing = found.pairing
        for message in found.messages:
            labels = list[str]()
            for block in message.blocks:
                if block.kind is BlockKind.CALL:
                    calls = with_call(calls, block.call_id, label_of(block))
                elif block.kind is BlockKind.RESULT:
                    labels.append(result_label(block, calls))
            folded_away = Message(message.role, (), "", message.place)
            entries.append(Entry(message, folded_away, 0, turn, tuple(labels)))
            pins = context_calls.step(pins, message, policy.context_servers)
            turn += message.role is Role.ASSISTANT

    asked = False
    for message in (*messages, None):
        speaks = message is None or message.role is Role.ASSISTANT
        if speaks and not spoke:  # before an answer there was a request
            if pairing.waits:
                take(settle_open_calls(pairing))
            unsaid = pins.block if policy.instructions and not asked else ""
            if unsaid and all(entry.message.text != unsaid for entry in entries):
                take(add_message(pairing, user_text(unsaid)))
            asked = True
        if message is not None:
            take(add_message(pairing, message))
            spoke = speaks
    return replace(state, log=Log(entries), pairing=pairing, pins=pins, turn=turn)
