"""How a store keeps what it is given: the key that encrypts its files, what takes secrets out before that, and where
large contents go.

The key is 64 hex digits, which make it as strong as the cipher. It comes from the setting (best from the environment),
from what a command prints, or from this computer's keyring, where it is made the first time.
"""

import re
import secrets
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagefold.errors import ConfigError
from pagefold.pages.redaction import Redactor
from pagefold.settings.sections import SinkSettings, StoreSettings

if TYPE_CHECKING:  # an extra
    from pagefold.adapters.postgres.bodies import LargeBodies

_KEY = re.compile(r"[0-9a-fA-F]{64}")
_WANTED = "expected 64 hex digits, such as `openssl rand -hex 32` prints"
_COMMAND_SECONDS = 60.0
_OF_DEADLINE = 0.6  # the rest is for the statements of the same put
_SERVICE, _USER = "pagefold", "store"


@dataclass(frozen=True, slots=True)
class Protection:
    """A store with neither is kept as it is."""

    key: str = ""
    redactor: Redactor | None = None
    large: "LargeBodies | None" = None


UNPROTECTED = Protection()


def protection_of(settings: StoreSettings, sink: SinkSettings) -> Protection:
    """What the settings ask for. Raises ConfigError, which never repeats a key."""
    redactor = Redactor(settings.redact_patterns) if settings.redact else None
    return Protection(key_of(settings), redactor, _large(settings, sink) if settings.url else None)


def _large(settings: StoreSettings, sink: SinkSettings) -> "LargeBodies | None":
    """Where large contents go: the bucket of the history sink."""
    if not settings.objects_over:
        return None
    if not (sink.endpoint and sink.bucket):
        raise ConfigError("store.objects_over: there is no bucket: set sink.endpoint and sink.bucket, or this to 0")
    try:
        from pagefold.adapters.postgres.bodies import LargeBodies  # noqa: PLC0415  extras
        from pagefold.adapters.s3 import S3Objects  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("store.objects_over: install the extras by pip install 'pagefold[postgres,s3]'") from error
    return LargeBodies(settings.objects_over, S3Objects(sink), _OF_DEADLINE * settings.deadline_seconds)


def key_of(settings: StoreSettings) -> str:
    """The key of the store; "" where it is not encrypted."""
    if settings.key:
        return _checked(settings.key, "store.key")
    if settings.key_command:
        return _checked(_printed(settings.key_command), "store.key_command")
    return _checked(_in_keyring(), "the keyring") if settings.keyring else ""


def _checked(key: str, where: str) -> str:
    if not _KEY.fullmatch(key.strip()):
        raise ConfigError(f"{where}: {_WANTED}; it has {len(key.strip())} characters")
    return key.strip().lower()


def _printed(command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  the user's own command
            shlex.split(command), capture_output=True, text=True, check=True, timeout=_COMMAND_SECONDS
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ConfigError(f"store.key_command: it gave no key ({type(error).__name__})") from error
    return done.stdout


def _in_keyring() -> str:
    try:
        import keyring  # noqa: PLC0415  an extra
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("store.keyring: install the extra by pip install 'pagefold[keyring]'") from error
    try:
        key = keyring.get_password(_SERVICE, _USER)
        if key is None:
            key = secrets.token_hex(32)
            keyring.set_password(_SERVICE, _USER, key)
    except KeyringError as error:
        raise ConfigError(f"store.keyring: this computer's keyring cannot be used ({error})") from error
    return key
