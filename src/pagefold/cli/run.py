"""`pagefold run`: the model proxy and an agent behind it, together."""

import argparse
import signal
import subprocess

from pagefold import config
from pagefold.cli import serve, show, watch
from pagefold.errors import ConfigError
from pagefold.model_proxy import agents
from pagefold.model_proxy.server import running

EXAMPLE = """\
The proxy listens on a free port of this computer while the agent runs, and the agent is told to use it. Claude Code has
its tool search and its 1M window back, which it gives up behind an address that is not the vendor's. What the agent
prints is its own; what was saved is said at the end, on stderr.

Examples:
  pagefold run claude
  pagefold run --policy economic -- claude --model opus
  pagefold run codex exec "fix the tests"
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policy", metavar="NAME", help="identity, lossless (default) or economic")
    command.add_argument("--observe", action="store_true", default=None, help="change nothing, count what passes")
    command.add_argument("--store", metavar="FILE", help="where pages are kept (default: in the user data directory)")
    command.add_argument("program", help="the agent: claude, codex, opencode or any other program")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    flags = {"serve.policy": options.policy, "serve.observe": options.observe, "store.path": options.store}
    settings = config.load(flags={**flags, "config": options.config}).settings
    library = serve.library_for(settings)
    proxy = serve.proxy_for(settings, library, token="")
    watch.attach(proxy, settings)
    try:
        with serve.serving_from(library), serve.counted(proxy, settings), running(proxy) as url:
            given = config.process_environment({})
            start = agents.start((options.program, *options.arguments), url, settings.serve.anthropic_url, given)
            code = _wait(start)
    finally:
        if library:
            library.close()
    if options.json:
        print(proxy.totals.to_json())
    else:
        show.tell(f"pagefold: {serve.summary(proxy)}")
    return code


def _wait(start: agents.Start) -> int:
    # A key pressed in the terminal reaches the agent too, and the agent decides what it means.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        environment = config.process_environment(start.variables)
        return subprocess.run(start.command, env=environment, check=False).returncode  # noqa: S603 - the user's own
    except OSError as error:
        raise ConfigError(f"pagefold run {start.command[0]}: cannot be started: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)
