"""`pagefold run`: the agent gets the proxy in place of the address it would have gone to, and ends as it would have."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pagefold.cli.proxy_summary import summary
from pagefold.cli.run import own_upstreams
from pagefold.model_proxy import agents
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.neighbour import is_pagefold_address
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.totals import CostCheck, Totals, Work
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire.message import Usage
from tests.cli.hook_input import AGENT
from tests.scripted_model import ScriptedModel, ScriptedTurn

GATEWAY = "https://gateway.example"


def run(home: Path, program: str, **more: str) -> "subprocess.Popen[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **more}
    command = [sys.executable, "-m", "pagefold", "run", "--json", sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_what_the_agent_would_ask_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedTurn("I look."), ScriptedTurn("Done.")])
    with running(model) as url, run(tmp_path, AGENT, ANTHROPIC_BASE_URL=url) as process:
        said, _ = process.communicate(timeout=60)

    assert (process.returncode, len(model.requests), json.loads(said)["requests"]) == (0, 2, 2)


@pytest.mark.parametrize(
    ("program", "environment", "anthropic", "openai"),
    [
        ("agent", {}, "", ""),
        ("gemini", {"GOOGLE_GEMINI_BASE_URL": GATEWAY}, "", ""),
        ("agent", {"ANTHROPIC_BASE_URL": f"{GATEWAY}/a"}, f"{GATEWAY}/a", ""),
        ("agent", {"OPENAI_BASE_URL": f"{GATEWAY}/v1/"}, "", GATEWAY),
        ("agent", {"OPENAI_BASE_URL": f"{GATEWAY}/a/v1"}, "", f"{GATEWAY}/a"),
        ("agent", {"OPENAI_BASE_URL": GATEWAY}, "", ""),
        ("opencode", {"ANTHROPIC_BASE_URL": f"{GATEWAY}/v1"}, GATEWAY, ""),
        ("opencode", {"ANTHROPIC_BASE_URL": GATEWAY}, GATEWAY, ""),
    ],
)
def test_the_upstream_is_what_the_environment_names(
    program: str, environment: Mapping[str, str], anthropic: str, openai: str
) -> None:
    found = agents.upstreams([program], environment)
    started = agents.start([program], "http://127.0.0.1:1", "", environment).variables
    remark = agents.remark([program], environment)

    assert (found.get("serve.anthropic_url", ""), found.get("serve.openai_url", "")) == (anthropic, openai)
    # An address that cannot be stood in for is left as it is, and that is said.
    left = "OPENAI_BASE_URL" in environment and not openai
    assert ("OPENAI_BASE_URL" in started) is not left
    assert ("passes by pagefold" in remark) is left
    assert "ANTHROPIC_BASE_URL" in started
    assert found.get("upstreams.gemini.url") == environment.get("GOOGLE_GEMINI_BASE_URL")
    assert started["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "upstream", "variable", "told"),
    [
        ({"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "eu-west1"},
         {"upstreams.vertex.url": "https://eu-west1-aiplatform.googleapis.com"}, "ANTHROPIC_VERTEX_BASE_URL", "/v1"),
        ({"CLAUDE_CODE_USE_VERTEX": "true"},
         {"upstreams.vertex.url": "https://aiplatform.googleapis.com"}, "ANTHROPIC_VERTEX_BASE_URL", "/v1"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-1"},
         {"upstreams.bedrock.url": "https://bedrock-runtime.eu-1.amazonaws.com"}, "ANTHROPIC_BEDROCK_BASE_URL", ""),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BEDROCK_BASE_URL": GATEWAY},
         {"upstreams.bedrock.url": GATEWAY}, "ANTHROPIC_BEDROCK_BASE_URL", ""),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_RESOURCE": "r"},
         {"upstreams.foundry.url": "https://r.services.ai.azure.com"}, "ANTHROPIC_FOUNDRY_BASE_URL", "/anthropic"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, {}, "ANTHROPIC_FOUNDRY_BASE_URL", None),
        ({"CLAUDE_CODE_USE_BEDROCK": "0"}, {}, "ANTHROPIC_BEDROCK_BASE_URL", None),
    ],
)  # fmt: skip
def test_claude_code_goes_by_way_of_the_cloud_that_it_is_told(
    environment: Mapping[str, str], upstream: Mapping[str, str], variable: str, told: str | None
) -> None:
    started = agents.start(["claude"], "http://127.0.0.1:1", "", environment).variables

    assert agents.upstreams(["claude"], environment) == upstream
    assert started.get(variable) == (None if told is None else f"http://127.0.0.1:1{told}")


@pytest.mark.parametrize(
    ("settings", "upstream", "replaced", "remark"),
    [
        ({}, "", "openai_base_url", ""),
        ({"openai_base_url": f"{GATEWAY}/v1"}, f"{GATEWAY}/v1", "openai_base_url", ""),
        ({"openai_base_url": f"{GATEWAY}/codex"}, "", "", "cannot stand in for"),
        (
            {"model_provider": "own", "model_providers": {"own": {"base_url": f"{GATEWAY}/v1"}}},
            f"{GATEWAY}/v1",
            "model_providers.own.base_url",
            "",
        ),
        ({"model_provider": "ollama"}, "", "", "cannot stand in for"),
    ],
)
def test_codex_goes_where_its_own_file_says(
    settings: Mapping[str, Any], upstream: str, replaced: str, remark: str
) -> None:
    found = agents.upstreams(["/usr/bin/codex"], {}, settings)
    started = agents.start(["/usr/bin/codex", "exec"], "http://127.0.0.1:1", "", {}, settings).command
    said = agents.remark(["codex"], {}, settings)

    assert found == ({"serve.openai_url": upstream, "upstreams.chatgpt.url": upstream} if upstream else {})
    told = ("-c", f'{replaced}="http://127.0.0.1:1/v1"') if replaced else ()
    assert started == ("/usr/bin/codex", *told, "exec")
    assert remark in said
    assert bool(said) is bool(remark)


def test_codex_reads_no_variable_for_its_address_and_that_is_said() -> None:
    environment = {"OPENAI_BASE_URL": f"{GATEWAY}/v1"}

    assert agents.upstreams(["codex"], environment) == {}
    assert "Codex does not read OPENAI_BASE_URL" in agents.remark(["codex"], environment)
    assert agents.remark(["codex"], {}) == ""


def test_a_run_that_saw_no_request_says_so_and_one_that_did_does_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pagefold", "run", "--port", "0", "--window", "64k", "--"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    model = ScriptedModel([ScriptedTurn("I look."), ScriptedTurn("Done.")])
    with running(model) as url:
        said = [
            subprocess.run(
                [*command, sys.executable, "-c", program],
                env={**environment, "ANTHROPIC_BASE_URL": url},
                capture_output=True,
                text=True,
                check=True,
            ).stderr
            for program in ("pass", AGENT)
        ]

    assert ["came by here" in one for one in said] == [True, False]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["claude"], "the session can go on without pagefold, too: Claude Code then leaves"),
        (["/opt/bin/opencode", "run"], "the session can go on without pagefold, too: OpenCode then leaves"),
        (["python", "agent.py"], "see docs/thinking.md"),
    ],
)
def test_the_end_of_a_run_says_whether_the_session_can_go_on_without_pagefold(command: list[str], told: str) -> None:
    assert told in agents.leaving(command)


def test_opencode_is_told_the_version_which_it_expects_in_both_addresses() -> None:
    told = agents.start(["/opt/bin/opencode", "run"], "http://127.0.0.1:1", "", {}).variables
    others = agents.start(["claude"], "http://127.0.0.1:1", "", {}).variables

    assert (told["ANTHROPIC_BASE_URL"], told["OPENAI_BASE_URL"]) == ("http://127.0.0.1:1/v1",) * 2
    assert others["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "spared"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": GATEWAY}, "127.0.0.1"),
        ({"http_proxy": GATEWAY, "NO_PROXY": "corp.example"}, "corp.example,127.0.0.1"),
    ],
)
def test_an_agent_that_goes_out_by_a_proxy_does_not_reach_this_computer_by_it(
    environment: Mapping[str, str], spared: str | None
) -> None:
    started = agents.start(["claude"], "http://127.0.0.1:1", "", environment).variables

    assert [started.get(name) for name in ("NO_PROXY", "no_proxy")] == [spared, spared]


def test_a_signal_ends_the_agent_with_its_proxy(tmp_path: Path) -> None:
    program = "import time; print('here', flush=True); time.sleep(60)"
    with run(tmp_path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.terminate()
        said, _ = process.communicate(timeout=20)

    assert (process.returncode, json.loads(said)["faults"]) == (128 + signal.SIGTERM, 0)


def test_joining_another_pagefold_without_asking_anything_is_told_too(tmp_path: Path) -> None:
    with running(Proxy(Upstreams({}), Conversations())) as url:
        command = [sys.executable, "-m", "pagefold", "run", "--port", url.rpartition(":")[2], sys.executable, "-c", ""]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr

    assert f"no request of {sys.executable} came by here" in said


SEEN = Totals(
    requests=61,
    usage=Usage(fresh=1_000, cache_read=9_000),
    work=Work(saved=2_000, folds=2),
    reckoned=CostCheck(usd=1.5, usd_saved=0.5),
)


@pytest.mark.parametrize(
    ("seen", "observed", "told"),
    [
        (SEEN, False, "61 requests, 0 failed; about 25.0 % saved: $1.50 instead of $2.00"),
        (replace(SEEN, reckoned=CostCheck(usd=0.05, usd_saved=0.002)), False, "about 3.8 % saved: of $0.05\n"),
        (SEEN, True, "61 requests, 0 failed; nothing was changed, as --observe says"),
        (replace(SEEN, reckoned=CostCheck()), False, "2,000 tokens saved, 16.7 % of what was to be sent"),
        (replace(SEEN, work=Work(), reckoned=CostCheck(usd=1.5)), False, "nothing could be saved in them"),
        (Totals(requests=1, faults=1), False, "1 request, 0 failed"),
        (Totals(requests=1, faults=1), False, "pagefold: 1 fault of pagefold's own"),
        (Totals(), False, "no request of claude came by here, so nothing was saved; pagefold doctor"),
    ],
)
def test_the_end_of_a_run_says_what_was_saved_in_percent_and_money(seen: Totals, observed: bool, told: str) -> None:
    said = summary(seen, who="claude", observed=observed)

    assert told in said
    assert ("read from cache" in said) is bool(seen.requests)
    assert ("folded 2 times" in said) is bool(seen.work.folds)


def test_serve_that_no_request_came_by_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pagefold", "serve", "--port", "0"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serve:
        assert serve.stdout is not None
        assert "Ctrl-C ends it" in serve.stdout.readline()
        serve.send_signal(signal.SIGINT)
        _, said = serve.communicate(timeout=20)

    assert "no request came by here" in said


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def claude_with(home: Path, user: str, project: str, *arguments: str, port: int) -> tuple[list[str], str, str]:
    """Runs a stand-in named `claude` with these addresses in its settings files: its arguments, the address that Claude
    Code would go to, and what pagefold said."""
    (home / "bin").mkdir()
    program = home / "bin" / "claude"
    told = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ANTHROPIC_BASE_URL']]))"
    program.write_text(f"#!{sys.executable}\n{told}\n")
    program.chmod(0o755)
    for place, address in ((home / ".claude", user), (home / "work" / ".claude", project)):
        place.mkdir(parents=True)
        if address:
            (place / "settings.json").write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": address}}))
    ended = subprocess.run(
        [sys.executable, "-m", "pagefold", "run", str(program), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PAGEFOLD_SERVE_PORT": str(port)},
        cwd=home / "work",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    given, address = json.loads(ended.stdout)
    return given, address, ended.stderr


@pytest.mark.parametrize("place", ["user", "project"])
def test_claude_code_goes_to_the_proxy_of_run_where_its_settings_name_one_that_does_not_run(
    tmp_path: Path, place: str
) -> None:
    dead = f"http://127.0.0.1:{(port := free_port())}"
    given, address, _ = claude_with(
        tmp_path, dead if place == "user" else "", dead if place == "project" else "", "-p", "x", port=port
    )

    assert given[0] == "--settings"
    assert json.loads(given[1])["env"] == {"ANTHROPIC_BASE_URL": address}
    assert given[2:] == ["-p", "x"]
    assert address != dead


def test_claude_code_without_an_address_in_its_settings_gets_its_command_line_as_it_is(tmp_path: Path) -> None:
    given, address, _ = claude_with(tmp_path, "", "", "-p", "x", port=free_port())

    assert given == ["-p", "x"]
    assert address.startswith("http://127.0.0.1:")


def test_a_pagefold_that_claude_code_is_set_to_is_joined(tmp_path: Path) -> None:
    with running(Proxy(Upstreams({}), Conversations())) as url:
        given, address, said = claude_with(tmp_path, url, "", port=free_port())

    assert (given, address) == ([], url)
    assert f"another pagefold serves on {url}" in said


@pytest.mark.parametrize(
    ("user", "project", "arguments", "told"),
    [
        (GATEWAY, "", (), ""),
        ("", GATEWAY, (), "a project's choice is not followed"),
        (GATEWAY, "", ("--settings", "{}"), "--settings is given already"),
    ],
)
def test_an_address_in_claude_codes_settings_that_wins_over_run_is_told(
    tmp_path: Path, user: str, project: str, arguments: tuple[str, ...], told: str
) -> None:
    given, _, said = claude_with(tmp_path, user, project, *arguments, port=free_port())

    assert ("past pagefold" in said) is bool(told)
    assert told in said
    assert given == list(arguments) if told else given[0] == "--settings"


@pytest.mark.parametrize(
    ("program", "environment", "codex"),
    [
        ("claude", {"ANTHROPIC_BASE_URL": "{}"}, {}),
        ("agent", {"OPENAI_BASE_URL": "{}/v1"}, {}),
        ("codex", {}, {"openai_base_url": "{}/v1"}),  # which -c replaces, as above
    ],
)
def test_an_address_where_pagefold_is_to_serve_and_nobody_listens_is_no_upstream(
    program: str, environment: Mapping[str, str], codex: Mapping[str, str]
) -> None:
    port = free_port()

    def upstreams_at(address: str) -> dict[str, str]:
        variables, file = ({k: v.format(address) for k, v in given.items()} for given in (environment, codex))
        meant = agents.upstreams([program], variables, file)
        return own_upstreams(meant, {url for url in meant.values() if is_pagefold_address(url, port)}, {})

    assert upstreams_at(f"http://127.0.0.1:{port}") == {}
    assert upstreams_at(GATEWAY)


def test_run_wins_over_an_address_of_pagefolds_in_opencodes_settings(tmp_path: Path) -> None:
    """As `pagefold init opencode --proxy` leaves it; OpenCode itself reads OPENCODE_CONFIG_CONTENT last."""
    port = free_port()
    file = tmp_path / ".config" / "opencode" / "opencode.jsonc"
    file.parent.mkdir(parents=True)
    providers = {"anthropic": f"http://127.0.0.1:{port}/v1", "openai": f"{GATEWAY}/v1"}
    named = {name: {"options": {"baseURL": url}} for name, url in providers.items()}
    file.write_text(f"// mine\n{json.dumps({'provider': named})}")
    program = tmp_path / "opencode"
    names = "'OPENCODE_CONFIG_CONTENT', 'ANTHROPIC_BASE_URL'"
    program.write_text(f"#!{sys.executable}\nimport json, os; print(json.dumps([os.environ[n] for n in ({names})]))\n")
    program.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, "-m", "pagefold", "run", str(program)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PAGEFOLD_SERVE_PORT": str(port)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    content, address = json.loads(ended.stdout)

    # The gateway is the user's, and stays.
    assert json.loads(content) == {"provider": {"anthropic": {"options": {"baseURL": address}}}}
    assert str(port) not in address
