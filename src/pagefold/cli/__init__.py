"""Parses the command line, runs the command, and turns errors into exit codes. Commands are imported when run.

Exit codes: 0 done, 1 failed, 2 the user has to change something (a flag, a setting, a recording under --strict), 130
interrupted.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from pagefold import __version__
from pagefold.cli.command_parser import CommandParser
from pagefold.errors import ConfigError, PagefoldError
from pagefold.printable import printable

GROUPS = {
    "To begin with": {
        "run": "start an agent behind the model proxy",
        "report": "what your sessions cost and what pagefold would have saved, as a page to show to others",
        "trial": "whether it works for you: sessions behind pagefold against sessions held out",
        "doctor": "check whether proxies, store and agents work together, and say what to do",
        "stats": "what the proxies have saved so far",
        "demo": "see it work: replay, store, recall and proxy on a bundled session, no key, no network",
    },
    "Proxies, and clients behind them": {
        "serve": "run the model proxy: shortens requests to model APIs, passes answers on unchanged",
        "mcp": "run the MCP proxy: makes tool results shorter without loss, changes nothing else",
        "init": "put the MCP servers of a client behind pagefold, or undo that",
        "hook": "what Claude Code runs after a tool, once `init claude-code --hook` has set it",
        "statusline": "what Claude Code shows below its prompt, once `init claude-code --statusline` has set it",
        "top": "sessions, context and faults as they happen, in the terminal",
        "dashboard": "sessions, context, faults and stored pages, in a browser",
    },
    "Recorded sessions": {
        "replay": "what recorded sessions sent, what that cost with prompt caching, and how often it was read",
        "compare": "policies and windows on the same recorded sessions, ranked, with the worst session of each",
        "tune": "learn settings from recorded sessions, chosen on sessions that were held back",
        "export": "sessions and decisions as Parquet, and what they add up to",
    },
    "What is stored": {
        "recall": "print a stored page, byte for byte, by its handle",
        "search": "find stored pages that contain words, names or paths",
        "store": "show what the store holds, add to it, remove what is old",
        "restore": "bring a session's pages back from the history sink",
        "forget": "remove sessions from the store and the history sink, so that no byte of them is left",
        "journal": "what was written back to outlive the window, what was refused, and why",
    },
    "Teams on one server": {
        "team": "add teams, set what they may use, and show what they used",
        "token": "make, list and revoke the tokens of teams, and show who did what",
    },
    "Settings, forms and studies": {
        "config": "every setting, its value, and where it comes from",
        "tools": "what is known of tools, what may be run early, and from which layer that comes",
        "encode": "what a tool's result becomes in its cheapest lossless form, and what that saves",
        "decode": "the original of such a form",
        "lab": "studies, a test of how well models read forms, and a provider on loopback to try agents against",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        print(f"pagefold {__version__}")
        return 0
    try:
        options = parser(words[0] if words and words[0] in COMMANDS else None).parse_args(words)
        return int(options.run(options))
    except ConfigError as error:
        print(printable(f"pagefold: {error}"), file=sys.stderr)
        return 2
    except PagefoldError as error:
        print(printable(f"pagefold: {error}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of stdout has ended; without this, Python complains again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of the whole command line; only the command `chosen` is imported and has its flags.

    What `--help` says of a command is its line in COMMANDS and, from its second paragraph on, its module's docstring.
    """
    top = CommandParser(
        prog="pagefold",
        description="Makes the history that an agent sends to its model shorter and cheaper, and loses nothing of it.",
        epilog="pagefold COMMAND --help says more.\nExamples: pagefold run claude; pagefold report ~/.claude/projects",
        groups=GROUPS,
    )
    top.add_argument("--version", action="version", version=f"pagefold {__version__}")
    commands: Any = top.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if chosen not in (None, name):
            continue
        module = importlib.import_module(f"pagefold.cli.{name}") if chosen else None
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=(module.__doc__ or "").partition("\n\n")[2] if module else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if module:
            meaning = getattr(module, "CONFIG", "settings file in place of pagefold.toml")
            command.add_argument("--config", metavar="FILE", help=meaning)
            command.add_argument("--json", action="store_true", help="print JSON")
            module.add_arguments(command)
            command.set_defaults(run=module.run, parser=command)
    return top
