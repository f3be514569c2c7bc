"""Tuning: what is fitted never judges, few logs change little, and what is written is read back as it was meant."""

import json
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold import config
from pagefold.analysis import tune as tuning
from pagefold.analysis.engine import Engine, sessions_of
from pagefold.analysis.fit import fitted, observed, turns_of
from pagefold.analysis.follow_up_links import follow_ups
from pagefold.analysis.learned_settings import BEGIN, END, learned_lines, with_learned
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.tune import Tuned, tune
from pagefold.analysis.tuning_options import OptionValue, TuningOption, always, options
from pagefold.analysis.tuning_trials import PARTS, JudgedSession, collect_evidence, is_held_out, judge_session, part_of
from pagefold.derive.cost import ASSUMED
from pagefold.derive.learned import SHIPPED, Folds, Learned, forms_of, learned_of
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import Priors
from pagefold.errors import ConfigError
from pagefold.settings.sections import Settings
from pagefold.settings.tools import FollowUpLink
from pagefold.tools.from_settings import registry_of
from pagefold.tools.registry import ToolRegistry
from tests.analysis.logs import call, result, session, talk, written

JOB = ReplayJob(ASSUMED, "o200k", 200_000)
NAMES = [f"session-{at}" for at in range(400)]
HELD = [name for name in NAMES if is_held_out(name)]
FITTED = [name for name in NAMES if not is_held_out(name)]


def tuned(*paths: Path) -> Tuned:
    return tune(list(paths), JOB, engine=Engine(jobs=1))


def test_every_part_is_a_third_and_always_the_same() -> None:
    parts = Counter(map(part_of, NAMES))

    assert all(0.25 < parts[part] / len(NAMES) < 0.42 for part in range(PARTS))
    assert list(map(part_of, NAMES[:8])) == [2, 0, 2, 1, 0, 1, 0, 2]


@pytest.mark.requirement("S-10-tune-held-back")
def test_what_is_fitted_never_judges(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / f"{name}.jsonl", talk(name, turns=14 + at, lines=400)) for at, name in enumerate(NAMES[:6])
    ]
    seen = [collect_evidence(one, JOB) for one in sessions_of(paths, JOB)]

    [values] = [option for option in options(seen, SHIPPED, ()) if option.name == "values"]
    [value] = values.values

    for part in range(PARTS):
        others = [one for one in seen if one.part != part]
        assert 0 < len(others) < len(seen)
        rows = sum((one.rows for one in others), Counter())
        assert value.learned[part].priors == fitted(rows, [one.turns for one in others]).priors
    assert len({one.priors for one in value.learned}) == PARTS + 1


