"""Asks the cases one after the other within a budget, and keeps every answer in a file to go on from.

A kept answer counts again only for the same model, way of asking and prompt. A line that a killed run left unfinished
is passed over. The file holds answers and hashes, never a key.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagefold.adapters.model_endpoint import ModelEndpoint
from pagefold.analysis.reading import asking
from pagefold.analysis.reading.cases import ReadingCase
from pagefold.analysis.reading.figures import PairedAnswer
from pagefold.errors import ConfigError
from pagefold.tokens import counter


@dataclass(slots=True)
class Budget:
    """What a run may still spend. A request is begun only while there is some left of both."""

    tokens: int
    seconds: float
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def spend(self, tokens: int) -> None:
        self.spent += tokens

    @property
    def why_ended(self) -> str:
        """Returns what has run out, or "" while nothing has."""
        if self.spent >= self.tokens:
            return f"the budget of {self.tokens:,} tokens is spent"
        return "the time is up" if self.clock() - self._began >= self.seconds else ""


@dataclass(slots=True)
class KeptAnswers:
    """Answers by a hash of what was asked, in memory and, where there is a file, in that."""

    path: Path | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _torn: bool = False

    def __post_init__(self) -> None:
        if self.path is None or not self.path.exists():
            return
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--resume {self.path}: cannot be read ({error})") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.split("\n"):
            try:
                kept = json.loads(line)
                self.known[kept["asked"]] = kept
            except (ValueError, KeyError, TypeError):
                continue  # cut off when a run was killed: it is asked again

    def keep(self, asked: str, value: Mapping[str, Any]) -> dict[str, Any]:
        kept = {"asked": asked, **value}
        self.known[asked] = kept
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("\n" * self._torn + json.dumps(kept) + "\n")
                self._torn = False
            except OSError as error:
                raise ConfigError(f"--resume {self.path}: cannot be written ({error.strerror})") from error
        return kept


def paired_answers(
    cases: Sequence[ReadingCase], endpoint: ModelEndpoint, budget: Budget, kept: KeptAnswers, *, scored: bool
) -> Iterator[PairedAnswer]:
    """Yields the answers to each case until the budget is spent. `scored`: by likelihood among given answers."""
    ask = _scored if scored else _answered
    for case in cases:
        pair: list[dict[str, Any]] = []
        for form in (False, True):
            told = ask(case, endpoint, budget, kept, form=form)
            if told is None:
                return
            pair.append(told)
        original, form_told = pair
        yield PairedAnswer(
            case.session,
            case.codecs,
            case.question.kind,
            case.tool,
            original["right"],
            form_told["right"],
            1 / (1 + len(case.question.wrong)) if scored else 0.0,
            (original["nats"], form_told["nats"]) if scored else None,
            case.tokens,
        )


def _answered(
    case: ReadingCase, endpoint: ModelEndpoint, budget: Budget, kept: KeptAnswers, *, form: bool
) -> dict[str, Any] | None:
    prompt = asking.prompt(case, form=form)
    asked = _key("answer", endpoint, prompt)
    if asked in kept.known:
        told = kept.known[asked]
        return {**told, "right": asking.is_right(told["answer"], case.question)}
    if budget.why_ended:
        return None
    answer = endpoint.answer(asking.SYSTEM, prompt)
    budget.spend(answer.prompt_tokens + answer.output_tokens or case.tokens[form])
    right = asking.is_right(answer.text, case.question)
    about = {"case": case.id, "form": form, "kind": case.question.kind, "codecs": list(case.codecs)}
    return kept.keep(asked, {**about, "answer": answer.text, "right": right})


def _scored(
    case: ReadingCase, endpoint: ModelEndpoint, budget: Budget, kept: KeptAnswers, *, form: bool
) -> dict[str, Any] | None:
    prompt = asking.scored_prompt(case, form=form)
    offered = asking.options(case.question, case.id)
    asked = _key("likelihood", endpoint, prompt, *offered)
    if asked in kept.known:
        return kept.known[asked]
    scores = {}
    for option in offered:
        if budget.why_ended:
            return None
        scores[option] = endpoint.likelihood(prompt, option)
        budget.spend(scores[option].prompt_tokens or counter("o200k").count(prompt))
    best = max(offered, key=lambda option: scores[option].by_token)
    about = {"case": case.id, "form": form, "kind": case.question.kind, "codecs": list(case.codecs)}
    nats = -scores[case.question.answer].by_token
    return kept.keep(asked, {**about, "answer": best, "right": best == case.question.answer, "nats": nats})


def _key(way: str, endpoint: ModelEndpoint, *texts: str) -> str:
    said = json.dumps([way, endpoint.model, *texts])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
