"""`pagefold doctor` says where agents are sent by settings that are not pagefold's."""

import json
import socket
from pathlib import Path

import pytest

from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.cli.program import pagefold

BEHIND = {"ENABLE_TOOL_SEARCH": "true", "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1"}
"""What `pagefold init claude-code --proxy` sets beside the address."""


@pytest.mark.parametrize("place", ["user/settings.json", ".claude/settings.json"])
def test_doctor_tells_where_claude_codes_settings_send_it_and_who_listens_there(tmp_path: Path, place: str) -> None:
    """The folder is a project's, too."""
    file = tmp_path / place
    file.parent.mkdir()

    def doctor(address: str, code: int, usual: int = 0) -> str:
        file.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": address, **BEHIND}}))
        user, port = str(tmp_path / "user"), str(usual or 1)
        done = pagefold(
            "doctor", "--offline", home=tmp_path, code=code, CLAUDE_CONFIG_DIR=user, PAGEFOLD_SERVE_PORT=port
        )
        return done.stdout.decode()

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        taken = doctor(address, 1)
    said = doctor(address, 1)
    gateway = doctor("https://ann:secret@gateway.example", 0)
    with running(Proxy(Upstreams({}), Conversations())) as url:
        served = doctor(url, 0)
        past = doctor("https://gateway.example", 1, int(url.rpartition(":")[2]))

    assert f"! address: {file} sends Claude Code to {address}, where something else than a pagefold listens" in taken
    assert f"! address: {file} sends Claude Code to {address}, where nothing listens" in said
    assert f"start pagefold serve --port {port}, or take ANTHROPIC_BASE_URL out of {file}" in said
    assert ("init claude-code --proxy --undo" in said) is place.startswith("user")
    assert "it goes straight to" not in said
    assert f"  address: {file} sends Claude Code to https://gateway.example\n" in gateway
    assert f"  address: {file} sends Claude Code to {url}, where a pagefold serves" in served
    assert "secret" not in gateway
    assert "! address" in past
    assert "past the pagefold that runs" in past
