"""`pagefold encode`: what a result becomes, what that saves, and why that codec won.

The form goes to stdout, what it saves to stderr. The original goes to the store, so that `pagefold decode` gives back
its very bytes.

Examples:
  pagefold encode issues.json
  cat -n src/app.py | pagefold encode - > shown.txt && pagefold decode shown.txt
"""

import argparse
import sys
import time
from contextlib import closing

from pagefold import config
from pagefold.adapters.protection import protection_of
from pagefold.adapters.stores import open_store
from pagefold.cli import output
from pagefold.cli.arguments import add_store, load_settings, read_input
from pagefold.encode.choose import candidates, encode
from pagefold.errors import StoreError
from pagefold.number_format import share
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.settings.sections import Settings
from pagefold.tokens import counter


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="a tool's result, or - for standard input")
    command.add_argument("--tool", default="", metavar="NAME", help="the tool it came from")
    command.add_argument("--tokens", metavar="NAME", help="counter: o200k, cl100k, claude-3, claude-5")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options, {"tokens": options.tokens})
    count = counter(settings.tokens)
    content = read_input(options.file)
    text = content.decode("utf-8", "surrogateescape")  # bytes that are no text go through as halves of characters
    shown = encode(text, tool=options.tool, count=count.count)
    kept = _keep(content, shown.text, settings)
    ranked = candidates(text, count.count) if len(text) <= 1_000_000 else []
    if options.json:
        rest = {"codecs": shown.codecs, "tokens": shown.tokens, "before": shown.before, "skipped": shown.skipped}
        output.print_json({"text": shown.text, **rest, "candidates": ranked, "counter": count.label, "kept": kept})
        return 0
    end = "" if shown.text.endswith("\n") or not sys.stdout.isatty() else "\n"
    sys.stdout.buffer.write(as_bytes(f"{shown.text}{end}"))
    how = " > ".join(shown.codecs) or shown.reason
    saved = share(shown.before - shown.tokens, shown.before)
    output.to_stderr(
        f"{shown.before:,} tokens became {shown.tokens:,} ({saved} saved) by {how}; counted by {count.label}"
    )
    for name, tokens in ranked:
        output.to_stderr(f"  {tokens:>9,}  {name}")
    if kept:
        output.to_stderr(f"{kept}: pagefold decode gives the values back, JSON compact")
    return 0


def as_bytes(text: str) -> bytes:
    """Returns a text as bytes. Surrogates that stand for bytes become these bytes; those that JSON spells stay."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def shown_as(form: str) -> str:
    """Returns the name under which the store keeps the original of a form."""
    return f"shown:{Page.of(PageKind.EVIDENCE, form).id}"


def _keep(content: bytes, form: str, settings: Settings) -> str:
    """Stores the original where `decode` finds it by its form. Returns what went wrong, or an empty string."""
    try:
        with closing(
            open_store(config.store_place(settings), protection=protection_of(settings.store, settings.sink))
        ) as store:
            store.notes.put(shown_as(form), content, now=time.time())
    except StoreError as error:
        return f"the original was not kept: {error}"
    return ""
