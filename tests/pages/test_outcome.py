"""How a call ended, by what its result says."""

import pytest

from pagefold.pages.outcome import Outcome, ending_of
from tests.pages.files.sessions import cat_n, file_of, model_of, whole_text

RETURNED = '[{"type":"text","text":"made"},{"type":"text","text":"\\nCommand completed with return code: %s"}]'
ENDINGS = [
    ("ok", Outcome.OK),
    ("", Outcome.OK),
    ("Found 3 errors in the log of yesterday", Outcome.OK),
    ("def fail():\n    raise Error", Outcome.OK),
    ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.", Outcome.OK),
    ("<returncode>0</returncode>\n<output>\n</output>", Outcome.OK),
    ("<tool_use_error>File does not exist.</tool_use_error>", Outcome.FAILED),
    ("Exit code 1\nboom", Outcome.FAILED),
    ("Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 127\nOutput:\nnot found", Outcome.FAILED),
    ("<returncode>1</returncode>\n<output>\n</output>", Outcome.FAILED),
    ("<returncode>-9</returncode>", Outcome.FAILED),
    ('{"output":"x","metadata":{"exit_code": 1}}', Outcome.FAILED),
    ("No replacement was performed, old_str did not appear", Outcome.FAILED),
    ("apply_patch verification failed: no such lines", Outcome.FAILED),
    ("The user doesn't want to proceed with this tool use. The tool use was rejected", Outcome.REFUSED),
    ("The user doesn't want to take this action right now.", Outcome.REFUSED),
    ("patch rejected by user", Outcome.REFUSED),
    ("[Request interrupted by user for tool use]", Outcome.INTERRUPTED),
    ("Exit code 137\n[Request interrupted by user for tool use]\n=== RUN   TestWheel", Outcome.INTERRUPTED),
    ('{"type":"text","text":"Error executing tool read: no such sheet"}', Outcome.FAILED),
    ('{"type":"text","text":"Error codes of the mill"}', Outcome.FAILED),
    ('{"type":"text","text":"There was no Error"}', Outcome.OK),
    (
        '[{"type":"text","text":"made"},{"type":"text","text":"\\nCommand completed with return code: 127"}]',
        Outcome.FAILED,
    ),
    ('[{"type":"text","text":"made"},{"type":"text","text":"\\nCommand completed with return code: 0"}]', Outcome.OK),
    ('{"type":"image","data":"Error"}', Outcome.OK),
    ("=== STDOUT ===\nno\n=== EXECUTION INFO ===\nReturn code: 1\nTimeout limit: 30 seconds", Outcome.FAILED),
    ("=== STDOUT ===\nyes\n=== EXECUTION INFO ===\nReturn code: 0\nTimeout limit: 30 seconds", Outcome.OK),
    ("=== EXECUTION TIMEOUT ===\nTimeout limit: 30 seconds", Outcome.FAILED),
    ("MCP error -32602: Input validation error: Invalid arguments for tool get", Outcome.FAILED),
    ("Search failed — ripgrep rejected the pattern", Outcome.FAILED),
    ("The server returned HTTP 404 Not Found.", Outcome.FAILED),
    ("Failed to fetch https://mill.example: HTTP error: 403", Outcome.FAILED),
    ("Failed to grind is what the book is called.\n" + "A long report of it. " * 40, Outcome.OK),
    ("Access denied: Log 'mill' is not in allowed log buckets list", Outcome.FAILED),
]


@pytest.mark.parametrize(("text", "outcome"), ENDINGS)
def test_a_result_says_how_its_call_ended(text: str, outcome: Outcome) -> None:
    ending = ending_of(text)

    assert ending.outcome is outcome
    assert bool(ending.line) is (outcome is not Outcome.OK)


def test_what_the_wire_calls_failed_is_failed_and_a_refusal_stays_one() -> None:
    assert ending_of("all is well", failed=True).outcome is Outcome.FAILED
    assert ending_of("User rejected it", failed=True).outcome is Outcome.REFUSED


