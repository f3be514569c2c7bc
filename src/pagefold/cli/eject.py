"""`pagefold eject`: a session that began behind pagefold, ready to go on without it.

Thinking is bound to what the provider was sent, and behind pagefold that was not what the client keeps. Claude Code
sends a refused request again without thinking and goes on; Codex has nothing that is bound; what came through
`pagefold mcp` or the hook was changed before the client kept it. None of them needs this. OpenCode stops at the
refusal: for it, this makes a copy of the session without its thinking. `pagefold run --observe opencode` goes on with
the session itself.

Examples:
  opencode export ses_… > session.json
  pagefold eject session.json -o free.json
  opencode import free.json
"""

import argparse
from pathlib import Path

from pagefold.cli import logs, output
from pagefold.cli.arguments import read_input
from pagefold.errors import ConfigError, WireError
from pagefold.wire.transcripts.opencode_eject import without_thinking


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="what `opencode export` printed, or - for standard input")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write the copy (default: printed)")


def run(options: argparse.Namespace) -> int:
    try:
        text, session, left = without_thinking(read_input(options.file).decode("utf-8"))
    except (WireError, UnicodeDecodeError) as error:
        words = "Claude Code and Codex go on by themselves"
        raise ConfigError(f"{options.file}: cannot be ejected: {error}; {words}") from error
    if options.output:
        logs.write(Path(options.output), text)
        output.to_stderr(f"Wrote {options.output}: {left:,} pieces of thinking left out. It is session {session}.")
    if options.json:
        output.print_json({"session": session, "left_out": left})
    elif not options.output:
        print(text)
    return 0
