"""The command line, run as a user runs it: exit codes, one clear line for bad input, JSON, help with an example."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagefold import __version__
from pagefold.adapters.library import Library
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.model_proxy_lock import hold_model_proxy_lock
from pagefold.adapters.recordings import example
from pagefold.adapters.stores import open_store
from pagefold.cli import COMMANDS
from pagefold.cli.command_parser import tokens
from pagefold.derive.policies import LIVE
from pagefold.pages.contents import ContentsEntry, called, contents_page
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from tests.analysis.logs import claude_code
from tests.cli.program import pagefold

SESSION = {"id": "s", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


def sessions(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_the_version_is_told(tmp_path: Path) -> None:
    assert pagefold("--version", home=tmp_path).stdout.decode() == f"pagefold {__version__}\n"


def test_importing_the_package_reads_no_file_but_its_own_code() -> None:
    program = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import pagefold\n"
        "print([name for name in opened if not name.endswith(('.py', '.pyc'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_demo_tells_its_story_with_the_next_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = pagefold("demo", home=tmp_path).stdout.decode()
    told = json.loads(pagefold("demo", "--json", home=tmp_path).stdout)

    assert [line[0] for line in shown.splitlines() if line[1:3] == ". "] == ["1", "2", "3", "4", "5"]
    assert "pagefold report" in shown.split("Next")[1]
    assert "pagefold run claude" in shown.split("Next")[1]
    lossless, said = told["lossless"], " ".join(shown.split())
    assert f"{lossless['saved']:.0%} less, or {lossless['saved_with_a_large_head']:.0%} with a system prompt" in said
    assert 0 < lossless["saved_with_a_large_head"] < lossless["saved"]
    report = json.loads(pagefold("report", example(), "--json", home=tmp_path).stdout)["bill"]
    assert (told["replay"]["usd"], lossless["saved"]) == (
        report["paid"]["prompt_usd"],
        report["policies"]["lossless"]["saved_share"],
    )
    assert 0 < told["fold"]["saved"] < 1
    assert told["fold"]["handles"] > 0
    assert told["store"]["exact"] == told["store"]["results"] > 0
    assert told["proxy"]["identical"] == told["proxy"]["requests"] == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_speaks_json(command: str, tmp_path: Path) -> None:
    text = pagefold(command, "--help", home=tmp_path).stdout.decode()

    assert f"pagefold {command}" in text.split("xample")[-1]
    assert "--json" in text


def test_an_unknown_command_or_flag_exits_with_two(tmp_path: Path) -> None:
    assert b"invalid choice" in pagefold("fly", home=tmp_path, code=2).stderr
    assert b"unrecognized arguments" in pagefold("replay", "--fly", home=tmp_path, code=2).stderr


def test_replay_without_a_path_says_where_it_looked_and_replays_the_example(tmp_path: Path) -> None:
    done = pagefold("replay", home=tmp_path)

    said = done.stderr.decode()
    assert f"Claude Code: no logs in {tmp_path / '.claude' / 'projects'}" in said
    assert f"Codex: no logs in {tmp_path / '.codex' / 'sessions'}" in said
    assert "bundled example" in said
    assert "claude-code" in done.stdout.decode()


def test_replay_without_a_path_finds_the_logs_of_this_computer(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    sessions(
        folder / "log.jsonl",
        {"type": "user", "sessionId": "mine", "message": {"role": "user", "content": "hi"}},
        {"type": "assistant", "sessionId": "mine", "message": {"id": "m", "content": [{"type": "text", "text": "y"}]}},
    )

    done = pagefold("replay", "--json", home=tmp_path)

    assert "Claude Code: 1 log in" in done.stderr.decode()
    assert [session["id"] for session in json.loads(done.stdout)["sessions"]] == ["mine"]


def test_without_logs_of_ones_own_the_days_asked_for_do_not_empty_the_report_of_the_example(tmp_path: Path) -> None:
    done = pagefold("report", "--days", "1", "-o", "page.html", "--md", home=tmp_path)
    told = json.loads(pagefold("report", "--days", "1", "--json", home=tmp_path).stdout)

    assert told["bill"]["requests"] > 0
    for text in (done.stdout.decode(), done.stderr.decode(), (tmp_path / "page.html").read_text(), told["notes"][0]):
        assert "these are not your sessions" in text
        assert "went on since" not in text
    own = tmp_path / ".claude" / "projects" / "p"
    own.mkdir(parents=True)
    (own / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claude_code("s", range(3), "2025-11-09")))
    assert (
        b"No session in these recordings went on since"
        in pagefold("report", "--days", "1", home=tmp_path, code=2).stdout
    )


def test_replay_as_json_tells_sessions_sources_and_the_total(tmp_path: Path) -> None:
    path = sessions(tmp_path / "two.jsonl", SESSION, SESSION | {"id": "t", "source": "elsewhere"})

    told = json.loads(pagefold("replay", path, "--json", home=tmp_path).stdout)

    assert [session["id"] for session in told["sessions"]] == ["s", "t"]
    assert set(told["sources"]) == {"two", "elsewhere"}
    assert told["total"]["requests"] == 2
    assert told["total"]["cost_usd"] > 0
    assert (told["policy"], told["tokens"], told["problems"]) == (
        "identity",
        "o200k, exact for models of OpenAI only",
        0,
    )


def test_replay_of_nothing_usable_is_still_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()

    told = json.loads(pagefold("replay", path, "--json", home=tmp_path, code=2).stdout)

    assert (told["sessions"], told["skipped"]) == ([], 1)


@pytest.mark.parametrize("command", ["replay", "tune", "report", "compare"])
def test_a_file_that_is_no_session_exits_with_two(command: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello world")

    done = pagefold(command, "notes.txt", home=tmp_path, code=2)

    assert "session" in (done.stdout + done.stderr).decode()


def test_what_was_skipped_is_counted_and_shown_and_strict_exits_with_two(tmp_path: Path) -> None:
    path = sessions(tmp_path / "odd.jsonl", SESSION, {"messages": [{"role": "critic", "content": "no"}]})

    loose = pagefold("replay", path, home=tmp_path)
    strict = pagefold("replay", path, "--strict", home=tmp_path, code=2)

    for done in (loose, strict):
        said = done.stderr.decode()
        assert "1 skipped, 0 odd but kept" in said
        assert f'{path}:2: message 0: role "critic": expected one of system' in said


def test_emit_writes_what_the_scorer_reads_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    path, derived = sessions(tmp_path / "s.jsonl", SESSION), tmp_path / "derived.jsonl"

    pagefold("replay", path, "--emit", derived, home=tmp_path)

    assert json.loads(derived.read_text()) == {"session": "s", "turn": 1, "keep": 0, "append": SESSION["messages"][:1]}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["derived.jsonl", "s.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("replay", "gone.jsonl"), "gone.jsonl: no such file, folder or glob"),
        (("replay", "--policy", "magic"), "policy = 'magic': expected one of identity"),
        (("replay", "--overhead", "-1"), "'-1': expected a number of tokens"),
        (("serve", "--policy", "oracle_replay"), "policy = 'oracle_replay': it looks ahead in a recording"),
        (("replay", "--prices", "free"), "prices = 'free': expected the name of a model"),
        (("dashboard", "--port", "99999"), "--port = 99999: expected a whole number from 0 to 65535"),
        (("mcp", "--http", "99999", "--", "server"), "--http 99999: expected a port from 0 to 65535"),
        (("replay", "--window", "0"), "--window = 0: expected a whole number of at least 1"),
        (("replay", "--emit", "no/such/folder"), "--emit no/such/folder: cannot be written"),
        (("replay", "--window", "64x"), "--window: '64x': expected a number of tokens, such as 64000, 64k or 1m"),
        (("run",), "pagefold run: expected an agent to start: claude, codex, opencode or any other program"),
        (("store", "put"), "pagefold store put: expected a FILE"),
        (("store", "put", "gone"), "gone: cannot be read"),
        (("config", "--config", "gone.toml"), "gone.toml: cannot be read"),
    ],
)
def test_bad_input_gets_one_sentence_that_names_it(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    said = pagefold(*arguments, home=tmp_path, code=2).stderr.decode().strip()

    assert message in said
    assert said.splitlines()[-1].startswith("pagefold")
    assert "Traceback" not in said


@pytest.mark.parametrize(("text", "read"), [("64000", 64_000), ("64k", 64_000), ("0.5M", 500_000), ("1_000", 1_000)])
def test_a_window_is_read_as_people_write_it(text: str, read: int) -> None:
    assert tokens(text) == read


def test_the_policies_that_are_served_are_those_that_help_names(tmp_path: Path) -> None:
    help_text = " ".join(pagefold("serve", "--help", home=tmp_path).stdout.decode().split())

    assert [name for name in LIVE if name not in help_text] == []


def test_help_says_which_file_the_mcp_proxy_takes(tmp_path: Path) -> None:
    assert "several servers" in pagefold("mcp", "--help", home=tmp_path).stdout.decode()


def test_init_knows_claude_code_by_the_name_of_its_program_too(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"git": {"command": "mcp-server-git"}}}')

    short, long = (pagefold("init", name, "--dry-run", home=tmp_path).stdout for name in ("claude", "claude-code"))

    assert short == long
    assert b"mcp-server-git" in short


def test_doctor_names_the_policy_that_runs_and_finds_no_fault_in_an_empty_environment(tmp_path: Path) -> None:
    idle = pagefold("doctor", "--offline", home=tmp_path).stdout.decode()
    store = tmp_path / ".local" / "share" / "pagefold" / "store.sqlite3"
    with hold_model_proxy_lock(LocalFiles(store).model_proxy_lock, "economic"):
        busy = pagefold("doctor", "--offline", home=tmp_path).stdout.decode()

    assert "policy: live requests are derived by lossless" in idle
    assert "derives requests by economic; the settings say lossless" in busy
    assert "`pagefold run claude`, which sets it" in idle


@pytest.mark.parametrize("command", ["journal --state", "replay --format", "report --format"])
def test_what_may_be_chosen_is_told_in_the_words_to_type(command: str, tmp_path: Path) -> None:
    said = pagefold(*command.split(), "odd", home=tmp_path, code=2).stderr.decode()

    assert "invalid choice: 'odd' (choose from" in said
    assert "<" not in said


def test_a_wrong_setting_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text("\n[replay]\njobs = 'many'\n")

    said = pagefold("config", home=tmp_path, code=2).stderr.decode()

    assert said == 'pagefold: pagefold.toml:3: replay.jobs = "many": expected a whole number of at least 0\n'


def test_a_file_put_into_the_store_comes_back_byte_for_byte_by_its_handle(tmp_path: Path) -> None:
    content = bytes(range(256)) * 40
    store = ("--store", tmp_path / "store.db")

    handle = pagefold("store", "put", "-", *store, home=tmp_path, stdin=content).stdout.decode().strip()

    assert pagefold("recall", handle, *store, home=tmp_path).stdout == content
    status = json.loads(pagefold("store", "--json", *store, home=tmp_path).stdout)
    assert (status["pages"], status["bytes"]) == (1, len(content))


def test_what_is_unknown_or_of_another_history_is_one_answer_and_a_failure_another(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store.db")
    handle = pagefold("store", "put", "-", *store, home=tmp_path, stdin=b"x").stdout.decode().strip()

    def answer(*arguments: object) -> str:
        return str(json.loads(pagefold("recall", *arguments, "--json", *store, home=tmp_path, code=1).stdout)["answer"])

    assert answer("pf-aaaaaaaaaa") == "unknown"
    assert answer(handle, "--history", "another") == "unknown"
    (tmp_path / "store.db").write_bytes(b"this is no database, whatever its name says" * 100)
    said = pagefold("recall", handle, *store, home=tmp_path, code=1).stderr.decode()
    assert "store.db" in said
    assert "Traceback" not in said


def test_collect_leaves_what_conversations_of_the_last_days_have(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store.db")
    pagefold("store", "put", "-", *store, home=tmp_path, stdin=b"x" * 5000)

    gone = json.loads(pagefold("store", "collect", "--max-bytes", 1000, "--json", *store, home=tmp_path).stdout)

    assert (gone["pages"], gone["bytes"]) == (0, 0)


def test_encode_shows_what_a_result_becomes_and_decode_gives_its_bytes_back(tmp_path: Path) -> None:
    rows = json.dumps(
        [{"id": number, "name": f"item {number}", "state": "open"} for number in range(30)], indent=3
    ).encode()
    store = ("--store", tmp_path / "store.db")
    shown = pagefold("encode", "-", *store, home=tmp_path, stdin=rows)

    assert shown.stdout.startswith(b"[JSON]\n#1\n#1 30 rows: id=0..,name,state=open\n")
    assert b"saved) by json" in shown.stderr
    assert pagefold("decode", "-", *store, home=tmp_path, stdin=shown.stdout).stdout == rows
    alone = pagefold("decode", "-", "--store", tmp_path / "other.db", home=tmp_path, stdin=shown.stdout).stdout
    assert alone == json.dumps(json.loads(rows), separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "content",
    [b"caf\xe9 \xff\xfe and more\n" * 40, b"\x00\xff" * 40, b'["\\ud800", "a"]', b"\xed\xa0\x80" * 80],
    ids=["no UTF-8", "binary", "half a character in JSON", "half characters"],
)
def test_bytes_that_are_no_text_come_out_as_they_went_in(content: bytes, tmp_path: Path) -> None:
    shown = pagefold("encode", "-", "--store", "s.db", home=tmp_path, stdin=content)

    assert shown.returncode == 0
    assert pagefold("decode", "-", "--store", "s.db", home=tmp_path, stdin=shown.stdout).stdout == content
    assert pagefold("decode", "-", "--store", "none.db", home=tmp_path, stdin=shown.stdout).returncode == 0


def test_encode_as_json_tells_the_candidates(tmp_path: Path) -> None:
    told = json.loads(
        pagefold("encode", "-", "--json", "--store", "s.db", home=tmp_path, stdin=b'{"a": [1, 2]}').stdout
    )

    assert (told["text"], told["codecs"], told["candidates"][0][0]) == ('{"a": [1, 2]}', [], "as it is")


def test_a_reader_that_goes_away_is_no_stack_trace(tmp_path: Path) -> None:
    path = sessions(tmp_path / "many.jsonl", *[SESSION | {"id": str(number)} for number in range(3000)])
    command = [sys.executable, "-m", "pagefold", "replay", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        said = run.stderr.read()

    assert run.returncode == 1
    assert b"Traceback" not in said


def test_an_interrupted_replay_leaves_no_half_written_file(tmp_path: Path) -> None:
    # A pipe that nobody fills any further holds the run where it is, whatever the machine is doing.
    pipe, derived = tmp_path / "pipe.jsonl", tmp_path / "derived.jsonl"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "pagefold", "replay", str(pipe), "--emit", str(derived), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run, pipe.open("wb"):
        run.send_signal(2)
        try:
            _, said = run.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # it came just before the run began to wait, which then sleeps through it
            run.send_signal(2)
            _, said = run.communicate(timeout=20)

    assert run.returncode == 130, said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pipe.jsonl"]


def test_search_finds_names_first_limits_to_a_history_and_finding_nothing_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one line\ncall load_config(path) there\n")
    (tmp_path / "other.txt").write_text("load config, load config")
    for name, history in (("notes.txt", "a"), ("other.txt", "b")):
        pagefold("store", "put", name, "--history", history, "--store", "s.db", home=tmp_path)

    found = json.loads(pagefold("search", "load_config", "--json", "--store", "s.db", home=tmp_path).stdout)["found"]
    assert [one["name"] for one in found] == ["notes.txt", "other.txt"]
    assert found[0]["exact"] == ["load_config"]
    words = pagefold("search", "config", "--history", "b", "--store", "s.db", home=tmp_path).stdout.decode()
    assert words.startswith(f"1. {found[1]['handle']} from other.txt (from line 1)\n    load config")
    assert b"No page speaks of" in pagefold("search", "zebra", "--store", "s.db", home=tmp_path).stdout


def test_recall_gives_parts_and_restore_without_a_sink_says_what_to_set(tmp_path: Path) -> None:
    handle = pagefold("store", "put", "-", "--store", "s.db", home=tmp_path, stdin=b"alpha\nbeta\ngamma\n")
    name = handle.stdout.decode().strip()

    assert pagefold("recall", name, "--bytes", "6:10", "--store", "s.db", home=tmp_path).stdout == b"beta"
    assert pagefold("recall", name, "--lines", "2", "--store", "s.db", home=tmp_path).stdout == b"beta\n"
    assert b"no line" in pagefold("recall", name, "--find", "x", "--store", "s.db", home=tmp_path, code=1).stderr
    assert b"--bytes" in pagefold("recall", name, "--bytes", "6", "--store", "s.db", home=tmp_path, code=2).stderr
    assert b"sink.endpoint" in pagefold("restore", "s", "--store", "s.db", home=tmp_path, code=2).stderr


def test_recall_tells_a_page_in_its_place_as_an_agent_is_told_it(tmp_path: Path) -> None:
    page = Page.of(PageKind.EVIDENCE, "made", "Bash make: ok")
    entries = [ContentsEntry(1, "user: mend it"), ContentsEntry(3, called("Bash make: ok"), page.handle)]
    listing = contents_page(entries, [], "", "pf-cccccccccc")
    library = Library(open_store(tmp_path / "s.db"))
    for kept in (page, listing):
        library.put(kept.content, history="h", kind=kept.kind, name=kept.name)
    answered = library.answer_call("context_recall", {"handle": page.handle}, budget=8_000, within="h")
    elsewhere = library.answer_call("context_recall", {"handle": page.handle}, budget=8_000, within="other")
    library.close()
    asked = ("recall", page.handle, "--store", "s.db")

    told = "[message 3 of this conversation, a call and its result; it was done for message 1, user: mend it]\n"
    told += "[before it: message 1, user: mend it]\nmade"
    assert (answered, elsewhere) == ((told, False), ("made", False))
    assert pagefold(*asked, "--history", "h", "--in-place", home=tmp_path).stdout.decode() == told + "\n"
    assert pagefold(*asked, "--history", "h", home=tmp_path).stdout == b"made"
    assert b"--in-place: expected --history" in pagefold(*asked, "--in-place", home=tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("repotr",), "did you mean report"),
        (("report", "--widow", "64k"), "did you mean --window?"),
        (("serve", "--polcy=economic"), "did you mean --policy"),
        (("lab", "solv"), "did you mean solve"),
        (("init", "claud"), "did you mean claude"),
        (("recall", "--budget", "many", "x"), "expected a number of tokens"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_nearest_one(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in pagefold(*words, home=tmp_path, code=2).stderr.decode()


@pytest.mark.parametrize("command", ["replay", "report", "tune", "compare", "export"])
def test_a_file_that_is_no_session_is_a_failure(command: str, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("no session\n")

    pagefold(command, "notes.jsonl", home=tmp_path, code=2)


def test_help_shows_every_command_once_and_the_main_ones_first(tmp_path: Path) -> None:
    shown = pagefold("--help", home=tmp_path).stdout.decode()
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]

    assert sorted(listed) == sorted(COMMANDS)
    assert listed[:2] == ["run", "report"]


@pytest.mark.parametrize(
    ("text", "number"), [("64k", 64_000), ("1M", 1_000_000), ("1.5m", 1_500_000), ("12_000", 12_000)]
)
def test_numbers_of_tokens_are_read_as_they_are_written(text: str, number: int) -> None:
    assert tokens(text) == number


def test_a_text_that_is_no_form_is_printed_as_it_came_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello world\n")
    done = pagefold("decode", "notes.txt", home=tmp_path)

    assert done.stdout == b"hello world\n"
    assert "notes.txt: there was nothing to decode" in done.stderr.decode()


def test_one_page_is_not_several(tmp_path: Path) -> None:
    pagefold("store", "put", "-", "--store", "s.db", home=tmp_path, stdin=b"x")
    said = (
        pagefold("store", "--store", "s.db", home=tmp_path).stdout
        + pagefold("store", "verify", "--store", "s.db", home=tmp_path).stdout
    )

    assert said.decode().count("1 page,") == 2


def test_one_log_is_not_several(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text(json.dumps({"type": "user", "message": {"content": "Hi"}}) + "\n")

    assert "Claude Code: 1 log in" in pagefold("report", home=tmp_path, code=2).stderr.decode()


def test_help_of_mcp_says_which_file_names_servers_and_which_holds_settings(tmp_path: Path) -> None:
    told = " ".join(pagefold("mcp", "--help", home=tmp_path).stdout.decode().split())

    assert "--config FILE several servers, as clients list them (FILE.json); else a settings file" in told


def test_counts_that_are_exact_for_one_vendor_only_say_so(tmp_path: Path) -> None:
    assert "exact for models of OpenAI only" in pagefold("replay", home=tmp_path).stdout.decode()
    assert "estimated" in pagefold("replay", "--tokens", "claude-5", home=tmp_path).stdout.decode()
