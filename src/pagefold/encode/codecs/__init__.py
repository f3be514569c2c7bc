"""Lists the codecs that need nothing but the text itself, in the order in which they are tried.

A new codec is a module of this folder and one entry here; docs/extending.md shows how.
"""

from pagefold.encode.codec import Codec
from pagefold.encode.codecs.envelopes import ENVELOPES
from pagefold.encode.codecs.escapes import EscapesCodec
from pagefold.encode.codecs.hits import HitsCodec
from pagefold.encode.codecs.json_codec import JsonCodec
from pagefold.encode.codecs.listing import ListingCodec
from pagefold.encode.codecs.log import LogCodec
from pagefold.encode.codecs.records import RecordsCodec
from pagefold.encode.codecs.repeats import ColoursCodec, RepeatsCodec

LINE_CODECS: tuple[Codec, ...] = (
    RepeatsCodec(),
    ColoursCodec(),
    LogCodec(),
    ListingCodec(),
    HitsCodec(),
    RecordsCodec(),
    EscapesCodec(),
)
"""Codecs for plain text. They rewrite its lines, and the shortest form wins."""

TOP: tuple[Codec, ...] = (*ENVELOPES, JsonCodec(exact=False), *LINE_CODECS)
"""Codecs for a whole result: JSON comes back with the same values."""

INSIDE: tuple[Codec, ...] = (*ENVELOPES, JsonCodec(exact=True), *LINE_CODECS)
"""Codecs for a text inside an envelope: JSON comes back with the same bytes."""
