"""Which layer a value comes from: defaults, files, environment, flags."""

from pathlib import Path

import pytest

from pagefold.config import load
from pagefold.errors import ConfigError
from pagefold.settings.knobs import KNOBS, NAME, settings_of
from pagefold.settings.sections import PriceTable, Settings
from pagefold.settings.toml_text import toml_key
from tests.config.loading import loaded_from, refusal_of


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
    (project / "pagefold.toml").write_text("\nprices = 'project'\npolicy = 'project'\n")
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


@pytest.mark.parametrize(
    "key", ["serve.host", "serve.anthropic_url", "serve.openai_url", "serve.token", "serve.instructions"]
)
def test_a_project_file_does_not_decide_who_gets_the_keys(key: str, tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text(f"{key} = 'http://127.0.0.1:1'\n")

    refused = f"pagefold.toml:1: {key}: not in a project's file; set it in your own, the environment or a flag"
    assert refusal_of(folder=tmp_path) == refused


@pytest.mark.parametrize(("text", "read"), [("64k", 64_000), ("1.5M", 1_500_000), ("64_000", 64_000), ("0", 0)])
def test_a_number_in_the_environment_is_read_as_people_write_it(text: str, read: int, tmp_path: Path) -> None:
    assert load({}, {"PAGEFOLD_SERVE_WINDOW": text}, tmp_path).settings.serve.window == read


@pytest.mark.parametrize("text", ["64x", "k", "-64k", "64.5", ""])
def test_what_is_no_number_is_refused_in_the_environment(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a whole number"):
        load({}, {"PAGEFOLD_SERVE_WINDOW": text}, tmp_path)
