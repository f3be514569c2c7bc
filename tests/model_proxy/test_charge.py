"""What an exchange is charged where its usage does not say it all."""

from pagefold.derive.cost import ASSUMED
from pagefold.model_proxy.charge import charge_of
from pagefold.wire.message import Usage


def test_what_was_written_for_an_hour_costs_so_in_a_stream_that_was_cut_too() -> None:
    prices = ASSUMED.lived(long=True)
    usage = Usage(10, 20, 30_000, 40, cache_write_long=30_000)
    whole = charge_of(usage, {}, prices, whole=True, sent=0, came=0, pieces=0)
    cut = charge_of(usage, {}, prices, whole=False, sent=0, came=0, pieces=0)
    assert cut == whole
    assert charge_of(usage, {}, prices, whole=False, sent=0, came=30_000, pieces=100).output == 100
