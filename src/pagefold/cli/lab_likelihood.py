"""`pagefold lab likelihood`: how likely recorded answers are to a model, after what each policy would have sent.

Every answer is scored after the history as it was, after what each policy sends in a window, after the plain end of the
history cut to the size of what the last policy sends, and after nothing. See docs/evidence.md.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagefold import config
from pagefold.adapters import recordings
from pagefold.adapters.model_endpoint import EndpointApi
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.kept_answers import Budget, KeptAnswers
from pagefold.analysis.likelihood.figures import ContextFigures, Difference, figures_of, verdict
from pagefold.analysis.likelihood.scores import TurnScore, scores_of
from pagefold.analysis.likelihood.turns import ScoredTurn, chosen_turns
from pagefold.analysis.replay_job import ReplayJob
from pagefold.cli import output
from pagefold.cli.lab_endpoint import DEFAULT_BUDGET, endpoint_of
from pagefold.cli.progress import progress
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError
from pagefold.number_format import several, short
from pagefold.wire.transcripts import Session

_POLICIES, _TURNS, _WINDOW = "lossless,economic", 200, 2_500


def add_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("likelihood (also --logs, --seed, --context, --window and --minutes)")
    group.add_argument(
        "--policies", metavar="NAMES", default=_POLICIES, help="what would have been sent (default: %(default)s)"
    )
    group.add_argument("--turns", type=int, default=_TURNS, metavar="N", help="answers to score (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    options.window = options.window or _WINDOW
    policies = _checked(options)
    turns = _turns(options, policies)
    if not turns:
        raise ConfigError(
            f"--logs: no answer in these recordings has a history beyond --window {options.window} and within "
            f"--context {options.context} tokens"
        )
    endpoint = endpoint_of(options)
    about = sum(sum(turn.tokens.values()) for turn in turns)
    sessions = len({(turn.source, turn.session) for turn in turns})
    output.to_stderr(
        f"{several(len(turns), 'answer')} of {several(sessions, 'session')}, each after {len(turns[0].contexts)} "
        f"contexts at {endpoint.url}: at most {short(about)} tokens"
    )
    budget = Budget(DEFAULT_BUDGET if options.budget is None else options.budget, 60 * options.minutes)
    kept = KeptAnswers(Path(options.resume) if options.resume else None)
    scores: list[TurnScore] = []
    interrupted = False
    try:
        with progress("scoring", len(turns)) as advance:
            for score in scores_of(turns, endpoint, budget, kept):
                scores.append(score)
                advance(len(scores), score.turn.source)
    except KeyboardInterrupt:
        interrupted = True
    ended = "interrupted" if interrupted else budget.why_ended if len(scores) < len(turns) else ""
    _print(options, policies, len(turns), scores, ended)
    return 130 if interrupted else 0


def _checked(options: argparse.Namespace) -> list[str]:
    """The names of the policies. Raises ConfigError where a flag cannot be used."""
    for name, least in (("turns", 1), ("window", 200), ("context", 200), ("budget", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise ConfigError(f"--{name} {value}: expected {least} or more")
    if options.minutes <= 0:
        raise ConfigError(f"--minutes {options.minutes}: expected more than 0")
    if not (options.endpoint and options.model):
        raise ConfigError("lab likelihood: expected --endpoint URL and --model NAME")
    if options.api == EndpointApi.ANTHROPIC:
        raise ConfigError("lab likelihood: expected an OpenAI-compatible endpoint; the Anthropic API scores no texts")
    return [policy_named(name.strip(), offline=True).name for name in options.policies.split(",")]


def _turns(options: argparse.Namespace, policies: Sequence[str]) -> list[ScoredTurn]:
    paths = recordings.find(options.logs) if options.logs else [recordings.example()]
    settings = config.load(flags={"config": options.config}).settings
    job = ReplayJob(ASSUMED, "o200k", options.window, max_line_bytes=settings.replay.max_line_bytes)

    def read() -> Iterator[Session]:
        with progress("reading", len(paths)) as advance:
            for done, path in enumerate(paths):
                advance(done, path.name)
                yield from sessions_of([path], job)

    return chosen_turns(
        read(), job, policies, window=options.window, context=options.context, most=options.turns, seed=options.seed
    )


def _print(
    options: argparse.Namespace, policies: Sequence[str], planned: int, scores: Sequence[TurnScore], ended: str
) -> None:
    rows = figures_of(scores) if scores else []
    sources = sorted({score.turn.source for score in scores})
    by_source = {source: figures_of([score for score in scores if score.turn.source == source]) for source in sources}
    said = verdict(policies[-1], scores) if scores else "Nothing was scored."
    if options.json:
        told = {
            "model": options.model,
            "window": options.window,
            "turns": planned,
            "scored": len(scores),
            "sessions": len({(score.turn.source, score.turn.session) for score in scores}),
            "ended": ended,
            "contexts": [row.to_dict() for row in rows],
            "by_source": {source: [row.to_dict() for row in found] for source, found in by_source.items()},
            "verdict": said,
        }
        output.print_json(told)
        return
    title = f"{options.model}, {len(scores):,} answers, nats a token of the answer"
    if rows:
        output.show(output.table(title, _COLUMNS, [_cells(row) for row in rows]))
        output.show("")
    if len(sources) > 1:
        lines = [(source, *_cells(row)) for source in sources for row in by_source[source] if row.name in policies]
        output.show(output.table("by source", ["", "context", *_COLUMNS[1:]], lines))
        output.show("")
    if ended:
        output.show(f"{len(scores):,} of {planned:,} answers: {ended}.")
    output.show(said)


_COLUMNS = ["context", "tokens", "nats", "more than original", "95 of 100", "more than last tokens", "95 of 100"]


def _cells(row: ContextFigures) -> list[str]:
    return [row.name, f"{row.tokens:,.0f}", f"{row.nats:.3f}", *_more(row.to_original), *_more(row.to_last)]


def _more(difference: Difference) -> tuple[str, str]:
    if difference.low is None or difference.high is None:
        return f"{difference.nats:+.3f}", "-"
    return f"{difference.nats:+.3f}", f"{difference.low:+.3f} to {difference.high:+.3f}"
