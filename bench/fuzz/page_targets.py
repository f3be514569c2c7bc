"""Fuzzes what reads back what pagefold wrote, or what people and agents write for it: forms, cursors and queries of a
recall, the journal, and settings."""

import json
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from bench.fuzz.histories import check_history
from bench.fuzz.target import Target
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.config import load
from pagefold.config.project_file import may_set
from pagefold.encode import decode, encode, literal_reader
from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.page_pieces import piece
from pagefold.encode.page_query import find_lines, find_path, find_word
from pagefold.encode.trim import trim
from pagefold.errors import ConfigError, RecallError
from pagefold.pages.journal import SCHEMAS, Boundary, Journal, JournalEntry, LineState, Op, Rules, flush
from pagefold.pages.ledger import Ledger
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import PageId, id_of
from pagefold.settings.knobs import values_of
from pagefold.settings.toml_text import toml_key
from pagefold.tokens import counter
from pagefold.wire import json_text

_count = counter("o200k").count


def check_forms(data: bytes, dice: random.Random) -> list[str]:
    """A text comes back from its form, alone and in a history; what poses as a form is decoded or refused."""
    text = json_text.text_of(data)
    counts = check_history(dice, text)
    with suppress(ValueError):
        decode(text, _ledger())
    with suppress(ValueError):
        literal_reader.read(text, _ledger().shown)
    trim(text, dice.choice((100, 150, 400)))
    return counts


@lru_cache(1)
def _ledger() -> Ledger:
    """What a forged reference may point at."""
    ledger = Ledger()
    for text in ("\n".join(f"{n}\tdef f_{n}(): ..." for n in range(1, 60)), json.dumps([{"id": n} for n in range(60)])):
        for entry in encode(text, tool="Read a.py", ledger=ledger).ledger_entries:
            ledger = ledger.with_text(entry)
    return ledger


def check_cursors(data: bytes, dice: random.Random) -> None:
    """Pieces of a page hold every character once; a cursor or a query that anybody made up is answered or refused."""
    text = json_text.text_of(data)
    page = id_of(data)
    first, _, rest = text.partition("\n")
    for query in (first, text):
        with suppress(RecallError):
            read_cursor(query, page, len(text))
        for find in (find_lines, find_path, find_word):
            with suppress(RecallError):
                assert _count(find(rest, query, 120, _count)) <= 120
    seen, cursor = 0, Cursor(page, 0, dice.choice((100, 150, 400))) if text else None
    while cursor is not None:
        cursor = read_cursor(str(cursor), page, len(text))
        made = piece(text, cursor, _count)
        for start, end in made.parts:
            assert start == seen, "characters are lost or repeated between pieces"
            seen = end
        cursor = made.cursor
    assert seen == len(text), "characters are lost at the end"
    # The checksum is no secret: somebody may make up a cursor that has the right one.
    places = sorted(dice.randint(0, len(text) + dice.choice((0, 0, 9))) for _ in range(dice.choice((1, 3, 5))))
    runs = tuple(zip(places[1::2], places[2::2], strict=True))
    with suppress(RecallError):
        piece(text, read_cursor(str(Cursor(page, places[0], 100, runs)), page, len(text)), _count)


_SCOPE = "session:1"
_PAGE = id_of(b"a page")


def check_journal(data: bytes, dice: random.Random) -> None:
    """Whatever is staged, in memory and on disk the same is committed or rejected, and nothing committed is lost."""
    entries = _entries(data)
    with tempfile.TemporaryDirectory(dir=_quick_folder()) as folder:
        stores = (MemoryStore(), SqliteStore(Path(folder, "store.sqlite3")))
        judged = [_judged(store.open_journal, entries, store.pages.put) for store in stores]
        stores[1].close()
    assert judged[0] == judged[1], "the journals in memory and on disk disagree"


def _judged(
    open_journal: Callable[[Rules], Journal], entries: list[JournalEntry], put: Callable[[bytes], PageId]
) -> object:
    put(b"a page")
    journal = open_journal(Rules(SCHEMAS, frozenset({_SCOPE, ""})))
    for at, entry in enumerate(entries):
        journal.stage(entry, token=f"{at % 3}" if at % 2 else "")
        if at % 3 == 0:
            flush(journal, Boundary.PRUNE)
    flush(journal, Boundary.SHUTDOWN)
    lines = journal.lines()
    records = {(line.entry.scope, line.entry.key): journal.record(line.entry.scope, line.entry.key) for line in lines}
    for line in lines:
        assert not line.pending, "a line is neither committed nor rejected"
        record = records[line.entry.scope, line.entry.key]
        if line.state is LineState.COMMITTED and line.entry.op is Op.APPEND and record is not None:
            later = [one for one in lines if one.version > line.version and one.entry.op is Op.SET]
            replaced = any((one.entry.scope, one.entry.key) == (line.entry.scope, line.entry.key) for one in later)
            kept = [json.dumps(value) for value in record.value]
            assert replaced or json.dumps(json.loads(line.entry.value)) in kept, "a committed value is lost"
    journal.close()
    return [(line.entry, line.state, line.reason, line.version) for line in lines], list(records.values())


