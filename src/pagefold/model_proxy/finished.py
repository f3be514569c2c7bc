"""Tells of a finished exchange whoever wants to know: the recorder of turns, the rows of sessions, and the store, which
keeps its fold; and has one charged of which nothing is known."""

from collections.abc import Mapping
from functools import partial

from pagefold.adapters.asgi import Event
from pagefold.model_proxy.charge import charge_of
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.host import Host
from pagefold.model_proxy.totals import Ending, Seen
from pagefold.wire.api_paths import asked_at


def tell(host: Host, exchange: Exchange, seen: Seen, headers: Mapping[bytes, bytes], began: float, now: float) -> None:
    """`headers` are the client's, by names in lower case."""
    record = exchange.record
    if record is None:
        return
    fold = record.derivation.fold if record.derivation is not None else None
    if fold is not None and 200 <= seen.status < 300:
        host.aside(partial(host.conversations.notebook.save_newest_fold, fold, now, exchange.name))
    if host.recorder is not None:
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        host.recorder.tell(record, seen, user_agent=agent, began=began, now=now)
    if host.session_rows is not None:
        host.session_rows.saw(record, seen, session=exchange.session, arm=exchange.arm, began=began, now=now)


def charge_unheard(host: Host, scope: Event, headers: Mapping[bytes, bytes], up: int, down: int) -> None:
    """Has an exchange charged by its size, of which nothing else is known after a fault of pagefold's own."""
    asked = asked_at(scope["path"]) if scope["method"] == "POST" else None
    if asked is not None and down:
        prices = host.conversations.prices(asked.model)
        charge = charge_of(None, {}, prices, whole=False, sent=up, came=down, pieces=0)
        host.meter(Seen(asked.api.name, Ending.WHOLE, charge=charge), headers)
