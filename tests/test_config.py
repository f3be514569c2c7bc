"""Settings: each layer, each refusal word for word, the line of every key, and a reference page that cannot lie."""

import ast
import os
import pickle
import re
import runpy
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from pagefold.config import LoadedSettings, agent_logs, load, proxies_for, shown, store_path
from pagefold.errors import ConfigError
from pagefold.settings import (
    KNOBS,
    NAME,
    TEXT,
    KeyPath,
    Knob,
    PriceTable,
    Settings,
    generic_path,
    settings_of,
    toml_key,
    toml_lines,
    toml_value,
)
from pagefold.settings.toml_lines import key_lines

DOCS = Path(__file__).parent.parent / "docs"
ALL_AT_THE_TOP = (
    "policy, window, tokens, prices, folds, lasting, learned, mcp, prefetch, prices_usd, references, replay, serve, "
    "sink, store, telemetry, tools, values"
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


# ---- layers ----------------------------------------------------------------------------------------------------


def test_without_any_layer_every_setting_has_its_default(tmp_path: Path) -> None:
    loaded = load({}, {}, tmp_path)

    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert list(loaded.origins) == [toml_key(path) for path in KNOBS if NAME not in path]


def test_each_layer_wins_over_the_one_before_and_says_where_it_stood(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    user = home / ".config" / "pagefold"
    user.mkdir(parents=True)
    project.mkdir()
    (user / "pagefold.toml").write_text("window = 1\npolicy = 'user'\nprices = 'user'\n[serve]\nport = 1\n")
    (project / "pagefold.toml").write_text("\nprices = 'project'\nserve.port = 2\npolicy = 'project'\n")
    environment = {"HOME": str(home), "PAGEFOLD_POLICY": "environment", "PAGEFOLD_SERVE_PORT": "3"}

    loaded = load({"serve.port": 4, "replay.jobs": None}, environment, project)

    assert loaded.settings == settings_of(
        {("window",): 1, ("prices",): "project", ("policy",): "environment", ("serve", "port"): 4}
    )
    assert {key: origin for key, origin in loaded.origins.items() if origin != "default"} == {
        "window": "~/.config/pagefold/pagefold.toml:1",
        "prices": "pagefold.toml:2",
        "policy": "PAGEFOLD_POLICY",
        "serve.port": "--port",
    }


def test_the_project_file_is_that_of_the_nearest_parent(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "pagefold.toml").write_text("window = 1")
    (tmp_path / "a" / "pagefold.toml").write_text("policy = 'near'")

    loaded = load({}, {}, below)

    assert loaded.settings == Settings(policy="near")
    assert loaded.origins["policy"] == f"{tmp_path}/a/pagefold.toml:1"


@pytest.mark.parametrize(
    ("environment", "platform", "place"),
    [
        ({"HOME": "{}"}, "linux", ".config/pagefold"),
        ({"HOME": "{}"}, "darwin", ".config/pagefold"),
        ({"HOME": "{}", "XDG_CONFIG_HOME": "{}/xdg"}, "linux", "xdg/pagefold"),
        ({"HOME": "{}", "XDG_CONFIG_HOME": "not/absolute"}, "linux", ".config/pagefold"),
        ({"APPDATA": "{}/roaming"}, "win32", "roaming/pagefold"),
        ({"USERPROFILE": "{}"}, "win32", "AppData/Roaming/pagefold"),
    ],
)
def test_the_user_file_is_found_where_the_platform_keeps_it(
    environment: dict[str, str], platform: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "pagefold.toml").write_text("window = 5")
    (tmp_path / "elsewhere").mkdir()
    filled = {name: value.format(tmp_path) for name, value in environment.items()}

    assert load({}, filled, tmp_path / "elsewhere", platform).settings.window == 5


@pytest.mark.parametrize(
    ("flags", "environment"),
    [
        ({"config": "conf/one.toml"}, {}),
        ({"config": Path("conf/one.toml")}, {"PAGEFOLD_CONFIG": "nowhere.toml"}),
        ({}, {"PAGEFOLD_CONFIG": "conf/one.toml"}),
        ({}, {"PAGEFOLD_CONFIG": "~/conf/one.toml"}),
    ],
)
def test_a_named_file_is_read_in_place_of_the_two(
    flags: dict[str, object], environment: dict[str, str], tmp_path: Path
) -> None:
    for place, text in {
        ".config/pagefold/pagefold": "window = 1",
        "pagefold": "policy = 'p'",
        "conf/one": "prices = 'x'",
    }.items():
        file = tmp_path / f"{place}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    loaded = load(flags, {"HOME": str(tmp_path), **environment}, tmp_path)

    assert loaded.settings == Settings(prices="x")
    assert loaded.origins["prices"] == "~/conf/one.toml:1"


def test_a_named_file_that_is_missing_is_refused_with_who_named_it(tmp_path: Path) -> None:
    reason = "No such file or directory"

    assert refusal_of({"config": "x.toml"}, {}, tmp_path) == f"x.toml: cannot be read (named by --config): {reason}"
    assert (
        refusal_of({}, {"PAGEFOLD_CONFIG": "x.toml"}, tmp_path)
        == f"x.toml: cannot be read (named by PAGEFOLD_CONFIG): {reason}"
    )


def test_an_empty_config_variable_names_no_file(tmp_path: Path) -> None:
    assert load({}, {"PAGEFOLD_CONFIG": ""}, tmp_path).settings == Settings()


def test_variables_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    assert load({}, {"PAGEFOLDER": "1", "PATH": "/bin", "pagefold_window": "x"}, tmp_path).settings == Settings()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("Yes", True),
        ("on", True),
        ("1", True),
        ("FALSE", False),
        ("no", False),
        ("off", False),
        ("0", False),
    ],
)
def test_a_switch_in_the_environment_is_read_as_people_write_it(text: str, value: bool, tmp_path: Path) -> None:
    loaded = load({"replay.strict": text}, {"PAGEFOLD_SERVE_OBSERVE": text}, tmp_path)

    assert (loaded.settings.serve.observe, loaded.settings.replay.strict) == (value, value)


