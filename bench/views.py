"""The file model held against recorded reads: what it says a file holds, and what the next read of it showed.

    python bench/views.py [--family coding-claude-code-july,coding-codex] [--worst 5]

Before every recorded read of lines with certain numbers, the model's own view of those lines is compared with them.
*known* is the share of the lines read that the model had; *gone* the share of its lines, inside the span that was read,
that are no longer there; *misnumbered* those that are there but elsewhere than it says.
"""

import argparse
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pagefold.pages.files.changes import Act, Compared, FileChange, Shown
from pagefold.pages.files.folders import START
from pagefold.pages.files.model import FileModel
from pagefold.pages.files.recognise import changes_of, shell_folders_after
from pagefold.pages.files.region import Region
from pagefold.pages.outcome import ending_of

TRACES = Path(__file__).parent.parent.parent / "shared" / "traces"
FAMILIES = "coding-claude-code,coding-claude-code-compact,coding-claude-code-july,coding-codex,coding-bash,mcp-servers"


def sessions(family: str) -> Iterator[dict[str, Any]]:
    with lzma.open(TRACES / f"{family}.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def arguments_of(call: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(call["function"]["arguments"] or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def views_of(changes: list[FileChange], model: FileModel) -> dict[str, dict[int, str]]:
    """The lines of each file, by number, that one call showed as they are."""
    views: dict[str, dict[int, str]] = {}
    for told in changes:
        if (change := told.meant(model.files)) is None:
            continue
        key, _ = change.known(model.files)
        if isinstance(change, Shown) and change.start is not None:
            views.setdefault(key, {}).update(enumerate(change.lines, change.start))
        elif isinstance(change, Compared):
            for hunk in change.hunks:
                views.setdefault(key, {}).update(enumerate(hunk.new, hunk.start))
    return views


def compare(model: FileModel, key: str, view: dict[int, str], tally: Counter[str]) -> list[str]:
    """Counts how the model's file stands to what was read, and tells its lines that are no longer there."""
    file = model.files.get(key)
    tally["read"] += len(view)
    if file is None or len(view) < 2:
        return []
    gone: list[str] = []
    for region in file.text.regions:
        for index, line, number, said in claims(region, view):
            doubt = (
                f"doubted {kind_of(file.text.doubts[-1].last if file.text.doubts else '')} "
                if region.seen[index] < max(file.text.doubted_at, file.text.reformatted_at)
                else ""
            )
            tally[doubt + "claimed"] += 1
            tally["numbered"] += number is not None and not doubt
            if line not in said:
                tally[doubt + "gone"] += 1
                gone += [] if doubt else [line]
            elif number is not None and view.get(number) != line:
                tally[doubt + "misnumbered"] += 1
            else:
                tally["known"] += 1
    return gone


def kind_of(doubt: str) -> str:
    word = doubt.split(" ")[0]
    return (
        word
        if word in ("git", "the")
        else "script"
        if word in ("sed", "perl", "echo", "printf", "cat", "python", "python3")
        else "format"
    )


def runs_of(view: dict[int, str]) -> Iterator[tuple[int, list[str]]]:
    """The runs of consecutive lines in a view."""
    start, lines = 0, list[str]()
    for number in sorted(view):
        if lines and number != start + len(lines):
            yield start, lines
            lines = []
        start = start if lines else number
        lines.append(view[number])
    if lines:
        yield start, lines


def claims(region: Region, view: dict[int, str]) -> Iterator[tuple[int, str, int | None, frozenset[str]]]:
    """The lines of a region that a view can judge: index, text, number, and what stands there instead or as well."""
    for start, lines in runs_of(view):
        there = frozenset(lines)
        if region.start is not None:
            first, end = max(start, region.start), min(start + len(lines), region.end)
            for number in range(first, end):
                yield number - region.start, region.lines[number - region.start], number, there
            continue
        once = {line for line, count in Counter(lines).items() if count == 1 and len(line.strip()) > 12}
        ties = [index for index, line in enumerate(region.lines) if line in once]
        if len(ties) > 1:
            for index in range(ties[0], ties[-1] + 1):
                yield index, region.lines[index], None, there


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default=FAMILIES)
    parser.add_argument("--worst", type=int, default=0, help="show so many reads with the most lines gone")
    asked = parser.parse_args()
    for family in asked.family.split(","):
        tally: Counter[str] = Counter()
        worst: list[tuple[int, str]] = []
        for session in sessions(family):
            model, calls = FileModel(), dict[str, dict[str, Any]]()
            folders = START
            for place, message in enumerate(session["messages"]):
                calls.update((call["id"], call) for call in message.get("tool_calls") or [])
                if message["role"] == "user" and START[0] not in folders:  # as `Work` does
                    folders = (*folders, *START)
                call = calls.get(message.get("tool_call_id", ""))
                if message["role"] != "tool" or call is None:
                    continue
                content = message["content"]
                text = (
                    content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or [])
                )
                name, arguments = call["function"]["name"], arguments_of(call)
                ending = ending_of(text)
                changes = list(changes_of(name, arguments, text, ending, folders=folders))
                folders = shell_folders_after(name, arguments, text, ending, folders=folders)
                model = model.after([change for change in changes if change.act is not Act.SHOWED], place)
                changes = [change for change in changes if change.act is Act.SHOWED]
                for path, view in views_of(changes, model).items():
                    if gone := compare(model, path, view, tally):
                        where = f"{session['id']} message {place}: {path}"
                        worst.append((len(gone), f"{where}\n    " + "\n    ".join(gone[:4])))
                model = model.after(changes, place)
                tally["calls"] += 1
                tally["views"] += len(changes)
        claimed, numbered = max(1, tally["claimed"]), max(1, tally["numbered"])
        print(
            f"{family:28} calls {tally['calls']:6,} views {tally['views']:6,} lines read {tally['read']:8,}  "
            f"known {tally['known'] / max(1, tally['read']):6.1%}  gone {tally['gone'] / claimed:7.2%}  "
            f"misnumbered {tally['misnumbered'] / numbered:7.2%}"
        )
        for kind in ("git", "the", "script", "format"):
            if doubted := tally[f"doubted {kind} claimed"]:
                lost, moved = tally[f"doubted {kind} gone"] / doubted, tally[f"doubted {kind} misnumbered"] / doubted
                print(f"    in doubt by {kind}: {doubted:,} lines, gone {lost:.2%}, misnumbered {moved:.2%}")
        for _, told in sorted(worst, reverse=True)[: asked.worst]:
            print("  ", told)


if __name__ == "__main__":
    main()
