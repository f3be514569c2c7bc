"""Which lines of a text could be taken for lines that pagefold writes into results, and how such a line is quoted.

Whoever shows a tool's text beside lines of pagefold's own asks here. docs/security.md lists what may be taken for what.
"""

import re

_BEGINNINGS = (
    "[left out: ",
    "[part of ",
    "[missing: ",
    "[shortened: ",
    "[cut here: ",
    "[Old tool result: ",
    "[CONTEXT TRUNCATED",
    "[DEDUP] ",
    "[AUTO CONTEXT COMPRESSION] ",
    "[DROPPED-RANGE INDEX] ",
    "[tool result unavailable: ",
    "[held by pagefold",
    "[The result of an earlier call",
    "[the call] ",
    "[what became of it] ",
    "[its result]",
    "[before it: ",
    "[after it: ",
    "[the same file: ",
    "[changed since: ",
    "[nothing has changed it since",
    "[it is no longer known under this name",
    "[pagefold",
    "[pf-",
)
_WROTE = "] pagefold wrote this message"
_BEGINNING = re.compile("|".join(map(re.escape, _BEGINNINGS)))
_NEXT = re.compile(r"\n\[(?:" + "|".join(re.escape(beginning[1:]) for beginning in _BEGINNINGS) + ")")
_SIGN = re.compile(rf'{"|".join(map(re.escape, _BEGINNINGS))}|\[\w+{re.escape(_WROTE)}|\[.*context_recall\("pf-')
_MARK = re.compile(
    r"…(?: (?:rest of )?lines? \d[\d-]*)?\Z|  chunk \d|\[as it is\]\Z|\[\d+ (?:lines? with |more of )|\[cut off; "
    r"|\[(?:lines?|characters) \d[^\]]*\]\Z|\[file .* as it was known after message |> \["
    r"|\[message \d+ of this conversation|\[R\d[^\]]*\]\Z|= lines? \d"
)
QUOTE = "| "
"""What stands before a line of a tool's that could be taken for one of pagefold's, where a text is not shown whole."""


def looks_own(line: str) -> bool:
    """Whether a line begins as a notice of pagefold's does, wherever such notices stand."""
    return line[:1] == "[" and _SIGN.match(line) is not None


def holds_own(text: str) -> bool:
    """Whether any line of a text begins as a notice of pagefold's does."""
    # Few texts do, and searching the whole text is faster than looking at each line.
    if text[:1] != "[" and "\n[" not in text:
        return False
    begins = _BEGINNING.match(text) or _NEXT.search(text)
    if not begins and _WROTE not in text and 'context_recall("pf-' not in text:
        return False
    return any(map(looks_own, text.split("\n")))


def quoted(line: str) -> str:
    """Returns a line of a tool's as it is shown among marks of pagefold's own: behind `QUOTE` if it could be taken for
    one of them."""
    return f"{QUOTE}{line}" if looks_own(line) or _MARK.match(line) else line
