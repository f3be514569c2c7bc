"""Measures prefetching on recorded sessions, and how safe and fast its parts are. No tool is run; no network is used.

    python -m bench.prefetch [--only fit|shipped|repeats|latency|planner|safety] [--cases N] [--json]

Sessions are split by task: what was fitted on one half is tested on the other, and the other way round. A prefetch is
used if a later turn makes the identical call before anything was written that it reads. Wasted bytes are reckoned with
the models' typical sizes, as what was never asked for was never recorded.
"""

import argparse
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from bench.recorded import TRACES, sessions
from bench.recorded import family as recording
from pagefold.settings.tools import FollowUpLink, PrefetchSettings
from pagefold.tools.defaults import learned_tool_value_models
from pagefold.tools.follow_up_fit import fit_follow_ups, with_follow_ups
from pagefold.tools.model import CostModel, SideEffectClass, ToolValueModel, ValueClass
from pagefold.tools.planner import AnsweredCall, Planner
from pagefold.tools.prefetch import PrefetchedAnswers, WriteEpochs
from pagefold.tools.prefetch_replay import PrefetchFigures, replay_prefetch, turns_of
from pagefold.tools.projection import extract_host
from pagefold.tools.registry import ToolRegistry

JUDGED = "mcp-servers"
FAMILIES = (JUDGED, "coding-claude-code", "service-airline", "research-web")
THINK_MS = 5_000
BARE = {name: replace(model, follow_up=()) for name, model in learned_tool_value_models().items()}
Turns = list[list[AnsweredCall]]
Row = dict[str, Any]


def turns(family: str) -> list[Turns]:
    return [turns_of(one) for one in sessions(recording(family))]


