"""frame: what an agent or a protocol puts around a result. Opened, so that what is inside can be read and encoded.

    {"type":"text","text":"…"}                      an MCP text block, whole or broken off   [MCP text]
    <returncode>0</returncode> <output>…</output>   a shell's answer                         [returncode 0]
    Chunk ID: … Wall time: … Output: …              another's                                [chunk …]
    {"output":"…","exit_code":0}, "…"               JSON around one long string              [text in JSON: …]

The header says what the frame said; the frame is put back around what was inside, byte for byte.
"""

import json
import re
from dataclasses import dataclass
from functools import cache

from pagefold.encode.codec import Inner, first_line

_scan = json.decoder.scanstring  # type: ignore[attr-defined]
_OPENINGS = {'{"type":"text","text":"': "", '{"type": "text", "text": "': " spaced"}
_BLOCK = re.compile(r"\[MCP text( spaced)?( ascii)?(?: …(.*)|, broken off before the last (\d+) lines)?\]")
_SUFFIX = 200


class McpTextEnvelope:
    """An MCP content block around one text."""

    name = "mcp-text"

    def owns(self, line: str) -> bool:
        return _BLOCK.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        opening = next((opening for opening in _OPENINGS if text.startswith(opening)), None)
        if opening is None:
            return None
        start = len(opening)
        try:
            content, end = _scan(text, start, True)
        except json.JSONDecodeError as error:
            return self._broken(text, opening, error, inner)
        suffix = text[end:]
        spelled = text[start : end - 1]
        if "\n" in suffix or len(suffix) > _SUFFIX or not suffix.endswith("}"):
            return None
        ascii_only = _how(content, spelled)
        if ascii_only is None:
            return None
        rest = "" if suffix == "}" else f" …{suffix}"
        return f"[MCP text{_OPENINGS[opening]}{' ascii' if ascii_only else ''}{rest}]\n{inner(content)}"

    def _broken(self, text: str, opening: str, error: json.JSONDecodeError, inner: Inner) -> str | None:
        """Cut off in the middle of the string: what was still whole of it, and what came in place of the rest."""
        end = len(text) if error.msg.startswith("Unterminated") else error.pos
        spelled, tail = text[len(opening) : end], text[end:]
        try:
            content = json.loads(f'"{spelled}"')
        except ValueError:
            return None
        ascii_only = _how(content, spelled)
        if ascii_only is None:
            return None
        lines = tail.count("\n") + 1 if tail else 0
        mark = f"{_OPENINGS[opening]}{' ascii' if ascii_only else ''}"
        header = f"[MCP text{mark}, broken off before the last {lines} lines]"
        return f"{header}\n{inner(content)}\n{tail}" if lines else f"{header}\n{inner(content)}"

    def decode(self, shown: str, inner: Inner) -> str:
        header, _, rest = shown.partition("\n")
        found = _BLOCK.fullmatch(header)
        assert found is not None
        opening = next(opening for opening, mark in _OPENINGS.items() if mark == (found[1] or ""))
        tail = ""
        if found[4] and int(found[4]):
            lines = rest.split("\n")
            split = len(lines) - int(found[4])
            rest, tail = "\n".join(lines[:split]), "\n".join(lines[split:])
        spelled = json.dumps(inner(rest), ensure_ascii=bool(found[2]))[1:-1]
        if found[4]:
            return f"{opening}{spelled}{tail}"
        return f'{opening}{spelled}"{found[3] if found[3] is not None else "}"}'


_QUOTED = re.compile(r"\[text in JSON( ascii)?: ([^…\n]*)…([^…\n]*)\]")
_HEAD = 300  # characters in which the string has to begin
_SHARE = 0.7  # of the text that it has to be
_ESCAPED = 8  # signs that it takes to be a text of its own


class JsonStringEnvelope:
    """JSON that is little more than one long string: a value that was encoded twice, or an envelope around a text."""

    name = "json-text"

    def owns(self, line: str) -> bool:
        return _QUOTED.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if text[:1] not in ('"', "{", "["):
            return None
        # A string so long covers the middle of the text, where a quote without a backslash before it would end it.
        middle = text.find('"', int((1 - _SHARE) * len(text)) + 1, int(_SHARE * len(text)) - 1)
        if middle > 0 and text[middle - 1] != "\\":
            return None
        at = 0
        while 0 <= (at := text.find('"', at)) < _HEAD:
            try:
                content, end = _scan(text, at + 1, True)
            except json.JSONDecodeError:
                return None
            if end - at >= _SHARE * len(text):
                return self._opened(text, at, end, content, inner)
            at = end
        return None

    def _opened(self, text: str, at: int, end: int, content: str, inner: Inner) -> str | None:
        before, spelled, after = text[:at], text[at + 1 : end - 1], text[end:]
        if len(spelled) - len(content) < _ESCAPED or len(after) > _SUFFIX or after.lstrip().startswith(":"):
            return None
        ascii_only = _how(content, spelled)
        header = f"[text in JSON{' ascii' if ascii_only else ''}: {before}…{after}]"
        if ascii_only is None or not self.owns(header):
            return None
        try:
            json.loads(f'{before}""{after}')
        except ValueError:
            return None
        return f"{header}\n{inner(content)}"

    def decode(self, shown: str, inner: Inner) -> str:
        line = first_line(shown)
        found = _QUOTED.fullmatch(line)
        assert found is not None
        return f"{found[2]}{json.dumps(inner(shown[len(line) + 1 :]), ensure_ascii=bool(found[1]))}{found[3]}"


