"""`pagefold hook`: the program that Claude Code runs after a tool; it shortens the tool's result without loss.

Claude Code starts it by itself once `pagefold init claude-code --hook` was run: it reads the hook's event from standard
input and prints what stands for the tool's result. What Bash prints, what Grep finds and what MCP servers say is
replaced; Read numbers its lines after the hook, and is left alone.

Examples:
  pagefold init claude-code --hook
  pagefold hook < event.json
"""

import argparse
import re
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime

from pagefold.adapters.local_files import LocalFiles
from pagefold.errors import PagefoldError
from pagefold.wire import claude_hook, json_text

_SHORT = 400
_POSES = re.compile(r"^(?:\[|= |> \[)", re.MULTILINE)
"""What a line of pagefold's begins with: a short text that has none is not worth loading the codecs for."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", metavar="FILE", help="the store beside which it counts (default: the user's)")


def run(options: argparse.Namespace) -> int:
    """Fails open: without an answer Claude Code shows its model the tool's own result.

    Faults are counted. The exit code is always 0, because Claude Code shows the model what a hook with code 2 prints.
    """
    counts: Counter[str] = Counter()
    try:
        said = answer(json_text.text_of(sys.stdin.buffer.read()), counts, options)
    except Exception:  # noqa: BLE001 - the single fail-open point of this surface
        said = ""
        counts["faults"] += 1
    if said:
        sys.stdout.buffer.write(json_text.bytes_of(said))
        sys.stdout.buffer.flush()
    if counts:
        _count(counts, options)
    return 0


def answer(event: str, counts: Counter[str], options: argparse.Namespace) -> str:
    """Returns what to print for an event; nothing if the result stays as it is, or is pagefold's. Raises WireError."""
    called = claude_hook.parse(event)
    long = [(path, text) for path, text in called.texts if len(text) >= _SHORT or _POSES.search(text)]
    if not long or _is_ours(called.tool, options):
        return ""
    from pagefold.encode.choose import REFERRING, encode

    changed = {}
    for path, text in long:
        shown = encode(text, tool=called.tool, without=REFERRING)  # the hook does not know what else is in the request
        counts.update({"tokens before": shown.before, "tokens after": shown.tokens})
        if shown.text != text:
            changed[path] = shown.text
    counts["calls"] += 1
    return claude_hook.render(called, changed) if changed else ""


def _is_ours(tool: str, options: argparse.Namespace) -> bool:
    """Whether a tool is one of pagefold's own. Settings are read only where its name could be one of theirs."""
    if "context_" not in tool:
        return False
    from pagefold import config
    from pagefold.derive.learned import context_servers_of
    from pagefold.pages.context_tools import own_name

    servers = context_servers_of(config.load(flags={"config": options.config}).settings)
    return bool(own_name(tool, servers))


def _count(counts: Counter[str], options: argparse.Namespace) -> None:
    from pagefold import config
    from pagefold.adapters.sqlite import counters

    with suppress(PagefoldError):  # counting may fail; the exit code must stay 0
        settings = config.load(flags={**config.store_flags(options.store), "config": options.config}).settings
        counters.add(
            LocalFiles(config.store_path(settings)).counters, "hook", f"{datetime.now(tz=UTC):%Y-%m-%d}", counts
        )
