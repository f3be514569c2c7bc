"""What the site does differently from a code host.

Links to files outside docs/, which the site does not have, are shown as names, and a heading of a table that says
nothing is no heading to a screen reader.
"""

import posixpath
import re
from typing import Any

_EMPTY_HEADING = re.compile(r"<th([^>]*)></th>")
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def named(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        return f"{match[1]} (`{path.removeprefix('../')}`)" if path.startswith("../") else match[0]

    return _LINK.sub(named, markdown)


def on_page_content(html: str, **_: Any) -> str:
    return _EMPTY_HEADING.sub(r"<td\1></td>", html)
