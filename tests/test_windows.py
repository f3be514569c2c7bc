"""What can be seen of Windows from elsewhere: nothing that only POSIX has is needed to import any module."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pagefold
from pagefold.config import home_of, store_path, user_settings
from pagefold.settings.sections import Settings

# Everything is imported once, so that the standard library and the packages are there. Then what Windows has not is
# taken away, and pagefold's own modules are imported anew.
WITHOUT_POSIX = """
import importlib, json, os, pkgutil, signal, socket, sys, time
import multiprocessing.connection
import pagefold

def names():
    found = pkgutil.walk_packages(pagefold.__path__, "pagefold.")
    return [one.name for one in found if not one.name.startswith("pagefold.integrations.")]

wanted = [name for name in names() if name != "pagefold.__main__"]
for name in wanted:
    importlib.import_module(name)
multiprocessing.connection.PipeConnection = multiprocessing.connection.Connection
for module in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "uvloop"):
    sys.modules[module] = None
for place, gone in (
    (os, "fork geteuid getloadavg getuid killpg mkfifo setsid sysconf"),
    (signal, "SIGKILL SIGQUIT SIGHUP SIGCONT SIGSTOP SIGUSR1 SIGUSR2 pthread_sigmask"),
    (socket, "AF_UNIX"),
    (time, "clock_gettime CLOCK_BOOTTIME CLOCK_MONOTONIC"),
):
    for name in gone.split():
        if hasattr(place, name):
            delattr(place, name)
for name in [name for name in sys.modules if name == "pagefold" or name.startswith("pagefold.")]:
    del sys.modules[name]
sys.platform = "win32"
for name in wanted:
    importlib.import_module(name)
steady = sys.modules["pagefold.adapters.steady_time"].steady_time
print(json.dumps({"modules": len(wanted), "steady": abs(steady() - time.time()) < 5}))
"""


def test_every_module_is_imported_without_what_only_posix_has() -> None:
    source = str(Path(pagefold.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX],
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["modules"] > 300, seen["steady"]) == (True, True)


@pytest.mark.parametrize(
    ("environment", "settings", "codex"),
    [
        (
            {"USERPROFILE": "/users/me", "APPDATA": "/users/me/AppData/Roaming"},
            "/users/me/AppData/Roaming/pagefold/pagefold.toml",
            "/users/me",
        ),
        ({"USERPROFILE": "/users/me"}, "/users/me/AppData/Roaming/pagefold/pagefold.toml", "/users/me"),
        (
            {"USERPROFILE": "/users/me", "CODEX_HOME": "/elsewhere/.codex", "HOME": "/msys/me"},
            "/users/me/AppData/Roaming/pagefold/pagefold.toml",
            "/elsewhere",
        ),
    ],
)
def test_files_of_the_user_are_where_windows_keeps_them(environment: dict[str, str], settings: str, codex: str) -> None:
    assert user_settings(environment, "win32") == Path(settings)
    assert home_of("codex", environment, "win32") == Path(codex)
    local = {**environment, "LOCALAPPDATA": "/users/me/Local"}
    assert store_path(Settings(), local, "win32") == Path("/users/me/Local/pagefold/store.sqlite3")
