"""A fleet of `pagefold serve` on one Postgres and one bucket against a single instance, with recorded sessions.

Every session goes turn by turn to an instance at random, and some turns are sent again to another one. Phases:
`equal` compares what reached the provider with what a single instance sent; there stores have seconds to answer, since
a store that a busy machine keeps waiting makes other requests. `rolling` begins with instances of another checkout
(`--old FOLDER`, with its `.venv`) and puts new ones in their place under load: one by one, while any gets any turn; or
all at once, and these hand on what the others began for as long as those serve. A prefix that moved is a message that
had been sent and is another one in a later request. `storage` has the bucket fail, refuse and be slow meanwhile.
`latency` sends each turn to an instance on a file and to two on Postgres, one of which waits for the disk with every
page, in alternation. `cpu` gives the same sessions to one instance, and to two of which each has its own sessions or
any turn at random; what a process does once, at its first requests, is not counted.
A history keeps the policy that it began with, so every run has a new store.
Usage: python -m bench.fleet [--phases equal,storage,latency,cpu,rolling] [--old FOLDER] [--sessions 4] [--turns 200]
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from typing import Any

import psycopg

from bench.instances import (
    PATIENT,
    REPLICAS,
    Balancer,
    Counts,
    Fleet,
    Instance,
    Provider,
    asked,
    driving,
    environment,
    fleet,
    only,
    recorded,
)
from bench.proxy import cpu_seconds
from bench.recorded import PROJECT
from pagefold.settings.sections import SinkSettings
from tests.buckets import FaultyBucket, running_bucket
from tests.postgres import running_postgres


def moved(bodies: dict[str, bytes], sessions: int) -> tuple[int, int]:
    """How many requests followed another one, and how many of them do not begin with all messages of it."""
    followed = wrong = 0
    for session in range(sessions):
        before: list[Any] = []
        for number in range(10**6):
            if (body := bodies.get(f"s{session}/{number}")) is None:
                break
            messages = json.loads(body)["messages"]
            followed += bool(before)
            wrong += messages[: len(before)] != before
            before = messages
    return followed, wrong


def alone(bodies: list[list[bytes]], policy: str, checkout: Path = PROJECT) -> dict[str, bytes]:
    """What a single instance on a file sends."""
    provider = Provider()
    with fleet(provider, policy, PATIENT) as single:
        single.checkout = checkout
        single.grow(1)
        with driving(bodies, single.any) as counts:
            pass
    print(f"    single instance, {policy}: {counts.done} turns, {counts.failed} failed")
    return provider.bodies


def equal(bodies: list[list[bytes]], new_store: Callable[[], str], sink: SinkSettings) -> int:
    wrong = 0
    for policy in ("lossless", "economic"):
        expected, provider = alone(bodies, policy), Provider()
        with fleet(provider, policy, environment(new_store(), sink) | PATIENT) as several:
            several.grow(REPLICAS)
            with driving(bodies, several.any) as counts:
                pass
        other = sum(provider.bodies[turn] != body for turn, body in expected.items())
        wrong += other + counts.failed
        print(f"equal, {policy}: {counts.done} turns over {REPLICAS} instances, {counts.failed} failed, ", end="")
        print(f"{len(expected)} bodies compared with a single instance on a file, {other} other")
    return wrong


def until(provider: Provider, turns: int) -> None:
    while len(provider.bodies) < turns:
        time.sleep(0.05)


def at_random(several: Fleet, provider: Provider, turns: int) -> None:
    """Replaces one after the other, and lets any instance have any turn meanwhile."""
    for number in range(REPLICAS):
        until(provider, turns * (number + 1) // (REPLICAS + 1))
        several.replace(number)


def handed_on(several: Fleet, provider: Provider, new: list[Instance], turns: int, ends_after: float) -> None:
    """Gives all turns to new instances from a quarter of them on, and ends the others after this share of them."""
    old = list(several.running)
    until(provider, turns // 4)
    several.running, several.retired = new, old
    until(provider, int(turns * ends_after))
    several.stop_retired()


def rolling(bodies: list[list[bytes]], new_store: Callable[[], str], old: Path) -> int:
    wrong, turns = 0, sum(map(len, bodies))
    for policy in ("lossless", "economic"):
        expected = alone(bodies, policy, old)
        print(f"    that one moved {moved(expected, len(bodies))[1]} prefixes")
        for ends_after in (None, 1.0, 0.75):
            provider = Provider()
            with fleet(provider, policy, environment(new_store(), None) | PATIENT) as several:
                several.checkout = old
                several.grow(REPLICAS)
                several.checkout = PROJECT
                with closing(Balancer(several.running)) as balancer:
                    several.more = {"PAGEFOLD_SERVE_OTHER_VERSION": balancer.url} if ends_after else {}
                    new = [several.start() for _ in range(REPLICAS if ends_after else 0)]
                    with driving(bodies, several.any) as counts:
                        if ends_after is None:
                            at_random(several, provider, turns)
                        else:
                            handed_on(several, provider, new, turns, ends_after)
                        ended = len(provider.bodies)
                came, given = told_by(several.running)
            followed, wrong_ones = moved(provider.bodies, len(bodies))
            other = sum(provider.bodies[turn] != body for turn, body in expected.items())
            wrong += counts.failed
            way = "replaced one by one, any turn anywhere" if ends_after is None else f"others end at {ends_after:.0%}"
            print(f"rolling, {policy}, {way}: {counts.done} turns, {counts.failed} failed, ", end="")
            print(f"{counts.again} tried again; new instances got {came} and handed on {given}; ", end="")
            print(f"the last other one ended after {ended}; {wrong_ones} of {followed} prefixes moved; ", end="")
            print(f"{other} of {len(expected)} bodies are not those of one instance of the earlier version", flush=True)
    return wrong


def told_by(instances: list[Instance]) -> tuple[int, int]:
    """How many requests came to these, and how many of them they handed on."""
    came = given = 0
    for one in instances:
        with urllib.request.urlopen(f"{one.url}/pagefold/status", timeout=60) as answer:
            told = json.load(answer)
        came, given = came + told["requests"], given + told["handed_on"]
    return came, given


def storage(bodies: list[list[bytes]], new_store: Callable[[], str], sink: SinkSettings) -> int:
    """Also with a bucket that is well, and with proxies that change nothing: faults cost what is beyond that."""
    wrong = 0
    for policy, fault in (
        ("identity", ""),
        ("economic", ""),
        *(("economic", one) for one in ("500", "denied", "slow")),
    ):
        relay, provider = FaultyBucket(sink), Provider()
        with closing(relay), fleet(provider, policy, environment(new_store(), relay.settings)) as several:
            several.grow(2)
            with driving(bodies, several.any) as counts:
                time.sleep(2.0)
                relay.fault = fault
                time.sleep(6.0)
                relay.fault = ""
        wrong += counts.failed
        middle, slowest = (1000 * sorted(counts.seconds)[int(at * len(counts.seconds))] for at in (0.5, 0.99))
        print(
            f"storage {fault or 'well'}, {policy}: {counts.done} turns, {counts.failed} failed, p50 {middle:.0f} ms, ",
            end="",
        )
        print(f"p99 {slowest:.0f} ms; {relay.faults} requests of the bucket went wrong; load {os.getloadavg()[0]:.0f}")
    return wrong


def written(url: str, turns: int) -> str:
    """What a turn has written to Postgres, on average."""
    with psycopg.connect(url) as db:
        sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        schema = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        tables = "FROM pg_stat_user_tables WHERE schemaname = current_schema()"
        asked = f"SELECT sum(n_tup_ins), sum(n_tup_upd), ({sizes}{schema}) {tables}"
        row = db.execute(asked.encode()).fetchone()
    assert row is not None
    inserted, updated, size = (float(value or 0) / turns for value in row)
    return f"a turn wrote {inserted:.1f} rows, changed {updated:.1f}, and takes {size:,.0f} bytes with all indexes"


def latency(bodies: list[list[bytes]], new_store: Callable[[], str]) -> int:
    for policy in ("lossless", "economic"):
        provider, times = (
            Provider(),
            {name: list[float]() for name in ("file", "postgres", "postgres, each page waits")},
        )
        url, waits = new_store(), f"{new_store()}%20-csynchronous_commit%3Don"
        with ExitStack() as stack:
            ends = {
                "file": stack.enter_context(fleet(provider, policy, {})),
                "postgres": stack.enter_context(fleet(provider, policy, environment(url, None))),
                "postgres, each page waits": stack.enter_context(fleet(provider, policy, environment(waits, None))),
            }
            for one in ends.values():
                one.grow(1)
            began_with = {name: cpu_seconds(one.any().process.pid) for name, one in ends.items()}
            for at, turns in enumerate(bodies):
                for number, body in enumerate(turns):
                    for name in random.Random(number).sample(sorted(ends), len(ends)):
                        began = time.perf_counter()
                        assert asked(f"s{at}/{number}", body, ends[name].any, Counts())
                        times[name].append(time.perf_counter() - began)
            cpu = {name: cpu_seconds(one.any().process.pid) - began_with[name] for name, one in ends.items()}
        own = ", ".join(f"{name} {1000 * used / len(times[name]):.1f} ms" for name, used in cpu.items())
        print(f"    CPU a turn, first sights included: {own}")
        print(f"    {written(url, len(times['file']))}")
        told = {name: sorted(1000 * one for one in values) for name, values in times.items()}
        print(f"latency, {policy}: {len(times['file'])} turns each; ", end="")
        print(
            ", ".join(
                f"{name} p50 {statistics.median(one):.2f}, p99 {one[-len(one) // 100]:.0f} ms"
                for name, one in told.items()
            )
        )
        for name in list(times)[1:]:
            more = [1000 * (there - here) for here, there in zip(times["file"], times[name], strict=True)]
            print(f"    {name} takes {statistics.median(more):+.2f} ms more than the file (median of the same turns)")
    return 0


def cpu(bodies: list[list[bytes]], new_store: Callable[[], str]) -> int:
    *bodies, others = bodies
    for policy in ("lossless", "economic"):
        for count, name in ((1, "one instance"), (2, "two, each with its sessions"), (2, "two, at random")):
            provider = Provider()
            with fleet(provider, policy, environment(new_store(), None) | PATIENT) as some:
                some.grow(count)
                for one, body in product(some.running, others[:20]):
                    assert asked("first", body, only(one), Counts())
                of_session = (
                    None if name.endswith("random") else lambda at, some=some: some.running[at % len(some.running)]
                )
                before = sum(cpu_seconds(one.process.pid) for one in some.running)
                began = time.perf_counter()
                with driving(bodies, some.any, of_session) as counts:
                    pass
                took = time.perf_counter() - began
                used = sum(cpu_seconds(one.process.pid) for one in some.running) - before
            print(f"cpu, {policy}, {name}: {1000 * used / counts.done:.2f} ms of CPU a turn, ", end="")
            print(f"{counts.done / took:.0f} turns a second, {counts.failed} failed", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phases", default="equal,storage,latency")
    parser.add_argument("--old", type=Path, help="a checkout of another version, for the phase rolling")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--turns", type=int, default=200)
    given = parser.parse_args()
    bodies, wrong = recorded(given.sessions, given.turns), 0
    print(f"{len(bodies)} recorded sessions, {sum(map(len, bodies))} turns; load {os.getloadavg()[0]:.0f}", flush=True)
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(sync=True))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        sink = stack.enter_context(running_bucket("moto_server", Path(folder)))
        phases: dict[str, Callable[[], int]] = {
            "equal": lambda: equal(bodies, server.new_schema, sink),
            "rolling": lambda: rolling(bodies, server.new_schema, given.old),
            "storage": lambda: storage(bodies, server.new_schema, sink),
            "latency": lambda: latency(bodies, server.new_schema),
            "cpu": lambda: cpu(bodies, server.new_schema),
        }
        for phase in given.phases.split(","):
            wrong += phases[phase]()
            sys.stdout.flush()
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
