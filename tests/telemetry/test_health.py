"""`doctor` reads the metrics of a running proxy, and says what has to be done."""

import json
from pathlib import Path

import pytest

from pagefold.cli import main
from pagefold.telemetry.health import health_lines, parsed
from pagefold.telemetry.metrics import Sample, of_workers, render
from tests.dashboard.traffic import Agent, behind, settled

WELL = (
    Sample("pagefold_requests_total", 1200),
    Sample("pagefold_store_out", 0),
    Sample("pagefold_memory_bytes", 200 << 20),
    Sample("pagefold_histories", 7),
    Sample("pagefold_histories_bytes", 3 << 20, (("what", "used"),)),
    Sample("pagefold_histories_bytes", 512 << 20, (("what", "most"),)),
)

SICK = [
    ((Sample("pagefold_store_out", 1), Sample("pagefold_store_errors_total", 2, (("kind", "late"),))), "late 2", True),
    ((Sample("pagefold_store_errors_total", 2, (("kind", "gone"),)),), "has failed before (gone 2)", False),
    ((Sample("pagefold_own_faults_total", 3, (("surface", "model"),)),), "3 faults of pagefold itself", True),
    ((Sample("pagefold_refused_total", 4, (("why", "too many"),)),), "4 clients were turned away (too many)", False),
    ((Sample("pagefold_sink_backlog", 9, (("what", "pages"),)),), "9 pages have not reached", False),
    ((Sample("pagefold_requests_failed_total", 600),), "1,200 requests passed, 600 of them failed", True),
    ((Sample("pagefold_requests_failed_total", 599),), "1,200 requests passed, 599 of them failed", False),
    (tuple(of_workers(2, 1)), "workers ended 1 times", True),
    (
        (
            Sample("pagefold_added_seconds", 5.0, (("step", "queue"),), "_sum"),
            Sample("pagefold_added_seconds", 10, (("step", "queue"),), "_count"),
        ),
        "waits 500.0 ms",
        True,
    ),
]


def test_a_proxy_that_is_well_has_nothing_to_be_done() -> None:
    lines = list(health_lines(parsed(render(WELL))))
    assert [line.text for line in lines] == [
        "1,200 requests passed, 0 of them failed",
        "the store works and has not failed",
        "200 MB of memory; 7 histories are remembered in 3 of 512 MB",
    ]
    assert not any(line.remedy for line in lines)


@pytest.mark.parametrize(("samples", "words", "is_to_be_done"), SICK)
def test_what_is_wrong_is_said(samples: tuple[Sample, ...], words: str, is_to_be_done: bool) -> None:
    others = [sample for sample in WELL if sample.name not in {wrong.name for wrong in samples}]
    lines = [line for line in health_lines(parsed(render((*others, *samples)))) if words in line.text]
    assert [bool(line.remedy) for line in lines] == [is_to_be_done]


def test_the_doctor_asks_a_running_proxy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with behind(tmp_path, 8) as proxied:
        Agent(proxied.url, "ada").turn()
        settled(proxied, 1)
        monkeypatch.setenv("PAGEFOLD_SERVE_PORT", proxied.url.rpartition(":")[2])
        main(["doctor", "--offline", "--json", "--store", proxied.settings.store.path])
        findings = json.loads(capsys.readouterr().out)
    texts = [finding["found"] for finding in findings if finding["about"] == "proxy"]
    assert texts[:2] == [f"a pagefold serves on {proxied.url}", "1 request passed, 0 of them failed"]
    assert any("the store works" in text for text in texts)