def test_a_whole_number_will_do_for_a_price_and_becomes_one(tmp_path: Path) -> None:
    (table,) = loaded_from("[prices_usd.house]\nread = 3", tmp_path).settings.prices_usd

    assert table == PriceTable(name="house", read=3.0)
    assert isinstance(table.read, float)


def test_price_tables_merge_key_by_key_across_the_layers(tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text('[prices_usd]\nb.read = 1\n"a.1" = { read = 2, write = 2 }')
    environment = {"PAGEFOLD_PRICES_USD_B_TTL_SECONDS": "60", "PAGEFOLD_PRICES_USD_C_D_OUTPUT": "4"}

    loaded = load({'prices_usd."a.1".write': 5}, environment, tmp_path)

    assert loaded.settings.prices_usd == (
        PriceTable(name="a.1", read=2, write=5),
        PriceTable(name="b", read=1, ttl_seconds=60),
        PriceTable(name="c_d", output=4),
    )
    assert {key: origin for key, origin in loaded.origins.items() if origin != "default"} == {
        'prices_usd."a.1".read': "pagefold.toml:3",
        'prices_usd."a.1".write': "--write",
        "prices_usd.b.read": "pagefold.toml:2",
        "prices_usd.b.ttl_seconds": "PAGEFOLD_PRICES_USD_B_TTL_SECONDS",
        "prices_usd.c_d.output": "PAGEFOLD_PRICES_USD_C_D_OUTPUT",
    }


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    loaded = loaded_from(b"\xef\xbb\xbfwindow = 7\r\n[serve]\r\nport = 1\r\n", tmp_path)

    assert (loaded.settings.window, loaded.settings.serve.port) == (7, 1)
    assert loaded.origins["serve.port"] == "pagefold.toml:3"


# ---- the store's file ------------------------------------------------------------------------------------------


def test_a_relative_store_starts_at_the_folder_that_names_it(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "pagefold.toml").write_text("store.path = 's.db'")

    def path(flags: Mapping[str, object], environment: Mapping[str, str]) -> Path:
        return store_path(load(flags, environment, below).settings, {})

    assert path({}, {}) == tmp_path / "s.db"
    assert path({}, {"PAGEFOLD_STORE_PATH": "s.db"}) == below / "s.db"
    assert path({"store.path": Path("t.db")}, {}) == below / "t.db"
    assert path({"store.path": "~/t.db"}, {"HOME": "/home/me"}) == Path("/home/me/t.db")
    assert path({"store.path": "/abs/t.db"}, {}) == Path("/abs/t.db")


@pytest.mark.parametrize(
    ("environment", "platform", "path"),
    [
        ({"HOME": "/h"}, "linux", "/h/.local/share/pagefold/store.sqlite3"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "linux", "/x/pagefold/store.sqlite3"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "darwin", "/h/Library/Application Support/pagefold/store.sqlite3"),
        ({"USERPROFILE": "/h", "LOCALAPPDATA": "/l"}, "win32", "/l/pagefold/store.sqlite3"),
        ({"USERPROFILE": "/h"}, "win32", "/h/AppData/Local/pagefold/store.sqlite3"),
    ],
)
def test_a_store_that_is_not_named_is_in_the_user_data_directory(
    environment: dict[str, str], platform: str, path: str
) -> None:
    assert store_path(Settings(), environment, platform) == Path(path)


def test_without_a_home_the_store_has_to_be_named() -> None:
    with pytest.raises(ConfigError, match=r'^store.path = "": expected the name of a file, as there is no user data'):
        store_path(Settings(), {}, "linux")


# ---- refusals --------------------------------------------------------------------------------------------------

LONG = "x" * 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n\n[serve]\nport = "abc"', '4: serve.port = "abc": expected a whole number from 0 to 65535'),
        ("serve.port = 65536", "1: serve.port = 65536: expected a whole number from 0 to 65535"),
        ("serve.port = -1", "1: serve.port = -1: expected a whole number from 0 to 65535"),
        ("serve = { port = true }", "1: serve.port = true: expected a whole number from 0 to 65535"),
        ("window = 0", "1: window = 0: expected a whole number of at least 1"),
        ("window = 1.0", "1: window = 1.0: expected a whole number of at least 1"),
        ("window = [\n1]", "1: window = a list: expected a whole number of at least 1"),
        ("window = 2020-01-01", "1: window = 2020-01-01: expected a whole number of at least 1"),
        ("[window]", "1: window = a table: expected a whole number of at least 1"),
        ("policy = 3", "1: policy = 3: expected a name that is not empty"),
        ('policy = " "', '1: policy = " ": expected a name that is not empty'),
        ('tokens = "gpt"', '1: tokens = "gpt": expected one of o200k, cl100k, claude-3, claude-5'),
        ("replay.strict = 1", "1: replay.strict = 1: expected true or false"),
        ('replay.strict = "yes"', '1: replay.strict = "yes": expected true or false'),
        ("replay.max_line_bytes = 1023", "1: replay.max_line_bytes = 1023: expected a whole number of at least 1024"),
        ('store.path = "\\u0000"', '1: store.path = "\\u0000": expected the name of a file'),
        ("[prices_usd.x]\nread = -0.5", "2: prices_usd.x.read = -0.5: expected a number of at least 0"),
        ("[prices_usd.x]\nread = nan", "2: prices_usd.x.read = nan: expected a number of at least 0"),
        ("[prices_usd.x]\nread = inf", "2: prices_usd.x.read = inf: expected a number of at least 0"),
        ("[prices_usd.x]\nread = true", "2: prices_usd.x.read = true: expected a number of at least 0"),
        ('[prices_usd."x.y"]\nread = ""', '2: prices_usd."x.y".read = "": expected a number of at least 0'),
        (f'window = "{LONG}"', f'1: window = "{LONG[:79]}…: expected a whole number of at least 1'),
        ("serve.port = 0x" + "f" * 9999, f"1: serve.port = 0x{'f' * 78}…: expected a whole number from 0 to 65535"),
        (
            "[prices_usd.x]\nread = 0x" + "f" * 256,
            f"2: prices_usd.x.read = 0x{'f' * 78}…: expected a number of at least 0",
        ),
        ("serve = 5", "1: serve = 5: expected a table"),
        ("\n[[serve]]\nport = 1", "2: serve = a list: expected a table"),
        ("prices_usd.x = 5", "1: prices_usd.x = 5: expected a table"),
        ("[serve]\nprot = 1", "2: unknown setting serve.prot (did you mean serve.port?)"),
        ("serve.token_ = 'hush'", "1: unknown setting serve.token_ (did you mean serve.token?)"),
        ("port = 1", "1: unknown setting port (did you mean serve.port?)"),
        ("max-bytes = 1", "1: unknown setting max-bytes (did you mean store.max_bytes or telemetry.max_bytes?)"),
        ("storepath = 1", "1: unknown setting storepath (did you mean store.path?)"),
        ("[serve]\njobs = 1", "2: unknown setting serve.jobs (did you mean replay.jobs?)"),
        ("[srve]\nport = 1", "1: unknown setting srve (did you mean serve?)"),
        ("[prices_usd.x]\n\nraed = 1", "3: unknown setting prices_usd.x.raed (did you mean prices_usd.x.read?)"),
        (
            '"a b" = 1',
            f'1: unknown setting "a b" (known are {ALL_AT_THE_TOP})',
        ),
        (
            "[replay]\nzzz = 1",
            "2: unknown setting replay.zzz (known are replay.jobs, replay.strict, replay.max_line_bytes)",
        ),
        ("window = 1\nwindow = 2", "2: not valid TOML: Cannot overwrite a value (at line 2, column 11)"),
        ("\n\nwindow = x", "3: not valid TOML: Invalid value (at line 3, column 10)"),
        (b"window = 1\npolicy = '\xff'", "2: not UTF-8 text: byte 0xff"),
    ],
)
def test_a_file_that_will_not_do_is_refused_with_place_value_and_what_would(
    text: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded_from(text, tmp_path)

    assert str(caught.value) == f"pagefold.toml:{message}"


@pytest.mark.parametrize(
    "text",
    ['window = """', "window = " + "1" * 5000, "window = " + "[" * 100_000],
    ids=["unclosed", "long number", "deep list"],
)
def test_broken_text_without_a_place_is_refused_with_the_file_alone(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^pagefold.toml: not valid TOML: "):
        loaded_from(text, tmp_path)


@pytest.mark.parametrize(
    ("address", "echo"),
    [
        ("ftp://example.com", "ftp://example.com"),
        ("api.example.com", "api.example.com"),
        ("https://", "https://"),
        ("https://a b.example", "https://a b.example"),
        ("https://example.com:99999", "https://example.com:99999"),
        ("https://[::1", "https://[::1"),
        ("https://example.com/?x=1", "https://example.com/?x=1"),
        ("https://me:hush@example.com", "https://…@example.com"),
    ],
)
def test_an_address_that_cannot_be_called_is_refused_without_repeating_a_password(
    address: str, echo: str, tmp_path: Path
) -> None:
    message = refusal_of({"serve.openai_url": address}, {}, tmp_path)

    assert message == f'--openai-url = "{echo}": expected an http or https address without user, query or fragment'


@pytest.mark.parametrize("address", ["http://localhost:8080", "https://gateway.example/v1/x", "http://[::1]:1"])
def test_an_address_that_can_be_called_is_taken_as_it_is(address: str, tmp_path: Path) -> None:
    assert load({"serve.openai_url": address}, {}, tmp_path).settings.serve.openai_url == address


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"PAGEFOLD_SERVE_PORT": "abc"}, 'PAGEFOLD_SERVE_PORT = "abc": expected a whole number from 0 to 65535'),
        ({"PAGEFOLD_SERVE_PORT": ""}, 'PAGEFOLD_SERVE_PORT = "": expected a whole number from 0 to 65535'),
        ({"PAGEFOLD_WINDOW": "0"}, "PAGEFOLD_WINDOW = 0: expected a whole number of at least 1"),
        ({"PAGEFOLD_SERVE_OBSERVE": "maybe"}, 'PAGEFOLD_SERVE_OBSERVE = "maybe": expected true or false'),
        (
            {"PAGEFOLD_TOKENS": "\x1b[1m"},
            'PAGEFOLD_TOKENS = "\\u001b[1m": expected one of o200k, cl100k, claude-3, claude-5',
        ),
        (
            {"PAGEFOLD_SERVE_PROT": "1"},
            "PAGEFOLD_SERVE_PROT: unknown environment variable (did you mean PAGEFOLD_SERVE_PORT?)",
        ),
        ({"PAGEFOLD_CONFG": "x"}, "PAGEFOLD_CONFG: unknown environment variable (did you mean PAGEFOLD_CONFIG?)"),
        (
            {"PAGEFOLD_PRICES_USD_X_RAED": "1"},
            "PAGEFOLD_PRICES_USD_X_RAED: unknown environment variable (did you mean PAGEFOLD_PRICES_USD_NAME_READ?)",
        ),
    ],
)
def test_a_variable_that_will_not_do_is_refused_by_its_name(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    assert refusal_of({}, environment, tmp_path) == message


def test_a_variable_like_no_other_is_refused_with_all_there_are(tmp_path: Path) -> None:
    message = refusal_of({}, {"PAGEFOLD_XYZZY_QUUX": "hush"}, tmp_path)

    assert message.startswith("PAGEFOLD_XYZZY_QUUX: unknown environment variable (known are PAGEFOLD_POLICY, ")
    assert all(knob.variable in message for knob in KNOBS.values())
    assert "hush" not in message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"serve.port": "abc"}, '--port = "abc": expected a whole number from 0 to 65535'),
        ({"serve.port": True}, "--port = true: expected a whole number from 0 to 65535"),
        ({"store.path": 5}, "--store = 5: expected the name of a file"),
        ({"serve.prot": 1}, "--serve.prot: unknown setting serve.prot (did you mean serve.port?)"),
        (
            {"#": 1},
            f'--#: unknown setting "#" (known are {ALL_AT_THE_TOP})',
        ),
        ({"serve.": 1}, '--serve.: unknown setting "serve." (did you mean serve?)'),
    ],
)
def test_a_flag_that_will_not_do_is_refused_by_its_name(flags: dict[str, object], message: str, tmp_path: Path) -> None:
    assert refusal_of(flags, {}, tmp_path) == message


