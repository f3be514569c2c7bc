"""Compares the lossless codecs with published rivals on the same results, in one run.

    python -m bench.codecs [--peers DIR] [--only payloads|github|mcp|speed|latency] [--json]
    python -m bench.codecs --peers ~/peers --only payloads --only speed        for example

Rivals run through the adapters in ../shared/peers, each in an environment of its own under DIR or DIR/env (terse,
headroom, toon, mcpc), set up as the README there says. One that is not there is shown as not installed.

Tokens are o200k, exact. A figure stands alone where key order and the spelling of numbers came back too, for text its
bytes; `v` marks values only, `?` a form without a decoder, `✗` a loss. Milliseconds include the check of the way back.
Nothing uses a network, and no adapter runs longer than half an hour.
"""

import argparse
import importlib
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.recorded import ADAPTERS, PROJECT, TRACES, families, family, sessions, table
from pagefold.derive.policies.lossless import Lossless
from pagefold.encode import decode, encode
from pagefold.tokens import counter
from pagefold.wire import transcripts
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Session

JSON = ("issues200", "rows300", "nested", "issues200_pretty", "rows300_pretty", "nested_pretty")
PAYLOADS = (*(f"{name}.json" for name in JSON), "log500.txt", "code.py", "search.txt")
SECONDS = 1800
ROUNDS = 3
ITSELF = (sys.executable, "-m", "bench.codecs")
# terse's own work, without what its adapter adds to check the way back
TERSE_TIMER = """
import sys, time
from terse import policy
rules = policy.default_policy()
texts = [open(name, encoding="utf-8").read() for name in sys.argv[1:]]
policy.apply(texts[0], "fetch", rules)
started = time.process_time()
for text in texts:
    policy.apply(text, "fetch", rules)
print(time.process_time() - started)
"""

Row = dict[str, Any]
count = counter("o200k").count

# name -> the virtual environment ("": this script is its own adapter), the adapter and its options
PEERS: dict[str, tuple[str, ...]] = {
    "minified": ("", "--adapter", "minified"),
    "pagefold": ("", "--adapter", "pagefold"),
    "terse": ("terse", "peer_terse.py"),
    "headroom densify": ("headroom", "peer_headroom.py", "--mode", "densify"),
    "toons": ("toon", "peer_toon.py", "--package", "toons"),
    "mcp-compressor toonify": ("mcpc", "peer_mcp_compressor.py", "--toonify"),
}
OURS = ("minified", "pagefold")
TERSE_DIFF = ("terse", "peer_terse.py", "--diff", "--open-envelopes")


def output(command: Sequence[str], venvs: Path) -> str:
    """What a child prints. Raises CalledProcessError or TimeoutExpired."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")  # nobody there: no network
    # terse and headroom choose by tiktoken, whose vocabulary comes with headroom's litellm
    for words in venvs.glob("headroom/lib/python*/site-packages/litellm/litellm_core_utils/tokenizers"):
        environment.setdefault("TIKTOKEN_CACHE_DIR", str(words))
    done = subprocess.run(
        command, capture_output=True, check=True, timeout=SECONDS, env=environment, encoding="utf-8", errors="replace"
    )
    return done.stdout


def measured(peer: tuple[str, ...], venvs: Path, files: Sequence[Path]) -> list[Row] | str:
    """What the adapter says of each file, or why it says nothing."""
    venv, adapter, *options = peer
    command = [str(venvs / venv / "bin" / "python"), str(ADAPTERS / adapter)] if venv else [*ITSELF, adapter]
    if not Path(command[0]).exists():
        return "not installed"
    print(*peer, "…", file=sys.stderr)
    try:
        lines = output([*command, *options, *map(str, files)], venvs).splitlines()
    except subprocess.SubprocessError as error:
        return f"failed: {type(error).__name__}"
    return [json.loads(line) for line in lines if line.startswith("{")]


# --- as an adapter


def adapters() -> Any:
    """What the rivals' adapters share: the same counter and the same judge for all."""
    sys.path.insert(0, str(ADAPTERS))
    return importlib.import_module("common")


def adapt(name: str, files: Sequence[str]) -> None:
    common = adapters()

    def minified(_: str, text: str) -> Any:
        try:
            short = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
        except ValueError:
            short = text
        return common.Shrunk(short, common.compare(short, text))

    def pagefold(_: str, text: str) -> Any:
        shown = encode(text).text
        return common.Shrunk(shown, common.compare(decode(shown), text))

    warm()
    shrink = minified if name == "minified" else pagefold
    # stateful: timed on the first call, because a second would find its counts remembered
    common.run_results(common.read(argparse.Namespace(files=files, open_envelopes=False)), shrink, stateful=True)