def _entries(data: bytes) -> list[JournalEntry]:
    """One entry a line: operation, scope, key, schema, version and value, each as the line has it or made up."""
    found: list[JournalEntry] = []
    for line in json_text.text_of(data).split("\n")[:12]:
        op, scope, key, schema, read, value, *_ = [*line.split(" ", 5), "", "", "", "", "", ""]
        found.append(
            JournalEntry(
                Op(op) if op in set(Op) else Op.APPEND,
                _SCOPE if scope == "-" else scope,
                key,
                schema,
                value,
                (_PAGE,) if read != "!" else (id_of(b"nowhere"),),
                int(read) if read.isascii() and read.isdecimal() and len(read) < 9 else None,
            )
        )
    return found


def _quick_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def check_settings(data: bytes, dice: random.Random) -> None:
    """A file gives settings or one sentence; a project's file sets nothing that is the user's alone."""
    with tempfile.TemporaryDirectory(dir=_quick_folder()) as name:
        folder, home = Path(name, "project"), Path(name, "home")
        folder.mkdir()
        (folder / "pagefold.toml").write_bytes(data)
        for flags in ({"config": "pagefold.toml"}, {}):
            try:
                loaded = load(flags, {"HOME": str(home)}, folder)
            except ConfigError as error:
                refusal, loaded = str(error), None
            if loaded is None:
                assert refusal.isprintable(), f"{refusal!r} is more than one line, or would act on a terminal"
            elif not flags:
                for path, value in values_of(loaded.settings):
                    origin = loaded.origins[toml_key(path)]
                    assert origin == "default" or may_set(path, value), f"a project's file set {path} = {value!r}"
    with suppress(ConfigError):
        load({}, {"HOME": "/nowhere", "PAGEFOLD_SERVE_POLICY": json_text.text_of(data)}, Path("/"))


_TEXT_WORDS = (
    *(b"\n", b"\r\n", b"\t", b" ", b"[R1]", b"[R1.2 lines 1-9]", b"= lines 1-9 of R1", b"= line 3 is line 2 of R1"),
    *(
        b"[as it is]",
        b"[lines 1-9]",
        b"[JSON]",
        b"[JSON lines compact]",
        b"[Python]",
        b"#1 2 rows: a,b=1..",
        b"&1{",
        b"*1",
    ),
    *(
        b"[hits by file]",
        b"[log: ",
        b"[records as rows below their keys]",
        b"[repeated lines said once]",
        b"[MCP text]",
    ),
    *(b"> [ref: R1, byte-identical]", b"> [near-ref: R1, a: 1", "→2]".encode(), b"\x1b[31m", b"\xff", b"\x00"),
    *(
        b"src/a.py:12:",
        b"2026-03-21 08:00:25 ",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\n",
        b"1\t",
        "     7→".encode(),
        b"$a=",
        b"| ",
    ),
    *(b", changed since R1: lines 2-3", b"..", b"9" * 30, b"\xe2\x80\xa8", b"[[" * 600),
)
_CURSOR_WORDS = (
    *_TEXT_WORDS,
    b"1-9,12",
    b"$.items[3].name",
    b"[*]",
    b"[-1]",
    b"e30",
    b"eyJ2IjoxfQ",
    b"=",
    b"-",
    b"9" * 5000,
)
_JOURNAL_WORDS = (
    *(b"append - notes note ", b"merge - plan plan 1 ", b"set - plan plan 0 ", b"set - notes note 2 ", b"! ", b"\n"),
    *(
        b'{"text":"a"}',
        b'{"goal":"a","source":{}}',
        b"null",
        b"NaN",
        b"1e999",
        b"\\ud800",
        b"\xff",
        b'"text":',
        b"[" * 40,
    ),
    *(b"[" * 3000, b'{"text":1}', b"\x00", b",", b"{", b"}", b"9" * 5000),
)
_SETTINGS_WORDS = (
    *(
        b"[",
        b"]",
        b"=",
        b"\n",
        b".",
        b'"',
        b"'",
        b"#",
        b"{",
        b"}",
        b"[[",
        b'"""',
        b"\\u0000",
        b"\x1b",
        b"\xff",
        b"\xe2\x80\xae",
    ),
    *(
        b"[store]\n",
        b"path = ",
        b"[serve]\n",
        b"port = 1",
        b'policy = "economic"',
        b"[upstreams]\n",
        b"[tools.a]\n",
        b"recall = ",
    ),
    *(
        b"[mcp]\n",
        b'context_servers = ["x"]',
        b"true",
        b"1e999",
        b"9" * 5000,
        b"nan",
        b"1979-05-27",
        b"[sink]\n",
        b"[a.b.c]\n",
    ),
    *(
        b"[file_tools]\n",
        b"[learned.a]\n",
        b"[prices_usd.a]\n",
        b'"\\ud800"',
        b"[" * 2000,
        b"[values]\n",
        b"[prefetch]\n",
    ),
)

TARGETS = (
    Target("forms", check_forms, _TEXT_WORDS),
    Target("cursors", check_cursors, _CURSOR_WORDS),
    Target("journal", check_journal, _JOURNAL_WORDS),
    Target("settings", check_settings, _SETTINGS_WORDS),
)
