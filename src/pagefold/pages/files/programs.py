"""Which files a program may write, as far as its text tells."""

import re

_WRITES = re.compile(r"write|\bsave|dump\(|rename|replace\(.*open|shutil|unlink|remove\(")
_QUOTED = re.compile(r"[\"'`]((?:[A-Za-z]:)?[\w./\\~-]+\.\w+)[\"'`]")


def files_written_by(program: str) -> list[str]:
    """The files that a program's text names where it writes files at all; "" for any file where it names none."""
    if not _WRITES.search(program):
        return []
    named = {path for path in _QUOTED.findall(program) if "." in path.rpartition("/")[2]}
    return sorted(named) or [""]
