"""Adds the rows of a model proxy's sessions to the file beside the store, once a minute and at the end.

`pagefold trial` and `pagefold report` read them. If the file cannot be written the proxy goes on, and stderr says so.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.errors import ConfigError, StoreError
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.session_rows import SessionRows
from pagefold.settings.sections import Settings

_SECONDS = 60.0


@contextmanager
def gathering(proxy: Proxy, settings: Settings, project: str) -> Iterator[None]:
    """Has the proxy gather rows, and writes them while the block runs and at its end."""
    rows = proxy.session_rows = SessionRows()
    ended = threading.Event()

    def add() -> None:
        from pagefold.adapters.sqlite import session_rows

        gathered = rows.take()
        for row in gathered:
            row.project = project
        try:
            session_rows.add(LocalFiles(config.store_path(settings)).counters, gathered)
        except (StoreError, ConfigError) as error:
            print(f"pagefold: {error}", file=sys.stderr)

    def minutes() -> None:
        while not ended.wait(_SECONDS):
            add()

    thread = threading.Thread(target=minutes, name="pagefold-sessions", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        add()
