"""What a digest holds of one result by itself: its outcome, and lines of the file or with names, as there is room."""

import json

from pagefold.derive.entry import Entry, Standings, enter
from pagefold.derive.values import NEVER, SHIPPED, mentioned
from pagefold.derive.working_set.digest import Material, working_set
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.parts import rendered
from pagefold.derive.working_set.reading import reading_of
from pagefold.derive.working_set.record import Record
from pagefold.pages.page import Page
from pagefold.wire import openai_chat

_SHARE = 0.4  # of a result's tokens, about what the digest may hold of it
_LEAST = 400
_RATE = 1e-4  # the least worth of a token


def digest_of(page: Page, tokens: str = "o200k") -> str:
    """The digest of a history in which a tool returned this page and nothing else happened."""
    name, _, path = page.name.partition(" ")
    arguments = json.dumps({"file_path": path} if path else {})
    call = {"id": "alone", "type": "function", "function": {"name": name or "tool", "arguments": arguments}}
    values = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "alone", "content": page.text},
    ]
    standings, entries = Standings(), list[Entry]()
    for place, value in enumerate(values):
        message = openai_chat.parse_message(value, json.dumps(value), place)
        standings, entry = enter(standings, message, place, tokens)
        entries.append(entry)
    known = {fact: mentioned(NEVER, 1, 1, own=False, user=False) for fact in entries[1].facts}
    material = Material(entries, len(entries), len(entries), reading_of(entries))
    budget = max(_LEAST, int(entries[1].tokens * _SHARE))
    made = working_set(material, Names(known, SHIPPED, _RATE, len(entries)), budget)
    return rendered(made.parts, Record(1, page.handle), 1)
