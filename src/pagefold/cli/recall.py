"""`pagefold recall`: a page by its handle."""

import argparse
import base64
import sys

from pagefold import config
from pagefold.adapters.sqlite import SqliteStore
from pagefold.cli import show
from pagefold.pages.recall import Denied, Failed, Recalled, Unknown, recall

EXAMPLE = """\
The bytes go to stdout as they are. Exit code 1: there is no such page, it is denied, or the store failed; stderr says
which of the three.

Examples:
  pagefold recall pf-abcdefghij > whole.txt
  pagefold recall pf-abcdefghij --history 3f2a… --json
"""

_NAMES = {Unknown: "unknown", Denied: "denied", Failed: "failed"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("handle", metavar="HANDLE", help="as it stands in the text that replaced the page")
    command.add_argument("--history", metavar="ID", help="only a page that was shown in this history")
    command.add_argument("--store", metavar="FILE", help="the store (default: the user's)")


def run(options: argparse.Namespace) -> int:
    settings = config.load(flags={"store.path": options.store, "config": options.config}).settings
    store = SqliteStore(config.store_path(settings))
    try:
        answer = recall(store, options.handle, within=options.history)
    finally:
        store.close()
    if isinstance(answer, Recalled):
        if options.json:
            show.as_json({"answer": "recalled", "page": answer.page} | _content(answer.content))
        else:
            sys.stdout.buffer.write(answer.content)
        return 0
    if options.json:
        show.as_json({"answer": _NAMES[type(answer)], "handle": answer.handle, "text": answer.text})
    else:
        show.tell(f"pagefold: {answer.text}")
    return 1


def _content(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
