"""`pagefold search`: finds stored pages that contain words, names or paths.

Names, paths, numbers and "quoted phrases" go first where they stand as typed; ordinary words rank the rest. Finding
nothing is exit code 0; exit code 1 means that the store could not be searched.

Examples:
  pagefold search load_config
  pagefold search src/app.py TypeError --history 3f2a… --json
"""

import argparse
from dataclasses import asdict

from pagefold.cli import output
from pagefold.cli.arguments import add_all_projects, add_store, library_to_read
from pagefold.pages.search import LIMIT, SearchFailed


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", nargs="+", metavar="QUERY", help="words, names, paths, codes, quoted phrases")
    command.add_argument("--history", metavar="ID", help="only pages of this history")
    command.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=f"at most so many (default: {LIMIT})")
    add_all_projects(command)
    add_store(command)


def run(options: argparse.Namespace) -> int:
    # The shell took the quotes of an argument that has spaces in it.
    query = " ".join(f'"{word}"' if " " in word and len(options.query) > 1 else word for word in options.query)
    with library_to_read(options) as library:
        answer = library.search(query, within=options.history, limit=options.limit)
    if isinstance(answer, SearchFailed):
        output.to_stderr(f"pagefold: {answer.text}")
        return 1
    hits = [{"handle": hit.handle} | asdict(hit) for hit in answer.found]
    output.print_result(options.json, {"query": query, "found": hits}, answer.text)
    return 0
