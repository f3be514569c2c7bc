"""Measures what the first chunk of a large result is worth, and checks that nothing is ever lost.

    python -m bench.trim [--families mcp-servers,coding-claude-code] [--budgets 1000,2000] [--peers DIR] [--json]
    python -m bench.trim --only usefulness|reassembly|shrinkfit

*Usefulness*: of the facts that a session later demanded from a result, the share that stands in its first chunk. A fact
is demanded from the newest message that held it when an answer used it. Keywords come from the first and the latest
user turn before the result, and from the recent assistant turns up to and including the call: nothing later. *New*
counts only facts that nothing before the result held. Rivals: the head of the text (FIFO), head and tail, and the value
strategies of the format pipeline this one grew from, over entries of a JSON list or lines, taken by value as its greedy
solver does.

*Reassembly*: every result of over two thousand tokens at a random budget (seeded): the first chunk and all cursors give
the text back, character for character, and nothing is ever over its budget.

*Shrinkfit*: mcp-compressor, from its environment under DIR or DIR/env, against ours at the size it came to.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.recorded import ADAPTERS, sessions
from bench.recorded import family as recording
from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.page_pieces import LEAST, piece
from pagefold.encode.trim import keywords_of, trim
from pagefold.encode.trim.json_items import items_of
from pagefold.encode.trim.strategy import ItemFacts, item_values
from pagefold.pages.facts import facts_of, opened
from pagefold.pages.page import id_of
from pagefold.tokens import counter
from pagefold.wire.message import BlockKind, Role
from pagefold.wire.transcripts import Session

RECENT = 12
LARGE = 2_000
# What the adapter prints of a result is only how large it is; here it prints the result.
SHRINKFIT = """
import json, sys
sys.path.insert(0, sys.argv.pop(1))
import common
common.run_results = lambda items, shrink, **_: [print(json.dumps(shrink(i.name, i.text).text)) for i in items]
import peer_mcp_compressor
peer_mcp_compressor.main()
"""
STRATEGIES = ("default", "element_count", "cascading", "head_tail", "priority")

count = counter("o200k").count


@dataclass(slots=True)
class Result:
    """One tool result, what was known before it came, and the facts later answers took from it."""

    text: str
    tool: str = ""
    arguments: str = ""
    context: list[str] = field(default_factory=list)
    known: frozenset[str] = frozenset()
    demanded: set[str] = field(default_factory=set)


def results(session: Session) -> list[Result]:
    found: list[Result] = []
    holder: dict[str, Result | None] = {}
    users: list[str] = []
    turns: list[str] = []
    calls: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for message in session.messages:
        facts = facts_of(opened(message.text))
        if message.role is Role.ASSISTANT:
            for fact in facts & holder.keys():
                result = holder[fact]
                if result is not None:
                    result.demanded.add(fact)
            turns.append(message.text)
            for block in message.blocks:
                if block.kind is BlockKind.CALL:
                    calls[block.call_id] = (block.name, block.text.removeprefix(block.name).strip())
        elif message.role is Role.TOOL:
            task = [*users[:1], *users[-1:]]
            result = Result(message.text, context=[*task, *turns[-RECENT:]], known=frozenset(facts & seen))
            result.tool, result.arguments = calls.get(message.blocks[0].call_id if message.blocks else "", ("", ""))
            found.append(result)
            holder |= dict.fromkeys(facts, result)
        else:
            users.append(message.text)
            holder |= dict.fromkeys(facts, None)
        seen |= facts
    return found


# --- what is shown


def head(text: str, budget: int) -> str:
    low, high = 0, min(len(text), budget * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]


def head_tail(text: str, budget: int) -> str:
    tail = head(text[::-1], budget // 2)[::-1]
    return f"{head(text, budget - budget // 2)}\n{tail}"


def original(strategy: str) -> Callable[[Result, int], str]:
    """Items by value, ties to the lighter, as many as fit, shown in their order."""

    def shown(result: Result, budget: int) -> str:
        text = view_of(result.text).text
        pieces_, known = _items(text)
        values = item_values(strategy, known)
        costs = [count(piece) + 1 for piece in pieces_]
        room, kept = budget, []
        for index in sorted(range(len(pieces_)), key=lambda at: (-values[at], costs[at], at)):
            if costs[index] <= room:
                room -= costs[index]
                kept.append(index)
        return "\n".join(pieces_[index] for index in sorted(kept))

    return shown


def _items(text: str) -> tuple[list[str], list[ItemFacts]]:
    try:
        found = items_of(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        lines = text.split("\n")
        return lines, [ItemFacts()] * len(lines)
    return [json.dumps(value, ensure_ascii=False) for value in found.values], found.facts()


def ours(result: Result, budget: int) -> str:
    words = keywords_of([*result.context, result.tool, result.arguments])
    trimmed = trim(result.text, budget, tool=result.tool, arguments=result.arguments, keywords=words)
    assert count(trimmed.text) <= budget
    return trimmed.text


def without_keywords(result: Result, budget: int) -> str:
    return trim(result.text, budget, tool=result.tool, arguments=result.arguments).text


WAYS: dict[str, Callable[[Result, int], str]] = {
    "FIFO": lambda result, budget: head(result.text, budget),
    "head and tail": lambda result, budget: head_tail(result.text, budget),
    **{f"original, {name}": original(name) for name in STRATEGIES},
    "pagefold, no keywords": without_keywords,
    "pagefold": ours,
}


# --- figures


def usefulness(families: Sequence[str], budgets: Sequence[int]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for family in families:
        found = [result for session in sessions(recording(family)) for result in results(session) if result.demanded]
        for budget in budgets:
            large = [result for result in found if len(result.text) > budget and count(result.text) > budget]
            facts = sum(len(result.demanded) for result in large)
            print(f"\n{family}, {budget:,} tokens: {len(large):,} results, {facts:,} demanded facts", flush=True)
            for name, way in WAYS.items():
                tally: Counter[str] = Counter()
                for result in large:
                    shown = facts_of(opened(way(result, budget)))
                    new = result.demanded - result.known
                    tally += Counter(all=len(result.demanded & shown), new=len(new & shown), news=len(new))
                share, new_share = tally["all"] / max(1, facts), tally["new"] / max(1, tally["news"])
                figures[f"{family} {budget} {name}"] = (round(share, 4), round(new_share, 4))
                print(f"  {name:28} {share:7.1%}   new {new_share:7.1%}", flush=True)
    return figures


def reassembly(families: Sequence[str]) -> dict[str, Any]:
    dice = random.Random(20261116)
    figures: dict[str, Any] = {}
    for family in families:
        tally: Counter[str] = Counter()
        for session in sessions(recording(family)):
            for result in results(session):
                if len(result.text) <= LARGE or count(result.text) <= LARGE:
                    continue
                tally.update(_whole(result, int(LEAST * 80 ** dice.random())))
        figures[family] = dict(tally)
        print(f"{family:28} {dict(tally)}", flush=True)
    return figures


def _whole(result: Result, budget: int) -> Counter[str]:
    text = result.text
    trimmed = trim(text, budget, tool=result.tool, keywords=keywords_of(result.context))
    parts, over = list(trimmed.shown), count(trimmed.text) > budget
    made = 0
    if trimmed.cursor is not None:
        page = id_of(text.encode("utf-8", "surrogatepass"))
        cursor: Cursor | None = read_cursor(trimmed.cursor, page, len(text))
        while cursor is not None:
            following = piece(text, cursor, count)
            over |= count(following.text) > budget
            parts += following.parts
            made += 1
            cursor = following.cursor
    same = "".join(text[start:end] for start, end in sorted(parts)) == text
    return Counter(results=1, pieces=made, lost=not same, over_budget=over)


def shrinkfit(peers: Path) -> dict[str, Any]:
    """Alarm lines of the log that are left, theirs and ours, at the size theirs came to."""
    log = next((path for folder in (peers, peers / "payloads") if (path := folder / "log500.txt").exists()), None)
    python = next((p for f in (peers, peers / "env") if (p := f / "mcpc" / "bin" / "python").exists()), None)
    if log is None or python is None:
        print("mcp-compressor or the log payload is not there (--peers)")
        return {}
    command = [str(python), "-c", SHRINKFIT, str(ADAPTERS), "--shrinkfit", "8000", str(log)]
    said = subprocess.run(command, capture_output=True, check=True, timeout=300, encoding="utf-8").stdout
    theirs: str = json.loads(said)
    tokens = count(theirs)
    text = log.read_text(encoding="utf-8")
    alarms = [line for line in text.split("\n") if re.search(r" (?:ERROR|FATAL) ", line)]
    left = {"tokens": tokens, "alarms kept": sum(line in theirs for line in alarms)}
    figures: dict[str, Any] = {"alarms": len(alarms), "mcp-compressor --shrinkfit=8000": left}
    for budget in (tokens, 1_000, 400):
        body = trim(text, budget).text
        figures[f"pagefold {budget}"] = {"tokens": count(body), "alarms kept": sum(line in body for line in alarms)}
    for name, value in figures.items():
        print(f"{name:36} {value}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="mcp-servers,coding-claude-code")
    parser.add_argument("--budgets", default="1000,2000,4000,8000")
    parser.add_argument("--only", action="append", choices=["usefulness", "reassembly", "shrinkfit"])
    parser.add_argument("--peers", type=Path, default=Path("peers"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    only, families = options.only or ["usefulness", "reassembly", "shrinkfit"], options.families.split(",")
    figures: dict[str, Any] = {}
    if "usefulness" in only:
        figures["usefulness"] = usefulness(families, [int(budget) for budget in options.budgets.split(",")])
    if "reassembly" in only:
        figures["reassembly"] = reassembly(families)
    if "shrinkfit" in only:
        figures["shrinkfit"] = shrinkfit(options.peers)
    if options.json:
        json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
