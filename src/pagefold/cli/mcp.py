"""`pagefold mcp`: in front of MCP servers.

Put it where the server's own command was: every message passes as it came, and tool results in their cheapest
lossless form. `pagefold stats` shows what was saved.

Examples:
  pagefold mcp -- npx -y @modelcontextprotocol/server-filesystem .
  pagefold mcp --config mcp.json                 several servers behind one
  pagefold mcp https://example.com/mcp           a server that speaks HTTP
  pagefold mcp --http 8378 -- mcp-server-git     for clients that speak HTTP
"""

import argparse

from pagefold.cli.command_parser import tokens
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import launch

CONFIG = "several servers, as clients list them (FILE.json); else a settings file in place of pagefold.toml"
"""What `--config` means here."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "server", nargs="*", metavar="COMMAND", help="the server's command behind --, or the address of one"
    )
    command.add_argument("--name", default="", help="what the client calls the server")
    command.add_argument("--http", type=int, metavar="PORT", help="serve clients over HTTP on 127.0.0.1 (0: any port)")
    command.add_argument(
        "--no-tools", dest="tools", action="store_false", default=None, help="offer no tools of pagefold's own"
    )
    command.add_argument(
        "--slim-tools",
        nargs="?",
        const="same",
        choices=["off", "same", "lazy"],
        help="smaller schemas that mean the same, or signatures with the whole on demand",
    )
    command.add_argument("--references", action="store_true", default=None, help="refer to earlier results, see docs")
    command.add_argument("--budget", type=tokens, metavar="N", help="tokens above which a result is cut")
    command.add_argument("--parameters", metavar="TOOLS", help="tools that get the parameters format, budget and chunk")
    command.add_argument("--as-is", metavar="TOOLS", help="tools whose results pass untouched, divided by commas")
    command.add_argument("--structured", choices=["auto", "keep"], help="keep structuredContent beside its text")
    command.add_argument("--store", metavar="FILE", help="the store (default: the user's)")


def run(options: argparse.Namespace) -> int:
    is_command = bool(options.server) and not options.server[0].startswith(("http://", "https://"))
    if not is_command or options.http is not None:
        from pagefold.cli import mcp_run

        return mcp_run.run(options)
    if options.config and options.config.endswith(".json"):
        raise ConfigError(f"--config {options.config} names the servers: expected no command beside it")
    # A client may drop a server that is slow to start, so the server is started before the rest is imported.
    child = launch(options.server)  # before the rest is imported: a client may drop a server that is slow to start
    try:
        from pagefold.cli import mcp_run

        return mcp_run.run(options, child)
    finally:
        if child.process.returncode is None:
            child.end_now()
