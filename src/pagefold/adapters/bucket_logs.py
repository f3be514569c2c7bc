"""Recordings in a bucket, named `s3://BUCKET/KEY`: listed, and read while they come, so that no copy lies on a disk.

Address, region and keys are those of the settings `[sink]`; the bucket is the name's own. Whoever reads a recording is
given them with the work, and no result holds them.
"""

import importlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pagefold.errors import ConfigError, StoreError
from pagefold.settings.sections import SinkSettings

SCHEME = "s3://"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """One object, as it was when it was listed: another content has another `tag`."""

    bucket: str
    key: str
    size: int
    tag: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


def find(url: str, storage: SinkSettings, wanted: Callable[[str], bool]) -> list[ObjectPath]:
    """The object of that name, or those below it whose names are wanted, in order. Raises ConfigError."""
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    try:
        found = [ObjectPath(bucket, *each) for each in _objects(bucket, storage).listed(key.strip("/"))]
    except StoreError as error:
        raise ConfigError(f"{url}: {error}") from error
    one = [path for path in found if path.key == key]
    return one or sorted([path for path in found if wanted(path.name)], key=lambda path: path.key)


def opened(path: ObjectPath, storage: SinkSettings) -> io.BufferedReader:
    """Its bytes as they come. Raises OSError where it cannot be read, then or later."""
    return io.BufferedReader(_Coming(_objects(path.bucket, storage).pieces(path.key)), _PIECE)


class _Coming(io.RawIOBase):
    """A file over pieces that arrive."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while not self._rest and (piece := next(self._pieces, None)) is not None:
                self._rest = memoryview(piece)
        except StoreError as error:
            raise OSError(str(error)) from error
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _objects(bucket: str, storage: SinkSettings) -> Any:
    if not storage.endpoint:
        raise ConfigError(
            f"{SCHEME}{bucket}: set sink.endpoint, and sink.region and the keys as this bucket needs them"
        )
    try:
        objects = importlib.import_module("pagefold.adapters.s3").S3Objects
    except ImportError as error:
        raise ConfigError(f"{SCHEME}{bucket}: this needs the extra: pip install 'pagefold[s3]'") from error
    return objects(replace(storage, bucket=bucket, prefix=""), what="the bucket")
