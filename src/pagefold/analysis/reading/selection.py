"""Chooses which cases are asked: as evenly as can be among codecs, then among kinds of questions, by a seeded draw."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from pagefold.analysis.reading.cases import ReadingCase
from pagefold.analysis.reading.question import Kind

_LEAST_DRAWN = 40


def chosen(cases: Iterable[ReadingCase], most: int, seed: int) -> list[ReadingCase]:
    """Returns at most so many cases. The next one always has the codec, and of that the kind, with the fewest so far.

    No question is asked twice about the same text: recordings hold copies of each other.
    """
    waiting: dict[str, dict[str, list[ReadingCase]]] = {}
    for case in sorted(_drawn(cases, max(_LEAST_DRAWN, most // 4), seed), key=lambda case: _rank(case, seed)):
        for codec in case.codecs:
            waiting.setdefault(codec, {}).setdefault(_sort(case), []).append(case)
    taken: dict[str, ReadingCase] = {}
    by_codec: Counter[str] = Counter()
    by_kind: Counter[tuple[str, str]] = Counter()
    while waiting and len(taken) < most:
        codec = min(waiting, key=lambda name: (by_codec[name], name))
        kinds = waiting[codec]
        kind = min(kinds, key=lambda name: (by_kind[codec, name], name.startswith(Kind.OUTCOME), name))
        case = kinds[kind].pop(0)
        if not kinds[kind]:
            del kinds[kind]
        if not kinds:
            del waiting[codec]
        if case.id not in taken:
            taken[case.id] = case
            by_codec.update(case.codecs)
            by_kind.update((name, kind) for name in case.codecs)
    return list(taken.values())


def _sort(case: ReadingCase) -> str:
    """Returns the kind of a question. Outcomes are two kinds, so that success and failure are asked about alike."""
    kind = case.question.kind
    return f"{kind}: {case.question.answer}" if kind is Kind.OUTCOME else kind


def _drawn(cases: Iterable[ReadingCase], most: int, seed: int) -> list[ReadingCase]:
    """Returns at most so many cases of each kind and combination of codecs: recordings may be larger than memory."""
    held: dict[tuple[str, ...], dict[str, ReadingCase]] = {}
    met: set[bytes] = set()
    for case in cases:
        key = hashlib.sha256(f"{case.question.text} {case.result}".encode("utf-8", "surrogatepass")).digest()
        if key in met:
            continue
        met.add(key)
        group = held.setdefault((_sort(case), *case.codecs), {})
        group[_rank(case, seed)] = case
        if len(group) > most:
            del group[max(group)]
    return [case for group in held.values() for case in group.values()]


def _rank(case: ReadingCase, seed: int) -> str:
    return hashlib.sha256(f"{seed} {case.id}".encode()).hexdigest()
