"""S3-compatible object storage through obstore, which is the optional extra `s3`: importing this needs it installed.

Every request has a time limit and is made once: whoever asks decides whether to ask again. No message holds a key.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from pagefold.errors import DeniedError, StoreError
from pagefold.settings.sections import SinkSettings

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Credential

_SHOWN = 200
_PIECE = 1 << 20
_REFUSED = re.compile(r"status code: 40[13]\b")


class S3Objects:
    """The objects protocol over one bucket."""

    def __init__(self, settings: SinkSettings, what: str = "the history sink") -> None:
        self._settings, self._what = settings, what
        with self._translated():
            self._bucket = _bucket(settings)

    def __repr__(self) -> str:
        return f"S3Objects({self.where!r})"

    @property
    def where(self) -> str:
        return f"{self._settings.endpoint.rstrip('/')}/{self._settings.bucket}/{self._settings.prefix}"

    async def put(self, key: str, content: bytes) -> None:
        with self._translated():
            await obstore.put_async(self._bucket, key, content)

    def put_now(self, key: str, content: bytes) -> None:
        with self._translated():
            obstore.put(self._bucket, key, content)

    def limited(self, seconds: float) -> "S3Objects":
        """The same bucket, of which no request takes longer than that, or than the settings allow."""
        return S3Objects(
            replace(self._settings, timeout_seconds=min(seconds, self._settings.timeout_seconds)), self._what
        )

    def get(self, key: str) -> bytes | None:
        with self._translated():
            try:
                return bytes(obstore.get(self._bucket, key).bytes())
            except FileNotFoundError:
                return None

    def read(self, key: str, start: int, end: int) -> bytes | None:
        start = max(0, start)
        with self._translated():
            try:
                if end <= start:
                    return None if obstore.head(self._bucket, key) is None else b""
                return bytes(obstore.get_range(self._bucket, key, start=start, end=end))
            except FileNotFoundError:
                return None
            except BaseError:
                # A range that begins past the end is refused; which of the two it was, the length tells.
                if start < obstore.head(self._bucket, key)["size"]:
                    raise
                return b""

    def keys(self, folder: str) -> Sequence[str]:
        with self._translated():
            return [found["path"] for batch in obstore.list(self._bucket, folder) for found in batch]

    def listed(self, name: str) -> Iterator[tuple[str, int, str]]:
        """The object of this key, and every one in the folder of this name: its key, its size, and what is another for
        another content."""
        with self._translated():
            if name:
                with suppress(FileNotFoundError):
                    yield _listed(obstore.head(self._bucket, name))
            for batch in obstore.list(self._bucket, name or None):
                yield from map(_listed, batch)

    def pieces(self, key: str) -> Iterator[bytes]:
        """The content of an object as it comes."""
        with self._translated():
            for piece in obstore.get(self._bucket, key).stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def folders(self, folder: str) -> Sequence[str]:
        with self._translated():
            return list(obstore.list_with_delimiter(self._bucket, folder)["common_prefixes"])

    def delete(self, keys: Sequence[str]) -> None:
        with self._translated(), suppress(FileNotFoundError):
            obstore.delete(self._bucket, list(keys))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            # Where a listing is refused, the client knows the status only as a word in its message.
            if isinstance(error, PermissionDeniedError | UnauthenticatedError) or _REFUSED.search(str(error)):
                raise DeniedError(
                    f"{self._what} {self.where} refuses access ({self._said(error)}): check sink.access_key and "
                    "sink.secret_key, and what they may do in this bucket"
                ) from None
            raise StoreError(f"{self._what} {self.where} cannot be reached or failed ({self._said(error)})") from None

    def _said(self, error: Exception) -> str:
        """The first line of what went wrong; the rest is for whoever debugs the client, and may show anything."""
        text = (str(error).splitlines() or [type(error).__name__])[0]
        for secret in (self._settings.access_key, self._settings.secret_key):
            text = text.replace(secret, "…") if secret else text
        return text[:_SHOWN]


def _listed(found: "ObjectMeta") -> tuple[str, int, str]:
    return found["path"], found["size"], found["e_tag"] or found["last_modified"].isoformat()


def _bucket(settings: SinkSettings) -> S3Store:
    limit = timedelta(seconds=settings.timeout_seconds)
    signed = bool(settings.access_key)
    return S3Store(
        settings.bucket,
        endpoint=settings.endpoint.rstrip("/"),
        region=settings.region,
        virtual_hosted_style_request=False,
        skip_signature=not signed,
        # Given by a function, because otherwise what the environment has for other programs would be mixed in.
        credential_provider=(lambda: _credential(settings)) if signed else None,
        client_options={"allow_http": True, "timeout": limit, "connect_timeout": limit},
        retry_config={"max_retries": 0, "retry_timeout": limit},
    )


def _credential(settings: SinkSettings) -> "S3Credential":
    return {
        "access_key_id": settings.access_key,
        "secret_access_key": settings.secret_key,
        "token": None,
        "expires_at": None,
    }