def test_a_session_judges_what_was_learned_without_it(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", *map(echo, NAMES[:9]))
    each = tuple(replace(SHIPPED, forms=forms_of((), floor)) for floor in (4, 32, 400, 20))
    trials = (each, *map(always, each))

    judged = [judge_session(one, JOB, trials=trials, sampled=tuple(NAMES[:8])) for one in sessions_of([path], JOB)]

    assert judged.pop() is None
    found = [one for one in judged if one]
    assert [one.id for one in found] == NAMES[:8]
    for one in found:
        assert len({figures.cost for figures in one.figures[1 : 1 + PARTS]}) == PARTS
        assert one.figures[0] == one.figures[1 + part_of(one.id)]


@pytest.mark.requirement("S-10-tune-shrinkage")
@pytest.mark.parametrize("number", range(4))
def test_few_logs_change_nothing(number: int, tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", *(talk(name, turns=3) for name in NAMES[:number]))

    found = tuned(path)

    assert found.learned == SHIPPED
    assert not any(change.taken for change in found.changes)
    assert found.sessions == number


def test_sessions_that_would_rather_be_folded_earlier_are(tmp_path: Path, monkeypatch: Any) -> None:
    early = replace(SHIPPED, folds=Folds(miss=300, least=4_000, rent=0.2))
    option = TuningOption("folds", "late", "", (OptionValue("early", always(early)),))
    monkeypatch.setattr(tuning, "options", lambda *given: iter([option]))
    path = written(tmp_path / "logs.jsonl", *(talk(name, turns=36) for name in NAMES[:6]))

    found = tuned(path)

    assert found.after < found.before
    assert found.learned == early
    assert [change.taken for change in found.changes] == [True]
    assert all("of the bill by itself" in change.effect for change in found.changes)


def test_a_change_that_adds_nothing_to_those_before_it_is_passed_over(tmp_path: Path, monkeypatch: Any) -> None:
    early = replace(SHIPPED, folds=Folds(miss=300, least=4_000, rent=0.2))
    given = [TuningOption(name, "late", "", (OptionValue("early", always(early)),)) for name in ("folds", "the same")]
    monkeypatch.setattr(tuning, "options", lambda *_: iter(given))
    path = written(tmp_path / "logs.jsonl", *(talk(name, turns=36) for name in NAMES[:6]))

    found = tuned(path)

    assert [(change.what, change.taken) for change in found.changes] == [("folds", True), ("the same", False)]


def echo(name: str) -> dict[str, Any]:
    """A session in which two blocks come again in every result. The short one needs a low floor to be referred to."""
    block = "\n".join(f"{name} said in line {line} what it has said before, word for word" for line in range(4))
    long = "\n".join(f"{name} repeats in line {line} what it has said before, word for word" for line in range(6))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(8):
        news = "\n".join(f"{turn} of them are done in step {step}" for step in range(4))
        text = f"{news}\n{block}\n{turn} of them are done now\n{long}"
        messages += [
            call("Bash", f"{name}-{turn}", command=f"run {turn}"),
            result("Bash", f"{name}-{turn}", text),
        ]
    return {"id": name, "messages": [*messages, {"role": "assistant", "content": "done"}]}


@pytest.mark.requirement("S-10-tune-held-back")
def test_what_is_worth_a_reference_is_learned_where_the_sessions_held_back_agree(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", *map(echo, NAMES[:10]))

    found = tuned(path)

    [taken] = [change for change in found.changes if change.taken]
    assert (taken.what, taken.before) == ("references.floor", str(SHIPPED.forms.floor))
    assert found.learned.forms.floor == int(taken.after) < SHIPPED.forms.floor
    assert "values on 10 sessions" in taken.evidence
    assert found.after < found.before


def judged(*rows: tuple[float, ...], missed: tuple[int, ...] = (0, 0), requests: int = 10) -> list[JudgedSession]:
    return [
        JudgedSession(
            f"s{at}",
            row[0],
            tuple(
                ReplayFigures(cost=cost, demanded=1_000, missed=number, requests=requests)
                for cost, number in zip(row[1:], missed, strict=True)
            ),
        )
        for at, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "missed", "helps"),
    [
        ([(100, 50, 40), *[(100, 50, 40)] * 5, (10, 10, 10.2)], (0, 0), False),
        ([(100, 50, 40), *[(100, 50, 40)] * 5, (10, 10.2, 10.2)], (0, 0), True),
        ([(100, 50, 40)] * 5, (0, 0), True),
        ([(100, 50, 60)] * 5, (0, 0), False),
        ([(100, 50, 40)] * 5, (0, 2), False),
        ([(100, 50, 40)] * 5, (0, 1), True),
        ([(100, 50, 40)] * 5, (5, 5), True),
        ([(100, 50, 10), *[(100, 50, 51)] * 6], (0, 0), False),
        ([(100, 50, 50)] * 5, (0, 0), False),
        ([(100, 50, 40)], (0, 0), False),
        ([], (0, 0), False),
    ],
    ids=[
        "dearer than without",
        "as it was before",
        "cheaper",
        "dearer",
        "misses",
        "hardly misses",
        "missed before",
        "one session",
        "the same",
        "one alone",
        "none",
    ],
)
def test_a_change_is_taken_only_where_it_is_surely_cheaper(
    rows: list[tuple[float, ...]], missed: tuple[int, ...], helps: bool
) -> None:
    assert tuning._verdict(judged(*rows, missed=missed), (1, 1, 1, 1)).helps is helps


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([(100, 50, 40, 45)] * 4, 1),
        ([(100, 50, 45, 40)] * 4, 2),
        ([*[(100, 50, 49, 48)] * 4, *[(100, 50, 49, 50)] * 4], 1),
        ([(100, 50, 51, 52)] * 4, 0),
        ([(100, 50, 20, 20), *[(100, 50, 50, 51)] * 4], 0),
    ],
    ids=["the cheapest", "whichever it is", "as cheap, and more surely so", "none", "by one session"],
)
def test_of_several_values_the_one_is_picked_that_is_surely_cheapest(rows: list[tuple[float, ...]], best: int) -> None:
    assert tuning._best(judged(*rows, missed=(0, 0, 0)), (1, 2)) == best


@pytest.mark.requirement("S-10-tune-held-back")
def test_every_part_judges_the_value_that_the_others_picked() -> None:
    """One part would have picked another value for itself, and does not get it."""
    rows = [
        replace(one, id=name)
        for name in NAMES[:30]
        for one in judged((100, 50, 40, 49) if part_of(name) == 0 else (100, 50, 51, 48), missed=(0, 0, 0))
    ]
    option = TuningOption("folds.rent", "2", "", tuple(OptionValue(said, always(SHIPPED)) for said in ("1", "3")))

    [weighed] = tuning._weighed(rows, [option])

    assert weighed.picks[0] == 2
    mine = [name for name in NAMES[:30] if part_of(name) == 0]
    assert weighed.verdict.gain <= (1 * len(mine) + 2 * (30 - len(mine))) / 3_000