def halves(sessions: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yields the sessions in two halves, then the halves in the other order. Sessions of one name stay together."""
    order = {name: position for position, name in enumerate(sorted(set(names)))}
    even = [session for session, name in zip(sessions, names, strict=True) if order[name] % 2 == 0]
    odd = [session for session, name in zip(sessions, names, strict=True) if order[name] % 2]
    yield even, odd
    yield odd, even


def hosts_of(registry: ToolRegistry, sessions: Sequence[Turns]) -> set[str]:
    """Every host that the sessions' tools belong to, and every host in a call: what a user would have to allow."""
    found = set()
    for done in (done for session in sessions for turn in session for done in turn):
        model = registry.find(done.tool)
        if model and model.model.rate_limit_host:
            found.add(model.model.rate_limit_host)
        found |= {host for value in (done.arguments or {}).values() if (host := extract_host(str(value)))}
    return found


def row_of(name: str, figures: PrefetchFigures) -> Row:
    dispatched = figures.dispatched
    return {
        "what": name,
        "calls": figures.calls,
        "dispatched": dispatched,
        "per_1000_calls": round(1000 * dispatched / max(1, figures.calls), 1),
        "used": figures.used,
        "used_percent": round(100 * figures.used / max(1, dispatched), 1),
        "wasted": figures.wasted,
        "wasted_kb": round(figures.wasted_bytes / 1024),
        "used_kb": round(figures.used_bytes / 1024),
        "turns_with_a_plan": figures.planned,
        "top_1_percent": round(100 * figures.top_1 / max(1, figures.planned), 1),
        "top_3_percent": round(100 * figures.top_3 / max(1, figures.planned), 1),
    }


def added(parts: Sequence[PrefetchFigures]) -> PrefetchFigures:
    total = PrefetchFigures()
    for part in parts:
        for name in PrefetchFigures.__slots__:
            setattr(total, name, getattr(total, name) + getattr(part, name))
    return total


def asking(hosts: Collection[str], *, min_probability: float | None = None) -> Callable[[ToolRegistry], Planner]:
    """Returns what makes a planner that may ask these hosts, and that takes links from this probability on."""
    if min_probability is None:
        return partial(Planner, limits=PrefetchSettings(hosts=tuple(hosts)))
    limits = PrefetchSettings(hosts=tuple(hosts), min_probability=min_probability)
    return partial(Planner, limits=limits, min_prior=min_probability)


def without_links() -> ToolRegistry:
    """The learned models as if no follow-up had been learned: those were fitted on all of these sessions."""
    return ToolRegistry(BARE)


def fitted(family: str, by: str, *, network: bool) -> list[PrefetchFigures]:
    """Both ways round. `by` task keeps one task's sessions on one side; `by` session splits them as they come."""
    recorded = list(sessions(recording(family)))
    names = [one.id.rpartition("_")[2] if by == "task" else f"{at:04}" for at, one in enumerate(recorded)]
    parts = []
    for fit_on, test_on in halves([turns_of(one) for one in recorded], names):
        registry = without_links()
        ready = ToolRegistry({**BARE, **with_follow_ups(registry, fit_follow_ups(fit_on, registry))})
        hosts = hosts_of(ready, test_on) if network else set()
        parts.append(replay_prefetch(test_on, ready, planner=asking(hosts), think_ms=THINK_MS))
    return parts


def fit() -> list[Row]:
    """Fitted on half of the sessions, tested on the other."""
    rows = []
    for by in ("task", "session"):
        for network in (False, True):
            parts = fitted(JUDGED, by, network=network)
            where = "hosts allowed" if network else "this machine only"
            rows.append(row_of(f"{JUDGED}, split by {by}, {where}", added(parts)))
            rows += [row_of(f"  {half} half", part) for half, part in zip(("one", "other"), parts, strict=True)]
    return rows


def shipped() -> list[Row]:
    """The seventeen alone, the seventeen at the seeds' minimum of 0.3, and with what was learned from all sessions."""
    rows = []
    for family in FAMILIES:
        sessions = turns(family)
        bare = ToolRegistry(learned=False)
        hosts = hosts_of(bare, sessions)
        for name, registry, planner in (
            ("shipped", bare, asking(hosts)),
            ("shipped, from 0.3 on", bare, asking(hosts, min_probability=0.3)),
            ("shipped and learned (in sample)", ToolRegistry(), asking(hosts)),
        ):
            done = replay_prefetch(sessions, registry, planner=planner, think_ms=THINK_MS)
            rows.append(row_of(f"{family}, {name}", done))
    return rows


def repeats() -> list[Row]:
    """Identical calls of pure tools within one epoch: is the recorded answer the same? Others are never memoised."""
    rows = []
    for family in (*FAMILIES, "coding-bash", "coding-short", "multi-agent"):
        done = replay_prefetch(turns(family), ToolRegistry(), think_ms=THINK_MS)
        false = done.repeats - done.repeats_alike
        rows.append({"what": family, "repeats": done.repeats, "alike": done.repeats_alike, "false_serves": false})
    return rows


def latency() -> list[Row]:
    """Time for tools and thinking, with and without prefetch, and the best that guessing with this hit rate can do.

    p is the share of calls that were served, a the rate at which early calls end, b that at which the model asks.
    """
    rows = []
    for network in (False, True):
        done = added(fitted(JUDGED, "task", network=network))
        whole = done.tool_ms + done.turns * THINK_MS
        p = done.used / done.calls
        a, b = done.calls / done.tool_ms, 1 / THINK_MS
        ratio = 1 - done.saved_ms / whole
        bound = 1 - p / (1 + p) * a / (a + b)
        rows.append(
            {
                "what": f"{JUDGED}, {'hosts allowed' if network else 'this machine only'}, thinking {THINK_MS} ms",
                "served_percent": round(100 * p, 2),
                "tool_time_saved_percent": round(100 * done.saved_ms / done.tool_ms, 2),
                "time_ratio": round(ratio, 5),
                "bound": round(bound, 5),
            }
        )
    return rows


def planner() -> list[Row]:
    """Microseconds for one turn, over every recorded turn, the reading of answers included."""
    rows = []
    for family in (JUDGED, "coding-claude-code"):
        registry, sessions = ToolRegistry(), turns(family)
        hosts = hosts_of(registry, sessions)
        times = []
        for session in sessions:
            plans = asking(hosts, min_probability=0.3)(registry)
            for turn in session:
                started = time.perf_counter_ns()
                plans.plan(turn)
                times.append((time.perf_counter_ns() - started) / 1000)
        times.sort()
        at = {"median_us": 0.5, "p90_us": 0.9, "p99_us": 0.99}
        rows.append({"what": family, **{name: round(times[int(share * len(times))], 1) for name, share in at.items()}})
    return rows


# ---- safety ----------------------------------------------------------------------------------------------------------

SIX = ("Bash", "Agent", "Edit", "Write", "MultiEdit", "NotebookEdit")
NAMES = (
    *SIX,
    *("Read", "Grep", "Glob", "WebFetch", "WebSearch", "ToolSearch", "TodoWrite", "bash", "WRITE", " Edit "),
    *(
        "mcp__fs__read_file",
        "mcp__fs__write_file",
        "mcp__fs__Write",
        "mcp__fs__list",
        "mcp__db__query",
        "mcp__db__drop",
    ),
    *("filesystem-read_file", "filesystem-write_file", "mcp__filesystem__list_directory", "unheard_of", "x.Bash", ""),
)
PATTERNS = (*NAMES, "*", "**", "?*", "mcp__*", "mcp__fs__*", "mcp__db__*", "[a-z]*", "*read*", "*_file")
HOSTS = ("good.example", "bad.example", "api.github.com")
VALUES: tuple[Any, ...] = (
    *("/a/b.txt", "src/x.py", "C:\\x\\y.rs:3:z", "//bad.example/share", "\\\\bad.example\\share", "/dev/zero"),
    *(
        "https://good.example/a",
        "HTTPS://BAD.example:80/x",
        "https://u@bad.example",
        "https://good.example@bad.example/",
    ),
    *("file:///etc/passwd", "No files found", 7, None, True, 1.5, [], ["https://bad.example/"], {"path": "/a"}, ""),
)
FIELDS = ("path", "url", "id", "file_path", "match_path")


def _model(dice: Random) -> ToolValueModel:
    links = tuple(
        FollowUpLink(
            dice.choice(NAMES),
            dice.choice((0.0, 0.4, 1.0)),
            dice.choice((None, "$call", "$items", "$urls", *FIELDS)),
            dice.choice((None, *FIELDS)),
            keep=dice.choice(((), ("path",), ("url",))),
            constants=dice.choice(((), (("url", "https://bad.example/"),), (("n", 1),))),
        )
        for _ in range(dice.randrange(3))
    )
    return ToolValueModel(
        value_class=dice.choice(list(ValueClass)),
        cost_model=CostModel(dice.choice((0.0, 1.0, 99.0)), freshness_ttl_s=dice.choice((None, 0, 60))),
        follow_up=links,
        invalidates=dice.choice(((), ("Read",), ("*",))),
        side_effect_class=dice.choice(list(SideEffectClass)),
        rate_limit_host=dice.choice((None, *HOSTS)),
        speculate=dice.choice((None, True, False)),
        open_world=dice.choice((None, True, False)),
        watch=dice.choice(((), ("path",))),
    )


def _annotations(dice: Random) -> dict[str, Any]:
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    return {hint: dice.choice((True, False, None, "true", 1)) for hint in hints if dice.random() < 0.3}


def _result(dice: Random) -> Any:
    value: Any = [dice.choice(VALUES) for _ in range(dice.randrange(4))]
    if dice.random() < 0.6:
        value = [{dice.choice(FIELDS): dice.choice(VALUES)} for _ in range(dice.randrange(4))]
    if dice.random() < 0.3:
        value = {"results": value, dice.choice(FIELDS): dice.choice(VALUES)}
    if dice.random() < 0.5:
        value = json.dumps(value)
    if dice.random() < 0.3:
        value = {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}
    return "\n".join(map(str, VALUES[:9])) if dice.random() < 0.1 else value


def unsafe(dice: Random) -> str | None:
    """One conversation with anything configured, annotated and answered: what was planned that must not be, if any.

    What is safe is told here in another way than in the code under test: by a list of what has to hold.
    """
    user = {dice.choice(PATTERNS): _model(dice) for _ in range(dice.randrange(5))}
    registry = ToolRegistry(user)
    annotations = {name: _annotations(dice) for name in NAMES if dice.random() < 0.4}
    allowed = {host for host in HOSTS[:1] if dice.random() < 0.5}
    limits = PrefetchSettings(hosts=tuple(allowed), budget_tokens=10**9, parallel=9, min_probability=0.0)
    plans = Planner(registry, limits, annotations, min_prior=0.0, max_dollars=1e9)
    for _ in range(dice.randrange(1, 4)):
        turn = [
            AnsweredCall(
                dice.choice(NAMES), {dice.choice(FIELDS): dice.choice(VALUES)}, _result(dice), dice.random() < 0.1
            )
            for _ in range(dice.randrange(1, 3))
        ]
        for planned in plans.plan(turn):
            if wrong := _wrong(planned.tool, planned.arguments, registry, annotations.get(planned.tool, {}), allowed):
                return f"{planned.tool} {planned.arguments}: {wrong}"
    return None


def _wrong(tool: str, arguments: Any, registry: ToolRegistry, told: Row, allowed: set[str]) -> str | None:
    found = registry.find(tool)
    text = json.dumps(arguments).lower()
    outside = found is None or found.model.open_world is not False or told.get("openWorldHint", False) is not False
    must_not = {
        "one of the six": any(tool.strip().lower().endswith(name.lower()) for name in SIX),
        "unknown": found is None,
        "writes or may write": found is not None
        and found.model.side_effect_class not in (SideEffectClass.PURE, SideEffectClass.READ_ONLY),
        "known only by a pattern that names nothing": found is not None
        and not any(letter.isalnum() for letter in found.pattern),
        "a glob over a name that writes": found is not None
        and "*" in found.pattern
        and any(verb in tool for verb in ("write", "drop")),
        "switched off": found is not None and found.model.speculate is False,
        "its server objects": told.get("readOnlyHint", True) is not True
        or told.get("destructiveHint", False) is not False,
        "a host that is not allowed": "bad.example" in text or ("good.example" in text and not allowed),
        "a device or a share": any(mark in text for mark in ("/dev/", "file:")),
        "the network without leave": outside and not allowed,
    }
    return next((name for name, holds in must_not.items() if holds), None)


def stale(dice: Random) -> str | None:
    """One order of early and real reads and writes on two services: an answer served that is not the present one."""
    effects = {
        "mcp__a__get": SideEffectClass.READ_ONLY,
        "mcp__a__put": SideEffectClass.MUTATES_EXTERNAL,
        "mcp__b__get": SideEffectClass.PURE,
        "mcp__b__put": SideEffectClass.MUTATES_LOCAL,
        "Bash": SideEffectClass.INDETERMINATE,
    }
    registry = ToolRegistry(
        {name: ToolValueModel(side_effect_class=effect) for name, effect in effects.items()}, learned=False
    )
    epochs = WriteEpochs(registry)
    answers: PrefetchedAnswers[int] = PrefetchedAnswers(epochs)
    state = {"mcp__a__get": 0, "mcp__b__get": 0}
    writes = {
        "mcp__a__put": ["mcp__a__get"],
        "mcp__b__put": ["mcp__b__get"],
        "Bash": list(state),
        "never heard": list(state),
    }
    running: list[tuple[Any, int]] = []
    for _ in range(dice.randrange(4, 16)):
        what, key = dice.choice("erwws"), {"k": dice.randrange(2)}
        reader = dice.choice(list(state))
        if what == "e" and (ticket := answers.begin(reader, key, 0.0)):
            running.append((ticket, state[reader]))
        elif what == "s" and running:
            ticket, seen = running.pop(dice.randrange(len(running)))
            answers.settle(ticket, seen, failed=dice.random() < 0.1)
        elif what == "w":
            writer = dice.choice(list(writes))
            epochs.called(writer)
            if dice.random() < 0.5 and (ticket := answers.begin(reader, key, 0.0)):
                running.append((ticket, state[reader]))
            for touched in writes[writer]:
                state[touched] += 1
            epochs.called(writer)
        elif what == "r" and (served := answers.take(reader, key, 0.0)) is not None and served != state[reader]:
            return f"{reader} was answered with {served}, it is {state[reader]}"
    return None


def safety(cases: int) -> list[Row]:
    rows = []
    for name, case in (("unsafe dispatches", unsafe), ("false serves", stale)):
        started = time.process_time()
        found = [wrong for seed in range(cases) if (wrong := case(Random(seed)))]
        seconds = time.process_time() - started
        rows.append({"what": name, "cases": cases, "found": len(found), "seconds": round(seconds), "first": found[:1]})
    return rows


def main() -> None:
    parts = {"fit": fit, "shipped": shipped, "repeats": repeats, "latency": latency, "planner": planner}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[*parts, "safety"])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name in given.only or [*parts, "safety"]:
        if name != "safety" and not TRACES.exists():
            print(f"{name}: the recorded sessions are not on this machine")
            continue
        rows = safety(given.cases) if name == "safety" else parts[name]()
        if given.json:
            print(json.dumps({name: rows}))
            continue
        print(f"\n{name}")
        for row in rows:
            print("  " + "  ".join(f"{key} {value}" if key != "what" else f"{value}:" for key, value in row.items()))


if __name__ == "__main__":
    main()
