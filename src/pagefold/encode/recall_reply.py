"""What an agent gets that recalls a page: all of it, its next piece, or the part it asked for. Words, never a raise.

A model that gets an error tries again, so whatever goes wrong is said plainly and as final as it is: an unknown handle,
a page that was collected or is another conversation's, a cursor that was changed, a budget too small.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.page_pieces import piece, usable
from pagefold.encode.page_query import lines_within, path_within, word_within
from pagefold.errors import RecallError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId
from pagefold.pages.recall import Recalled, recall
from pagefold.pages.store import PageStore
from pagefold.tokens import counter

BUDGET = 8_000
"""Tokens of a part where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class RecallReply:
    """`page` is None where nothing was recalled; `reason` is then the kind of refusal."""

    text: str
    page: PageId | None = None
    reason: str = ""


def reply_to_recall(
    store: PageStore,
    handle: str,
    *,
    cursor: str = "",
    lines: str = "",
    path: str = "",
    find: str = "",
    budget: int | None = None,
    within: str | None = None,
    count: Callable[[str], int] | None = None,
) -> RecallReply:
    """The whole page, or with a cursor its next piece, or with lines, a path or a word that part of it.

    Without a budget a whole page comes whole, and a part has at most `BUDGET` tokens; with one, a page that does not
    fit comes as its first piece. `within` is the history that must have been shown the page.
    """
    found = recall(store, handle, within=within)
    if not isinstance(found, Recalled):
        return RecallReply(found.text, reason=type(found).__name__.lower())
    text = Page(PageKind.EVIDENCE, found.content).text
    count = count or counter("o200k").count
    try:
        said = _part(text, found.page, cursor, lines, path, find, budget, count)
    except RecallError as error:
        return RecallReply(str(error), reason=type(error).__name__)
    return RecallReply(said, found.page)


def _part(
    text: str,
    page: PageId,
    cursor: str,
    lines: str,
    path: str,
    find: str,
    budget: int | None,
    count: Callable[[str], int],
) -> str:
    if sum(map(bool, (cursor, lines, path, find))) > 1:
        raise RecallError("expected one of cursor, lines, path and find, got several")
    most = BUDGET if budget is None else usable(budget)
    if lines:
        return lines_within(text, lines, most, count)
    if path:
        return path_within(text, path, most, count)
    if find:
        return word_within(text, find, most, count)
    if cursor:
        return piece(text, read_cursor(cursor, page, len(text)), count).text
    if budget is None or count(text) <= budget:
        return text
    return piece(text, Cursor(page, 0, budget), count).text
