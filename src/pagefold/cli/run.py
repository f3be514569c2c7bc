"""`pagefold run`: starts the model proxy and an agent that uses it.

The proxy listens on a free port of this computer while the agent runs, and the agent is told to use it. Claude Code has
its tool search and its 1M window back, which it gives up behind an address that is not the vendor's. What the agent
prints is its own; what was saved is said at the end, on stderr.

Examples:
  pagefold run claude
  pagefold run --policy economic -- claude --model opus
  pagefold run codex exec "fix the tests"
"""

import argparse
import signal
import subprocess

from pagefold import config
from pagefold.cli import output, serve
from pagefold.cli.arguments import add_store
from pagefold.errors import ConfigError
from pagefold.model_proxy import agents
from pagefold.model_proxy.server import running


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policy", metavar="NAME", help="identity, lossless (default) or economic")
    command.add_argument("--observe", action="store_true", default=None, help="change nothing, count what passes")
    add_store(command)
    command.add_argument("program", help="the agent: claude, codex, opencode or any other program")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    command, given = (options.program, *options.arguments), config.process_environment({})
    flags = {"serve.policy": options.policy, "serve.observe": options.observe, "store.path": options.store}
    flags["config"] = options.config
    loaded = config.load(flags=flags)
    own = {key: url for key, url in agents.upstreams(command, given).items() if loaded.origins[key] == config.DEFAULT}
    settings = config.load(flags={**flags, **own}).settings if own else loaded.settings
    with serve.working_proxy(settings, token="") as (proxy, _), running(proxy) as url:
        code = _wait(agents.start(command, url, settings.serve.anthropic_url, given))
    if options.json:
        print(proxy.totals.to_json())
    else:
        output.to_stderr(f"pagefold: {serve.summary(proxy)}")
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
