"""How much of a five-hour window and of a week is used, as providers say it; anything else says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.wire.quota import Limits, Quota, limits_in, limits_of_codex

FIVE_HOURS, SEVEN_DAYS = "anthropic-ratelimit-unified-5h-", "anthropic-ratelimit-unified-7d-"


def codex(name: str, minutes: object, percent: object) -> dict[str, str]:
    return {
        f"x-codex-{name}-window-minutes": str(minutes),
        f"x-codex-{name}-used-percent": str(percent),
        f"x-codex-{name}-reset-at": "1788879438",
    }


@pytest.mark.parametrize(
    ("headers", "quota"),
    [
        ({f"{FIVE_HOURS}utilization": "0.42", f"{FIVE_HOURS}reset": "1788879437"}, Quota(0.42, 1788879437.0)),
        ({f"{FIVE_HOURS}utilization": "1.3"}, Quota(1.3)),
        ({f"{SEVEN_DAYS}utilization": "0.3"}, None),
        (codex("primary", 300, 42), Quota(0.42, 1788879438.0)),
        (codex("primary", 10080, 9) | codex("secondary", 300, 7), Quota(0.07, 1788879438.0)),
        (codex("primary", 10080, 9), None),
        ({}, None),
        ({f"{FIVE_HOURS}utilization": "much"}, None),
        ({f"{FIVE_HOURS}utilization": "nan"}, None),
        ({f"{FIVE_HOURS}utilization": "-0.1"}, None),
        ({f"{FIVE_HOURS}utilization": "1e9"}, None),
        ({f"{FIVE_HOURS}utilization": "0.1", f"{FIVE_HOURS}reset": "tomorrow"}, Quota(0.1)),
    ],
)
def test_what_headers_say(headers: dict[str, str], quota: Quota | None) -> None:
    assert limits_in(headers).hours == quota


@pytest.mark.parametrize(
    ("limits", "quota"),
    [
        ({"primary": {"used_percent": 12.5, "window_minutes": 300, "resets_at": 7}}, Quota(0.125, 7.0)),
        ({"primary": {"used_percent": 12.5, "window_minutes": 10080}, "secondary": None}, None),
        ({"primary": {"used_percent": None, "window_minutes": 300}}, None),
        (None, None),
        ([], None),
        ("full", None),
    ],
)
def test_what_codex_says(limits: object, quota: Quota | None) -> None:
    assert limits_of_codex(limits).hours == quota


def test_the_week_is_told_beside_the_five_hours() -> None:
    both = {f"{FIVE_HOURS}utilization": "0.14", f"{SEVEN_DAYS}utilization": "0.13", f"{SEVEN_DAYS}reset": "1790845200"}
    windows = {"primary": {"used_percent": 3, "window_minutes": 10080}, "secondary": None}

    assert limits_in(both) == Limits(Quota(0.14), Quota(0.13, 1790845200.0))
    assert limits_in(codex("primary", 10080, 9)) == Limits(None, Quota(0.09, 1788879438.0))
    assert limits_of_codex(windows) == Limits(None, Quota(0.03))


@given(
    st.dictionaries(
        st.sampled_from([f"{FIVE_HOURS}utilization", f"{SEVEN_DAYS}utilization", *codex("primary", 1, 1)]),
        st.text(max_size=8),
    )
)
def test_no_header_breaks_it(headers: dict[str, str]) -> None:
    for quota in (limits_in(headers).hours, limits_in(headers).week):
        assert quota is None or 0 <= quota.used <= 100