def test_a_wrong_value_is_refused_also_where_a_later_layer_would_win(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^pagefold.toml:1: window = 0"):
        loaded_from("window = 0", tmp_path, window=5)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost"])
def test_a_loopback_host_needs_no_token(host: str, tmp_path: Path) -> None:
    assert load({"serve.host": host}, {}, tmp_path).settings.serve.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.2", "example.com", "localhost.example.com"])
def test_any_other_host_is_refused_without_a_token_and_taken_with_one(host: str, tmp_path: Path) -> None:
    needs = "a host that is not a loopback address needs serve.token (PAGEFOLD_SERVE_TOKEN)"

    assert refusal_of({"serve.host": host}, {}, tmp_path) == f'--host = "{host}": {needs}'
    assert refusal_of({"serve.host": host}, {"PAGEFOLD_SERVE_TOKEN": " "}, tmp_path) == f'--host = "{host}": {needs}'
    assert load({"serve.host": host}, {"PAGEFOLD_SERVE_TOKEN": "t"}, tmp_path).settings.serve.host == host


def test_an_open_host_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'^pagefold.toml:2: serve.host = "0.0.0.0": a host that is not'):
        loaded_from('[serve]\nhost = "0.0.0.0"', tmp_path)


# ---- files that cannot be read ---------------------------------------------------------------------------------


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so where the tests run as root they step down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="modes do not keep a reader out there")
def test_a_file_that_may_not_be_read_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "pagefold.toml").write_text("window = 1")
        (folder / "pagefold.toml").chmod(0)

        with as_nobody():
            message = refusal_of({}, {}, folder)

    assert message == "pagefold.toml: cannot be read: Permission denied"


