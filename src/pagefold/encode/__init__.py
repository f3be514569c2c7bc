"""Encodes texts in their cheapest lossless form, and decodes them.

from pagefold.encode import decode, encode

encoded = encode(text, tool="Read loans.py")
assert decode(encoded.text) == text          # of a JSON text: the same values
"""

from pagefold.encode.choose import EncodedText, decode, encode

__all__ = ["EncodedText", "decode", "encode"]
