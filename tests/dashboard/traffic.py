"""Agents at work behind a proxy: a scripted model upstream, and conversations that read files through it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pagefold.adapters.library import Library
from pagefold.cli import serve_setup, telemetry_setup
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.settings.sections import ServeSettings, Settings, StoreSettings, TelemetrySettings
from pagefold.wire.message import Usage
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn

LINES = 60


@dataclass(frozen=True)
class Behind:
    """A proxy that runs, and how it is asked."""

    url: str
    key: str
    proxy: Proxy
    settings: Settings


def script(turns: int = 30) -> list[ScriptedTurn]:
    """A model that reads one file after another; every seventh it reads again."""
    made = []
    for at in range(turns):
        file = f"src/part_{at % 7 if at % 7 == 6 else at}.py"
        usage = Usage(fresh=40, cache_read=900 * at, cache_write=900, output=120)
        made.append(ScriptedTurn(f"Reading {file}.", calls=[ScriptedCall("Read", {"file_path": file})], usage=usage))
    return made


def settings_for(folder: Path, upstream: str, **telemetry: object) -> Settings:
    store = StoreSettings(path=str(folder / "store.sqlite3"))
    one = ServeSettings(anthropic_url=upstream, port=0, policy="economic", window=12_000)
    return replace(Settings(), store=store, serve=one, telemetry=TelemetrySettings(**telemetry))  # type: ignore[arg-type]


@contextmanager
def behind(folder: Path, turns: int = 30, **telemetry: object) -> Iterator[Behind]:
    with running(ScriptedModel(script(turns))) as upstream:
        settings = settings_for(folder, upstream, **telemetry)
        library = Library.open(Path(settings.store.path), settings.sink)
        proxy = serve_setup.proxy_for(settings, library)
        key = telemetry_setup.attach(proxy, settings)
        try:
            with running(proxy) as url:
                yield Behind(url, key, proxy, settings)
        finally:
            library.close()


def text_of(file: str, agent: str) -> str:
    lines = (
        f"{n}\tdef {agent}_{n}(self, {file.split('/')[-1][:-3]}: int) -> str:  # step {n}" for n in range(1, LINES)
    )
    return "\n".join(lines)


class Agent:
    """One conversation. Its `headers` go along with every request."""

    def __init__(self, url: str, name: str, headers: dict[str, str] | None = None) -> None:
        self.url, self.name = url, name
        self.headers = {"user-agent": "claude-cli/2.1", "content-type": "application/json", **(headers or {})}
        self.messages: list[object] = [{"role": "user", "content": f"I am {name}. Read the sources and explain them."}]

    def turn(self) -> int:
        tools = [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": self.messages}
        asked = urllib.request.Request(f"{self.url}/v1/messages", json.dumps(body).encode(), self.headers)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            said = json.load(answer)
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": text_of(block["input"]["file_path"], self.name),
            }
            for block in said["content"]
            if block["type"] == "tool_use"
        ]
        self.messages.append({"role": "assistant", "content": said["content"]})
        self.messages.append({"role": "user", "content": results or "Go on."})
        return len(self.messages)


def settled(behind: Behind, turns: int) -> None:
    """Until so many turns were told: a client has its answer before anything is counted."""
    deadline = time.monotonic() + 20
    while json.loads(shown(behind, "/pagefold/live.json")[1])["totals"].get("turns", 0) < turns:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shown(behind: Behind, path: str, **headers: str) -> tuple[int, str]:
    """What the dashboard answers to whoever shows the key."""
    asked = urllib.request.Request(f"{behind.url}{path}", headers={"x-pagefold-token": behind.key, **headers})
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
