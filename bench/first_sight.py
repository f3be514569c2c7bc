"""What a history costs that is seen for the first time: CPU seconds by its length, under lossless and economic.

The history is recorded Claude Code sessions one behind the other, sent as one request, as after a restart. Garbage is
collected as in a proxy. `again` is what it costs a second process, which finds in the store what the first has saved of
it. Whether it is linear shows in the last column.
Run as a module: `python -m bench.first_sight --messages 1000,5000`.
"""

import argparse
import tempfile
import time
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

from bench.recorded import family, sessions, table
from pagefold.adapters.gc_tuning import tune_gc
from pagefold.adapters.stores import open_store
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.notebook import ProxyNotebook
from pagefold.model_proxy.saving import Saving
from pagefold.model_proxy.turn_recorder import ExchangeRecord
from pagefold.pages.store import Store


def body(messages: int) -> bytes:
    recorded = chain.from_iterable(session.messages for session in sessions(family("coding-claude-code")))
    raws = [message.raw for message in islice(recorded, messages)]
    return f'{{"model":"gpt-5","stream":true,"messages":[{",".join(raws)}]}}'.encode()


def seen_first(policy: str, request: bytes, store: Store | None = None) -> tuple[float, float]:
    """CPU seconds for reading a request, and for reading and deriving it."""
    exchange = Exchange("POST", "/v1/chat/completions", request, Conversations(policy_named(policy), store=store))
    assert exchange.derives
    begun = time.process_time()
    exchange.read(1.0)
    read = time.process_time() - begun
    exchange.derive(1.0)
    whole = time.process_time() - begun
    if store is not None and exchange.record is not None:
        keep(exchange, exchange.record, store)
    return read, whole


def keep(exchange: Exchange, record: ExchangeRecord, store: Store) -> None:
    """Saves what a proxy saves of a request that was answered."""
    Saving(store.pages.put_held).save(exchange)
    if record.derivation is not None and record.derivation.fold is not None:
        ProxyNotebook(store.notes).save_newest_fold(record.derivation.fold, 1.0, exchange.name)


def seen_again(policy: str, request: bytes) -> float:
    """CPU seconds for reading and deriving a request that another process has derived, with a store in a file."""
    with tempfile.TemporaryDirectory() as folder, closing(open_store(Path(folder) / "s.sqlite3")) as store:
        seen_first(policy, request, store)
        with closing(open_store(Path(folder) / "s.sqlite3")) as same:
            return seen_first(policy, request, same)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", default="1000,2500,5000", help="lengths of the history, divided by commas")
    parser.add_argument("--policies", default="lossless,economic")
    chosen = parser.parse_args()
    rows = []
    tune_gc()
    for policy in chosen.policies.split(","):
        seen_first(policy, body(50))  # loads what the first request loads
        for messages in map(int, chosen.messages.split(",")):
            request = body(messages)
            read, whole = seen_first(policy, request)
            row = {"policy": policy, "messages": messages, "MB": len(request) / 1e6, "read s": read, "all s": whole}
            again = seen_again(policy, request)
            rows.append(row | {"again s": again, "all s / 1,000": whole / messages * 1000})
    print(table(rows))


if __name__ == "__main__":
    main()
