"""`pagefold recall`: prints a stored page, or a part of it, by its handle.

The bytes go to stdout as they are. What the store has no more is looked for in the history sink, if there is one; on
another machine that needs --history. Exit code 1: there is no such page, it is denied, or the store failed; stderr says
which of the three.

Examples:
  pagefold recall pf-abcdefghij > whole.txt
  pagefold recall pf-abcdefghij --history 3f2a… --json
  pagefold recall pf-abcdefghij --bytes 4096:8192
  pagefold recall pf-abcdefghij --lines 40-80,120
  pagefold recall pf-abcdefghij --path '$.items[3].name'
  pagefold recall pf-abcdefghij --find TypeError
  pagefold recall pf-abcdefghij --history 3f2a… --in-place
"""

import argparse
import base64
import sys

from pagefold.cli import output
from pagefold.cli.arguments import add_all_projects, add_store, library_to_read
from pagefold.cli.command_parser import tokens
from pagefold.encode.recall_reply import RecallReply
from pagefold.errors import ConfigError
from pagefold.pages.recall import Denied, Failed, Recalled, Unknown

_NAMES = {Unknown: "unknown", Denied: "denied", Failed: "failed"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("handle", metavar="HANDLE", help="as it stands in the text that replaced the page")
    command.add_argument("--history", metavar="ID", help="only a page that was shown in this history")
    command.add_argument("--bytes", metavar="FROM:TO", help="only these bytes, from the first one on (0) up to TO")
    command.add_argument("--lines", default="", metavar="RANGES", help="only these lines, as an agent is told them")
    command.add_argument("--path", default="", metavar="PATH", help="only what stands there in its JSON")
    command.add_argument("--find", default="", metavar="WORD", help="only the lines with this word, and those around")
    command.add_argument(
        "--in-place", action="store_true", help="with what was asked, and what came before and after it in --history"
    )
    command.add_argument("--cursor", default="", metavar="CURSOR", help="the piece that the last one's cursor leads to")
    command.add_argument("--budget", type=tokens, metavar="TOKENS", help="in pieces of at most so many tokens")
    add_all_projects(command)
    add_store(command)


def run(options: argparse.Namespace) -> int:
    span = _span(options.bytes) if options.bytes else None
    asked = {name: getattr(options, name) for name in ("lines", "path", "find", "cursor", "budget")}
    with library_to_read(options) as library:
        if options.in_place and options.history is None:
            raise ConfigError("--in-place: expected --history, the conversation that the page is told in")
        if options.in_place or any(value not in ("", None) for value in asked.values()):
            return _tell_part(library.answer(options.handle, within=options.history, **asked), options)
        if span is None:
            answer = library.recall(options.handle, within=options.history)
        else:
            answer = library.read(options.handle, *span, within=options.history)
    if isinstance(answer, Recalled):
        if options.json:
            output.print_json({"answer": "recalled", "page": answer.page} | _content(answer.content))
        else:
            sys.stdout.buffer.write(answer.content)
        return 0
    if options.json:
        output.print_json({"answer": _NAMES[type(answer)], "handle": answer.handle, "text": answer.text})
    else:
        output.to_stderr(f"pagefold: {answer.text}")
    return 1


def _tell_part(answer: RecallReply, options: argparse.Namespace) -> int:
    if options.json:
        named = {"answer": "recalled", "page": answer.page} if answer.page else {"answer": answer.reason.lower()}
        output.print_json(named | {"handle": options.handle, "text": answer.text})
    elif answer.page:
        output.to_stdout(answer.text)
    else:
        output.to_stderr(f"pagefold: {answer.text}")
    return 0 if answer.page else 1


def _span(text: str) -> tuple[int, int]:
    start, mark, end = text.partition(":")
    if not (mark and start.isdecimal() and end.isdecimal()):
        raise ConfigError(f"--bytes = {text!r}: expected two whole numbers, as in 4096:8192")
    return int(start), int(end)


def _content(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
