"""One file that a session has touched."""

from pagefold.frozen import frozen
from pagefold.pages.files.text import FileText


@frozen
class KnownFile:
    """A file with its text as far as it is known. `name` is its path as a tool last spelled it.

    `reads` and `edits` count how often it was shown and changed; `touched` is the place of the last message about it.
    """

    name: str
    text: FileText = FileText()
    reads: int = 0
    edits: int = 0
    touched: int = -1