@pytest.mark.skipif(sys.platform == "win32", reason="modes do not keep a reader out there")
def test_a_parent_that_may_not_be_searched_is_passed_over() -> None:
    with tempfile.TemporaryDirectory() as name:
        closed = Path(name) / "closed"
        (closed / "below").mkdir(parents=True)
        (closed / "pagefold.toml").write_text("window = 1")
        closed.chmod(0)
        try:
            with as_nobody():
                settings = load({}, {}, closed / "below").settings
        finally:
            closed.chmod(0o755)

    assert settings == Settings()


def test_a_folder_or_a_dangling_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "pagefold.toml").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pagefold.toml").symlink_to("gone")

    assert refusal_of({}, {}, tmp_path / "a") == "pagefold.toml: cannot be read: Is a directory"
    assert refusal_of({}, {}, tmp_path / "b") == "pagefold.toml: cannot be read: No such file or directory"


# ---- secrets and the listing -----------------------------------------------------------------------------------


def test_a_secret_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    loaded = loaded_from("serve.token = 'hush-hush'", tmp_path)

    assert loaded.settings.serve.token == "hush-hush"
    assert "hush" not in repr(loaded)
    assert "hush" not in "".join(map(str, shown(loaded)))
    assert next(one for one in shown(loaded) if one.key == "serve.token")[1:3] == ("(set)", "pagefold.toml:1")


