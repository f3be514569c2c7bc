"""`pagefold lab provider`: a provider on loopback that refuses, drops and bills as the real ones do.

Point an agent at the address it prints (ANTHROPIC_BASE_URL, OPENAI_BASE_URL) with any key. It speaks Anthropic
Messages, OpenAI Chat Completions and OpenAI Responses, thinks in every answer of a model that does, binds that thinking
to its prefix, and keeps a prompt cache. What it checks is in docs/provider.md. When it ends it prints what it counted:
requests, refusals by rule, thinking dropped, the bill of each model.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from pagefold.adapters.model_prices import ModelPrices
from pagefold.cli import output
from pagefold.cli.command_parser import tokens
from pagefold.errors import ConfigError
from pagefold.model_proxy.server import run as serve
from pagefold.number_format import several
from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge, Price
from pagefold.provider.referee import Referee, RefereeTotals
from pagefold.provider.reply import Answers, RequestRecord
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from pagefold.provider.thinking import Behaviour
from pagefold.wire.message import Usage

_THINKING = {"error": Behaviour.ERROR, "drop_block": Behaviour.DROP, "older": Behaviour.ALLOW}
_SENTENCE = Answer("Done. (This is the built-in answer of pagefold lab provider; --script says something else.)")


_WINDOW = "tokens that fit, whatever the model; for likelihood the window that policies keep (default there: 2500)"


def add_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("provider")
    group.add_argument("--port", type=int, default=0, metavar="N", help="on loopback (default: any free port)")
    group.add_argument(
        "--thinking",
        choices=list(_THINKING),
        default="error",
        help="thinking whose prefix changed: refuse it, drop it, or let it pass as for accounts of before 2026-08-31",
    )
    group.add_argument("--script", metavar="FILE", help="a JSON list of turns to answer with")
    group.add_argument("--log", metavar="FILE", help="write one JSON line a request; - for standard output")
    group.add_argument("--bodies", action="store_true", help="with the bodies in that log")
    group.add_argument("--window", type=tokens, default=0, metavar="N", help=_WINDOW)


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.port < 1 << 16:
        raise ConfigError(f"--port {options.port}: expected 0 to 65535")
    if options.window < 0:
        raise ConfigError(f"--window {options.window}: expected a number of tokens, or 0 for the model's own")
    answers: Answers = _script(options.script) if options.script else lambda number, request: _SENTENCE
    thinking = _THINKING[options.thinking]
    referee = Referee(behaviour=thinking, price=list_price(), answers=answers, window=options.window)
    with ExitStack() as stack:
        log = _log(options.log, stack)

        def seen(record: RequestRecord, body: bytes) -> None:
            if log is not None:
                line = {**record.to_json(), **({"body": json.loads(body)} if options.bodies and body else {})}
                print(json.dumps(line), file=log, flush=True)

        serve(ProviderApp(referee, seen=seen), "127.0.0.1", options.port, started=_started)
    output.print_result(options.json, referee.totals.to_json(), summary(referee.totals))
    return 0


def list_price() -> Price:
    """What a request costs by the price data: tiers, and the cache life that was asked for."""
    models = ModelPrices()

    def price(model: str, charge: Charge) -> float:
        written, long = sum(charge.written.values()), charge.written.get("1h", 0)
        return models.prices(model).bill(
            Usage(charge.fresh, charge.read, written, charge.output, cache_write_long=long)
        )

    return price


def _started(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    output.to_stderr(f"provider on {url} (ANTHROPIC_BASE_URL={url}, OPENAI_BASE_URL={url}/v1); Ctrl-C ends it")


def _script(name: str) -> Answers:
    try:
        return parse_script(Path(name).read_text(encoding="utf-8"), name)
    except OSError as error:
        raise ConfigError(f"--script {name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--script {name}: expected JSON in UTF-8") from error


def _log(name: str | None, stack: ExitStack) -> IO[str] | None:
    if name in (None, "-"):
        return sys.stdout if name else None
    try:
        return stack.enter_context(Path(str(name)).open("w", encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--log {name}: cannot be written ({error.strerror})") from error


def summary(totals: RefereeTotals) -> str:
    lines = [
        f"{several(totals.requests, 'request')}, {totals.accepted:,} accepted, {sum(totals.refused.values()):,} refused"
    ]
    lines += [f"  refused by {rule}: {count:,}" for rule, count in totals.refused.most_common()]
    thinking = f"thinking: {totals.thinking_made:,} blocks made, {totals.dropped:,} dropped for another prefix"
    lines.append(f"{thinking}, {totals.allowed:,} let pass, {totals.unreadable:,} of models that this one cannot read")
    lines += [_billed(model, bill.to_json()) for model, bill in totals.bill.items()]
    return "\n".join(lines)


def _billed(model: str, bill: Mapping[str, Any]) -> str:
    written = ", ".join(f"{tokens:,} written for {life}" for life, tokens in bill["written"].items()) or "none written"
    tokens = f"{bill['fresh']:,} fresh, {bill['read']:,} read from the cache, {written}, {bill['output']:,} output"
    return f"{model}: {several(bill['requests'], 'request')}, ${bill['usd']:.4f}; tokens: {tokens}"
