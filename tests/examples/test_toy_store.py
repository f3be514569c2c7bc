"""The toy store of examples/ passes the conformance suite, and keeps a context's memory over a restart."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from examples.toy_store import ToyStore
from pagefold import Context
from pagefold.pages.store import Store
from tests.conformance.random_life import RandomLife
from tests.conformance.store_suite import StoreSuite


class TestToyStore(StoreSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[..., Store]:
        return lambda sender="": ToyStore(tmp_path / "store.changes", sender=sender)


class ToyLife(RandomLife):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(lambda: ToyStore(Path(self.folder.name) / "store.changes"))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestToyLife = ToyLife.TestCase
TestToyLife.settings = settings(deadline=None, max_examples=20, stateful_step_count=20)


def test_a_context_keeps_its_pages_and_pins_in_it(tmp_path: Path) -> None:
    path = tmp_path / "store.changes"
    store = ToyStore(path)
    with Context(store=store) as context:
        context.pin("Never push to main.")
        handle = context.keep("a long result")
    store.close()

    again = ToyStore(path)
    with Context(store=again) as context:
        assert context.recall(handle) == "a long result"
        assert [held.statement for held in context.pins.constraints] == ["Never push to main."]
    again.close()