def test_a_secret_of_the_wrong_type_is_refused_without_repeating_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded_from("serve.token = 1234", tmp_path)

    assert str(caught.value) == "pagefold.toml:1: serve.token: expected text"


def test_a_secret_that_is_not_set_is_shown_empty(tmp_path: Path) -> None:
    assert {one.key: one.value for one in shown(load({}, {}, tmp_path))}["serve.token"] == '""'


def test_the_listing_has_every_setting_spelled_as_in_a_file(tmp_path: Path) -> None:
    loaded = loaded_from("[prices_usd.x]\nread = 0.5\n[serve]\nobserve = true", tmp_path)
    listing = {one.key: one[1:] for one in shown(loaded)}

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


# ---- lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\n\n# b = 0\nb = 2", {"a": 1, "b": 4}),
        ("[t]\na = 1\n[ u . v ] # [w]\nb = 2", {"t": 1, "t.a": 2, "u": 3, "u.v": 3, "u.v.b": 4}),
        ("a.b.c = 1\na.d = 2", {"a": 1, "a.b": 1, "a.b.c": 1, "a.d": 2}),
        (
            '"a.b" = 1\n\'c = d\' . e = 2\n["]"]\nf = 1',
            {'"a.b"': 1, '"c = d"': 2, '"c = d".e': 2, '"]"': 3, '"]".f': 4},
        ),
        ("a = { b = 1, c.d = { e = 2 } }", {"a": 1, "a.b": 1, "a.c": 1, "a.c.d": 1, "a.c.d.e": 1}),
        ("a = {}\n[b]", {"a": 1, "b": 2}),
        ("[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 2\n[e]\nf = 1", {"a": 1, "e": 7, "e.f": 8}),
        ("[a]\n[[a.b]]\nc = 1\n[[a.b.d]]\ne = 1\n[a.f]\ng = 1", {"a": 1, "a.b": 2, "a.f": 6, "a.f.g": 7}),
        ('a = """\nb = 1\n[c]\n"""\nd = 1', {"a": 1, "d": 5}),
        ("a = '''\n\\'''\nb = \"\"\"x\\\n  \"\"\"\nc = 1", {"a": 1, "b": 3, "c": 5}),
        ('"x=y".z = """\n= 1"""\nb = 1', {'"x=y"': 1, '"x=y".z': 1, "b": 3}),
        ("a.e = { b = '''\n''', c = 1 }\nd = 1", {"a": 1, "a.e": 1, "d": 3}),
        ("a = [\n  1, # ]\n  '[b]',\n]\nc = 1", {"a": 1, "c": 5}),
        ("a = [\n { b = 1 },\n]\nc = [{ d = 1 }]", {"a": 1, "c": 4}),
        ("a = 1\r\n\r\nb = '''\r\n'''\r\nc = 1", {"a": 1, "b": 3, "c": 5}),
        ("a = 'x\u2028y\x85z'\nb = 1", {"a": 1, "b": 2}),
        ("[b.c]\n[b]\nd = 1", {"b": 1, "b.c": 1, "b.d": 3}),
        ("", {}),
    ],
)
def test_the_line_of_a_key_is_that_on_which_it_first_stands(text: str, lines: dict[str, int]) -> None:
    assert {toml_key(path): line for path, line in key_lines(text).items()} == lines


