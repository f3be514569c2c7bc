"""Asks the cases one after the other within a budget, and keeps every answer to go on from.

A kept answer counts again only for the same model, way of asking and prompt.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pagefold.adapters.model_endpoint import ModelEndpoint
from pagefold.analysis.kept_answers import Budget, KeptAnswers, asked_key
from pagefold.analysis.reading import asking
from pagefold.analysis.reading.cases import ReadingCase
from pagefold.analysis.reading.figures import PairedAnswer
from pagefold.tokens import counter


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
    asked = asked_key("answer", endpoint.model, prompt)
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
    asked = asked_key("likelihood", endpoint.model, prompt, *offered)
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