def test_the_line_is_the_one_that_tells_of_the_failure() -> None:
    text = "Chunk ID: 1\nProcess exited with code 1\nOutput:\ncollected 4 items\nE  assert failed: 1 == 2\n"

    assert ending_of(text).line == "E  assert failed: 1 == 2"


def test_a_failure_without_words_is_told_by_its_exit_code() -> None:
    silent = "Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 1\nOriginal token count: 0\nOutput:\n"

    assert ending_of(silent).line == "Process exited with code 1"


@pytest.mark.parametrize(
    ("script", "text", "outcome", "line"),
    [
        (
            "go build ./... 2>&1 | head",
            "a.go:3:2: cannot use x as int value",
            Outcome.UNCLEAR,
            "a.go:3:2: cannot use x as int value",
        ),
        (
            "cat > inspect.py <<'EOF'\nimport re\nEOF\npython inspect.py",
            "Traceback (most recent call last):\nImportError: no",
            Outcome.UNCLEAR,
            "ImportError: no",
        ),
        ('cd src && grep -n "a\\|b" mill.py', "Exit code 1", Outcome.OK, "no match"),
        (
            "mise run test | tail -50",
            "ok\n--- FAIL: TestRewind (0.1s)\nend",
            Outcome.UNCLEAR,
            "--- FAIL: TestRewind (0.1s)",
        ),
        ("mise run lint | tail", "[lint] ERROR task failed", Outcome.UNCLEAR, "[lint] ERROR task failed"),
        (
            "./mill enable; echo done",
            "Error: not a git repository\ndone",
            Outcome.UNCLEAR,
            "Error: not a git repository",
        ),
        ("grep -rn FAIL .", "--- FAIL: TestRewind (0.1s)", Outcome.OK, ""),
        ("make test", "12 passed, 0 failed, 0 errors", Outcome.OK, ""),
        ("make test", "Exit code 2\n3 failed", Outcome.FAILED, "3 failed"),
        ("", "Error: no such page", Outcome.FAILED, "Error: no such page"),
        ("ls cmd 2>&1 | head", "ls: cannot access 'cmd': No such", Outcome.UNCLEAR, "ls: cannot access 'cmd': No such"),
        ("cd src; ls", "bash: line 1: cd: src: No such file", Outcome.UNCLEAR, "bash: line 1: cd: src: No such file"),
        (
            "go test -v ./...",
            "Failed to fetch: no remote\n--- PASS: TestFetch\nok",
            Outcome.UNCLEAR,
            "Failed to fetch: no remote",
        ),
        ("go test -v ./...", "=== RUN\nFailed to fetch: no remote\n--- PASS: TestFetch", Outcome.OK, ""),
        ("python diff.py | tail", "diff: -10.0 (negative!)\ngrep: a.pyc: binary file matches", Outcome.OK, ""),
        ("python run.py", "Return code: 1 was expected", Outcome.OK, ""),
        ("cat build.log", "ls: cannot access 'cmd': No such file", Outcome.OK, ""),
        ("mise run test | tail", "mise ERROR no tasks defined", Outcome.UNCLEAR, "mise ERROR no tasks defined"),
        ("./mill explain 2>&1 | head", "failed to explain: no JSON", Outcome.UNCLEAR, "failed to explain: no JSON"),
        ("python a.py", "Test 2:\n  Error: dropped rows\n", Outcome.UNCLEAR, "Error: dropped rows"),
        (
            "python a.py",
            "Test 2:\n  Failed with return code 1\n  stderr: Traceback (most recent call last):",
            Outcome.UNCLEAR,
            "Failed with return code 1",
        ),
        (
            "python a.py",
            "x\n  stderr: Traceback (most recent call last):",
            Outcome.UNCLEAR,
            "stderr: Traceback (most recent call last):",
        ),
        ("python a.py", "rows\n        Error: a line of a listing", Outcome.OK, ""),
        (
            "go test -run Wheel ./...",
            "--- PASS: TestWheel (0.0s)\nPASS\nok  \tmill/a\t0.1s\ntesting: warning: no tests to run\nPASS",
            Outcome.OK,
            "",
        ),
        (
            "go test -run Whel ./...",
            "testing: warning: no tests to run\nPASS\nok  \tmill/a\t0.1s [no tests to run]",
            Outcome.UNCLEAR,
            "testing: warning: no tests to run",
        ),
        (
            "go test ./... | tail",
            "--- FAIL: TestWheel (0.1s)\n    a\n--- FAIL: TestStone (0.1s)\n--- FAIL: TestSack (0.1s)\nFAIL",
            Outcome.UNCLEAR,
            "--- FAIL: TestWheel (0.1s) and 2 more that failed",
        ),
        (
            'go build ./... 2>&1 | tail -80 && echo "BUILD_OK"',
            "pattern ./...: directory prefix . does not contain main module or its selected dependencies\nBUILD_OK",
            Outcome.UNCLEAR,
            "pattern ./...: directory prefix . does not contain main module or its selected dependencies",
        ),
        (
            "echo section-clean && go test -count=1 -C src ./... ; git commit --amend --no-edit",
            'section-clean\ninvalid value "src" for flag -C: -C flag must be first flag\nusage: go test\n[b 676b] feat',
            Outcome.UNCLEAR,
            'invalid value "src" for flag -C: -C flag must be first flag',
        ),
        ("", "screenshot failed: timed out after 5s", Outcome.FAILED, "screenshot failed: timed out after 5s"),
        ("", "Web search error: unavailable", Outcome.FAILED, "Web search error: unavailable"),
    ],
)
def test_a_hidden_exit_code_is_neither_called_good_nor_failed(
    script: str, text: str, outcome: Outcome, line: str
) -> None:
    ending = ending_of(text, script=script)

    assert (ending.outcome, ending.line) == (outcome, line)


