"""Numbers as people write them: few digits, a unit, the same way in tables, reports and pages, and read again."""

import math
import re
from datetime import UTC, datetime

_SCALES = {"k": 1_000, "m": 1_000_000}


def whole_number(text: str) -> int | None:
    """Reads 64000, 64_000, 64k or 1.5m; None where it is no whole number."""
    scale = _SCALES.get(text[-1:].lower(), 1)
    digits = (text if scale == 1 else text[:-1]).replace("_", "").replace(",", "")
    if not re.fullmatch(r"\d+(\.\d+)?" if scale > 1 else r"\d+", digits):
        return None
    return round(float(digits) * scale) if scale > 1 else int(digits)


def money(usd: float) -> str:
    """Cents below a thousand dollars, whole dollars above; of less than a cent, its first digit."""
    if usd and abs(usd) < 0.01:
        return _tiny(usd)
    return f"${usd:,.2f}" if abs(usd) < 1_000 else f"${usd:,.0f}"


def _tiny(usd: float) -> str:
    if usd < 0:
        return "$0.00"
    return "less than $0.0001" if usd < 0.0001 else f"${usd:.{-math.floor(math.log10(usd))}f}"


def short(number: float, *, space: str = " ") -> str:
    """1,234 as it is, then 12.3 k, 4.56 M, 7.89 G."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            scaled = number / (1e3 if letter == "k" else size)
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{space}{letter}"
    return f"{number:,.0f}"


def day_of(time: float) -> str:
    """19 November 2026: the day of a time in seconds since 1970, by UTC."""
    day = datetime.fromtimestamp(time, UTC)
    return f"{day.day} {day:%B %Y}"


def several(number: int, what: str) -> str:
    """1 session, 2 sessions."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def share(part: float, whole: float, *, digits: int = 1) -> str:
    return f"{100 * part / whole:.{digits}f} %" if whole else "-"


def change(ratio: float, *, digits: int = 1) -> str:
    """A ratio to what was before, as a change: 0.69 is -31.0 %. What rounds to nothing has no sign."""
    rounded = round(100 * (ratio - 1), digits)
    return f"{rounded:+.{digits}f} %" if rounded else f"{0:.{digits}f} %"


def rate(value: float) -> str:
    """Small rates keep their digits: 0.04 % is not 0."""
    return f"{100 * value:.2f} %" if value < 0.01 else f"{100 * value:.1f} %"