def test_a_fit_does_not_depend_on_the_order_in_which_sessions_were_read() -> None:
    sessions = [session(name, turns=14, lines=400).messages for name in FITTED[:3]]
    turns = [turns_of(messages) for messages in sessions]
    forward: Counter[Any] = Counter()
    backward: Counter[Any] = Counter()
    for messages in sessions:
        forward.update(observed(messages))
    for messages in reversed(sessions):
        backward.update(observed(messages))

    assert fitted(backward, turns) == fitted(forward, turns)
    assert forward.total()


LINK = FollowUpLink("Read", 0.5, "$files", "path", ("cwd",), (("all", True), ("limit", 3)), 2, 4)
LEARNED = Learned(
    Priors(age=-0.5, bias=0.25),
    TurnsLeft(left=(9, 8, 7, 6, 5, 4)),
    Folds(miss=30_000, rent=0.6),
    forms_of([("Bash", ["delta"]), ('odd "name"', ["json", "hits"])], floor=4),
)


def settings_from(text: str, folder: Path) -> config.LoadedSettings:
    (folder / "pagefold.toml").write_text(text, encoding="utf-8")
    return config.load({"config": "pagefold.toml"}, environment={}, folder=folder)


@pytest.mark.requirement("S-10-tune-file")
def test_what_is_written_is_read_back_as_it_was_meant(tmp_path: Path) -> None:
    text = with_learned("window = 90_000\n", learned_lines(LEARNED, {"Glob": (LINK,)}))

    settings = settings_from(text, tmp_path).settings

    assert learned_of(settings) == LEARNED
    assert settings.window == 90_000
    model = registry_of(settings).find("Glob")
    assert model is not None
    assert model.model.follow_up == (LINK,)


def test_links_that_were_learned_say_nothing_of_a_tools_effect(tmp_path: Path) -> None:
    settings = settings_from(learned_lines(SHIPPED, {"Bash": (LINK,), "Read": (LINK,)}), tmp_path).settings

    for name in ("Bash", "Read"):
        before, after = ToolRegistry().find(name), registry_of(settings).find(name)
        assert before is not None
        assert after is not None
        assert after.model == replace(before.model, follow_up=(LINK,))


@given(st.text(alphabet="ab =\n#[]\"'", max_size=40))
def test_learning_anew_replaces_what_was_learned_and_nothing_else(own: str) -> None:
    try:
        tomllib.loads(own)
    except tomllib.TOMLDecodeError:
        return
    block = learned_lines(LEARNED, {})
    once = with_learned(own, block)

    assert with_learned(once, block) == once
    assert with_learned(once, "").strip() == own.strip()
    assert tomllib.loads(once).items() >= tomllib.loads(own).items()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[folds]\nrent = 1.0\n", "sets folds outside what tune wrote"),
        (f"{BEGIN}\n[folds]\nrent = 1.0\n", "but not"),
        ("window = \n", "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_written_into_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        with_learned(text, f"{BEGIN}\n{END}\n")


def test_nothing_learned_is_nothing_written() -> None:
    assert learned_lines(SHIPPED, {}) == ""
    assert with_learned("window = 9\n", "") == "window = 9\n"


def listing(name: str) -> Any:
    from pagefold.wire.transcripts import parse_line

    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(3):
        listed, read = f"{name}/a{turn}.txt", f"{name}-{turn}"
        messages += [
            call("mcp__filesystem__list_directory", f"l{read}", path=f"{name}/{turn}"),
            result("mcp__filesystem__list_directory", f"l{read}", f"[FILE] a{turn}.txt"),
            call("mcp__filesystem__get_file_info", f"r{read}", path=f"{name}/{turn}/a{turn}.txt"),
            result("mcp__filesystem__get_file_info", f"r{read}", f"size: 3 of {listed}"),
        ]
    messages.append({"role": "assistant", "content": "done"})
    return parse_line(json.dumps({"id": name, "messages": messages}), name=name)


def test_links_are_taken_only_where_they_were_used_on_sessions_held_back() -> None:
    known = ToolRegistry(learned=False)
    learned = follow_ups([listing(name) for name in (*FITTED[:6], *HELD[:6])], ToolRegistry())
    unjudged = follow_ups([listing(name) for name in FITTED[:6]], known)

    assert learned.after.used >= learned.before.used
    assert not unjudged.taken
    assert "early calls used on sessions held back" in learned.effect


def test_settings_that_say_nothing_are_what_ships() -> None:
    assert learned_of(Settings()) == SHIPPED
