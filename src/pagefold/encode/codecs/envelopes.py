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
    begins = re.compile("|".join(map(re.escape, _OPENINGS)))
    header = re.compile(r"\[MCP text( spaced)?( ascii)?(?: …(.*)|, broken off before the last (\d+) lines)?\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        begun = self.begins.match(text)
        if begun is None:
            return None
        opening = begun[0]
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
    begins = re.compile(r'["{\[]')
    header = re.compile(r"\[text in JSON( ascii)?: ([^…\n]*)…([^…\n]*)\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        if not self.begins.match(text):
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


_SLOTS = {
    "code": r"-?\d+",
    "time": r"[\d.]+",
    "id": r"\w+",
    **dict.fromkeys(("count", "limit", "page", "pages", "results"), r"\d+"),
    "query": r"[^\n]*",
    "top": r"Address: [^\n]*\n(?:Title: [^\n]*\n)?",
    "body": ".*",
}
_LOOSE = dict.fromkeys(("code", "time", "id", "count", "limit"), r"[^\n]*?")  # in a header


class TemplateEnvelope(Codec):
    """Fixed words with a few slots around a text, and a form with the same slots, whose first line is the header."""

    def __init__(self, name: str, envelope: str, form: str) -> None:
        self.name, self._envelope, self._form = name, envelope, form
        self.begins = re.compile(_with_slots(envelope.partition("{body}")[0], _SLOTS), re.DOTALL)
        self._pattern = re.compile(_with_slots(envelope, _SLOTS), re.DOTALL)
        self._form_pattern = re.compile(_with_slots(form, _SLOTS | _LOOSE), re.DOTALL)
        self.header = re.compile(_with_slots(first_line(form), _SLOTS | _LOOSE))

    def encode(self, text: str, inner: Inner) -> str | None:
        parts = self._pattern.fullmatch(text)
        if parts is None:
            return None
        same = self._form_pattern.fullmatch(self._form.format(**parts.groupdict()))
        if same is None or same.groupdict() != parts.groupdict():
            return None
        return self._form.format(**parts.groupdict() | {"body": inner(parts["body"])})

    def decode(self, form: str, inner: Inner) -> str:
        parts = self._form_pattern.fullmatch(form)
        assert parts is not None
        return self._envelope.format(**parts.groupdict() | {"body": inner(parts["body"])})


def _with_slots(template: str, slots: dict[str, str]) -> str:
    """Returns the pattern that matches a template with its slots filled."""
    first, *rest = re.split(r"\\\{(\w+)\\\}", re.escape(template))
    pattern, known = first, set[str]()
    for slot, words in zip(rest[::2], rest[1::2], strict=True):
        pattern += f"(?P={slot}){words}" if slot in known else f"(?P<{slot}>{slots[slot]}){words}"
        known.add(slot)
    return pattern


_VIEWPORT = "Viewport position: Showing page {page} of {pages}.\n=======================\n"

ENVELOPES: tuple[Codec, ...] = (
    McpTextEnvelope(),
    JsonStringEnvelope(),
    # A page in a text browser, of search results or any other.
    TemplateEnvelope(
        "web-page",
        f"Address: google: {{query}}\nTitle: {{query}} - Search\n{_VIEWPORT}"
        "A Google search for '{query}' found {results} results:\n\n## Web Results\n{body}",
        "[page {page} of {pages}, {results} results]\nAddress: google: {query}\n{body}",
    ),
    TemplateEnvelope("web-page", f"{{top}}{_VIEWPORT}{{body}}", "[page {page} of {pages}]\n{top}{body}"),
    TemplateEnvelope(
        "returncode", "<returncode>{code}</returncode>\n<output>\n{body}</output>", "[returncode {code}]\n{body}"
    ),
    TemplateEnvelope(
        "chunk",
        "Chunk ID: {id}\nWall time: {time} seconds\nProcess exited with code {code}\n"
        "Original token count: {count}\nOutput:\n{body}",
        "[chunk {id}, {time} s, exit {code}, {count} tokens]\n{body}",
    ),
    TemplateEnvelope(
        "chunk",
        "Chunk ID: {id}\nWall time: {time} seconds\nProcess running with session ID {code}\n"
        "Original token count: {count}\nOutput:\n{body}",
        "[chunk {id}, {time} s, still running with session ID {code}, {count} tokens]\n{body}",
    ),
    TemplateEnvelope(
        "script",
        "Script completed\nWall time {time} seconds\nOutput:\n\n{body}",
        "[script completed, {time} s]\n{body}",
    ),
    TemplateEnvelope(
        "exit", "Exit code: {code}\nWall time: {time} seconds\nOutput:\n{body}", "[exit {code}, {time} s]\n{body}"
    ),
    TemplateEnvelope(
        "stdout",
        "=== STDOUT ===\n{body}\n=== EXECUTION INFO ===\nReturn code: {code}\n"
        "Execution time: {time} seconds\nTimeout limit: {limit} seconds",
        "[stdout; return code {code}, {time} s of {limit}]\n{body}",
    ),
)


def _style(content: str, spelled: str) -> str | None:
    """Tells how a string was escaped: " ascii" where to ASCII, "" where not, None where in a way of its own."""
    for style in ("", " ascii"):
        if json.dumps(content, ensure_ascii=bool(style))[1:-1] == spelled:
            return style
    return None
