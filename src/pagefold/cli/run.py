"""`pagefold run`: starts the model proxy and an agent that uses it.

The proxy listens on a free port of this computer while the agent runs, and the agent is told to use it. Claude Code has
its tool search and its 1M window back, which it gives up behind an address that is not the vendor's. What the agent
prints is its own; what was saved is said at the end, on stderr.

Claude Code, Codex (with an API key or a ChatGPT login), OpenCode and Gemini CLI (with an API key) are known. Any other
program is told the proxy's address by ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL.

Examples:
  pagefold run claude
  pagefold run --policy economic --window 64k -- claude --model opus
  pagefold run codex exec "fix the tests"
"""

import argparse
import signal
import subprocess
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from pagefold import config
from pagefold.cli import output, serve
from pagefold.cli.arguments import add_policy, add_store
from pagefold.cli.proxy_summary import summary
from pagefold.errors import ConfigError
from pagefold.model_proxy import agents
from pagefold.model_proxy.agents import ANTHROPIC
from pagefold.model_proxy.neighbour import (
    is_free,
    is_open_pagefold,
    is_pagefold,
    is_pagefold_address,
    port_here,
    requests_at,
    shown_address,
)
from pagefold.model_proxy.server import running
from pagefold.model_proxy.totals import Totals


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_policy(command)
    command.add_argument("--port", type=int, metavar="N", default=0, help="port of the proxy (default: any free one)")
    command.add_argument("--anthropic-url", metavar="URL", help="where Anthropic requests go")
    command.add_argument("--openai-url", metavar="URL", help="where OpenAI requests go")
    add_store(command)
    command.add_argument("command", nargs=argparse.REMAINDER, metavar="AGENT …", help="the agent, and its arguments")


def run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise ConfigError("pagefold run: expected an agent to start: claude, codex, opencode or any other program")
    codex, claude = config.codex_settings(), config.claude_variables() if agents.is_claude(command) else []
    given = config.process_environment(claude[0][1] if claude else {})  # a project's file may not choose the upstream
    names = ("policy", "observe", "trial", "window", "anthropic_url", "openai_url")
    flags = {f"serve.{name}": getattr(options, name) for name in names}
    flags |= {**config.store_flags(options.store), "config": options.config}
    loaded = config.load(flags=flags)
    usual = loaded.settings.serve.port
    meant = agents.upstreams(command, given, codex)
    # A cloud is asked for nothing but what the agent asks.
    ours = {url for key, url in meant.items() if key.startswith("serve.") and is_pagefold_address(url, usual)}
    own = own_upstreams(meant, ours, loaded.origins)
    named = config.opencode_addresses() if agents.is_opencode(command) else {}
    opencode = {name: url for name, url in named.items() if is_pagefold_address(url, usual)}
    ours |= set(opencode.values())
    settings = config.load(flags={**flags, **own}).settings if own else loaded.settings
    if remark := agents.remark(command, given, codex):
        output.to_stderr(f"pagefold: {remark}")
    overruled, kept = _claude_settings(command, claude, usual)
    if kept:
        output.to_stderr(f"pagefold: {kept}")
    overruled |= opencode
    port = options.port or next((port for url in ours if is_open_pagefold(port := port_here(url))), 0)
    if not is_free(port):
        if is_open_pagefold(port):
            joined = f"http://127.0.0.1:{port}"
            output.to_stderr(f"pagefold: another pagefold serves on {joined}; {command[0]} uses that one")
            start = agents.start(command, joined, settings.serve.anthropic_url, given, codex, overruled)
            return _joined(port, start, command[0])
        output.to_stderr(f"pagefold: port {port} is taken by something else; a free one is used")
        port = 0
    working = serve.working_proxy(settings, token="", scope=config.project_scope(settings))
    with working as (proxy, _), running(proxy, port) as url:
        proxy.unanswered = lambda host, cause: None  # the agent says it on its own screen
        code = _wait(agents.start(command, url, settings.serve.anthropic_url, given, codex, overruled))
    seen = proxy.totals
    if options.json:
        print(seen.to_json())
    if not options.json or not seen.requests:
        told = summary(seen, proxy.conversations.crowded, who=command[0], observed=settings.serve.observe)
        output.to_stderr(f"pagefold: {told}")
    if not options.json and proxy.conversations.notebook.has_bound_reasoning:
        output.to_stderr(f"pagefold: {agents.leaving(command)}")
    return code


def own_upstreams(meant: Mapping[str, str], ours: Set[str], origins: Mapping[str, str]) -> dict[str, str]:
    """Returns the upstreams that the agent's own settings mean, where pagefold's say nothing. An address at which
    pagefold itself is to serve is none: it would ask itself, or nobody."""
    return {
        key: url for key, url in meant.items() if url not in ours and origins.get(key, config.DEFAULT) == config.DEFAULT
    }


def _claude_settings(
    command: Sequence[str], files: Sequence[tuple[Path, Mapping[str, str]]], usual: int
) -> tuple[dict[str, str], str]:
    """Returns which variables of Claude Code's settings files are to be overruled, and what is said of an address there
    that is not."""
    named = [(number, file, url) for number, (file, variables) in enumerate(files) if (url := variables.get(ANTHROPIC))]
    if named:
        number, file, url = named[-1]
        ours = is_pagefold_address(url, usual)
        has_own = agents.has_settings(command)
        if (has_own and not (ours and is_pagefold(port_here(url)))) or (number and not ours):
            return {}, agents.settled_elsewhere(command, str(file), shown_address(url))
    return {name: value for _, variables in files for name, value in variables.items()}, ""


def _joined(port: int, start: agents.Start, name: str) -> int:
    """Runs the agent behind the pagefold that serves on this port already."""
    before = requests_at(port)
    code = _wait(start)
    if before is not None and requests_at(port) == before:
        output.to_stderr(f"pagefold: {summary(Totals(), who=name)}")
    return code


def _wait(start: agents.Start) -> int:
    """Starts the agent, waits for its end, and returns its exit code as a shell would (128 + signal)."""
    agent: subprocess.Popen[bytes] | None = None
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True
        if agent is not None:
            agent.terminate()

    # Ctrl-C reaches the agent too, and the agent decides what it means. SIGTERM ends the agent, because it cannot go on
    # without its proxy; the signal may come while the agent is being started.
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, end),
    }
    try:
        environment = config.process_environment(start.variables)
        agent = subprocess.Popen(start.command, env=environment)  # noqa: S603 - the user's own
        if ended:
            agent.terminate()
        code = agent.wait()
    except OSError as error:
        raise ConfigError(f"pagefold run {start.command[0]}: cannot be started: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
