"""How a content stands in its column: packed with zstd where that is shorter, else as it is."""

from pagefold import zstd
from pagefold.pages.page import PageId, id_of

_LEVEL = 3


class Packing:
    """Packs and unpacks contents; for one thread at a time."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)

    def packed(self, content: bytes) -> bytes:
        packed = self._compressor.compress(content, zstd.ZstdCompressor.FLUSH_FRAME)
        return packed if len(packed) < len(content) else content

    def unpacked(self, page: PageId, length: object, stored: object) -> bytes | None:
        """The content of a page that is so long; None where what is stored is not that. Raises ZstdError.

        In a damaged file a column may hold anything, and a zstd frame may ask for any amount of memory.
        """
        content = None
        if isinstance(stored, bytes):
            if len(stored) == length:
                content = stored
            elif zstd.get_frame_info(stored).decompressed_size == length:
                content = zstd.ZstdDecompressor().decompress(stored, length)
        return content if content is not None and id_of(content) == page else None