NOT_RUN = [
    "Security violation: Command 'python3' is not allowed",
    "Permission to use Bash with command rm -rf mill has been denied.",
    "a-model is temporarily unavailable, so auto mode cannot determine the safety of Bash right now.",
]


@pytest.mark.parametrize("text", NOT_RUN)
def test_what_was_not_run_has_failed_and_did_nothing(text: str) -> None:
    ending = ending_of(text, script="rm /srv/mill/a.py")
    read = ("Read", {"file_path": "/srv/mill/a.py"}, cat_n(["one"]))

    assert (ending.outcome, ending.ran, ending.line) == (Outcome.FAILED, False, text)
    model = model_of(read, ("Bash", {"command": "rm /srv/mill/a.py"}, text), ("Agent", {"prompt": "Go."}, text))
    assert whole_text(file_of(model, "/srv/mill/a.py")) == "one\n"


def test_what_the_user_said_with_a_refusal_is_kept() -> None:
    text = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user said:\nkeep the usage text\nfor unknown flags"
    )

    by_client, claimed = ending_of(text, by_client=True), ending_of(text)
    said = "the user said: keep the usage text for unknown flags"
    assert by_client.text == f"REFUSED by the user: {said}"
    assert claimed.text == f"REFUSED by the user, says its result: {said}", "a tool can say so too"


