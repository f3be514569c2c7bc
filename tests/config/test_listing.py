"""Secrets stay hidden, and the listing shows every setting as a file spells it."""

import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, cast

import pytest

from pagefold.config import load, setting_rows
from pagefold.errors import ConfigError
from tests.config.loading import loaded_from


def test_a_secret_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    loaded = loaded_from("serve.token = 'hush-hush'", tmp_path)

    assert loaded.settings.serve.token == "hush-hush"
    assert "hush" not in repr(loaded)
    assert "hush" not in "".join(map(str, setting_rows(loaded)))
    assert next(one for one in setting_rows(loaded) if one.key == "serve.token")[1:3] == ("(set)", "pagefold.toml:1")


def test_a_secret_of_the_wrong_type_is_refused_without_repeating_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded_from("serve.token = 1234", tmp_path)

    assert str(caught.value) == "pagefold.toml:1: serve.token: expected text"


def test_a_secret_that_is_not_set_is_shown_empty(tmp_path: Path) -> None:
    assert {one.key: one.value for one in setting_rows(load({}, {}, tmp_path))}["serve.token"] == '""'


def test_the_listing_has_every_setting_spelled_as_in_a_file(tmp_path: Path) -> None:
    loaded = loaded_from("[prices_usd.x]\nread = 0.5\n[serve]\nobserve = true", tmp_path)
    listing = {one.key: one[1:] for one in setting_rows(loaded)}

    assert list(listing) == list(loaded.origins)
    assert listing["prices_usd.x.read"] == ("0.5", "pagefold.toml:2", "Prompt tokens read from the provider's cache.")
    assert listing["serve.observe"][:2] == ("true", "pagefold.toml:4")
    assert listing["serve.host"][:2] == ('"127.0.0.1"', "default")
    assert listing["window"][:2] == ("200000", "default")


def test_settings_are_frozen_hashable_and_fit_for_another_process(tmp_path: Path) -> None:
    settings = loaded_from("prices_usd.x.read = 1", tmp_path).settings

    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(pickle.loads(pickle.dumps(settings)))
    with pytest.raises(FrozenInstanceError):
        cast(Any, settings).window = 1