@dataclass(frozen=True, slots=True)
class TemplateEnvelope:
    """A frame of fixed words with a few slots, told by a short header with the same slots."""

    name: str
    pattern: re.Pattern[str]
    frame: str
    header: str

    def owns(self, line: str) -> bool:
        return self._slots(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        slots = {name: value for name, value in found.groupdict().items() if name != "body"}
        return f"{self.header.format(**slots)}\n{inner(found['body'])}"

    def decode(self, shown: str, inner: Inner) -> str:
        line = first_line(shown)
        slots = self._slots(line)
        assert slots is not None
        return self.frame.format(**slots, body=inner(shown[len(line) + 1 :]))

    def _slots(self, line: str) -> dict[str, str] | None:
        found = _slots(self.header).fullmatch(line)
        return None if found is None else found.groupdict()


_PAGE = re.compile(
    r"(Address: [^\n]*\n(?:Title: [^\n]*\n)?)"
    r"Viewport position: Showing page (\d+) of (\d+)\.\n=======================\n(.*)",
    re.DOTALL,
)
_PAGE_HEADER = re.compile(r"\[page (\d+) of (\d+)(?:, (\d+) results)?\]")
_RESULTS = re.compile(r"A Google search for '([^\n]*)' found (\d+) results:\n\n## Web Results\n")
_SEARCHED = "Address: google: "


class WebPageEnvelope:
    """A page in a text browser. Its address stays as it is; where it is and how it was searched for is said shorter."""

    name = "web-page"

    def owns(self, line: str) -> bool:
        return _PAGE_HEADER.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if not text.startswith("Address: "):
            return None
        found = _PAGE.fullmatch(text)
        if found is None:
            return None
        top, page, pages, body = found.groups()
        query = first_line(top).removeprefix(_SEARCHED)
        results = _RESULTS.match(body)
        if top == f"{_SEARCHED}{query}\nTitle: {query} - Search\n" and results and results[1] == query:
            rest = inner(body[results.end() :])
            return f"[page {page} of {pages}, {results[2]} results]\n{_SEARCHED}{query}\n{rest}"
        return f"[page {page} of {pages}]\n{top}{inner(body)}" if "\nTitle: " not in f"\n{first_line(body)}" else None

    def decode(self, shown: str, inner: Inner) -> str:
        header, _, rest = shown.partition("\n")
        found = _PAGE_HEADER.fullmatch(header)
        assert found is not None
        address, _, body = rest.partition("\n")
        title = ""
        if found[3]:
            query = address.removeprefix(_SEARCHED)
            title = f"Title: {query} - Search\n"
            body = f"A Google search for '{query}' found {found[3]} results:\n\n## Web Results\n{inner(body)}"
        else:
            if body.startswith("Title: "):
                title, _, body = body.partition("\n")
                title += "\n"
            body = inner(body)
        where = f"Viewport position: Showing page {found[1]} of {found[2]}.\n=======================\n"
        return f"{address}\n{title}{where}{body}"


ENVELOPES = (
    McpTextEnvelope(),
    JsonStringEnvelope(),
    WebPageEnvelope(),
    TemplateEnvelope(
        "returncode",
        re.compile(r"<returncode>(?P<code>-?\d+)</returncode>\n<output>\n(?P<body>.*)</output>", re.DOTALL),
        "<returncode>{code}</returncode>\n<output>\n{body}</output>",
        "[returncode {code}]",
    ),
    TemplateEnvelope(
        "chunk",
        re.compile(
            r"Chunk ID: (?P<id>\w+)\nWall time: (?P<time>[\d.]+) seconds\nProcess exited with code (?P<code>-?\d+)\n"
            r"Original token count: (?P<count>\d+)\nOutput:\n(?P<body>.*)",
            re.DOTALL,
        ),
        "Chunk ID: {id}\nWall time: {time} seconds\nProcess exited with code {code}\n"
        "Original token count: {count}\nOutput:\n{body}",
        "[chunk {id}, {time} s, exit {code}, {count} tokens]",
    ),
    TemplateEnvelope(
        "exit",
        re.compile(
            r"Exit code: (?P<code>-?\d+)\nWall time: (?P<time>[\d.]+) seconds\nOutput:\n(?P<body>.*)", re.DOTALL
        ),
        "Exit code: {code}\nWall time: {time} seconds\nOutput:\n{body}",
        "[exit {code}, {time} s]",
    ),
    TemplateEnvelope(
        "output", re.compile(r"<output>\n(?P<body>.*)\n</output>", re.DOTALL), "<output>\n{body}\n</output>", "[output]"
    ),
    TemplateEnvelope(
        "stdout",
        re.compile(
            r"=== STDOUT ===\n(?P<body>.*)\n=== EXECUTION INFO ===\nReturn code: (?P<code>-?\d+)\n"
            r"Execution time: (?P<time>[\d.]+) seconds\nTimeout limit: (?P<limit>\d+) seconds",
            re.DOTALL,
        ),
        "=== STDOUT ===\n{body}\n=== EXECUTION INFO ===\nReturn code: {code}\n"
        "Execution time: {time} seconds\nTimeout limit: {limit} seconds",
        "[stdout; return code {code}, {time} s of {limit}]",
    ),
)


@cache
def _slots(header: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^\\n]*?)", re.escape(header)))


def _how(content: str, spelled: str) -> bool | None:
    """Whether a string was escaped to ASCII, or None where it was escaped in a way of its own."""
    for ascii_only in (False, True):
        if json.dumps(content, ensure_ascii=ascii_only)[1:-1] == spelled:
            return ascii_only
    return None