def test_past_a_statement_too_long_to_follow_lines_are_left_out_and_not_guessed(tmp_path: Path) -> None:
    long = "store.path = '''" + "\n" * 500 + "'''"

    loaded = loaded_from(f"window = 1\n{long}\npolicy = 'p'", tmp_path)

    assert (loaded.origins["window"], loaded.origins["policy"]) == ("pagefold.toml:1", "pagefold.toml")


NAMES = st.sampled_from(["a", "b", "c", '"a"', "'b'", '"="', '"[x]"', "'#'", '"\\""', "1"])
KEYS = st.lists(NAMES, min_size=1, max_size=3).map(" . ".join)
SCALARS = st.sampled_from(
    ["1", "'='", '"#"', '"""\na = 1\n[b]\n"""', "'''\n\n'''", "[\n 1, # ]\n '''\n''' ]", '"\\"="', "[{ a = 1 }]"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(st.tuples(KEYS, inner), max_size=3).map(
        lambda pairs: "{ " + ", ".join(f"{key} = {value}" for key, value in pairs) + " }"
    ),
    max_leaves=4,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, KEYS, VALUES),
    st.builds("  {} = {} # x = 1".format, KEYS, SCALARS),
    KEYS.map("[{}]".format),
    KEYS.map("[[ {} ]] # [a]".format),
    st.sampled_from(["", "# a = 1", "   "]),
)


def accepted(statements: list[str]) -> str:
    """Those of the statements, in their order, that make a text tomllib accepts."""
    text = ""
    for statement in statements:
        try:
            tomllib.loads(text + statement)
        except tomllib.TOMLDecodeError:
            continue
        text += statement + "\n"
    return text


def holds(text: str, path: KeyPath) -> bool:
    inner: object = tomllib.loads(text)
    for part in path:
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True


@given(st.lists(STATEMENTS, max_size=12).map(accepted))
def test_a_key_is_absent_before_its_line_and_there_once_its_statement_ends(text: str) -> None:
    lines = text.split("\n")

    for path, line in key_lines(text).items():
        assert not holds("\n".join(lines[: line - 1]), path)
        for end in range(line, len(lines) + 1):
            try:
                there = holds("\n".join(lines[:end]), path)
            except tomllib.TOMLDecodeError:
                continue
            assert there
            break


@given(st.lists(STATEMENTS, max_size=12).map(accepted))
def test_every_key_outside_lists_and_long_values_has_a_line(text: str) -> None:
    found = key_lines(text)

    assert {path[0] for path in found} == set(tomllib.loads(text))
    if '"""' not in text and "'''" not in text:
        assert set(found) == set(toml_lines._paths(tomllib.loads(text)))


# ---- any settings, any layers ----------------------------------------------------------------------------------


CONSTANTS = {"n": 1, "s": "\n"}
LISTS: Mapping[str, st.SearchStrategy[object]] = {
    "a list of names": st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
    "a list of tables": st.sampled_from(
        [
            [],
            [{"tool": "Read"}],
            [{"tool": "a b", "probability": 0.25, "projection": "$call", "keep": ["x"], "constants": CONSTANTS}],
        ]
    ),
    "six whole numbers": st.sampled_from([[], [30, 27, 31, 34, 35, 55]]),
    "tables with fields": st.sampled_from(
        [{"must": {"fields": ["a"], "estimated_value": 1.0, "default_include": False}, "ü": {"estimated_value": 0.0}}]
    ),
}


