"""Compares pagefold with its rivals on the same recorded sessions and the same payloads, in one run.

    python -m bench.field [--only sessions|payloads] [--family coding-bash,mcp-servers] [--contender pagefold,terse]
                          [--every N|FAMILY=N,…] [--sample 8] [--jobs 2] [--peers DIR] [--parts DIR]
                          [--write docs/field.md]

Contenders are pagefold, the published rules as comparison policies, and the rivals that can be installed: each of those
runs its adapter of ../shared/peers in its own environment under DIR (PEERS_DIR, or .peers); what it would have sent is
scored by the same scorer as ours (bench/rivals.py). One that is not installed is left out and named. Rivals that take
long see every n-th session of a large family (`--sample`), and stand in a table of their own beside all others on those
sessions. `--every` thins all of it, or the families it names; the page says of how many sessions a table is. MCP
results stand without their envelopes for everybody, as a proxy in place sees them.

`--write` makes the page and, beside it, its picture. `--parts` keeps what is finished, so that a run that was stopped
goes on; it knows nothing of changes to a policy. Nothing uses a network.
"""

import argparse
import hashlib
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import codecs, field_page
from bench.policies import made, requests_of
from bench.recorded import SCORER, TRACES, families, name_of, scorer
from bench.recorded import family as recording
from pagefold.wire.transcripts import parse_line

HERE = Path(__file__).parent
CHUNK_BYTES = 3_000_000
LEAST_SAMPLED = 500_000  # bytes of a family that even a slow contender sees
PRICES = (0, 0.1, 1.25, 300)  # overhead, read, write, life of the cache
LEAST_REQUESTS = 10  # of a session that may be the dearest
GRADES = ("lossy", "unknown", "by value", "exact")


@dataclass(frozen=True, slots=True)
class Contender:
    """One that competes. `how` is a policy of pagefold, or an environment, an adapter and its options."""

    name: str
    kind: str
    how: tuple[str, ...]
    window: int = 200_000
    slow: bool = False
    back: str = ""  # how what it leaves out comes back; for rivals it is measured
    package: str = ""  # what a user would install


CONTENDERS = (
    Contender("as it is", "nothing", ("identity",), back="exact"),
    Contender("pagefold lossless", "pagefold", ("lossless",), back="exact", package="pagefold"),
    Contender("pagefold economic", "pagefold", ("economic",), back="recall", package="pagefold"),
    Contender("pagefold economic, 64k", "pagefold", ("economic",), window=64_000, back="recall", package="pagefold"),
    Contender("pagefold reset, 64k", "pagefold", ("reset",), window=64_000, back="recall", package="pagefold"),
    Contender(
        "pagefold incremental, 64k", "pagefold", ("incremental",), window=64_000, back="recall", package="pagefold"
    ),
    Contender("compaction at 142k", "rule", ("compaction",), back="recall"),
    Contender("clear at 100k, keep 3", "rule", ("clear",), back="recall"),
    Contender("clear at 30k, keep 3", "rule", ("clear 30k",), back="recall"),
    Contender("masking, newest 10", "rule", ("masking",), back="recall"),
    Contender("drop oldest at 64k", "rule", ("fifo",), window=64_000, back="recall"),
    Contender("minified JSON", "rival", ("toon", "peer_toon.py", "--package", "minify")),
    Contender("TOON", "rival", ("toon", "peer_toon.py", "--package", "toons"), package="toons"),
    Contender("terse-mcp", "rival", ("terse", "peer_terse.py"), package="terse-mcp"),
    Contender("terse-mcp --diff", "rival", ("terse", "peer_terse.py", "--diff"), slow=True, package="terse-mcp"),
    Contender(
        "mcp-compressor --toonify", "rival", ("mcpc", "peer_mcp_compressor.py", "--toonify"), package="mcp-compressor"
    ),
    Contender("jmunch-mcp", "rival", ("jmunch", "peer_jmunch.py"), package="jmunch-mcp"),
    Contender("LangChain clear at 100k", "rival", ("langchain", "peer_langchain.py"), package="langchain"),
    Contender(
        "LangChain clear at 30k", "rival", ("langchain", "peer_langchain.py", "--trigger", "30000"), package="langchain"
    ),
    Contender("llmtrim safe", "rival", ("llmtrim", "peer_llmtrim.py"), slow=True, package="llmtrim"),
    Contender(
        "llmtrim agent", "rival", ("llmtrim", "peer_llmtrim.py", "--preset", "agent"), slow=True, package="llmtrim"
    ),
    Contender("headroom compress", "rival", ("headroom", "peer_headroom.py"), slow=True, package="headroom-ai[proxy]"),
    Contender(
        "headroom densify",
        "rival",
        ("headroom", "peer_headroom.py", "--mode", "densify"),
        slow=True,
        package="headroom-ai[proxy]",
    ),
)
PAYLOADS = codecs.PEERS | {
    "llmtrim safe": ("llmtrim", "peer_llmtrim.py"),
    "headroom compress": ("headroom", "peer_headroom.py"),
    "jmunch-mcp": ("jmunch", "peer_jmunch.py"),
}


