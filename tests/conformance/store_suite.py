"""The conformance suite of a store. An implementation passes it as one class:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def reopen(self, tmp_path: Path) -> Callable[..., Store]:
            return lambda sender="": MyStore(tmp_path / "store", sender=sender)

`reopen` opens the same store every time; for a store in memory it returns the one it has.
"""

from collections.abc import Callable, Iterator

import pytest

from pagefold.pages.store import Store
from tests.conformance.journal_suite import JournalSuite
from tests.conformance.note_suite import NoteSuite
from tests.conformance.outbox_suite import OutboxSuite
from tests.conformance.page_suite import PageSuite
from tests.conformance.scope_suite import ScopeSuite
from tests.conformance.search_suite import SearchSuite


class StoreSuite(PageSuite, NoteSuite, OutboxSuite, SearchSuite, JournalSuite, ScopeSuite):
    @pytest.fixture
    def store(self, reopen: Callable[..., Store]) -> Iterator[Store]:
        store = reopen()
        yield store
        store.close()
