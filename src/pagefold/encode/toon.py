"""toon: JSON as TOON, by a library that conforms to its specification; for those who want that notation.

TOON respells numbers (1.0 becomes 1) and its tables reorder keys, so it is refused wherever it would not give the same
values back in the same order. It never wins against our own notation on what was measured, so it stands in no chain: it
is a codec to be named. Needs the extra `toon`.
"""

import importlib
import json
from typing import Any

from pagefold.encode.codec import Inner
from pagefold.encode.notation.json_value import parse
from pagefold.errors import ConfigError

_HEADER = "[TOON]"


class ToonCodec:
    name = "toon"

    def owns(self, line: str) -> bool:
        return line == _HEADER

    def encode(self, text: str, inner: Inner) -> str | None:
        """None where the text is no JSON, or TOON would say something else. Raises ConfigError without the extra."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        made = str(_toons().dumps(value))
        if not isinstance(value, dict | list) or parse(json.dumps(_toons().loads(made))) != parse(text):
            return None
        return f"{_HEADER}\n{made}"

    def decode(self, shown: str, inner: Inner) -> str:
        value = _toons().loads(shown[len(_HEADER) + 1 :])
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _toons() -> Any:
    try:
        return importlib.import_module("toons")
    except ImportError as error:
        raise ConfigError("TOON needs the extra: pip install 'pagefold[toon]'") from error
