"""How often Python looks for cycles in a process that makes hardly any.

What passes through a proxy is many small values without cycles. Looking through them as often as Python does by itself
takes a fifth of the time of a request, and a third of that of encoding a large result.
"""

import gc

_SELDOM = (50_000, 20, 20)


def collect_seldom() -> None:
    """To be called when everything is loaded: what is there now is not looked at any more."""
    gc.freeze()
    gc.set_threshold(*_SELDOM)