def values_for(knob: Knob) -> st.SearchStrategy[object]:
    if knob.rule.of is tuple:
        lists = next(values for words, values in LISTS.items() if knob.rule.words.startswith(words))
        return lists.filter(knob.rule.admits).map(knob.rule.kept)
    if knob.path == ("serve", "host"):
        return st.sampled_from(["127.0.0.1", "::1", "localhost"])
    if knob.rule.words.startswith("one of "):
        return st.sampled_from(knob.rule.words.removeprefix("one of ").split(", "))
    if knob.rule.words.startswith("an http"):
        return st.from_regex(r"https?://[a-z]{1,9}(:[1-9][0-9]{0,3})?(/[a-z]{1,5})?", fullmatch=True)
    if knob.rule.is_file:
        return st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/."), min_size=1).map(
            "/data/{}".format
        )
    by_type: Mapping[type, st.SearchStrategy[object]] = {
        bool: st.booleans(),
        int: st.integers(0, 65535) | st.integers(0, 10**15),
        float: st.floats(0, allow_nan=False, allow_infinity=False),
        str: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    }
    return by_type[knob.rule.of].filter(knob.rule.admits)


TABLE_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def some_values(draw: st.DrawFn, table_names: st.SearchStrategy[str] = TABLE_NAMES) -> dict[KeyPath, object]:
    chosen = draw(st.lists(st.sampled_from(list(KNOBS.values())), unique=True, max_size=8))
    return {
        tuple(draw(table_names) if part == NAME else part for part in knob.path): draw(values_for(knob))
        for knob in chosen
    }


def as_dotted_keys(values: Mapping[KeyPath, object]) -> str:
    return "".join(f"{toml_key(path)} = {toml_value(value)}\n" for path, value in values.items())


def as_tables(values: Mapping[KeyPath, object]) -> str:
    by_table: dict[KeyPath, str] = {(): ""}
    for path, value in values.items():
        by_table[path[:-1]] = by_table.get(path[:-1], "") + f"{path[-1]} = {toml_value(value)}\n"
    return "\n".join(f"[{toml_key(table)}]\n{rows}" if table else rows for table, rows in by_table.items())


