"""Sets Python's cycle collector for a proxy process, which makes many small values and hardly any cycles.

With Python's own thresholds the collector takes a fifth of the time of a request, and a third of that of encoding a
large result.
"""

import gc

_RARE = (50_000, 20, 20)


def tune_gc() -> None:
    """Exempts everything loaded so far from collection and makes collections rare. Call it once all is loaded."""
    gc.freeze()
    gc.set_threshold(*_RARE)
