"""Makes the pictures of these pages: `make pictures`.

The drawings need nothing. The screenshots are of the report of six sessions that Claude Code played by scripts against
the provider on loopback, two of them behind pagefold, and of a dashboard with scripted agents; they need what
`make agents` installs and Debian's chromium.
"""

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagefold.html import Html, el
from tests.dashboard.traffic import Agent, behind, settled

FOLDER = Path(__file__).parent / "pictures"
WIDTH, HEIGHT = 1200, 760
LARGEST = 150_000
INK, QUIET, PAPER = "#1a1d24", "#5a6072", "#ffffff"
CACHED, NEW, FOLDED, HELD = "#c9d7f2", "#2f5fc4", "#e8b04a", "#dfe3ea"


# ---- drawings


def drawing(width: int, height: int, words: str, shapes: Sequence[Html]) -> str:
    """An SVG file that reads the same on light and dark pages."""
    ground = el("rect", width=str(width), height=str(height), fill=PAPER, rx="6")
    return str(
        el(
            "svg",
            el("title", words),
            ground,
            shapes,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=str(width),
            height=str(height),
            role="img",
            font_family="system-ui, sans-serif",
            font_size="13",
        )
    )


def box(x: float, y: float, width: float, height: float, fill: str, words: str = "", *, ink: str = INK) -> list[Html]:
    shape = el("rect", x=str(x), y=str(y), width=str(width), height=str(height), fill=fill, stroke=PAPER, rx="3")
    return [shape, *([text(x + width / 2, y + height / 2 + 4.5, words, anchor="middle", ink=ink)] if words else [])]


def text(x: float, y: float, words: str, *, anchor: str = "start", ink: str = INK) -> Html:
    return el("text", words, x=str(x), y=str(y), text_anchor=anchor, fill=ink)


def arrow(x1: float, y1: float, x2: float, y2: float) -> list[Html]:
    length = math.hypot(x2 - x1, y2 - y1)
    along, across = ((x2 - x1) / length * 7, (y2 - y1) / length * 7), 0.6
    ends = [(x2 - along[0] - side * across * along[1], y2 - along[1] + side * across * along[0]) for side in (1, -1)]
    head = f"M{x1} {y1} L{x2} {y2} M{ends[0][0]:.1f} {ends[0][1]:.1f} L{x2} {y2} L{ends[1][0]:.1f} {ends[1][1]:.1f}"
    return [el("path", d=head, stroke=QUIET, stroke_width="1.5", fill="none")]


def turns() -> str:
    """Requests of six turns: what was sent before, and what is new."""
    shapes: list[Html] = []
    for turn in range(6):
        y, before = 22 + 34 * turn, 90 + 78 * turn
        shapes += [text(14, y + 17, f"turn {turn + 1}", ink=QUIET)]
        shapes += box(70, y, before, 26, CACHED, "sent before: read from the cache" if turn > 2 else "")
        shapes += box(70 + before, y, 78, 26, NEW, "new", ink=PAPER)
    shapes += [text(70, 246, "Every token that enters the history is paid for again on every later turn.", ink=QUIET)]
    return drawing(640, 262, "Six requests, each the one before with something new at its end", shapes)


def fold() -> str:
    """A history before a fold and after it."""
    before = [
        (70, "task", CACHED),
        (150, "read a.py", CACHED),
        (90, "edit", CACHED),
        (160, "tests, log", CACHED),
        (90, "you: …", NEW),
    ]
    shapes = [text(14, 44, "before", ink=QUIET), text(14, 140, "after", ink=QUIET), text(14, 218, "store", ink=QUIET)]
    x = 70.0
    for width, words, fill in before:
        shapes += box(x, 26, width, 30, fill, words, ink=PAPER if fill == NEW else INK)
        x += width
    shapes += box(70, 122, 70, 30, CACHED, "task")
    shapes += box(140, 122, 220, 30, FOLDED, "what was said and done, files now")
    shapes += box(360, 122, 90, 30, NEW, "you: …", ink=PAPER)
    shapes += [
        text(462, 141, "one message for the older ones", ink=QUIET),
        *box(70, 200, 110, 28, HELD, "pf-vltt3e…"),
        *box(186, 200, 110, 28, HELD, "pf-muphv6…"),
        *box(302, 200, 110, 28, HELD, "pf-o3222o…"),
        text(462, 218, "what was left out, by its handle", ink=QUIET),
        *arrow(230, 62, 230, 116),
        *arrow(230, 158, 230, 194),
    ]
    return drawing(
        700, 246, "A fold: older messages become one message, and everything left out is in the store", shapes
    )


def places() -> str:
    """Where pagefold can stand between an agent, its tools and the model."""
    shapes = [
        *box(20, 70, 130, 60, HELD, "MCP servers, tools"),
        *box(290, 70, 130, 60, CACHED, "your agent"),
        *box(560, 70, 120, 60, HELD, "the model"),
        *box(186, 20, 70, 40, FOLDED, "mcp"),
        *box(186, 140, 70, 40, FOLDED, "hook"),
        *box(452, 80, 76, 40, FOLDED, "run, serve"),
        *box(300, 160, 110, 36, FOLDED, "Context, wrap"),
        *arrow(150, 86, 186, 48),
        *arrow(256, 48, 290, 86),
        *arrow(150, 114, 186, 152),
        *arrow(256, 152, 290, 114),
        *arrow(420, 100, 452, 100),
        *arrow(528, 100, 560, 100),
        *arrow(355, 130, 355, 160),
    ]
    return drawing(700, 212, "pagefold before MCP servers, as a hook, before the model, or inside the agent", shapes)


# ---- screenshots


def screenshots(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the name of each picture and the address of its page, while what it shows is running."""
    from bench.report_check import play  # noqa: PLC0415 - the drawings do not need it

    behind_pagefold = {4, 5}
    plays = [
        play("claude-code", seed, folder / f"session-{seed}", "lossless" if seed in behind_pagefold else "")
        for seed in range(6)
    ]
    report = folder / "report.html"
    logs = [str(one.logs) for one in plays]
    command = [sys.executable, "-m", "pagefold", "report", "-o", str(report), *logs]
    noted = {"PAGEFOLD_STORE_PATH": str(folder / "store.sqlite3"), "HOME": str(folder)}
    subprocess.run(command, env=noted, check=True)  # noqa: S603 - our own
    yield "report", report.as_uri()
    with behind(folder, 30) as one:
        for name, count in (("ada", 14), ("bob", 6), ("eve", 9)):
            agent = Agent(one.url, name)
            for _ in range(count):
                agent.turn()
        settled(one, 29)
        yield "dashboard", f"{one.url}/pagefold/?key={one.key}"


def photograph() -> None:
    from playwright import sync_api  # noqa: PLC0415 - the drawings do not need it

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, address in screenshots(Path(folder)):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(address)
            page.wait_for_selector("#dot.on" if name == "dashboard" else "h1")
            file = FOLDER / f"{name}.png"
            page.screenshot(path=str(file))
            page.close()
            if file.stat().st_size > LARGEST:
                raise SystemExit(f"{file}: {file.stat().st_size:,} bytes, more than {LARGEST:,}")
        browser.close()


DRAWINGS = {"turns": turns, "fold": fold, "places": places}


def main() -> None:
    for name, drawn in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(drawn() + "\n", encoding="utf-8", newline="\n")
    if "--drawings" not in sys.argv:
        photograph()


if __name__ == "__main__":
    main()
