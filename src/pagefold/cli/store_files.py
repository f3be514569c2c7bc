"""What `pagefold store` does with the files of a store as a whole: back up, restore, encrypt."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.model_proxy_lock import model_proxy_is_running
from pagefold.adapters.sqlite import backup, verifying
from pagefold.cli import output
from pagefold.errors import ConfigError, StoreError
from pagefold.number_format import several, short


def _back_up(options: argparse.Namespace, path: Path, key: str) -> int:
    copy = _file(options)
    verified = backup.back_up(path, copy, key)
    state = "encrypted, with the key of the store" if key else "not encrypted"
    words = f"{copy}: {extent(verified)} copied and checked; {state}"
    output.print_result(options.json, {"path": str(copy), **asdict(verified), "encrypted": bool(key)}, words)
    return 0


def _restore(options: argparse.Namespace, path: Path, key: str) -> int:
    _refuse_beside_a_proxy(path)
    verified, replaced = backup.restore(_file(options), path, key)
    words = f"{path}: {extent(verified)} restored and checked"
    words += "; what stood there is now " + ", ".join(map(str, replaced)) if replaced else ""
    members = {"path": str(path), **asdict(verified), "replaced": list(map(str, replaced))}
    output.print_result(options.json, members, words)
    return 0


def _encrypt(options: argparse.Namespace, path: Path, key: str) -> int:
    if not key:
        raise ConfigError("pagefold store encrypt: expected a key: set store.key, store.key_command or store.keyring")
    _refuse_beside_a_proxy(path)
    verified, _ = backup.encrypt(path, key)
    words = f"{path}: {extent(verified)} encrypted and checked; the readable files were deleted"
    output.print_result(options.json, {"path": str(path), **asdict(verified)}, words)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Path, str], int]] = {
    "backup": _back_up,
    "restore": _restore,
    "encrypt": _encrypt,
}


def _file(options: argparse.Namespace) -> Path:
    if not options.file:
        raise ConfigError(f"pagefold store {options.action}: expected a FILE")
    return Path(options.file).absolute()


def extent(verified: verifying.Verified) -> str:
    lines = f", {verified.journal_lines:,} lines of the journal" if verified.journal_lines else ""
    return f"{several(verified.pages, 'page')}, {short(verified.bytes)} bytes{lines}"


def _refuse_beside_a_proxy(path: Path) -> None:
    if model_proxy_is_running(LocalFiles(path).model_proxy_lock):
        raise StoreError(f"a model proxy works on {path}: stop it first")
