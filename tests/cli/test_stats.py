"""`pagefold stats`: what was saved is told of every proxy, also when it has ended."""

import json
import subprocess
import sys
from pathlib import Path

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import counters
from pagefold.dashboard.store_view import StoreView
from pagefold.model_proxy.server import running
from pagefold.wire.message import Usage
from tests.cli.hook_input import AGENT, LOG, pagefold, told
from tests.scripted_model import ScriptedModel, ScriptedTurn


def test_what_a_model_proxy_saved_is_told_when_it_has_ended(tmp_path: Path) -> None:
    pagefold("hook", home=tmp_path, told=told(LOG))
    with running(
        ScriptedModel([ScriptedTurn("I look.", usage=Usage(fresh=700)), ScriptedTurn("Done.", usage=Usage(200, 100))])
    ) as model:
        (tmp_path / "pagefold.toml").write_text(f'[serve]\nanthropic_url = "{model}"\n')
        settings = ("--config", str(tmp_path / "pagefold.toml"))
        done = pagefold("run", *settings, sys.executable, "-c", AGENT, home=tmp_path)
        assert done.returncode == 0, done.stderr.decode()

    found = json.loads(pagefold("stats", "--json", home=tmp_path).stdout)
    table = pagefold("stats", home=tmp_path).stdout.decode()

    assert found["model"].pop("saved tokens") > 1_000
    assert found["model"].pop("microdollars") == 900 * 5 + 100 * 0.5
    assert found["model"].pop("microdollars saved") > 1_000 * 0.5
    assert found["model"] == {"requests": 2, "prompt tokens": 1_000, "cached tokens": 100}
    assert "Tool results, in tokens" in table
    assert "Requests to models" in table
    head, day = table.partition("Requests to models")[2].splitlines()[1:3]
    assert [name for name in ("requests", "prompt tokens", "saved") if name not in head] == []
    assert "5 h" not in head  # nothing was reported of a window
    assert day.split()[0].count("-") == 2  # no column is squeezed until a day takes two lines
    store_view = StoreView(lambda: None, LocalFiles(tmp_path / "data" / "pagefold" / "store.sqlite3").counters)
    assert store_view.ask().mcp == found["hook"]


def test_a_model_proxy_that_is_ended_has_counted(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite3"
    command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--observe"]
    command += ["--store", str(store), "--anthropic-url", "http://127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        subprocess.run([sys.executable, "-c", AGENT], env={"ANTHROPIC_BASE_URL": url}, check=False, capture_output=True)
        serve.terminate()

    [counted] = [one for one in counters.read(LocalFiles(store).counters) if one.name == "requests"]
    assert (counted.surface, counted.count) == ("model", 1)
