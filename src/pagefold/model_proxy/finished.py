"""Tells of a finished exchange whoever wants to know: the recorder of turns, and the rows of sessions."""

from collections.abc import Mapping

from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.host import Host
from pagefold.model_proxy.totals import Seen


def tell(host: Host, exchange: Exchange, seen: Seen, headers: Mapping[bytes, bytes], began: float, now: float) -> None:
    """`headers` are the client's, by names in lower case."""
    record = exchange.record
    if record is None:
        return
    if host.recorder is not None:
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        host.recorder.tell(record, seen, user_agent=agent, began=began, now=now)
    if host.session_rows is not None:
        host.session_rows.saw(record, seen, session=exchange.session, arm=exchange.arm, began=began, now=now)
