"""A server that floods is slowed down to a pace; one that tells now and then is not."""

from pagefold.mcp_proxy.pace import Pace


def told(seconds: float, every: float) -> int:
    """How many notifications are read in a time from a server that writes one at least so often."""
    pace, now, count = Pace(), 1000.0, 0
    while now < 1000.0 + seconds:
        count += 1
        now += max(every, 1e-5) + pace.after(now)
    return count


def test_a_flood_is_read_at_the_pace() -> None:
    assert 4_500 < told(10.0, 0.0) < 6_000


def test_who_tells_less_never_waits() -> None:
    assert told(10.0, 0.01) in (1_000, 1_001)
    pace = Pace()
    assert not any(pace.after(5.0) for _ in range(99)), "a burst"