@pytest.mark.parametrize(
    ("script", "text", "told"),
    [
        ("grep -rn mill src", "<returncode>1</returncode>\n<output>\n</output>", "no match"),
        ("cd src && rg mill", "Exit code 1", "no match"),
        ("diff a b", "Exit code 1\n< one\n> two", "they differ"),
        ("grep -rn mill src", '{"type":"text","text":"\\nCommand completed with return code: 1"}', "no match"),
        ("", "=== STDOUT ===\nno rows\n=== EXECUTION INFO ===\nReturn code: 1", "FAILED: no rows"),
        (
            "grep -rn mill src",
            "Exit code 2\ngrep: src: No such file or directory",
            "FAILED: grep: src: No such file or directory",
        ),
        ("rg mill | head && make", "Exit code 1\nmake: *** no rule", "FAILED: make: *** no rule"),
        (
            "pytest | tail -5",
            "/usr/bin/python: No module named pytest",
            "errors in its output: /usr/bin/python: No module named pytest",
        ),
        (
            "x",
            'Exit code 1\n  File "a.py", line 1\n    from x import;\nSyntaxError: invalid syntax',
            "FAILED: SyntaxError: invalid syntax",
        ),
        (
            "y",
            "Exit code 2\na.md:36:what is rejected\n+ an error line\nnothing found: no such thing",
            "FAILED: nothing found: no such thing",
        ),
        (
            "go test ./...",
            "Exit code 1\n=== RUN   TestWheel/unknown_wheel_returns_error\n--- FAIL: TestWheel (0.1s)\nFAIL",
            "FAILED: --- FAIL: TestWheel (0.1s)",
        ),
        (
            "go build ./...",
            "Exit code 1\n# mill/a\n./a.go:3:2: undefined: wheel",
            "FAILED: ./a.go:3:2: undefined: wheel",
        ),
        (
            "fmt --check .; tsc",
            'Output:\n\n{"chunk_id":"c4","exit_code":2,"output":"All right.\\na.ts(45,11): error TS2375: No.\\n"}',
            "FAILED: a.ts(45,11): error TS2375: No.",
        ),
        ("make", '{"chunk_id":"c4","exit_code":2,"output":""}', "FAILED: Exit code 2"),
        (
            "patch -p1 < fix.patch",
            "Exit code 2\npatching file mill.py\npatch: **** malformed patch at line 12: + x",
            "FAILED: patch: **** malformed patch at line 12: + x",
        ),
        (
            "python check.py",
            "Exit code 1\nErrors: {'bar': ['Invalid']}\nTraceback (most recent call last):\nAssertionError",
            "FAILED: AssertionError",
        ),
        (
            'echo "select id;;" | sqlfluff lint - 2>&1 | head -5',
            "== [stdin] FAIL\nL: 1 | P: 1 | PRS | Found unparsable section",
            "errors in its output: == [stdin] FAIL",
        ),
        (
            "corepack pnpm run test 2>&1 | tail",
            "[ERR_PNPM_UNSUPPORTED_ENGINE] Unsupported environment\n\nExpected version: >=24",
            "errors in its output: [ERR_PNPM_UNSUPPORTED_ENGINE] Unsupported environment",
        ),
        (
            "pytest -k semicolon | tail -1",
            "===== 3 deselected in 0.05s =====",
            "errors in its output: ===== 3 deselected in 0.05s =====",
        ),
        ("pytest -k mill | tail -1", "===== 2 passed, 3 deselected in 0.05s =====", "ok"),
        ("python -m unittest | tail", "test_mill (a.T) ... FAIL\n", "errors in its output: test_mill (a.T) ... FAIL"),
        ("go test ./... -run='^$' | head", "ok  \tmill/a\t1.5s [no tests to run]\n?   \tmill/b\t[no test files]", "ok"),
        (
            "",
            "<system-reminder>Warning: the file exists but is shorter than the provided offset (5).</system-reminder>",
            "nothing there: the file is shorter",
        ),
    ],
)
def test_the_ending_is_told_by_what_the_program_says(script: str, text: str, told: str) -> None:
    assert ending_of(text, script=script).text == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "timeout_ms must be at least 10000",
            "FAILED: timeout_ms must be at least 10000",
        ),
        (
            "Command did not complete within its 120s timeout and was moved to the background (ID: b1).",
            "still running when it came back",
        ),
        (
            "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nhalf",
            "still running when it came back",
        ),
        ('{"task_name":"/root/spec_review"}', "begun in the background"),
        ('{"agent_id": "a1", "nickname": "Ada"}', "begun in the background"),
        ('{"task_name": "mill", "state": "done"}', "ok"),
        ("Command running in background with ID: b1. Output is being written", "begun in the background"),
        ('{"message":"Wait timed out.","timed_out":true}', "the wait ended before what it waited for"),
        (
            "<retrieval_status>not_ready</retrieval_status>\n<status>running</status>",
            "the wait ended before what it waited for",
        ),
        ('{"message":"Wait interrupted by new input.","timed_out":false}', "the wait ended before what it waited for"),
        ("The rows must be sorted first.\nThen they are added up.", "ok"),
    ],
)
def test_a_call_that_came_back_early_or_was_not_taken_is_not_called_ok(text: str, told: str) -> None:
    assert ending_of(text).text == told


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('{"error":"GitHub API error 422: base is invalid"}', Outcome.FAILED),
        ('{ "error": {"code": 7}, "id": 1}', Outcome.FAILED),
        ('{"error": null, "id": 1}', Outcome.OK),
        ('{"error":"","id":1}', Outcome.OK),
        ('{"id": 1, "error": "none of it"}', Outcome.OK),
        ('Wall time: 5.5594 seconds\nOutput:\n{"error":"GitHub API error 422: base is invalid"}', Outcome.FAILED),
        ('Wall time: 5.5594 seconds\nOutput:\n{"url":"https://mill.example/pull/7"}', Outcome.OK),
        ("EISDIR: illegal operation on a directory, read", Outcome.FAILED),
        ("EXAMPLE 1: this is a page", Outcome.OK),
    ],
)
def test_a_tool_that_answers_with_its_error_has_failed(text: str, outcome: Outcome) -> None:
    assert ending_of(text).outcome is outcome