def warm() -> None:
    encode(json.dumps([{"id": n, "name": f"row {n}"} for n in range(20)]))


def seconds(files: Sequence[str]) -> float:
    """Our own processor time for these results, counting included."""
    texts = [Path(name).read_text(encoding="utf-8") for name in files]
    warm()
    started = time.process_time()
    for text in texts:
        encode(text)
    return time.process_time() - started


# --- sections


def generated(folder: Path) -> list[Path]:
    subprocess.run([sys.executable, str(ADAPTERS / "gen.py"), str(folder)], check=True, capture_output=True)
    return [folder / name for name in PAYLOADS]


def recorded(folder: Path) -> list[Path]:
    """Every recorded API payload as a file of compact JSON."""
    files = []
    with lzma.open(family("payloads-github"), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            files.append(folder / f"github{number:03}.json")
            text = json.dumps(json.loads(line)["payload"], separators=(",", ":"), ensure_ascii=False)
            files[-1].write_text(text, encoding="utf-8")
    return files


def payloads(folder: Path, venvs: Path, peers: dict[str, tuple[str, ...]] = PEERS) -> list[Row]:
    files = generated(folder)
    found = {name: measured(peer, venvs, files) for name, peer in peers.items()}
    missing: Row = {name: why for name, why in found.items() if isinstance(why, str)}
    there = {name: of for name, of in found.items() if not isinstance(of, str)}
    return [compared(file.name, {name: of[at] for name, of in there.items()}, missing) for at, file in enumerate(files)]


def compared(name: str, lines: dict[str, Row], missing: Row) -> Row:
    """Tokens of one payload in all codecs, ours against the best lossless rival's, then milliseconds."""
    theirs = [of["tokens_out"] for peer, of in lines.items() if peer not in OURS and of["lossless"]]
    best = min(theirs, default=None)
    row: Row = {"tokens": name, "as it is": lines["minified"]["tokens_in"]}
    row |= {peer: figure(of) for peer, of in lines.items()} | missing
    row["pagefold / best rival"] = lines["pagefold"]["tokens_out"] / best if best and "pagefold" in lines else ""
    return row | {f"ms {peer.split()[0]}": line["ms"] for peer, line in lines.items()}


def figure(line: Row) -> str:
    mark = " ?" if line["lossless"] is None else " ✗" if not line["lossless"] else "" if line["exact"] else " v"
    return f"{line['tokens_out']:,}{mark}"


def github(folder: Path, venvs: Path) -> list[Row]:
    files = recorded(folder)
    rows: list[Row] = []
    for name, peer in PEERS.items():
        lines = measured(peer, venvs, files)
        rows.append({"codec": name, "tokens": lines} if isinstance(lines, str) else {"codec": name, **summed(lines)})
    return rows


def summed(lines: list[Row]) -> Row:
    tokens = sum(line["tokens_out"] for line in lines)
    row: Row = {"tokens": tokens, "of compact": tokens / sum(line["tokens_in"] for line in lines)}
    row |= {f"back, {key}": sum(line[key] is True for line in lines) for key in ("lossless", "exact")}
    return row | {"payloads": len(lines), "ms": sum(line["ms"] for line in lines)}


def mcp(folder: Path, venvs: Path) -> list[Row]:
    """Prompt tokens over all requests, on the text inside the envelopes. Every result is taken back to what it was."""
    common, policy = adapters(), Lossless()
    raw = ours = results = exact = 0

    def size(message: Message) -> int:
        return int(common.count(common.text_of(json.loads(message.raw))))

    for session in opened(common):
        state, sizes, before = policy.begin(), list[int](), 0
        for message in session.messages:
            if message.role is Role.ASSISTANT:
                state, derived = policy.request(state)
                sizes[derived.keep :] = map(size, derived.append)
                raw, ours = raw + before, ours + sum(sizes)
            before += size(message)
            state = policy.step(state, message)
            if message.role is Role.TOOL:
                back = decode(state.waiting[-1].text, state.standings.ledger)  # its own call's arguments are in it
                results, exact = results + 1, exact + (common.compare(back, message.text) == common.Grade.EXACT)
    lines = measured(TERSE_DIFF, venvs, [family("mcp-servers")])
    theirs: Row = {"prompt tokens": lines}
    if not isinstance(lines, str):
        total = sum(line["tokens_out"] for line in lines)
        theirs = {"prompt tokens": total, "of raw": total / raw, "pagefold / this (wanted: 0.85)": ours / total}
    kept = {"results": results, "back, exact": exact}
    return [
        {"mcp-servers, opened": "as it is", "prompt tokens": raw, "of raw": 1.0},
        {"mcp-servers, opened": "pagefold lossless", "prompt tokens": ours, "of raw": ours / raw, **kept},
        {"mcp-servers, opened": "terse --diff", **theirs},
    ]


def opened(common: Any) -> Iterator[Session]:
    with lzma.open(family("mcp-servers"), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            record = json.loads(line)
            for message in record["messages"]:
                if message["role"] == "tool":
                    message["content"] = common.opened(common.text_of(message))
            yield transcripts.parse_line(json.dumps(record), name=str(number))


def speed(folder: Path, venvs: Path) -> list[Row]:
    """The best of some rounds, in turns, so that a busy moment of the machine meets both."""
    names = [str(file) for file in (*generated(folder), *recorded(folder)) if file.suffix == ".json"]
    python = venvs / "terse" / "bin" / "python"
    commands = {
        "pagefold": [*ITSELF, "--adapter", "seconds"],
        "terse": [str(python), "-c", TERSE_TIMER],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            if Path(command[0]).exists():
                taken[name].append(float(output([*command, *names], venvs)))
    best: Row = {name: min(times, default="not installed") for name, times in taken.items()}
    ratio = best["terse"] / best["pagefold"] if taken["terse"] else ""
    return [{"JSON results": len(names), **{f"{k}, s": v for k, v in best.items()}, "ratio (wanted: 5)": ratio}]


def latency(folder: Path, venvs: Path) -> list[Row]:
    """Each way in a process of its own, that remembers nothing."""
    rows = []
    for how in ("counting alone", "self-contained", "with references"):
        print(f"latency, {how} …", file=sys.stderr)
        with get_context("spawn").Pool(1) as pool:
            rows.append({"ms a result (wanted: 0.3, 10)": how, **pool.apply(percentiles, (how,))})
    return rows


def percentiles(how: str) -> Row:
    warm()
    taken = sorted(1000 * took for path in families() for took in arrivals(path, how))
    row: Row = {name: taken[int(share * (len(taken) - 1))] for name, share in (("median", 0.5), ("p99", 0.99))}
    return {"results": len(taken), **row, "worst": taken[-1], "all": sum(taken)}


def arrivals(path: Path, how: str) -> Iterator[float]:
    """Seconds that each tool result of a file takes on arrival, counting before and after included.

    Of this process alone: what else the machine does would show first in the slowest hundredth.
    """
    policy = Lossless()
    for session in sessions(path):
        state = policy.begin()
        for message in session.messages:
            if message.role is Role.ASSISTANT:
                state, _ = policy.request(state)
            started = time.process_time()
            if how == "with references":
                state = policy.step(state, message)
            elif message.role is Role.TOOL:
                encode(message.text) if how == "self-contained" else count(message.text)
            if message.role is Role.TOOL:
                yield time.process_time() - started


SECTIONS = {"payloads": payloads, "github": github, "mcp": mcp, "speed": speed, "latency": latency}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = os.environ.get("PEERS_DIR", PROJECT / ".peers")
    parser.add_argument("--peers", type=Path, metavar="DIR", default=where, help="or PEERS_DIR; default: .peers")
    parser.add_argument("--only", choices=tuple(SECTIONS), action="append")
    parser.add_argument("--json", action="store_true", help="the same figures as one JSON document")
    parser.add_argument("--adapter", choices=("pagefold", "minified", "seconds"), help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.adapter == "seconds":
        print(seconds(given.files))
    elif given.adapter:
        adapt(given.adapter, given.files)
    elif not (ADAPTERS.is_dir() and TRACES.is_dir()):
        print("nothing to compare with: ../shared/peers and ../shared/traces are not beside the project")
    else:
        venvs = given.peers.expanduser().absolute()
        venvs = venvs / "env" if (venvs / "env").is_dir() else venvs
        if "TIKTOKEN_CACHE_DIR" not in os.environ and not (venvs / "headroom").is_dir():
            print("without headroom's copy of the vocabulary terse chooses by estimates", file=sys.stderr)
        report = {}
        for name in given.only or SECTIONS:
            with tempfile.TemporaryDirectory() as folder:
                report[name] = SECTIONS[name](Path(folder), venvs)
            if not given.json:
                print(f"## {name}\n\n{table(report[name])}\n", flush=True)
        if given.json:
            print(json.dumps(report, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
