"""Loads settings for the tests of this folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as limits

from pagefold.config import LoadedSettings, load
from pagefold.errors import ConfigError

ALL_AT_THE_TOP = (
    "policy, window, tokens, prices, file_tools, folds, lasting, learned, mcp, prefetch, prices_usd, references, "
    "replay, serve, sink, store, telemetry, tools, upstreams, values"
)

# How long a disk takes is no property of the reader.
on_disk = limits(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def loaded_from(text: str | bytes, folder: Path, **flags: object) -> LoadedSettings:
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "pagefold.toml").write_bytes(content)
    return load(
        {"config": "pagefold.toml", **{key.replace("__", "."): value for key, value in flags.items()}}, {}, folder
    )


def refusal_of(
    flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None, folder: Path = Path("/")
) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags, environment or {}, folder)
    return str(caught.value)
