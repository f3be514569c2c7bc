"""What `pagefold store` does with any kind of store as a whole: verify it, copy it, bring it up to date."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from pagefold import config
from pagefold.adapters.protection import protection_of
from pagefold.adapters.store_copy import copy_store
from pagefold.adapters.stores import address_of, open_store, rows_of, verify_store
from pagefold.cli import output
from pagefold.cli.store_files import extent
from pagefold.errors import ConfigError, StoreError
from pagefold.number_format import several, short
from pagefold.settings.sections import Settings


def _verify(options: argparse.Namespace, settings: Settings) -> int:
    """Exit code 1 where something is damaged."""
    place = config.store_place(settings)
    verified = verify_store(place, protection_of(settings.store, settings.sink))
    damages = [f"{damage.file}: {damage.what}" for damage in verified.damages]
    result = f"{len(damages):,} damages" if damages else "all of it is whole"
    where = _shown(place)
    words = f"{where}: {extent(verified)} checked; {result}"
    output.print_result(options.json, {"path": where, **asdict(verified)}, "\n".join([words, *damages]))
    return 1 if damages else 0


def _copy(options: argparse.Namespace, settings: Settings) -> int:
    if not options.file or not options.to:
        raise ConfigError("pagefold store copy: expected FROM and TO, each a file or a postgresql:// address")
    if not address_of(options.file) and not Path(options.file).exists():
        raise StoreError(f"there is no store {options.file}")
    protection = protection_of(settings.store, settings.sink)
    with closing(rows_of(options.file, protection)) as source, closing(rows_of(options.to, protection)) as target:
        copied = copy_store(source, target)
        pages = several(copied.rows["pages"], "page")
        words = f"{target.where}: {pages}, {short(copied.bytes)} bytes, and all that names them"
        output.print_result(
            options.json, {"from": source.where, "to": target.where, **asdict(copied)}, f"{words}; equal by hash"
        )
    return 0


def _migrate(options: argparse.Namespace, settings: Settings) -> int:
    """Opening a store brings it up to date."""
    with closing(
        open_store(config.store_place(settings), protection=protection_of(settings.store, settings.sink))
    ) as store:
        output.print_result(options.json, {"path": store.where}, f"{store.where} is up to date")
    return 0


def _shown(place: str | Path) -> str:
    if not address_of(place):
        return str(place)
    from pagefold.adapters.postgres.store import without_password

    return without_password(str(place))


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Settings], int]] = {
    "verify": _verify,
    "copy": _copy,
    "migrate": _migrate,
}
