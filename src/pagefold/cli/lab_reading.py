"""`pagefold lab reading`: how well a model reads forms, compared with how well it reads the originals.

Asks exact questions about tool results of recorded sessions, once in the conversation as it was recorded and once as
the lossless policy shows it. See docs/reading.md.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagefold import config
from pagefold.adapters import recordings
from pagefold.adapters.model_endpoint import EndpointApi
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.kept_answers import Budget, KeptAnswers
from pagefold.analysis.reading import figures as reading
from pagefold.analysis.reading.answers import paired_answers
from pagefold.analysis.reading.cases import ReadingCase, cases_of
from pagefold.analysis.reading.figures import PairedAnswer, ReadingFigures
from pagefold.analysis.reading.selection import chosen
from pagefold.analysis.replay_job import ReplayJob
from pagefold.cli import logs, output
from pagefold.cli.command_parser import tokens
from pagefold.cli.lab_endpoint import DEFAULT_BUDGET, endpoint_of
from pagefold.cli.layout import Table
from pagefold.cli.progress import progress
from pagefold.derive.cost import ASSUMED
from pagefold.errors import ConfigError
from pagefold.number_format import several, short
from pagefold.settings.toml_text import toml_key, toml_value


def add_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reading")
    group.add_argument(
        "--logs", nargs="+", metavar="PATH", help="recordings to ask about (default: the bundled session)"
    )
    group.add_argument("--questions", type=int, default=200, metavar="N", help="(default: %(default)s)")
    group.add_argument("--seed", type=int, default=1, metavar="N", help="another draw of questions")
    group.add_argument(
        "--context", type=tokens, default=6_000, metavar="N", help="tokens of conversation (default: %(default)s)"
    )
    group.add_argument("--minutes", type=float, default=120.0, metavar="N", help="(default: %(default)s)")
    group.add_argument(
        "--likelihood", action="store_true", help="choose the likeliest of given answers: for small local models"
    )
    group.add_argument("--write", metavar="FILE", help="write the questions, and ask nobody")


def run(options: argparse.Namespace) -> int:
    options.budget = DEFAULT_BUDGET if options.budget is None else options.budget
    _check(options)
    cases = _cases(options)
    if not cases:
        raise ConfigError("--logs: no result in these recordings can be asked about; expected tool results with forms")
    if options.write:
        logs.write(Path(options.write), "".join(map(_line, cases)))
        output.to_stderr(f"wrote {several(len(cases), 'question')} to {options.write}")
        return 0
    endpoint = endpoint_of(options)
    about = sum(sum(case.tokens) for case in cases)
    sessions = len({case.session for case in cases})
    output.to_stderr(
        f"{several(len(cases), 'question')} about {several(sessions, 'session')}, asked twice at {endpoint.url}: "
        f"about {short(about)} tokens"
    )
    budget = Budget(options.budget, 60 * options.minutes)
    kept = KeptAnswers(Path(options.resume) if options.resume else None)
    answers: list[PairedAnswer] = []
    interrupted = False
    try:
        with progress("asking", len(cases)) as advance:
            for answer in paired_answers(cases, endpoint, budget, kept, scored=options.likelihood):
                answers.append(answer)
                advance(len(answers), answer.kind)
    except KeyboardInterrupt:
        interrupted = True
    ended = "interrupted" if interrupted else budget.why_ended if len(answers) < len(cases) else ""
    _print(options, cases, answers, ended)
    return 130 if interrupted else 0


def _check(options: argparse.Namespace) -> None:
    for name, least in (("questions", 1), ("context", 200), ("budget", 1)):
        if getattr(options, name) < least:
            raise ConfigError(f"--{name} {getattr(options, name)}: expected {least} or more")
    if options.minutes <= 0:
        raise ConfigError(f"--minutes {options.minutes}: expected more than 0")
    if not options.write and not (options.endpoint and options.model):
        raise ConfigError("lab reading: expected --endpoint URL and --model NAME, or --write FILE")
    if options.likelihood and options.api == EndpointApi.ANTHROPIC:
        raise ConfigError("--likelihood: expected an OpenAI-compatible endpoint; the Anthropic API scores no texts")


def _cases(options: argparse.Namespace) -> list[ReadingCase]:
    paths = recordings.find(options.logs) if options.logs else [recordings.example()]
    settings = config.load(flags={"config": options.config}).settings
    job = ReplayJob(ASSUMED, "o200k", 200_000, max_line_bytes=settings.replay.max_line_bytes)

    def made() -> Iterator[ReadingCase]:
        with progress("reading", len(paths)) as advance:
            for done, path in enumerate(paths):
                advance(done, path.name)
                for session in sessions_of([path], job):
                    yield from cases_of(session, context=options.context, seed=options.seed)

    return chosen(made(), options.questions, options.seed)


def _line(case: ReadingCase) -> str:
    told = {
        "id": case.id,
        "session": case.session,
        "tool": case.tool,
        "codecs": case.codecs,
        "kind": case.question.kind,
        "question": case.question.text,
        "answer": case.question.answer,
        "wrong": case.question.wrong,
        "original": case.original,
        "form": case.form,
    }
    return json.dumps(told, ensure_ascii=False) + "\n"


def _print(
    options: argparse.Namespace, cases: Sequence[ReadingCase], answers: Sequence[PairedAnswer], ended: str
) -> None:
    codecs = reading.by_codec(answers)
    verdict = reading.verdict(codecs)
    left_out = reading.settings_for(codecs, answers)
    if options.json:
        told = {
            "model": options.model,
            "way": "likelihood" if options.likelihood else "answer",
            "questions": len(cases),
            "asked": len(answers),
            "ended": ended,
            "all": reading.figures("all", answers).to_dict() if answers else None,
            "codecs": [row.to_dict() for row in codecs],
            "kinds": [row.to_dict() for row in reading.by_kind(answers)],
            "margin": reading.MARGIN,
            "verdict": verdict,
            "settings": {tool: {"without": names} for tool, names in left_out.items()},
        }
        output.print_json(told)
        return
    if answers:
        whole = reading.figures("all", answers)
        output.show(_table(f"{options.model}, by codec", codecs, whole))
        output.show("")
        output.show(_table(f"{options.model}, by kind of question", reading.by_kind(answers), None))
        output.show("")
    if ended:
        output.show(f"{len(answers):,} of {len(cases):,} questions: {ended}.")
    output.show(verdict)
    for tool, names in left_out.items():
        output.show(f"\n[{toml_key(('learned', tool))}]\nwithout = {toml_value(tuple(names))}", whole=True)


def _table(title: str, rows: Sequence[ReadingFigures], whole: ReadingFigures | None) -> Table:
    columns = ["", "asked", "tokens", "original", "form", "difference", "95 of 100", "verdict"]
    scored = any(row.nats for row in rows)
    if scored:
        columns += ["nats a token", "95 of 100"]
    total = _cells(whole, scored=scored) if whole else ()
    return output.table(title, columns, [_cells(row, scored=scored) for row in rows], total=total)


def _cells(row: ReadingFigures, *, scored: bool) -> list[str]:
    cells = [
        row.name,
        f"{row.asked:,}",
        f"{row.tokens:.2f}",
        f"{row.original:.0%}",
        f"{row.form:.0%}",
        f"{100 * row.difference:+.0f}",
        f"{100 * row.low:+.0f} to {100 * row.high:+.0f}",
        row.verdict,
    ]
    if scored:
        nats = row.nats or (0.0, 0.0, 0.0)
        cells += [f"{nats[0]:+.2f}", f"{nats[1]:+.2f} to {nats[2]:+.2f}"]
    return cells
