"""toon: writes JSON as TOON, with a library that conforms to TOON's specification.

TOON respells numbers (1.0 becomes 1) and its tables reorder keys, so it is refused wherever it would not give the same
values back in the same order. On what was measured it is never shorter than `notation`, so it is not tried by itself:
only a caller who names it gets it. Needs the extra `toon`.
"""

import importlib
import json
import re
from typing import Any

from pagefold.encode.codec import Codec, Inner
from pagefold.encode.notation.json_value import parse
from pagefold.errors import ConfigError

_HEADER = "[TOON]"


class ToonCodec(Codec):
    name = "toon"
    header = re.compile(re.escape(_HEADER))

    def encode(self, text: str, inner: Inner) -> str | None:
        """Returns None where the text is no JSON or would come back changed. Raises ConfigError without the extra."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        made = str(_library().dumps(value))
        if not isinstance(value, dict | list) or parse(json.dumps(_library().loads(made))) != parse(text):
            return None
        return f"{_HEADER}\n{made}"

    def decode(self, form: str, inner: Inner) -> str:
        value = _library().loads(form[len(_HEADER) + 1 :])
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _library() -> Any:
    try:
        return importlib.import_module("toons")
    except ImportError as error:
        raise ConfigError("TOON needs the extra: pip install 'pagefold[toon]'") from error
