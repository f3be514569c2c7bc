"""`pagefold serve` says where requests go on to, which addresses it does not follow, and when nobody answers there."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from pagefold.cli.serve import not_followed
from pagefold.settings.sections import ServeSettings

GATEWAY = "https://gateway.example"


@pytest.mark.parametrize(
    ("environment", "serve", "told"),
    [
        ({}, ServeSettings(), []),
        ({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/v1/"}, ServeSettings(), []),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:8377", "OPENAI_BASE_URL": "http://localhost:8377/v1"},
         ServeSettings(), []),
        ({"ANTHROPIC_BASE_URL": GATEWAY}, ServeSettings(anthropic_url=GATEWAY), []),
        ({"ANTHROPIC_BASE_URL": GATEWAY}, ServeSettings(anthropic_url="https://me:secret@other.example"),
         ["ANTHROPIC_BASE_URL", "https://other.example", "serve.anthropic_url (--anthropic-url)"]),
        ({"OPENAI_BASE_URL": f"{GATEWAY}/v1"}, ServeSettings(),
         ["OPENAI_BASE_URL", "https://api.openai.com", "serve.openai_url (--openai-url)"]),
    ],
)  # fmt: skip
def test_an_address_in_the_environment_that_is_not_followed_is_told(
    environment: Mapping[str, str], serve: ServeSettings, told: list[str]
) -> None:
    said = list(not_followed(environment, serve, 8377))

    assert said == (["{} is not followed: requests go on to {}; {} sets that".format(*told)] if told else [])


def test_serve_names_its_upstreams_and_tells_once_a_minute_that_one_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        dead = f"127.0.0.1:{other.getsockname()[1]}"
    command = [sys.executable, "-m", "pagefold", "serve", "--port", "0", "--anthropic-url", f"http://{dead}"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_BASE_URL": GATEWAY}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serve:
        assert serve.stdout is not None
        line = serve.stdout.readline()
        url = line.partition(" on ")[2].split()[0]
        for _ in range(3):
            with pytest.raises(urllib.error.HTTPError, match="502"):
                urllib.request.urlopen(f"{url}/v1/messages", b"{}", timeout=20)
        serve.send_signal(signal.SIGINT)
        _, said = serve.communicate(timeout=20)

    assert f" for anthropic at http://{dead} (try " in line
    assert f"ANTHROPIC_BASE_URL is not followed: requests go on to http://{dead}" in said
    assert said.count(f"pagefold: upstream {dead} failed: Connection refused") == 1
