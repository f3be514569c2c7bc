"""Cuts a text that is too large to its most useful part, states what is missing, and tells how to get the rest.

from pagefold.encode.trim import keywords_of, trim

shown = trim(text, 2_000, tool="Read", keywords=keywords_of([task]))
assert shown.tokens <= 2_000
"""

from pagefold.encode.trim.fit import TextChunk, Trimmed, trim
from pagefold.encode.trim.json_tree import FieldWeights
from pagefold.encode.trim.keywords import keywords_of
from pagefold.encode.trim.skeleton import skeleton

__all__ = ["FieldWeights", "TextChunk", "Trimmed", "keywords_of", "skeleton", "trim"]
