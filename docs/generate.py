"""Writes the pages of this folder that are generated: `make docs`.

`PAGES` holds each page's name and the function that makes its text. A page that is not what its function makes fails
the tests.
"""

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from pagefold import cli
from pagefold.adapters import recordings
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.replay_job import ReplayJob
from pagefold.cli import demo, output
from pagefold.config.project_file import ALLOWED
from pagefold.context import Context
from pagefold.derive.cost import ASSUMED
from pagefold.derive.working_set.parts import OPENING as DIGEST
from pagefold.settings.knobs import KNOBS, NAME, Knob
from pagefold.settings.toml_text import toml_key, toml_value
from pagefold.wire.message import Role

FOLDER = Path(__file__).parent

INTRODUCTION = """\
# Settings

<!-- Generated from src/pagefold/settings/ by docs/generate.py; edit those. -->

pagefold works with no configuration at all. What you do set, you set in one of these places; a later one wins, setting
by setting:

1. the shipped defaults, below;
2. your own file, `~/.config/pagefold/pagefold.toml` (`$XDG_CONFIG_HOME/pagefold/pagefold.toml` if that is set,
   `%APPDATA%\\pagefold\\pagefold.toml` on Windows);
3. the project's file, `pagefold.toml` in the current folder or its nearest parent that has one;
4. the environment: `PAGEFOLD_`, section and key, as in `PAGEFOLD_SERVE_PORT=8080`;
5. flags on the command line.

`PAGEFOLD_CONFIG=FILE`, or the flag `--config FILE`, names one file to read in place of both. `pagefold config` lists
every setting with its value and where that came from.

A project's file may have come with somebody else's repository, so it may set only this: {allowed}. It chooses
neither the store and its key, upstreams, recall or retention nor anything that sends text elsewhere, and it does not
say that a tool only reads, or which calls are run early (see [tools.md](tools.md)), nor that a tool's results are the
user's words, or what a tool of a client does to files ([file-tools.md](file-tools.md)). Anything else there is refused
with one sentence.

A setting that pagefold does not know, or a value that it cannot take, stops it with exit code 2 and one sentence that
says where:

```
pagefold.toml:4: serve.port = "abc": expected a whole number from 0 to 65535
pagefold.toml:2: unknown setting serve.prot (did you mean serve.port?)
```

In the environment a switch may be `true`, `yes`, `on` or `1`, and `false`, `no`, `off` or `0`, and a whole number
`64k` or `1m`. A relative file name
starts at the folder of the file that holds it, and elsewhere at the current folder; `~` is your home folder. The user
data directory is `~/.local/share/pagefold` (`$XDG_DATA_HOME/pagefold` if that is set), on macOS
`~/Library/Application Support/pagefold`, on Windows `%LOCALAPPDATA%\\pagefold`.

## An example

```toml
window = 160_000
prices = "house"

[prices_usd.house]
read = 0.30
write = 3.75
fresh = 3.00
output = 15.00
ttl_seconds = 300

[store]
path = "~/pages/store.sqlite3"
max_age_days = 7

[serve]
port = 8080
```
"""

FREE_NAME = """
`NAME` is any name you choose; in an environment variable it is read in lower case."""
COLUMNS = "| setting | default | environment | allowed | meaning |\n|---|---|---|---|---|\n"


def settings_page() -> str:
    allowed = ", ".join(f"`{'.'.join(path)}`" for path in ALLOWED)
    return INTRODUCTION.replace("{allowed}", allowed) + "".join(_sections())


def _sections() -> Iterator[str]:
    for path, members in groupby(KNOBS.values(), lambda knob: knob.path[:-1]):
        knobs = list(members)
        title = f"[{toml_key(path)}]" if path else "At the top of the file"
        note = FREE_NAME if NAME in path else ""
        rows = "".join(map(_row, knobs))
        yield f"\n## {title}\n\n{inspect.getdoc(knobs[0].section)}{note}\n\n{COLUMNS}{rows}"


