"""Measures what the history sink costs a put, against the same store without one, in the same run, item by item.

    python bench/sink.py [--pages 1500]

The sinks are storage in memory that takes everything at once, an address where nobody listens, and one that takes
connections and never answers. A ratio is seconds with the sink divided by seconds without; contents are those of
bench/store.py. Needs the extra s3.
"""

import argparse
import runpy
import socket
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

from pagefold.adapters.library import Library, objects_of
from pagefold.adapters.sink import ObjectStorage
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.stores import open_store
from pagefold.settings.sections import SinkSettings

Writing: Any = runpy.run_path(str(Path(__file__).with_name("store.py")))["Writing"]
ROUND = 250


class Ready:
    """Storage that takes everything at once."""

    where = "memory"

    async def put(self, key: str, content: bytes) -> None:
        pass

    def get(self, key: str) -> bytes | None:
        return None

    def read(self, key: str, start: int, end: int) -> bytes | None:
        return None

    def keys(self, folder: str) -> list[str]:
        return []

    folders = keys

    def delete(self, keys: Sequence[str]) -> None:
        pass


def at(port: int) -> ObjectStorage | None:
    return objects_of(SinkSettings(endpoint=f"http://127.0.0.1:{port}", bucket="b", access_key="k", secret_key="s"))


def compare(objects: ObjectStorage | None, contents: list[bytes]) -> tuple[float, float]:
    """The median of the rounds' ratios, and the slowest single put in milliseconds."""
    ratios, worst = [], 0.0
    for start in range(0, len(contents), ROUND):
        with tempfile.TemporaryDirectory() as folder, closing(SqlitePages(Path(folder, "plain.db"))) as plain:
            library = Library(open_store(Path(folder, "sink.db"), sender="bench"), objects, flush_seconds=0.0)
            took = [0.0, 0.0]
            sides = [(0, library.put), (1, plain.put)]
            for content in contents[start : start + ROUND]:
                sides.reverse()
                for side, put in sides:
                    begun = perf_counter()
                    put(content, history="s")
                    seconds = perf_counter() - begun
                    took[side] += seconds
                    worst = max(worst, seconds if side == 0 else 0.0)
            library.close()
        ratios.append(took[0] / took[1])
    return statistics.median(ratios), worst * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1500)
    options = parser.parse_args()
    writing = Writing(seed=5)
    contents = [writing.content() for _ in range(options.pages)]
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sinks = {
            "no sink": None,
            "takes all at once": Ready(),
            "nobody listens": at(unused.getsockname()[1]),
            "never answers": at(silent.getsockname()[1]),
        }
        print(f"{options.pages:,} pages; a put under a session\n{'':20} {'ratio':>6} {'worst put ms':>14}")
        for name, objects in sinks.items():
            ratio, worst = compare(objects, contents)
            print(f"{name:20} {ratio:6.2f} {worst:14.1f}")


if __name__ == "__main__":
    main()
