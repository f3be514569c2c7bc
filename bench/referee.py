"""Sends recorded sessions through pagefold to the provider on loopback: what is refused or lost, and the bill.

    python -m bench.referee --family coding-claude-code-july --policy economic,lossless --window 64000
    python -m bench.referee --family coding-claude-code-july --policy economic --exits 200 --seed 1
    python -m bench.referee --log runs.jsonl --part 1/2     and in another shell --part 2/2; again to go on or to print

The provider adds thinking to every answer, signed by its prefix, and enforces the check (`--thinking` says otherwise).
*refused* is what the client sees; *by rule* counts requests that pagefold sent once more as well (*sent again*).
*dropped* is thinking that the provider took out. *lost* is the share of the thinking kept by the client that the model
did not read: a fold left it behind, or somebody took it out. *without cause* counts sessions that lost some although
nothing was folded and nobody left. *bill* is relative to sending the history as it is, *of lossless* to lossless;
*above* counts sessions that cost more than the cheaper of the two, by more than a thousandth, *worst* is the dearest of
them. For compaction *with summaries* adds what the model charges for writing them. It compacts at the harness's share
of the window.

`--exits` leaves pagefold at so many random requests of a family: off, observing, killed, its store deleted, upgraded,
a second instance; some for a few requests, others for good. `--keep-alive` sends those of pagefold's own at the
recorded times, also after the end. `--log` keeps what came of each session, and plays none twice.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.recorded import families, name_of, sessions, table
from bench.refereed import exits_by_session, play
from pagefold.provider.thinking import Behaviour
from pagefold.wire.transcripts import Session

LEAST = 1.001  # above by more than this is above
AS_IT_IS, LOSSLESS = "identity", "lossless"
CONDITIONS = ("model", "api", "life", "thinking", "betas", "keep_alive")

Played = dict[str, Any]
"""What came of one session, with what it was played under."""


class Log:
    """What has been played, in a file that several processes add to, or nowhere."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._played: dict[str, Played] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_text().splitlines():
                played = json.loads(line)
                self._played[self._key(played["under"], played["session"])] = played

    def get(self, under: dict[str, Any], session: str) -> Played | None:
        return self._played.get(self._key(under, session))

    def add(self, played: Played) -> None:
        self._played[self._key(played["under"], played["session"])] = played
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(played) + "\n")

    @staticmethod
    def _key(under: dict[str, Any], session: str) -> str:
        return json.dumps([sorted(under.items()), session])


def under(family: str, name: str, window: int, options: argparse.Namespace) -> dict[str, Any]:
    same = {key: getattr(options, key) for key in CONDITIONS}
    if name == AS_IT_IS:
        return {**same, "family": family, "policy": name, "keep_alive": False, "exits": 0}
    exits = {"exits": options.exits, **({"seed": options.seed} if options.exits else {})}
    return {**same, "family": family, "policy": name, "window": window, **exits}


