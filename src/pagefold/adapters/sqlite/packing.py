"""How a content stands in its column: packed with zstd where that is shorter, else as it is."""

import zstandard

from pagefold.pages.page import PageId, id_of

_LEVEL = 3


class Packing:
    """Packs and unpacks contents; for one thread at a time."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def packed(self, content: bytes) -> bytes:
        packed = self._compressor.compress(content)
        return packed if len(packed) < len(content) else content

    def unpacked(self, page: PageId, length: object, stored: object) -> bytes | None:
        """The content of a page that is so long; None where what is stored is not that. Raises ZstdError.

        In a damaged file a column may hold anything, and a zstd frame may ask for any amount of memory.
        """
        content = None
        if isinstance(stored, bytes):
            if len(stored) == length:
                content = stored
            elif zstandard.frame_content_size(stored) == length:
                content = self._decompressor.decompress(stored)
        return content if content is not None and id_of(content) == page else None
