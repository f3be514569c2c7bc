"""Prints what a rival would have sent, request by request: one adapter of ../shared/peers in its own environment.

    PEER_ENVIRONMENT/bin/python bench/rivals.py peer_terse.py [ITS OPTIONS] SESSIONS.jsonl

The adapters print their own counts. Here the two functions that do so are replaced before the adapter is loaded: it
shortens as it always does, and what it would send is printed instead, one line a session, as the scorer reads it:

    {"session", "requests": [{"turn", "keep", "append": [chat messages]}], "seconds", "grade"}

`seconds` are spent in the rival alone, `grade` is its adapter's worst judgement of any result (3 exact, 2 by value,
1 nobody can tell, 0 lost). Needs nothing but the standard library and the adapters.
"""

import importlib
import json
import runpy
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).parent.parent.parent / "shared" / "peers"

Message = dict[str, Any]


def differences(requests: Iterable[tuple[int, list[Message]]]) -> list[Message]:
    """Every request as a difference from the one before it."""
    before: list[Message] = []
    rows = []
    for turn, sent in requests:
        keep = 0
        while keep < min(len(before), len(sent)) and before[keep] == sent[keep]:
            keep += 1
        rows.append({"turn": turn, "keep": keep, "append": sent[keep:]})
        before = sent
    return rows


def told(name: str, requests: list[Message], spent: list[float], grade: int) -> None:
    print(json.dumps({"session": name, "requests": requests, "seconds": sum(spent), "grade": int(grade)}), flush=True)


def asked(messages: list[Message]) -> Iterator[int]:
    return (at for at, message in enumerate(messages) if message["role"] == "assistant")


def timed(spent: list[float], action: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    answer = action()
    spent.append(time.perf_counter() - started)
    return answer


def one_by_one(common: Any, items: Iterable[Any], shrink: Any) -> None:
    """A rival that shortens each result once, when it arrives."""
    for item in items:
        spent, grades, sent = list[float](), list[int](), list[Message]()
        for at, message in enumerate(item.messages):
            if message["role"] == "tool":
                text = common.text_of(message)
                short = timed(spent, partial(shrink, f"{item.name}-{at}", text))
                grades.append(int(short.grade))
                message = {**message, "content": short.text}  # noqa: PLW2901
            sent.append(message)
        rows = differences((turn, sent[:turn]) for turn in asked(item.messages))
        told(item.name, rows, spent, min(grades, default=3))


def whole(common: Any, items: Iterable[Any], rewrite: Any, judge: Any) -> None:
    """A rival that rewrites every request. Judged is the last one of a session: there it has taken the most away."""
    for item in items:
        spent, last = list[float](), dict[str, list[Message]]()

        def requests(
            messages: list[Message] = item.messages, spent: list[float] = spent, last: dict[str, list[Message]] = last
        ) -> Iterator[tuple[int, list[Message]]]:
            for turn in asked(messages):
                last["original"] = messages[:turn]
                last["sent"] = timed(spent, partial(rewrite, [dict(message) for message in messages[:turn]]))
                yield turn, last["sent"]

        rows = differences(requests())
        grade = common._judge_request(last["sent"], last["original"], judge) if last else 3  # noqa: SLF001 - theirs
        told(item.name, rows, spent, grade)


def main(adapter: str, *arguments: str) -> None:
    sys.path.insert(0, str(ADAPTERS))
    common = importlib.import_module("common")
    vars(common).update(
        run_results=lambda items, shrink, **_: one_by_one(common, items, shrink),
        run_requests=lambda items, rewrite, judge=common.compare: whole(common, items, rewrite, judge),
    )
    sys.argv = [adapter, *arguments]
    runpy.run_path(str(ADAPTERS / adapter), run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1:2] in ([], ["--help"]):
        print(__doc__)
    else:
        main(*sys.argv[1:])
