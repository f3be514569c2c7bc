"""What an exchange is charged where its usage does not say it all."""

import pytest

from pagefold.derive.cost import ASSUMED
from pagefold.model_proxy.charge import charge_of
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.wire.apis import MESSAGES
from pagefold.wire.message import Usage
from tests.model_proxy.conversation import body


def test_what_was_written_for_an_hour_costs_so_in_a_stream_that_was_cut_too() -> None:
    prices = ASSUMED.lived(long=True)
    usage = Usage(10, 20, 30_000, 40, cache_write_long=30_000)
    whole = charge_of(usage, {}, prices, whole=True, sent=0, came=0, pieces=0)
    cut = charge_of(usage, {}, prices, whole=False, sent=0, came=0, pieces=0)
    assert cut == whole
    assert charge_of(usage, {}, prices, whole=False, sent=0, came=30_000, pieces=100).output == 100


def test_a_stream_of_long_pieces_is_charged_by_its_words() -> None:
    charge = charge_of(None, {}, ASSUMED, whole=False, sent=400, came=50_000, pieces=100)
    assert (charge.prompt, charge.output) == (100, 5_000)


@pytest.mark.parametrize(("status", "is_charged"), [(200, True), (400, False), (429, False), (529, False)])
def test_only_what_the_provider_took_is_charged(status: int, is_charged: bool) -> None:
    exchange = Exchange("POST", MESSAGES.path, body([{"role": "user", "content": "Hi"}]), Conversations())
    exchange.answer_began(status, "application/json")
    exchange.hear(b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}')
    assert (exchange.finish(Ending.WHOLE, bytes_up=100, bytes_down=80).charge is not None) is is_charged
