"""Says when a window leaves too little room beside the system prompt and the tools, before everybody wonders why every
turn folds."""

_LITTLE = 10_000  # tokens in which a few exchanges, a digest and some turns until the next fold fit


def crowded(head: int, usable: int, window: int) -> str:
    """What to tell the user where a head of so many tokens fills most of a window; nothing where there is room."""
    room = usable - head
    if room >= _LITTLE or head < room:
        return ""
    least = -(-(window - usable + head + 2 * _LITTLE) // 1_000) * 1_000
    left = f"leave {room:,} for the conversation: nearly every turn will fold" if room > 0 else "do not fit"
    return (
        f"the system prompt and tools take {head:,} of a window of {window:,} tokens and {left}. "
        f"Set a window of at least {least:,}, or use fewer tools"
    )
