"""envelopes: removes what an agent or a protocol puts around a result, so that the text inside can be encoded.

    {"type":"text","text":"…"}                      an MCP text block, whole or cut off      [MCP text]
    <returncode>0</returncode> <output>…</output>   a shell's answer                         [returncode 0]
    Chunk ID: … Wall time: … Output: …              another's                                [chunk …]
    {"output":"…","exit_code":0}, "…"               JSON around one long string              [text in JSON: …]

The header holds what the envelope said, so that decoding restores it byte for byte.
"""

import json
import re

from pagefold.encode.codec import Codec, Inner, first_line, split_tail
from pagefold.encode.notation.json_value import scan_string

_OPENINGS = {'{"type":"text","text":"': "", '{"type": "text", "text": "': " spaced"}
_SUFFIX = 200


class McpTextEnvelope(Codec):
    """An MCP content block around one text."""

    name = "mcp-text"
    header = re.compile(r"\[MCP text( spaced)?( ascii)?(?: …(.*)|, broken off before the last (\d+) lines)?\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        opening = next((opening for opening in _OPENINGS if text.startswith(opening)), None)
        if opening is None:
            return None
        start = len(opening)
        try:
            content, end = scan_string(text, start, True)
        except json.JSONDecodeError as error:
            return self._cut_off(text, opening, error, inner)
        suffix = text[end:]
        if "\n" in suffix or len(suffix) > _SUFFIX or not suffix.endswith("}"):
            return None
        style = _style(content, text[start : end - 1])
        if style is None:
            return None
        rest = "" if suffix == "}" else f" …{suffix}"
        return f"[MCP text{_OPENINGS[opening]}{style}{rest}]\n{inner(content)}"

    def _cut_off(self, text: str, opening: str, error: json.JSONDecodeError, inner: Inner) -> str | None:
        """Encodes a block whose string never ends: what was whole of it, and what came in place of the rest."""
        end = len(text) if error.msg.startswith("Unterminated") else error.pos
        spelled, tail = text[len(opening) : end], text[end:]
        try:
            content = json.loads(f'"{spelled}"')
        except ValueError:
            return None
        style = _style(content, spelled)
        if style is None:
            return None
        lines = tail.count("\n") + 1 if tail else 0
        header = f"[MCP text{_OPENINGS[opening]}{style}, broken off before the last {lines} lines]"
        return f"{header}\n{inner(content)}\n{tail}" if lines else f"{header}\n{inner(content)}"

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        opening = next(opening for opening, mark in _OPENINGS.items() if mark == (header[1] or ""))
        body, tail = split_tail(body, int(header[4] or 0))
        spelled = json.dumps(inner(body), ensure_ascii=bool(header[2]))[1:-1]
        if header[4]:
            return f"{opening}{spelled}{tail}"
        return f'{opening}{spelled}"{header[3] if header[3] is not None else "}"}'


_START = 300  # characters in which the string has to begin
_SHARE = 0.7  # of the text that the string has to be
_ESCAPED = 8  # escapes that it takes to be a text of its own


class JsonStringEnvelope(Codec):
    """JSON that is little more than one long string: a value that was serialised twice, or an object around a text."""

    name = "json-text"
    header = re.compile(r"\[text in JSON( ascii)?: ([^…\n]*)…([^…\n]*)\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        if text[:1] not in ('"', "{", "["):
            return None
        # A string so long covers the middle of the text, where a quote without a backslash before it would end it.
        middle = text.find('"', int((1 - _SHARE) * len(text)) + 1, int(_SHARE * len(text)) - 1)
        if middle > 0 and text[middle - 1] != "\\":
            return None
        start = 0
        while 0 <= (start := text.find('"', start)) < _START:
            try:
                content, end = scan_string(text, start + 1, True)
            except json.JSONDecodeError:
                return None
            if end - start >= _SHARE * len(text):
                return self._form(text, start, end, content, inner)
            start = end
        return None

    def _form(self, text: str, start: int, end: int, content: str, inner: Inner) -> str | None:
        before, spelled, after = text[:start], text[start + 1 : end - 1], text[end:]
        if len(spelled) - len(content) < _ESCAPED or len(after) > _SUFFIX or after.lstrip().startswith(":"):
            return None
        style = _style(content, spelled)
        header = f"[text in JSON{style}: {before}…{after}]"
        if style is None or not self.owns(header):
            return None
        try:
            json.loads(f'{before}""{after}')
        except ValueError:
            return None
        return f"{header}\n{inner(content)}"

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        return f"{header[2]}{json.dumps(inner(body), ensure_ascii=bool(header[1]))}{header[3]}"


_PAGE = re.compile(
    r"(Address: [^\n]*\n(?:Title: [^\n]*\n)?)"
    r"Viewport position: Showing page (\d+) of (\d+)\.\n=======================\n(.*)",
    re.DOTALL,
)
_RESULTS = re.compile(r"A Google search for '([^\n]*)' found (\d+) results:\n\n## Web Results\n")
_SEARCHED = "Address: google: "


class WebPageEnvelope(Codec):
    """A page in a text browser. Its address stays; page number and search are written shorter."""

    name = "web-page"
    header = re.compile(r"\[page (\d+) of (\d+)(?:, (\d+) results)?\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        if not text.startswith("Address: "):
            return None
        parts = _PAGE.fullmatch(text)
        if parts is None:
            return None
        top, page, pages, body = parts.groups()
        query = first_line(top).removeprefix(_SEARCHED)
        results = _RESULTS.match(body)
        if top == f"{_SEARCHED}{query}\nTitle: {query} - Search\n" and results and results[1] == query:
            rest = inner(body[results.end() :])
            return f"[page {page} of {pages}, {results[2]} results]\n{_SEARCHED}{query}\n{rest}"
        return f"[page {page} of {pages}]\n{top}{inner(body)}" if "\nTitle: " not in f"\n{first_line(body)}" else None

    def decode(self, form: str, inner: Inner) -> str:
        header, rest = self.opened(form)
        address, _, body = rest.partition("\n")
        title = ""
        if header[3]:
            query = address.removeprefix(_SEARCHED)
            title = f"Title: {query} - Search\n"
            body = f"A Google search for '{query}' found {header[3]} results:\n\n## Web Results\n{inner(body)}"
        else:
            if body.startswith("Title: "):
                title, _, body = body.partition("\n")
                title += "\n"
            body = inner(body)
        where = f"Viewport position: Showing page {header[1]} of {header[2]}.\n=======================\n"
        return f"{address}\n{title}{where}{body}"


_SLOTS = {"code": r"-?\d+", "time": r"[\d.]+", "id": r"\w+", "count": r"\d+", "limit": r"\d+", "body": ".*"}


class TemplateEnvelope(Codec):
    """An envelope of fixed words with a few slots; the header has the same slots."""

    def __init__(self, name: str, envelope: str, header: str) -> None:
        self.name, self._envelope, self._header = name, envelope, header
        self._pattern = re.compile(_with_slots(envelope, _SLOTS), re.DOTALL)
        self.header = re.compile(_with_slots(header, dict.fromkeys(_SLOTS, r"[^\n]*?")))

    def encode(self, text: str, inner: Inner) -> str | None:
        parts = self._pattern.fullmatch(text)
        if parts is None:
            return None
        slots = parts.groupdict()
        body = slots.pop("body")
        return f"{self._header.format(**slots)}\n{inner(body)}"

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        return self._envelope.format(**header.groupdict(), body=inner(body))


def _with_slots(template: str, slots: dict[str, str]) -> str:
    """Returns the pattern that matches a template with its slots filled."""
    return re.sub(r"\\\{(\w+)\\\}", lambda slot: f"(?P<{slot[1]}>{slots[slot[1]]})", re.escape(template))


ENVELOPES: tuple[Codec, ...] = (
    McpTextEnvelope(),
    JsonStringEnvelope(),
    WebPageEnvelope(),
    TemplateEnvelope("returncode", "<returncode>{code}</returncode>\n<output>\n{body}</output>", "[returncode {code}]"),
    TemplateEnvelope(
        "chunk",
        "Chunk ID: {id}\nWall time: {time} seconds\nProcess exited with code {code}\n"
        "Original token count: {count}\nOutput:\n{body}",
        "[chunk {id}, {time} s, exit {code}, {count} tokens]",
    ),
    TemplateEnvelope(
        "exit", "Exit code: {code}\nWall time: {time} seconds\nOutput:\n{body}", "[exit {code}, {time} s]"
    ),
    TemplateEnvelope("output", "<output>\n{body}\n</output>", "[output]"),
    TemplateEnvelope(
        "stdout",
        "=== STDOUT ===\n{body}\n=== EXECUTION INFO ===\nReturn code: {code}\n"
        "Execution time: {time} seconds\nTimeout limit: {limit} seconds",
        "[stdout; return code {code}, {time} s of {limit}]",
    ),
)


def _style(content: str, spelled: str) -> str | None:
    """Tells how a string was escaped: " ascii" where to ASCII, "" where not, None where in a way of its own."""
    for style in ("", " ascii"):
        if json.dumps(content, ensure_ascii=bool(style))[1:-1] == spelled:
            return style
    return None