@pytest.mark.parametrize(
    ("script", "text", "told"),
    [
        ("", "No matches found", "no match"),
        ("", "No files found\n", "no match"),
        ("", "No matches found in a.py, but 3 in b.py", "ok"),
        ('grep -l "a|b" src/*.go', "", "no match"),
        ("cd src && rg mill | head -20", "(Bash completed with no output)", "no match"),
        ("grep -rn mill .", "<returncode>0</returncode>\n<output>\n</output>", "no match"),
        ("grep -q mill a.py && echo yes", "", "ok"),
        ("grep mill a.py", "12: the mill", "ok"),
        ("mkdir mill", "", "ok"),
    ],
)
def test_a_search_that_found_nothing_is_told_as_such(script: str, text: str, told: str) -> None:
    assert ending_of(text, script=script).text == told


def test_what_linters_find_behind_a_pipe_is_told() -> None:
    found = ending_of(
        "a/b.go:12:3: string `x` has 3 occurrences (goconst)\n1 issues:", script="golangci-lint run | tail"
    )

    assert (found.outcome, found.line) == (Outcome.UNCLEAR, "a/b.go:12:3: string `x` has 3 occurrences (goconst)")


MISSED = "src/a.py:3: the mill\nrg: web: No such file or directory (os error 2)"


@pytest.mark.parametrize(
    ("script", "text", "told"),
    [
        ("rg -n mill src web", f"Exit code 2\n{MISSED}", "found something, but there is no web"),
        ("rg -n mill src web | head", MISSED, "found something, but there is no web"),
        (
            "rg mill src web",
            f"Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 2\nOutput:\n{MISSED}",
            "found something, but there is no web",
        ),
        (
            "cd /srv && grep -rn mill src web x",
            "Exit code 2\nsrc/a.py:3: mill\ngrep: web: No such file or directory\ngrep: x: No such file or directory",
            "found something, but there is no web, x",
        ),
        (
            "ls src 'D:/the web'",
            "Exit code 2\nls: cannot access 'D:/the web': No such file or directory\nsrc:\na.py",
            "found something, but there is no D:/the web",
        ),
        (
            "find src web -name '*.py'",
            "<returncode>1</returncode>\n<output>\na.py\nfind: \u2018web\u2019: No such file or directory\n</output>",
            "found something, but there is no web",
        ),
        (
            "grep mill a b c d e f",
            "\n".join(["Exit code 2", "g: mill", *(f"grep: {at}: No such file or directory" for at in "abcdef")]),
            "found something, but there is no a, b, c, d and 2 more",
        ),
        (
            "rg mill web",
            "Exit code 2\nrg: web: No such file or directory (os error 2)",
            "FAILED: rg: web: No such file or directory (os error 2)",
        ),
        (
            "grep -c mill a.py b.py",
            "Exit code 2\na.py:0\ngrep: b.py: No such file or directory",
            "FAILED: grep: b.py: No such file or directory",
        ),
        (
            "echo here; ls web",
            "Exit code 2\nhere\nls: cannot access 'web': No such file or directory",
            "FAILED: ls: cannot access 'web': No such file or directory",
        ),
        (
            "grep mill a.py web && make",
            "Exit code 2\na.py: mill\ngrep: web: No such file or directory",
            "FAILED: grep: web: No such file or directory",
        ),
    ],
)
def test_a_search_that_misses_one_of_its_places_is_told_with_what_it_found(script: str, text: str, told: str) -> None:
    assert ending_of(text, script=script).text == told