# ---- sessions, in files that every contender reads -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some sessions of a family. Those of the sample lie in chunks of their own."""

    family: str
    path: Path
    sampled: bool
    size: int


def chunks(family: str, folder: Path, every: int, sample: int) -> Iterator[Chunk]:
    with lzma.open(recording(family), "rt", encoding="utf-8") as file:
        lines = [opened(line) if family.startswith("mcp") else line for line in file if line.strip()][::every]
    sample = min(sample, 1 + sum(map(len, lines)) // LEAST_SAMPLED)
    for sampled in (True, False):
        kept = [line for at, line in enumerate(lines) if (at % sample == 0) is sampled]
        for number, part in enumerate(parted(kept)):
            path = folder / f"{family}-{'sample' if sampled else 'rest'}-{number}.jsonl"
            path.write_text("".join(part), encoding="utf-8")
            yield Chunk(family, path, sampled, sum(map(len, part)))


def parted(lines: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for line in lines:
        if part and sum(map(len, part)) + len(line) > CHUNK_BYTES:
            yield part
            part = []
        part.append(line)
    if part:
        yield part


def opened(line: str) -> str:
    common, row = codecs.adapters(), json.loads(line)
    for message in row["messages"]:
        if message["role"] == "tool":
            message["content"] = common.opened(common.text_of(message))
    return json.dumps(row) + "\n"


# ---- one contender on some sessions ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Scored:
    """What the scorer says of one session, and what the contender took for it."""

    session: str
    tally: dict[str, float]
    seconds: float
    grade: str


_seen: dict[Path, Any] = {}  # what the scorer knows of the messages of the last chunk


def kept(contender: Contender, chunk: Chunk, venvs: Path, parts: Path | None) -> list[Scored]:
    """What was found, if need be in an earlier run."""
    if parts is None:
        return scored(contender, chunk, venvs)
    key = hashlib.sha256(repr(contender).encode() + chunk.path.read_bytes()).hexdigest()[:24]
    path = parts / f"{key}.json"
    if not path.exists():
        path.write_text(json.dumps([asdict(one) for one in scored(contender, chunk, venvs)]), encoding="utf-8")
    return [Scored(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def scored(contender: Contender, chunk: Chunk, venvs: Path) -> list[Scored]:
    score = scorer()
    if chunk.path not in _seen:
        _seen.clear()
        _seen[chunk.path] = score.Seen()
    rows = {row["id"]: row for row in score.read_jsonl(str(chunk.path))}
    ran = theirs(contender, chunk, venvs) if contender.kind == "rival" else ours(contender, chunk)
    found = []
    for session, requests, seconds, grade in ran:
        tally = score.Tally()
        score.score_session(rows[session], requests, (contender.window, *PRICES), _seen[chunk.path], tally)
        found.append(Scored(session, dict(tally), seconds, grade))
    assert len(found) == len(rows), f"{contender.name}: {len(rows) - len(found)} sessions are absent"
    return found


Ran = Iterator[tuple[str, list[dict[str, Any]], float, str]]


def ours(contender: Contender, chunk: Chunk) -> Ran:
    with chunk.path.open(encoding="utf-8") as lines:
        for line in lines:
            session = parse_line(line, name="")
            started = time.process_time()
            requests = list(requests_of(session, made(contender.how[0], contender.window), contender.window))
            yield session.id, requests, time.process_time() - started, contender.back


def theirs(contender: Contender, chunk: Chunk, venvs: Path) -> Ran:
    venv, *adapter = contender.how
    command = [str(venvs / venv / "bin" / "python"), str(HERE / "rivals.py"), *adapter, str(chunk.path)]
    for line in codecs.output(command, venvs).splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            yield told["session"], told["requests"], told["seconds"], GRADES[told["grade"]]


# ---- all of them -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Family:
    """By contender, what came of each session; and which sessions the slow ones saw."""

    name: str
    found: dict[str, dict[str, Scored]] = field(default_factory=dict)
    sample: set[str] = field(default_factory=set)

    def rows(self, names: Sequence[str], sessions: set[str]) -> list[dict[str, Any]]:
        """A row of figures for each contender, on the same sessions."""
        score = scorer()
        base = score.Tally()
        plain = {one: self.found["as it is"][one].tally for one in sessions}
        for tally in plain.values():
            base.add(tally)
        rows = []
        for name in names:
            total, worst = score.Tally(), 0.0
            mine = [self.found[name][one] for one in sorted(sessions)]
            for one in mine:
                total.add(one.tally)
                if plain[one.session]["requests"] >= LEAST_REQUESTS:
                    cost = one.tally["cost"] + one.tally.get("penalty", 0)
                    worst = max(worst, cost / plain[one.session]["cost"])
            grade = min((one.grade for one in mine), key=(*GRADES, "recall").index)
            ms = 1000 * sum(one.seconds for one in mine) / max(1, base["requests"])
            told = {"name": name, "worst": worst, "ms": ms, "back": grade, "sessions": len(mine)}
            rows.append(score.report(total, base) | told)
        return rows


def compete(
    families: Sequence[str], contenders: Sequence[Contender], venvs: Path, given: argparse.Namespace
) -> list[Family]:
    found = {name: Family(name) for name in families}
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(given.jobs) as pool:
        thin = {name: given.every.get(name, given.every.get("", 1)) for name in families}
        parts = [part for name in families for part in chunks(name, Path(folder), thin[name], given.sample)]
        tasks = {
            pool.submit(kept, one, part, venvs, given.parts): (one, part)
            for part in sorted(parts, key=lambda part: -part.size)
            for one in contenders
            if part.sampled or not one.slow
        }
        started, failed = time.perf_counter(), set[str]()
        for number, done in enumerate(as_completed(tasks), 1):
            one, part = tasks[done]
            try:
                for session in done.result():
                    found[part.family].found.setdefault(one.name, {})[session.session] = session
                    if part.sampled:
                        found[part.family].sample.add(session.session)
            except subprocess.SubprocessError as error:
                failed.add(one.name)
                print(f"\n{one.name} on {part.family}: {type(error).__name__}", file=sys.stderr)
            took = time.perf_counter() - started
            print(f"\r{number} of {len(tasks)} parts, {took:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for family in found.values():
        for name in failed:
            family.found.pop(name, None)
    return list(found.values())


# ---- what it takes to install one ------------------------------------------------------------------------------------

SIZE = """
import importlib.metadata as metadata, pathlib, sys
from pip._vendor.packaging.requirements import Requirement
seen, wanted = {}, [Requirement(sys.argv[1])]
while wanted:
    one = wanted.pop()
    if (one.name.lower(), *sorted(one.extras)) in seen: continue
    try: found = metadata.distribution(one.name)
    except metadata.PackageNotFoundError: continue
    seen[(one.name.lower(), *sorted(one.extras))] = found
    for text in found.requires or ():
        more = Requirement(text)
        if not more.marker or any(more.marker.evaluate({"extra": extra}) for extra in (one.extras or {""})):
            wanted.append(more)
files = {pathlib.Path(path.locate()) for found in seen.values() for path in found.files or () if path.suffix != ".pyc"}
print(sum(path.stat().st_size for path in files if path.is_file()), len({name for name, *_ in seen}))
"""


def installed(contender: Contender, venvs: Path) -> tuple[float, int] | None:
    """Megabytes of the package and everything it requires, and how many packages that is."""
    if not contender.package:
        return None
    own = contender.kind == "pagefold"
    python = sys.executable if own else str(venvs / contender.how[0] / "bin" / "python")
    done = subprocess.run([python, "-c", SIZE, contender.package], capture_output=True, text=True, check=True)
    size, packages = map(int, done.stdout.split())
    if own:  # installed as a link to the sources: what the wheel would hold is added
        sources = HERE.parent / "src" / "pagefold"
        size += sum(path.stat().st_size for path in sources.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return size / 1e6, packages


def thinned(text: str) -> dict[str, int]:
    """By family, every how many-th session is taken; under no name what holds for the rest."""
    pairs = (part.rpartition("=") for part in text.split(","))
    return {name: int(number) for name, _, number in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = os.environ.get("PEERS_DIR", HERE.parent / ".peers")
    parser.add_argument("--only", choices=("sessions", "payloads"))
    parser.add_argument("--family", default="", help="names, separated by commas; all without")
    parser.add_argument("--contender", default="", help="beginnings of names, separated by commas; all without")
    parser.add_argument("--every", type=thinned, default={}, help="every n-th session, of all or of a family")
    parser.add_argument("--sample", type=int, default=8, help="of those, every n-th for contenders that take long")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers", type=Path, default=where)
    parser.add_argument("--parts", type=Path, metavar="DIR", help="keep what is finished, and go on from there")
    parser.add_argument("--write", type=Path, help="the page, in Markdown; its picture is written beside it")
    given = parser.parse_args()
    if not SCORER.exists() or not TRACES.exists():
        raise SystemExit("skipped: the scorer and the recordings are not beside the project")
    venvs = given.peers.expanduser().absolute()
    venvs = venvs / "env" if (venvs / "env").is_dir() else venvs
    names = [name_of(path) for path in families()]
    if odd := sorted({name for name in given.family.split(",") if name} - {*names}):
        raise SystemExit(f"--family {', '.join(odd)}: expected {', '.join(names)}")
    chosen = [name for name in names if not given.family or name in given.family.split(",")]
    starts = tuple(name for name in given.contender.split(",") if name)
    asked = [one for one in CONTENDERS if not starts or one.name.startswith(starts) or one.kind == "nothing"]
    here = [one for one in asked if one.kind != "rival" or (venvs / one.how[0] / "bin" / "python").exists()]
    if given.parts:
        given.parts.mkdir(parents=True, exist_ok=True)
    told = field_page.Told(missing=[one.name for one in asked if one not in here])
    told.kinds = {one.name: one.kind for one in here}
    told.sizes = {one.name: size for one in here if (size := installed(one, venvs))}
    if given.only != "payloads":
        for family in compete(chosen, here, venvs, given):
            plain = family.found["as it is"]
            quick = [one.name for one in here if not one.slow and one.name in family.found]
            both = [one.name for one in here if one.name in family.found]
            slow = [name for name in both if name not in quick]
            told.families[family.name] = family.rows(quick, {*plain})
            if slow:
                told.samples[family.name] = family.rows(both, family.sample)
    if given.only != "sessions":
        with tempfile.TemporaryDirectory() as folder:
            told.payloads = codecs.payloads(Path(folder), venvs, PAYLOADS)
            told.github = codecs.github(Path(folder), venvs)
    page = field_page.page(told)
    print(page)
    if given.write:
        given.write.write_text(page, encoding="utf-8")
        given.write.with_suffix(".svg").write_text(field_page.picture(told), encoding="utf-8")


if __name__ == "__main__":
    main()