def _row(knob: Knob) -> str:
    default = "as shipped" if knob.default is None else f"`{toml_value(knob.default)}`"
    return f"| `{toml_key(knob.path)}` | {default} | `{knob.variable}` | {knob.rule.words} | {knob.meaning} |\n"


FOLDS = """\
# Two folds, whole

<!-- Generated from the bundled session by docs/generate.py. -->

The session that `make demo` replays, in two windows that are too small for it: what stands for its older messages at
the last fold, word for word. What each part is, and how it is chosen, is told in [fold.md](fold.md).
"""


def folds_page() -> str:
    """The digests of the bundled session in two small windows."""
    (session,) = sessions_of([recordings.example()], ReplayJob(ASSUMED, "o200k", 200_000))
    parts = [FOLDS]
    for window in (9_000, 7_000):
        context = Context(window)
        digest = ""
        for message in session.messages:
            if message.role is Role.ASSISTANT:
                texts = [str(sent["content"]) for sent in context.request(cold=False)]
                digest = next((text for text in texts if DIGEST in text[:80]), digest)
            context.add(message)
        parts.append(f"\n## In a window of {window:,} tokens\n\n````text\n{digest}\n````\n")
    return "".join(parts)


DEMO = """\
# What the demo shows

<!-- Generated from `pagefold demo` by docs/generate.py. -->

`make demo` needs no key, and no network once it is installed. It prints this:

"""
WIDTH = 104


def demo_page() -> str:
    printed: list[str] = []

    def show(shown: str, *, lead: str = "", whole: bool = False) -> None:
        printed.extend(output.laid_out(shown, sys.maxsize if whole else WIDTH, lead=lead))

    demo.tell(show)
    lines = "\n".join(map(str.rstrip, printed))
    return f"{DEMO}```text\n{lines}\n```\n"


COMMANDS_PAGE = """\
# Commands

<!-- Generated from src/pagefold/cli/ by docs/generate.py; edit those. -->

Every command has `--help` with an example and `--json`. Results go to stdout, everything else to stderr. Numbers of
tokens may be written `64000`, `64k` or `1m`. Names that are mistyped are answered with the nearest one.

Exit codes: 0 done; 1 failed, or the answer is no; 2 you have to change something, which the message names; 130
interrupted by Ctrl-C. `pagefold run` ends with the exit code of the agent.
"""
COMMON = ("help", "json")
"""Options that every command has, told once."""


def commands_page() -> str:
    return COMMANDS_PAGE + "".join(
        f"\n## {title}\n{''.join(_command(name) for name in group)}" for title, group in cli.GROUPS.items()
    )


def _command(name: str) -> str:
    """What --help says of a command. argparse lays it out differently in each version of Python and hands out no list
    of its arguments, so they are read from inside it."""
    top: Any = cli.parser(name)
    (choices,) = (action.choices for action in top._actions if isinstance(action.choices, dict))  # noqa: SLF001
    command = choices[name]
    actions = [action for action in command._actions if action.dest not in COMMON]  # noqa: SLF001
    typed = " ".join(["[OPTIONS]", *(_shown(action) for action in actions if not action.option_strings)])
    rows = "".join(f"| `{_shown(one)}` | {one.help % vars(one)} |\n" for one in actions if one.help)
    told, _, examples = (command.epilog or "").partition("Example")
    lines = inspect.cleandoc(examples.partition(":")[2].strip("\n"))
    parts = [
        f"### pagefold {name}",
        command.description,
        f"```text\npagefold {name} {typed}\n```",
        OPTIONS + rows.rstrip(),
        told.strip(),
        f"```text\n{lines}\n```",
    ]
    return "\n" + "\n\n".join(filter(None, parts)) + "\n"


OPTIONS = "| option | meaning |\n|---|---|\n"


def _shown(action: argparse.Action) -> str:
    """An argument as it is typed."""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    if not action.option_strings:
        name = str(value or action.dest)
        return f"[{name}]" if action.nargs in ("?", "*") else name
    return " ".join(filter(None, (", ".join(action.option_strings), str(value) if action.nargs != 0 else "")))


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "fold-example.md": folds_page,
    "demo.md": demo_page,
    "cli.md": commands_page,
}


def main() -> None:
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
