"""`pagefold restore`: copies a session's pages from the history sink into the store.

Without SESSION, lists the sessions in the sink. Every page is checked against its id before it is kept; what is in the
store already is left as it is. The pages become those of this folder's project. Exit code 1: there is no such session,
or not all of it could be brought back.

Examples:
  pagefold restore
  pagefold restore 3f2a…
"""

import argparse
import time
from dataclasses import asdict

from pagefold.cli import output
from pagefold.cli.arguments import add_store, library_to_read
from pagefold.number_format import several, short


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("session", nargs="?", metavar="SESSION", help="which one; without it, list them")
    add_store(command)
    command.set_defaults(all_projects=False)


def run(options: argparse.Namespace) -> int:
    with library_to_read(options) as library:
        if options.session is None:
            sessions = library.sessions()
            shown = "\n".join(sessions) or "the history sink holds no session"
            output.print_result(options.json, {"sessions": sessions}, shown)
            return 0
        restored = library.restore(options.session, now=time.time())
    if options.json:
        output.print_json(asdict(restored) | {"known": restored.known})
    elif not restored.known:
        output.to_stderr(f"pagefold: the history sink holds no session {options.session!r}")
    else:
        words = (
            f"{several(restored.pages, 'page')}, {short(restored.bytes)} bytes restored; {restored.present:,} were here"
        )
        print(words + (f"; {len(restored.missing):,} are not whole in the sink" if restored.missing else ""))
    return 0 if restored.known and not restored.missing else 1
