"""report, compare, tune and export as a user runs them: odd logs, many files, bad flags, and figures that agree."""

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import session_rows
from pagefold.derive.session_row import SessionRow
from pagefold.telemetry.events import TurnEvent, line_of
from tests.analysis.logs import talk, written
from tests.cli.program import pagefold

COMMANDS = ("report", "compare", "tune", "export")
ODD = {
    "empty": "",
    "blank": "\n\n",
    "prose": "this is no recording\n",
    "binary": "\x00\x01\x02",
    "cut off": '{"id": "s", "messages": [{"role": "user"',
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return written(tmp_path / "logs.jsonl", *(talk(f"s{at}", turns=4 + at) for at in range(3)))


def test_a_report_is_written_and_its_figures_are_those_of_replay(logs: Path, tmp_path: Path) -> None:
    done = pagefold("report", logs, "-o", "saved.html", "--json", home=tmp_path)
    told = json.loads(done.stdout)

    assert (tmp_path / "saved.html").read_text().startswith("<!doctype html>")
    assert b"Wrote saved.html: 3 sessions" in done.stderr
    for policy in ("identity", "lossless", "economic"):
        replayed = json.loads(pagefold("replay", logs, "--policy", policy, "--json", home=tmp_path).stdout)
        assert told["policies"][policy]["total"] == replayed["total"]
        assert told["policies"][policy]["sources"] == replayed["sources"]


def test_markdown_goes_to_the_terminal(logs: Path, tmp_path: Path) -> None:
    done = pagefold("report", logs, "--md", home=tmp_path)

    assert done.stdout.decode().startswith("# What your agents cost, and what pagefold would save\n\n3 sessions, ")
    assert "by `pagefold run` as it comes" in done.stdout.decode()
    assert not (tmp_path / "pagefold-report.html").exists()


def test_compare_ranks_and_says_why(logs: Path, tmp_path: Path) -> None:
    table = pagefold("compare", logs, "--policies", "lossless,compaction", home=tmp_path).stdout.decode()
    told = json.loads(pagefold("compare", logs, "--policies", "lossless", "--json", home=tmp_path).stdout)

    assert "lossless at 200,000 wins" in " ".join(table.split())
    assert [row["policy"] for row in told["ranked"]] == ["lossless", "identity"]


def test_tune_writes_between_its_marks_and_show_tells_what_is_in_force(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / ".config" / "pagefold" / "pagefold.toml"
    file.parent.mkdir(parents=True)
    file.write_text("window = 90_000\n")

    done = pagefold("tune", logs, "-o", file, home=tmp_path)
    assert tomllib.loads(file.read_text())["window"] == 90_000
    assert b"held back" in done.stdout

    assert b"as shipped" in pagefold("tune", "show", home=tmp_path).stdout
    file.write_text("[folds]\nrent = 0.5\n")
    shown = pagefold("tune", "show", home=tmp_path).stdout.decode()
    assert "folds.rent" in shown
    assert "pagefold.toml:2" in shown
    assert json.loads(pagefold("tune", "show", "--json", home=tmp_path).stdout)["learned"] is True


def test_tune_finds_the_decision_trace_and_learns_from_it_how_long_sessions_last(logs: Path, tmp_path: Path) -> None:
    turns = [TurnEvent(at=float(turn), session=f"{at:064x}", status=200) for at in range(30) for turn in range(at + 1)]
    LocalFiles(tmp_path / "store.sqlite3").trace.write_text("".join(f"{line_of(turn)}\n" for turn in turns))

    told = json.loads(pagefold("tune", logs, "--json", home=tmp_path, PAGEFOLD_STORE_PATH="store.sqlite3").stdout)

    assert told["traced"] == 30
    [lasting] = [change for change in told["changes"] if change["what"] == "lasting"]
    assert lasting["evidence"] == f"{told['sessions'] + 30} sessions"


def test_a_dry_run_writes_nothing(logs: Path, tmp_path: Path) -> None:
    pagefold("tune", logs, "-o", "pagefold.toml", "--dry-run", "--json", home=tmp_path)

    assert not (tmp_path / "pagefold.toml").exists()


def test_what_was_exported_can_be_asked(logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    told = json.loads(pagefold("export", logs, "-o", "out", "--json", home=tmp_path).stdout)
    asked = pagefold("export", "--read", "out", "--sql", "SELECT count(*) AS n FROM decisions", "--json", home=tmp_path)

    assert {row["policy"] for row in told["policies"]} == {"identity", "economic"}
    assert json.loads(asked.stdout)[0]["n"] > 0
    wrong = pagefold("export", "--read", "out", "--sql", "SELECT nothing FROM nowhere", home=tmp_path, code=2)
    assert wrong.stderr.decode().startswith("pagefold: --sql: ")


@pytest.mark.requirement("S-10-odd-logs")
@pytest.mark.parametrize("command", COMMANDS)
def test_odd_logs_are_told_and_never_a_stack_trace(command: str, tmp_path: Path) -> None:
    if command == "export":
        pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, text in ODD.items():
        (folder / f"{name}.jsonl").write_text(text)

    done = pagefold(command, folder, home=tmp_path, code=2)
    strict = pagefold(command, folder, "--strict", home=tmp_path, code=2)

    said = (done.stdout + done.stderr + strict.stderr).decode()
    assert "Traceback" not in said
    assert any(words in said for words in ("No session was found", "0 sessions", "Too few"))
    assert any(words in done.stderr.decode() for words in ("skipped", "not a recording"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "missing.jsonl"), "missing.jsonl: no such file"),
        (("report", "LOGS", "-o", "no/such/folder/x.html"), "cannot be written"),
        (("report", "LOGS", "--overhead", "-1"), "'-1': expected a number of tokens"),
        (("compare", "LOGS", "--policies", "nobody"), "policy = 'nobody': expected one of"),
        (("compare", "LOGS", "--policies", ","), "expected names"),
        (("compare", "LOGS", "--windows", "many"), "--windows many: 'many': expected a number of tokens"),
        (("export", "--read", "."), "no sessions-*.parquet there"),
        (("report", "LOGS", "--engine", "ray"), "--engine ray"),
    ],
)
def test_what_the_user_has_to_change_is_one_sentence(
    arguments: tuple[str, ...], said: str, logs: Path, tmp_path: Path
) -> None:
    if "ray" in arguments and find_spec("ray"):
        pytest.skip("ray is installed here")
    if arguments[0] == "export":
        pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    given = [str(logs) if one == "LOGS" else one for one in arguments]

    done = pagefold(*given, home=tmp_path, code=2)

    assert said in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1


@pytest.mark.requirement("S-10-many-files")
def test_ten_thousand_files_are_one_report(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    text = json.dumps(talk("NAME", turns=0))
    for number in range(10_000):
        (folder / f"{number:05}.jsonl").write_text(text.replace("NAME", f"s{number}"))

    done = pagefold("report", folder, "-o", "saved.html", "--jobs", "1", home=tmp_path)

    assert b"Wrote saved.html: 10,000 sessions" in done.stdout
    assert (tmp_path / "saved.html").stat().st_size < 3_000_000


def test_the_report_knows_by_the_proxys_rows_what_ran_behind_it_and_tells_the_trial(tmp_path: Path) -> None:
    said = written(tmp_path / "logs.jsonl", talk("s0", turns=6), talk("s1", turns=6))
    treated = SessionRow("s0", "treated", "lossless", turns=7, windows=0.25, weeks=0.02)
    arms = [treated, SessionRow("held", "held out", "identity", turns=7)]
    session_rows.add(tmp_path / "store.counts.sqlite3", arms)
    (tmp_path / "pagefold.toml").write_text('[store]\npath = "store.sqlite3"\n')

    told = json.loads(pagefold("report", said, "--json", "--config", "pagefold.toml", home=tmp_path).stdout)

    assert told["bill"]["behind"] == 1
    assert told["bill"]["already_saved_usd"] > 0
    assert (told["bill"]["five_hour_windows"], told["bill"]["weekly_windows"]) == (0.25, 0.02)
    assert told["trial"]["sessions"] == {"treated": 1, "held_out": 1, "mixed": 0}
    assert any("saved already" in figure["words"] for figure in told["figures"])


def test_trial_says_how_to_begin_and_what_it_has_seen(tmp_path: Path) -> None:
    assert b"pagefold run --trial 0.2" in pagefold("trial", "--store", "store.sqlite3", home=tmp_path).stdout
    arms = [
        SessionRow(f"s{at}", "treated" if at % 2 else "held out", "lossless", turns=9 + at, usd=1.0 + at % 3)
        for at in range(20)
    ]
    session_rows.add(tmp_path / "store.counts.sqlite3", arms)

    shown = pagefold("trial", "--store", "store.sqlite3", home=tmp_path).stdout.decode()
    told = json.loads(pagefold("trial", "--store", "store.sqlite3", "--json", home=tmp_path).stdout)

    assert "10 sessions behind pagefold (lossless), 10 held out" in " ".join(shown.split())
    assert told["verdict"] in " ".join(shown.split())
    assert told["sessions"] == {"treated": 10, "held_out": 10, "mixed": 0}
