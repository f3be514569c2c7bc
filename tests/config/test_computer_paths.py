"""Where things are on this computer: the store, the logs of agents, the way to an upstream."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pagefold.config import agent_logs, load, proxies_for, store_path
from pagefold.errors import ConfigError
from pagefold.settings.sections import Settings


def test_a_relative_store_starts_at_the_folder_that_names_it(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "mine.toml").write_text("store.path = 's.db'")

    def path(flags: Mapping[str, object], environment: Mapping[str, str]) -> Path:
        return store_path(load(flags, environment, below).settings, {})

    assert path({"config": "../mine.toml"}, {}) == below / "../s.db"
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
