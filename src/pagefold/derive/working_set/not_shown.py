"""Names the files that a session changed or read and that are shown nowhere in a request.

Without that, whoever goes on takes the views for all that there is. One line tells each thing that can be the case,
the newest file first in it, and only a few names: the rest is counted.
"""

from collections.abc import Collection, Mapping

from pagefold.derive.working_set.file_views import known_text, left_out
from pagefold.frozen import frozen
from pagefold.pages.files.doubt import told
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.paths import is_temporary
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.printable import printable

TITLE = "files that this session changed or read, but that are not shown here or below; read again what you need:"
_MOST, _LEAST = 8, 2  # names of changed files
_MOST_READ = 5  # of files that no edit of a tool's has changed; a script may have
_TOKENS_A_NAME = 1_500  # of a digest: a small one names fewer
_READ = 3  # lines in a row: fewer were found by a search


@frozen
class NotShown:
    """The lines that name the files, and the pages that handles in them recall, each with the file it shows."""

    lines: tuple[str, ...] = ()
    pages: tuple[tuple[Page, str], ...] = ()


def not_shown(
    files: Mapping[str, KnownFile], viewed: Collection[str], standing: frozenset[int], cut: int, budget: int
) -> NotShown:
    """The files without a view in a digest of about so many tokens. What a message at a `standing` place, or from the
    `cut` on, has shown or changed stands there."""
    missing = [key for key, file in files.items() if key not in viewed and not _stands(file, standing, cut)]
    missing.sort(key=lambda key: (is_temporary(key), -files[key].touched, key))
    changed = [key for key in missing if files[key].edits]
    read = [files[key] for key in missing if not files[key].edits and _was_read(files[key])]
    most = min(_MOST, max(_LEAST, budget // _TOKENS_A_NAME))
    pages: list[tuple[Page, str]] = []
    by_case: dict[str, list[str]] = {}
    for key in changed[:most]:
        file, name = files[key], _name(files[key])
        if not (case := _what_is_the_case(file)):
            page = Page.of(PageKind.EVIDENCE, known_text(file), file.name)
            pages.append((page, key))
            name += f' ({_spans(file)}context_recall("{page.handle}"))'
        by_case.setdefault(case, []).append(name)
    lines = [f"changed{case}: {', '.join(names)}" for case, names in by_case.items()]
    if len(changed) > most:
        lines.append(f"changed, not named here: {len(changed) - most} more")
    if read:
        named = read[: min(most, _MOST_READ)]
        rest = f" and {len(read) - len(named)} more" if len(read) > len(named) else ""
        lines.append(f"read: {', '.join(map(_name, named))}{rest}")
    return NotShown(tuple(lines), tuple(pages))


def _stands(file: KnownFile, standing: frozenset[int], cut: int) -> bool:
    """Whether lines of a file stand in messages that are not folded, or that are shown whole."""
    return file.touched >= cut or not all(standing.isdisjoint(region.seen) for region in file.text.regions)


def _was_read(file: KnownFile) -> bool:
    return any(len(region.lines) >= min(_READ, file.text.length or _READ) for region in file.text.regions)


def _what_is_the_case(file: KnownFile) -> str:
    """Why the text of a changed file is not told as it is now; nothing where it could be."""
    text = file.text
    if not text.regions:
        return f", present text not known{f' since `{text.doubts[0].first}`' if text.doubts else ''}"
    newest = max(max(region.seen) for region in text.regions)
    if text.is_certain(newest):
        return ""
    doubts = told(text.doubts_since(newest)) if text.is_doubted(newest) else f"`{text.reformatted_by}`"
    return f", then perhaps again by {doubts}"


def _name(file: KnownFile) -> str:
    return printable(file.name, keep="")


def _spans(file: KnownFile) -> str:
    spans = left_out(file, ())
    return f"lines {', '.join(spans)} by " if spans else ""
