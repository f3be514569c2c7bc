"""Encodes texts in their cheapest lossless form, and decodes them.

from pagefold.encode import decode, encode

encoded = encode(text, tool="Read loans.py")
assert decode(encoded.text) == text          # of a JSON text: the same values
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagefold.encode.choose import EncodedText, decode, encode

__all__ = ["EncodedText", "decode", "encode"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # whoever needs one part of it does not import every codec
        return getattr(import_module("pagefold.encode.choose"), name)
    raise AttributeError(f"module 'pagefold.encode' has no attribute {name!r}")
