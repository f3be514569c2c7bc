"""Shows links of these pages to files outside docs/ as names on the site, which does not have these files."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def named(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        return f"{match[1]} (`{path.removeprefix('../')}`)" if path.startswith("../") else match[0]

    return _LINK.sub(named, markdown)
