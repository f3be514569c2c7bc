"""What an edit in an unknown place may have changed at the edges of known lines: there it can stand half inside."""

from collections.abc import Sequence

from pagefold.pages.files.region import Region


def uncut(region: Region, old: str, new: str, *, from_top: bool = False) -> Region:
    """The lines of a region that an edit cannot have touched that stood partly outside of it. `from_top` says that
    nothing stands above the region."""
    while region.lines:  # behind a line that was cut off, the text may stand partly outside again
        text = "\n".join(region.lines)
        if f"\n{text}\n" in old:
            return region.part(0, 0)
        head, foot = 0 if from_top else _at_head(text, old, new), _at_foot(text, old, new)
        if not head and not foot:
            break
        region = region.part(head, max(head, len(region.lines) - foot))
    return region


def uncut_lines(region: Region, old: Sequence[str]) -> Region:
    """The same for an edit of whole lines, which may have had other space at their ends."""
    lines, sought = [line.strip() for line in region.lines], [line.strip() for line in old]
    count, most = len(lines), min(len(lines), len(sought))
    if any(sought[at : at + count] == lines for at in range(len(sought) - count + 1)):
        return region.part(0, 0)
    foot = next((size for size in range(most, 0, -1) if lines[count - size :] == sought[:size]), 0)
    head = next((size for size in range(most, 0, -1) if lines[:size] == sought[len(sought) - size :]), 0)
    return region.part(head, max(head, count - foot))


def _at_foot(text: str, old: str, new: str) -> int:
    """How many last lines the beginning of a replaced text may stand in."""
    behind, most = text + "\n", 0
    at = old.find("\n")
    while 0 <= at < len(behind):
        if behind.endswith(old[: at + 1]) and (at > 0 or not new.startswith("\n")):
            most = old.count("\n", 0, at + 1)
        at = old.find("\n", at + 1)
    return most


def _at_head(text: str, old: str, new: str) -> int:
    """How many first lines the end of a replaced text may stand in."""
    before, most = "\n" + text, 0
    at = old.rfind("\n")
    while at >= 0 and len(old) - at <= len(before):
        if before.startswith(old[at:]) and (at < len(old) - 1 or not new.endswith("\n")):
            most = old.count("\n", at)
        at = old.rfind("\n", 0, at)
    return most
