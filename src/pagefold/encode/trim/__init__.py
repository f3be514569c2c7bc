"""A text too large for its budget: its most useful part, what is missing said plainly, and the way to all of it.

from pagefold.encode.trim import keywords_of, trim

shown = trim(text, 2_000, tool="Read", keywords=keywords_of([task]))
assert shown.tokens <= 2_000
"""

from pagefold.encode.trim.fit import Chunk, Trimmed, trim
from pagefold.encode.trim.json_tree import FieldWeights
from pagefold.encode.trim.keywords import keywords_of
from pagefold.encode.trim.skeleton import skeleton

__all__ = ["Chunk", "FieldWeights", "Trimmed", "keywords_of", "skeleton", "trim"]