def runs_of(family: str, options: argparse.Namespace) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The policies and windows to play, as it is first; and under what each is played."""
    names = [name for name in options.policy.split(",") if name != AS_IT_IS]
    for name, window in [
        (AS_IT_IS, 0),
        *((name, int(window)) for window in options.window.split(",") for name in names),
    ]:
        yield name, window, under(family, name, window, options)


def play_family(family: str, recorded: list[Session], options: argparse.Namespace, log: Log) -> None:
    number, parts = (int(text) for text in options.part.split("/"))
    for at, (session, exits) in enumerate(exits_by_session(recorded, options.exits, options.seed)):
        if at % parts != number - 1:
            continue
        for name, window, conditions in runs_of(family, options):
            if log.get(conditions, session.id) is None:
                outcome = play(session, name, window, options, {} if name == AS_IT_IS else exits)
                log.add({"under": conditions, **outcome.to_json()})
                for refusal in outcome.refusals[:3]:
                    print(f"  {name} {window}: {json.dumps(refusal)}", file=sys.stderr)


def row(name: str, window: int, played: list[Played], bases: list[list[float]]) -> dict[str, Any]:
    """The figures of one run; `bases` is what each session costs as it is, and by lossless where that was played."""
    rules: Counter[str] = Counter()
    for one in played:
        rules.update(one["by_rule"])
    usd = [one["usd"] for one in played]
    least = [min(of) for of in zip(*bases, strict=True)]
    ratios = [mine / base for mine, base in zip(usd, least, strict=True) if base]
    kept, read = sum(one["kept"] for one in played), sum(one["read"] for one in played)
    summaries = sum(one["summaries"] for one in played)
    return {
        "policy": name,
        "window": window,
        "sessions": len(played),
        "requests": sum(one["requests"] for one in played),
        "refused": sum(len(one["refusals"]) for one in played),
        "sent again": sum(one["sent_again"] for one in played),
        "by rule": ", ".join(f"{rule} {count}" for rule, count in rules.most_common()) or "-",
        "folds": sum(one["folds"] for one in played),
        "exits": sum(sum(one["exits"].values()) for one in played),
        "dropped": sum(one["dropped"] for one in played),
        "lost": 1 - read / kept if kept else 0.0,
        "without cause": sum(one["without_cause"] for one in played),
        "keep-alives": sum(one["keep_alives"] for one in played),
        "USD": sum(usd),
        "bill": sum(usd) / sum(bases[0]),
        "of lossless": sum(usd) / sum(bases[1]) if len(bases) > 1 else "",
        "with summaries": (sum(usd) + summaries) / sum(bases[0]) if summaries else "",
        "above": sum(ratio > LEAST for ratio in ratios),
        "worst": max(ratios, default=0.0),
        "seconds": round(sum(one["seconds"] for one in played)),
    }


def rows_of(family: str, recorded: list[Session], options: argparse.Namespace, log: Log) -> Iterator[dict[str, Any]]:
    """The figures of sessions that every run has played: another process may be at work on the rest."""
    runs = list(runs_of(family, options))
    complete = [one.id for one in recorded if all(log.get(conditions, one.id) for _, _, conditions in runs)]

    def of(conditions: dict[str, Any]) -> list[Played]:
        return [played for session in complete if (played := log.get(conditions, session)) is not None]

    bases = {(name, window): [one["usd"] for one in of(conditions)] for name, window, conditions in runs}
    for name, window, conditions in runs:
        against = [bases[AS_IT_IS, 0], *([bases[LOSSLESS, window]] if (LOSSLESS, window) in bases else [])]
        if complete and (name != AS_IT_IS or AS_IT_IS in options.policy):
            yield {"family": family, "model": options.model, **row(name, window, of(conditions), against)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="coding-claude-code-july", help="names of recordings, with commas between")
    parser.add_argument("--policy", default="identity,lossless,economic")
    parser.add_argument("--window", default="64000", help="one or more, with commas between")
    parser.add_argument(
        "--model",
        default="claude-opus-5-5",
        help="one of OpenAI's is asked through Responses, of Gemini's by generateContent",
    )
    parser.add_argument("--api", default="", choices=["", "chat"], help="Chat Completions in place of Responses")
    parser.add_argument("--life", default="1h", choices=["5m", "1h"], help="of the client's cache marks")
    parser.add_argument("--thinking", default="error", choices=[str(behaviour) for behaviour in Behaviour])
    parser.add_argument("--betas", default="", help="of the client")
    parser.add_argument("--exits", type=int, default=0, metavar="N", help="a family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-alive", action="store_true")
    parser.add_argument("--sessions", type=int, default=0, metavar="N", help="only the first of each family")
    parser.add_argument(
        "--log", default="", metavar="FILE", help="what was played is added to it, and not played again"
    )
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every Nth session, from the Kth on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    log = Log(options.log)
    for path in families(options.family):
        recorded = list(sessions(path))[: options.sessions or None]
        play_family(name_of(path), recorded, options, log)
        rows += rows_of(name_of(path), recorded, options, log)
    print(json.dumps(rows) if options.json else table(rows))


if __name__ == "__main__":
    main()