@pytest.mark.parametrize(
    ("script", "text", "told"),
    [
        (
            "python mill.py 2>&1 | tail -5",
            "Traceback (most recent call last):\n  File 'mill.py', line 3\nKeyError: 'wheel'\nbye",
            "errors in its output: KeyError: 'wheel'",
        ),
        (
            "python mill.py 2>&1 | tail -5",
            "Error: first\nTraceback (most recent call last):\n  File 'mill.py', line 3\nmill.errors.WornError",
            "errors in its output: Error: first",
        ),
        (
            "python mill.py 2>&1 | head -2",
            "Traceback (most recent call last):\n  File 'mill.py', line 3",
            "errors in its output: Traceback (most recent call last):",
        ),
        (
            "echo 3; grep -q mill b.py; make -q",
            "Exit code 1\nsanity (should be above 0): 3",
            "FAILED: exit code 1, and it printed: sanity (should be above 0): 3",
        ),
        ("make", "Exit code 2\ncannot grind\nmore", "FAILED: cannot grind"),
        ("mill", "<returncode>127</returncode>\nhi\nzsh:1: no mill here", "FAILED: zsh:1: no mill here"),
        ("git merge x", "Exit code 1\nAuto-merging a\nCONFLICT (content): in a", "FAILED: CONFLICT (content): in a"),
    ],
)
def test_the_line_that_is_told_says_what_went_wrong(script: str, text: str, told: str) -> None:
    assert ending_of(text, script=script).text == told


def test_that_the_user_has_not_said_anything_yet_is_not_told_as_the_users_words() -> None:
    refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    asks_back = "The user wants to clarify these questions.\n    Start by asking them what they would like to clarify."

    assert ending_of(refused + "Oil it.", by_client=True).text == "REFUSED by the user: the user said: Oil it."
    told = "REFUSED by the user: they want to clarify what was asked first"
    assert ending_of(refused + asks_back, by_client=True).text == told


def test_a_message_to_an_agent_that_goes_on_with_it_is_told_as_begun() -> None:
    text = (
        '{"success":true,"message":"Agent \\"a1\\" resumed from transcript in the background with your message. '
        'You\'ll be notified when it finishes.","pin":{"id":"a1"}}'
    )

    assert ending_of(text).text == "begun in the background"


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("  ✓ tells of 3 errors at once (5 ms)\n  ✓ 2 failed wheels are counted\n\n2 passed", "ok"),
        ("ok 1 - says: error: no wheel\nok 2 - 4 failures are told", "ok"),
        ("--- PASS: TestWheel/3_errors (0.00s)\n    --- PASS: TestWheel/gives 3 errors (0.00s)\nok  mill 0.1s", "ok"),
        ("  ✓ tells of 3 errors\n  ✗ turns\n\n1 failed", "errors in its output: 1 failed"),
    ],
)
def test_a_test_that_passed_and_is_named_after_errors_is_no_error(printed: str, told: str) -> None:
    assert ending_of(printed, script="npm test 2>&1 | tail -20").text == told
