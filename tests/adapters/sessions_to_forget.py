"""Sessions that leave something everywhere, and what is left of them."""

from contextlib import closing
from pathlib import Path

from pagefold.pages.forgetting import Choice, ForgettingStore, Forgotten
from pagefold.pages.journal import Boundary, JournalEntry, Op, flush
from pagefold.pages.store import Store
from pagefold.pages.writeback import Scopes


def files_with(folder: Path, secret: bytes) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes())


def fill(store: Store, session: str, now: float, mark: str) -> None:
    """A session with pages of every size, a form, notes, a journal line, and an index that has read all of it."""
    held = [
        store.pages.put(text.encode(), history=session, now=now, name=f"Read {mark}.py")
        for text in (f"{mark} short", f"{mark} " + "".join(map(chr, range(32, 127))) * 3, f"{mark} all over " * 3000)
    ]
    store.pages.put(f"{mark} shown".encode(), history=session, now=now, shown_form=held[0])
    for page in held:
        store.pages.hold(page, session)
    store.pages.renew(session, now)
    for number in range(40):
        store.notes.put(f"note-{mark}-{number}", f"{mark} noted {number}".encode(), now=now, history=session)
    scopes = Scopes(session)
    with closing(store.open_journal(scopes.rules, session)) as journal:
        value = {"text": f"{mark} written back"}
        entry = JournalEntry.of(
            Op.APPEND, scopes.names[0], "notes", "note", value, provenance=[held[0]], read_version=0
        )
        journal.stage(entry, now=now)
        assert flush(journal, Boundary.SHUTDOWN).committed
    store.search_index.search(mark)


def forget(store: Store, choice: Choice) -> Forgotten:
    assert isinstance(store, ForgettingStore)
    planned = store.to_forget(choice)
    assert store.to_forget(choice) == planned, "a plan changes nothing"
    assert store.forget(choice) == planned
    return planned
