"""A text in its cheapest lossless form, and the way back.

from pagefold.encode import decode, encode

shown = encode(text, tool="Read loans.py")
assert decode(shown.text) == text            # for JSON that stands by itself: the same values
"""

from pagefold.encode.choose import EncodedText, decode, encode

__all__ = ["EncodedText", "decode", "encode"]
