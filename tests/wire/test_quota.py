"""How much of a five-hour window is used, as providers say it; anything else says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.wire.quota import Quota, quota_in, quota_of_codex

FIVE_HOURS = "anthropic-ratelimit-unified-5h-"


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
        ({"anthropic-ratelimit-unified-7d-utilization": "0.3"}, None),
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
    assert quota_in(headers) == quota


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
    assert quota_of_codex(limits) == quota


@given(st.dictionaries(st.sampled_from([f"{FIVE_HOURS}utilization", *codex("primary", 1, 1)]), st.text(max_size=8)))
def test_no_header_breaks_it(headers: dict[str, str]) -> None:
    quota = quota_in(headers)

    assert quota is None or 0 <= quota.used <= 100
