"""Adds the rows of a model proxy's sessions to the file beside the store, once a minute and at the end.

`pagefold trial` and `pagefold report` read them.
"""

from contextlib import AbstractContextManager

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.cli.each_minute import each_minute
from pagefold.errors import ConfigError, StoreError
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.session_rows import SessionRows
from pagefold.settings.sections import Settings


def gathering(proxy: Proxy, settings: Settings, project: str) -> AbstractContextManager[None]:
    """Has the proxy gather rows from now on, and writes them while the block runs and at its end."""
    rows = proxy.session_rows = SessionRows()

    def add() -> None:
        from pagefold.adapters.sqlite import session_rows

        gathered = rows.take()
        for row in gathered:
            row.project = project
        try:
            session_rows.add(LocalFiles(config.store_path(settings)).counters, gathered)
        except (StoreError, ConfigError):
            rows.keep(gathered)
            raise

    return each_minute(add, "pagefold-sessions")
