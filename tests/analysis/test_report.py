"""Reports: their figures against a replay's, every token of the bill somebody's, and pages that open anywhere."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pagefold.analysis import session_report as reporting
from pagefold.analysis.engine import Engine, run_on_sessions, sessions_of
from pagefold.analysis.replay import Terms, replay
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.figures import figures_of, warnings_of
from pagefold.analysis.report.html_page import page
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import POLICIES, ReportOptions, SessionReport
from pagefold.analysis.timeline import timeline
from pagefold.charts import CostPoint, is_unbeaten
from pagefold.derive.cost import ASSUMED
from pagefold.derive.learned import Folds, Learned
from pagefold.derive.policies import policy_named
from pagefold.pages.kinds import ResidencyLevel
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session, parse_line
from tests.analysis.logs import session, talk, written
from tests.shared import FAMILIES, needs_traces

PRICES = ASSUMED
# Folded early, so that a short session shows all there is to show.
EARLY = Learned(folds=Folds(miss=300, least=4_000, cold=2_000, rent=0.2))
JOB = ReplayJob(PRICES, "o200k", 200_000, learned=EARLY)
LONG = session("long", turns=30)
_CHROMIUM = Path("/usr/bin/chromium")


def terms(name: str, job: ReplayJob = JOB) -> Terms:
    """Made here and not by the job, which the figures are checked against."""
    policy = policy_named(name, window=job.window, prices=job.prices, tokens=job.tokens, learned=job.learned)
    return Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead)


def session_report(recorded: Session, job: ReplayJob) -> SessionReport:
    return reporting.session_report(recorded, job, options=ReportOptions())


def report_of(path: Path, **options: Any) -> SavingsReport:
    asked = ReportOptions(**options)
    report = SavingsReport(JOB, asked)
    for one in run_on_sessions([path], partial(reporting.session_report, options=asked), JOB, Engine(jobs=1)):
        report.add(one)
    return report


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("overhead", [0, 20_000])
@pytest.mark.requirement("S-10-report-figures")
def test_the_figures_of_a_study_are_those_of_a_replay(name: str, overhead: int) -> None:
    job = replace(JOB, overhead=overhead)

    for one in (LONG, session("short", turns=2)):
        assert session_report(one, job).figures[name].to_dict() == replay(one, terms(name, job)).to_dict()


def test_every_token_of_the_bill_is_somebodys() -> None:
    times = [float(at * 400 if at % 9 == 0 else at) for at in range(61)]
    for one in (LONG, parse_line(json.dumps(talk("cold", turns=29, times=sorted(times)[:60])), name="cold")):
        found = session_report(one, JOB)

        assert sum(share.cost for share in found.tools.values()) == pytest.approx(found.figures["identity"].cost)
        assert sum(share.after for share in found.tools.values()) == pytest.approx(found.figures["economic"].cost)
        assert "(system prompt and tools)" not in found.tools
        assert sum(found.folds.values()) > 0


def test_a_history_that_has_to_be_repaired_is_reckoned_as_a_replay_does() -> None:
    broken = talk("broken", turns=30)
    del broken["messages"][4]
    broken["messages"].insert(9, {"role": "tool", "tool_call_id": "nobody", "name": "Read", "content": "orphan_1"})
    one = parse_line(json.dumps(broken), name="broken")

    found = session_report(one, JOB)

    for name in POLICIES:
        assert found.figures[name].to_dict() == replay(one, terms(name)).to_dict()
    assert sum(share.after for share in found.tools.values()) == pytest.approx(found.figures["economic"].cost)


def test_a_result_that_was_read_again_and_the_one_that_wasted_most_are_named() -> None:
    found = session_report(LONG, JOB)

    assert found.reread["Read src/part_0.py"][0] == 1
    assert "Read src/part_27.py" not in found.reread
    assert found.wasted[0].wasted >= found.wasted[-1].wasted > 0
    assert found.wasted[0].before_text.startswith("     1→def handler_")
    assert found.wasted[0].shown_tokens < found.wasted[0].tokens


@pytest.mark.parametrize(("missed", "told"), [(0, []), (3, []), (4, ["economic misses 0.40 %"])])
def test_folds_that_miss_more_than_compare_allows_are_said_to(missed: int, told: list[str], tmp_path: Path) -> None:
    report = report_of(written(tmp_path / "logs.jsonl", talk("s")))
    report.after.demanded, report.after.missed = 1_000, missed

    assert [said.partition(" of what")[0] for said in warnings_of(report)] == told


def test_how_tokens_are_counted_is_said_in_a_sentence(tmp_path: Path) -> None:
    report = report_of(written(tmp_path / "logs.jsonl", talk("s")))

    assert report.notes()[0] == "Tokens are counted as o200k, exact for models of OpenAI only."
    report.job = replace(report.job, fitted=frozenset({"tokens"}))
    assert report.notes()[0] == (
        "Tokens are counted for the model of each session: exactly for models of OpenAI, estimated for others; as "
        "o200k where no model is known."
    )


def test_without_text_no_word_of_a_log_is_in_the_page(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("private", turns=30))

    told = page(report_of(path, excerpts=False))

    assert "handler_" not in told
    assert "part_" not in told


def test_a_timeline_shows_every_page_from_its_turn_on_and_its_levels() -> None:
    told = timeline(LONG, terms("identity"), terms("economic"))

    assert len(told.before) == len(told.after) == 31
    assert len(told.tracks) == len(LONG.messages) - 1
    assert told.folds
    assert all(mark.why for mark in told.folds)
    assert {ResidencyLevel.FULL, ResidencyLevel.COMPRESSED, ResidencyLevel.STRUCTURED} & {
        level for track in told.tracks for _, level in track.levels
    }
    starts = [track.since for track in told.tracks]
    assert starts == sorted(starts)
    assert told.before[-1] > told.after[-1]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.unclosed = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith(("#", "data:")):
                self.outside.append(value)
            assert not name.startswith("on")
        if tag == "script":
            self.outside.append(tag)
        if tag not in ("meta", "link", "rect", "line", "circle", "path", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return None

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in ("polyline",):
            self.unclosed += 1


def test_a_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=30), talk("two", turns=4))
    report = report_of(path, rivals=(("clear", 200_000), ("compaction", 200_000)))
    report.timeline = timeline(LONG, terms("identity"), terms("economic"))
    reader = _Reader()

    told = page(report)
    reader.feed(told)

    assert (reader.open, reader.unclosed, reader.outside) == ([], 0, [])
    assert "url(" not in told
    assert "@import" not in told


def test_every_section_says_a_click_away_how_its_figures_were_got(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=30), talk("two", turns=4))
    report = report_of(path, rivals=(("clear", 200_000), ("compaction", 200_000)))
    report.timeline = timeline(LONG, terms("identity"), terms("economic"))
    cards, *sections = page(report).split("<h2")

    assert cards.count("<summary>how</summary>") == cards.count("<b>") == len(figures_of(report))
    without = [section.partition("</h2>")[0] for section in sections if "<summary>how</summary>" not in section]
    assert [title.rpartition(">")[2] for title in without] == [
        "The results that cost most beyond need",
        "What was measured, and what was estimated",
    ]


def test_what_a_log_says_never_becomes_markup(tmp_path: Path) -> None:
    evil = talk("<img src=x onerror=alert(1)>", turns=30)
    text = json.dumps(evil).replace('"Read"', json.dumps("</td><script>alert(2)</script>"))
    path = written(tmp_path / "logs.jsonl", text)

    report = report_of(path)

    for told in (page(report), markdown(report)):
        assert "<script" not in told.replace("\\<", "")
        assert "<img" not in told.replace("\\<", "")


@pytest.mark.parametrize(
    ("lines", "sessions", "problems"),
    [
        ((), 0, 1),
        (("",), 0, 1),
        (("not JSON at all",), 0, 1),
        (({"id": "s", "messages": []},), 1, 0),
        (({"id": "s", "messages": [{"role": "user", "content": "hi"}]},), 1, 0),
        ((talk("one", turns=1),), 1, 0),
        ((talk("one", turns=1), '{"id": "cut off", "messages": [{"role"'), 1, 1),
    ],
    ids=["empty", "blank", "no JSON", "no messages", "no answer", "one session", "cut off"],
)
@pytest.mark.requirement("S-10-odd-logs")
def test_logs_with_little_or_nothing_in_them_give_a_sensible_page(
    lines: tuple[object, ...], sessions: int, problems: int, tmp_path: Path
) -> None:
    report = report_of(written(tmp_path / "logs.jsonl", *lines))

    told, plain, data = page(report), markdown(report), report.to_dict()

    assert report.sessions == sessions
    assert (report.problems.count >= 1) is bool(problems)
    assert ("No session was found" in told) is ("No session was found" in plain) is (sessions == 0)
    assert ("What could not be used" in told) is bool(problems)
    assert json.loads(json.dumps(data))["sessions"] == sessions
    assert "nan" not in told.lower().replace("unan", "")


def test_nobody_beats_the_points_in_bold(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=30))
    found = report_of(path, rivals=(("masking", 200_000), ("clear", 200_000))).points()
    points = [CostPoint(str(one.choice), one.effective, one.missed) for one in found]

    for one in points:
        beaten = [
            other
            for other in points
            if other.effective <= one.effective
            and other.missed <= one.missed
            and (other.effective, other.missed) != (one.effective, one.missed)
        ]
        assert is_unbeaten(one, points) is (not beaten)


@needs_traces
@pytest.mark.requirement("S-10-report-figures")
def test_on_recorded_sessions_the_bill_adds_up_and_equals_the_replay() -> None:
    path = next(path for path in FAMILIES if path.name.startswith("coding-short"))
    job = replace(JOB, learned=Learned())
    for one in islice(sessions_of([path], job), 8):
        found = session_report(one, job)
        for name in POLICIES:
            assert found.figures[name].to_dict() == replay(one, terms(name, job)).to_dict()
        assert sum(share.after for share in found.tools.values()) == pytest.approx(found.figures["economic"].cost)


@pytest.fixture
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not _CHROMIUM.exists():
        pytest.skip(f"no Chromium at {_CHROMIUM}")
    with sync_api.sync_playwright() as started:
        made = started.chromium.launch(executable_path=str(_CHROMIUM), args=["--no-sandbox"])
        yield made
        made.close()


@pytest.mark.requirement("S-10-report-browser")
def test_in_a_browser_a_page_asks_nothing_of_the_network_and_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=30), talk("two", turns=4))
    report = report_of(path, rivals=(("clear", 200_000), ("masking", 200_000)))
    report.timeline = timeline(LONG, terms("identity"), terms("economic"))
    file = tmp_path / "report.html"
    file.write_text(page(report), encoding="utf-8")
    assert file.stat().st_size <= 3_000_000

    for scheme, width in (("light", 1200), ("dark", 1200), ("light", 390)):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        opened = context.new_page()
        said: list[str] = []
        asked: list[str] = []
        opened.on("console", lambda message, said=said: said.append(message.text))
        opened.on("pageerror", lambda error, said=said: said.append(str(error)))
        opened.on("request", lambda request, asked=asked: asked.append(request.url))
        opened.goto(file.as_uri())

        assert said == []
        assert [url for url in asked if not re.match(r"file:|data:", url)] == []
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.locator("h1").inner_text() == "What your agents cost, and what pagefold would save"
        assert opened.locator("svg[role=img]").count() == 2
        context.close()