@on_disk
@given(some_values(), st.sampled_from([as_dotted_keys, as_tables]))
def test_any_settings_survive_being_written_as_toml_and_read_back(values: dict[KeyPath, object], write: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        loaded = loaded_from(write(values), Path(name))

    assert loaded.settings == settings_of(values)
    lines = write(values).split("\n")
    for path in values:
        file, _, line = loaded.origins[toml_key(path)].partition(":")
        assert file == "pagefold.toml"
        assert lines[int(line) - 1].endswith(f" = {toml_value(values[path])}")


PLAIN_NAMES = st.sampled_from(["a", "b_c", "read"])


def harmless(values: dict[KeyPath, object]) -> dict[KeyPath, object]:
    """Without what a project's file may not set."""

    def is_own(path: KeyPath, value: object) -> bool:
        own = KNOBS[generic_path(path)].own
        return own(value) if callable(own) else own

    return {path: value for path, value in values.items() if not is_own(path, value)}


@on_disk
@given(
    some_values(PLAIN_NAMES),
    some_values(PLAIN_NAMES).map(harmless),
    some_values(PLAIN_NAMES),
    some_values(PLAIN_NAMES),
)
def test_the_rightmost_layer_that_gives_a_value_wins(
    user: dict[KeyPath, object],
    project: dict[KeyPath, object],
    variables: dict[KeyPath, object],
    flags: dict[KeyPath, object],
) -> None:
    environment = {
        "_".join(("PAGEFOLD", *path)).upper(): value if isinstance(value, str) else toml_value(value)
        for path, value in variables.items()
    }
    with tempfile.TemporaryDirectory() as name:
        home, folder = Path(name, "home"), Path(name, "project")
        (home / ".config" / "pagefold").mkdir(parents=True)
        folder.mkdir()
        (home / ".config" / "pagefold" / "pagefold.toml").write_text(as_tables(user), "utf-8")
        (folder / "pagefold.toml").write_text(as_dotted_keys(project), "utf-8")

        typed = {toml_key(path): toml_value(value) if type(value) is tuple else value for path, value in flags.items()}
        loaded = load(typed, environment | {"HOME": str(home)}, folder)

    assert loaded.settings == settings_of({**user, **project, **variables, **flags})
    for key, origin in loaded.origins.items():
        path = tuple(key.split("."))
        layers: Mapping[str, Mapping[KeyPath, object]] = {
            "--": flags,
            "PAGEFOLD_": variables,
            "pagefold.toml:": project,
            "~/.config/": user,
            "default": {path: 0},
        }
        rightmost = next(prefix for prefix, layer in layers.items() if path in layer)
        assert origin.startswith(rightmost)


@on_disk
@given(st.binary(max_size=60) | st.text("abserv.port=[]{}\"'\n 1#,", max_size=60).map(str.encode))
def test_any_bytes_give_settings_or_one_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        try:
            origins = set(loaded_from(content, Path(name)).origins.values())
        except ConfigError as error:
            origins = {str(error)}

    assert all(origin.startswith(("default", "pagefold.toml:")) for origin in origins)


# ---- the declaration and its page ------------------------------------------------------------------------------


@pytest.mark.parametrize("knob", KNOBS.values(), ids=lambda knob: toml_key(knob.path))
def test_each_setting_keeps_its_own_rule_and_says_what_it_means(knob: Knob) -> None:
    assert knob.default is None if NAME in knob.path else knob.rule.admits(knob.default)
    assert re.fullmatch(r"[A-Z].*\.", knob.meaning)
    assert "|" not in knob.meaning + knob.rule.words
    annotation = knob.section.__annotations__[knob.path[-1]]
    assert annotation in (knob.rule.of, knob.rule.of | None)


def test_no_two_settings_share_a_variable() -> None:
    assert len({knob.variable for knob in KNOBS.values()}) == len(KNOBS)


def test_only_the_token_and_the_sinks_keys_are_secret_and_any_text_will_do_for_them() -> None:
    secret = [(knob.path, knob.rule) for knob in KNOBS.values() if knob.secret]
    assert sorted(path for path, _ in secret) == [("serve", "token"), ("sink", "access_key"), ("sink", "secret_key")]
    assert {rule for _, rule in secret} == {TEXT}


PAGES: Mapping[str, Any] = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    written = (DOCS / name).read_text("utf-8") if (DOCS / name).exists() else ""

    assert written == PAGES[name](), f"docs/{name} is stale: run .venv/bin/python docs/generate.py"


def test_every_setting_is_documented_in_full() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    rows = {cells[1].strip(): cells for line in page.split("\n") if len(cells := line.split("|")) == 7}

    for knob in KNOBS.values():
        _, _, default, variable, allowed, meaning, _ = (cell.strip() for cell in rows[f"`{toml_key(knob.path)}`"])
        assert default == ("as shipped" if NAME in knob.path else f"`{toml_value(knob.default)}`")
        assert (variable, allowed, meaning) == (f"`{knob.variable}`", knob.rule.words, knob.meaning)


def test_the_example_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    settings = loaded_from(example, tmp_path).settings

    assert (settings.window, settings.prices, settings.prices_usd[0].name) == (160_000, "house", "house")
    assert store_path(settings, {}) == tmp_path / ".pagefold/store.sqlite3"


def test_importing_the_reader_loads_nothing_heavy() -> None:
    script = "import sys, pagefold.config; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert not {"rich", "argparse", "asyncio", "aiohttp", "splintr", "sqlite3"} & set(ast.literal_eval(loaded))


@pytest.mark.parametrize(
    "key", ["serve.host", "serve.anthropic_url", "serve.openai_url", "serve.token", "serve.instructions"]
)
def test_a_project_file_does_not_decide_who_gets_the_keys(key: str, tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text(f"{key} = 'http://127.0.0.1:1'\n")

    refused = f"pagefold.toml:1: {key}: not in a project's file; set it in your own, the environment or a flag"
    assert refusal_of(folder=tmp_path) == refused


def test_agents_logs_are_looked_for_where_the_agents_keep_them() -> None:
    home = {"HOME": "/h", "CODEX_HOME": "/c"}

    assert [str(folder) for _, folder, _ in agent_logs(home, "linux")] == ["/h/.claude/projects", "/c/sessions"]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, {}),
        ({"HTTPS_PROXY": "http://out:3128"}, {"api.example": "http://out:3128"}),
        ({"https_proxy": "http://one:1", "HTTPS_PROXY": "http://two:2"}, {"api.example": "http://one:1"}),
        ({"HTTP_PROXY": "http://out:3128"}, {"plain.example:8080": "http://out:3128"}),
        (
            {"ALL_PROXY": "http://out:3128"},
            {"api.example": "http://out:3128", "plain.example:8080": "http://out:3128"},
        ),
        ({"ALL_PROXY": "http://out:3128", "NO_PROXY": "plain.example"}, {"api.example": "http://out:3128"}),
        (
            {"ALL_PROXY": "http://out:3128", "no_proxy": "ain.example, .api.example"},
            {"plain.example:8080": "http://out:3128"},
        ),
        ({"ALL_PROXY": "http://out:3128", "no_proxy": "*"}, {}),
        ({"ALL_PROXY": "socks5://out:1080"}, {}),
    ],
)
def test_upstreams_are_reached_by_the_proxy_that_the_environment_names(
    environment: dict[str, str], found: dict[str, str]
) -> None:
    addresses = ("https://api.example", "http://plain.example:8080/v1", "http://127.0.0.1:9", "https://localhost")

    assert proxies_for(addresses, environment) == found
