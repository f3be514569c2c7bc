"""Answers an agent that recalls a page: with all of it, its next piece, or the part it asked for.

It never raises: an unknown handle, a page that is gone or belongs to another conversation, a changed cursor or a budget
that is too small is answered in words, because a model that gets an error tries again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pagefold.encode.codec import PLAIN, first_line
from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.own_lines import quoted
from pagefold.encode.page_pieces import LEAST, piece, usable
from pagefold.encode.page_query import find_lines, find_path, find_word
from pagefold.errors import RecallError, StoreError
from pagefold.pages.exchange_page import result_in
from pagefold.pages.exchanges import Work
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId
from pagefold.pages.recall import Failed, Recalled, recall
from pagefold.pages.recall_frame import PageFrame, frame_of
from pagefold.pages.store import PageStore
from pagefold.tokens import counter

BUDGET = 8_000
"""Tokens of a part where the call names no budget."""

_FIND = {"lines": find_lines, "path": find_path, "find": find_word}


@dataclass(frozen=True, slots=True)
class RecallReply:
    """The answer in words. `page` is None where nothing was recalled; `reason` is then the kind of refusal."""

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
    frame: PageFrame | None = None,
    work: Callable[[], Work] | None = None,
) -> RecallReply:
    """Returns the whole page, or the next piece (`cursor`), or the part that `lines`, `path` or `find` asks for.

    Without a budget a page is returned whole, and a part has at most `BUDGET` tokens; with one, a page that does not
    fit is returned piece by piece. `within` is the history that must have been shown the page. What was folded comes
    with its place in that history, its `frame`, and of a file with what `work` says became of it since. A page that
    begins as pagefold's own lines do is marked: all below the mark is the page.
    """
    recalled = recall(store, handle, within=within)
    if not isinstance(recalled, Recalled):
        return RecallReply(recalled.text, reason=type(recalled).__name__.lower())
    text = Page(PageKind.EVIDENCE, recalled.content).text
    count = count or counter("o200k").count
    queries = {"cursor": cursor, "lines": lines, "path": path, "find": find}
    try:
        frame = frame_of(store, handle, within, work) if frame is None else frame
        if budget is not None and frame.text:
            budget = max(min(budget, LEAST), budget - count(frame.text) - 1)
        asked = {name: query for name, query in queries.items() if query}
        part = _part(text, recalled.page, asked, budget, count, frame)
    except StoreError as error:
        return RecallReply(Failed(handle, str(error)).text, reason="failed")
    except RecallError as error:
        return RecallReply(str(error), reason=type(error).__name__)
    if part == text and not frame.own and quoted(line := first_line(text)) != line:
        part = f"{PLAIN}\n{part}"
    return RecallReply(f"{frame.text}\n{part}" if frame.text else part, recalled.page)


def _part(
    text: str,
    page: PageId,
    queries: Mapping[str, str],
    budget: int | None,
    count: Callable[[str], int],
    frame: PageFrame,
) -> str:
    if len(queries) > 1:
        raise RecallError("expected one of cursor, lines, path and find, got several")
    most = BUDGET if budget is None else usable(budget)
    for name, query in queries.items():
        if name == "cursor":
            return piece(text, read_cursor(query, page, len(text)), count).text
        return _FIND[name](result_in(text) if frame.own and name != "find" else text, query, most, count)
    if budget is None or count(text) <= budget:
        return text
    return piece(text, Cursor(page, 0, budget), count).text
