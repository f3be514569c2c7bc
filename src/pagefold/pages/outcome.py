"""What became of a tool call: it went well, failed, was refused by the user, or was interrupted.

A pipe hides the exit code of what runs before it, and some programs print errors and go on: a script without an exit
code whose output tells of errors is neither called good nor failed.
"""

import re
from enum import StrEnum

from pagefold.frozen import frozen
from pagefold.pages.envelope import text_in
from pagefold.pages.partly_found import missing_places
from pagefold.pages.telling_line import FRAME, and_others, first_line, line_at, raised, telling_line, went_well
from pagefold.printable import printable

# What a result begins with is matched, not searched for: a search tries every place of the text.
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>)?\s*(?:The user doesn't want to (?:proceed|take this action)|User (?:rejected|denied)"
    r"|patch rejected|The tool use was rejected)"
)
_INTERRUPTED = re.compile(
    r"\s*(?:Exit code \d+\s+)?\[Request interrupted"
    r"|\s*(?:<tool_use_error>)?\s*(?:Interrupted by user|aborted by user)"
)
_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|No replacement was performed|(?:Error: )?Exit code:? [1-9]|Script failed"
    r"|InputValidationError)"
    r"|[^\n]*(?:\n[^\n]*){0,4}Process exited with code [1-9]"
    r"|=== EXECUTION TIMEOUT ==="
)
_FAILED_WITHIN = re.compile(r'apply_patch verification failed|"exit_code":\s*[1-9]|<returncode>[1-9-]')
_SAYS_CODE = "eturn code: "  # without which the next need not be looked for, line by line
_FAILED_AT_END = re.compile(r"^(?:Command completed with r|=== EXECUTION INFO ===\nR)eturn code: [1-9-]", re.MULTILINE)
_NOT_RUN = re.compile(
    r"\s*(?:Security violation: |Permission to use \S+ [^\n]*has been denied|Tool \S+ not found\b"
    r"|[^\n]{0,80} is temporarily unavailable, so auto mode cannot determine)"
)
_SAYS_ERROR = re.compile(r"\s*(?:Error\b|error:|Invalid\b)")
_TOOL_FAILED = re.compile(
    r"\s*[\w ]{3,40}\b(?:failed|error): "
    r"|\s*MCP error -?\d+\b|\s*The server returned HTTP [45]\d\d"
    r"|\s*\w+ must (?:be|have|not|contain)\b[^\n]{0,200}\Z"
    r"|\s*E[A-Z]{3,12}: "  # EISDIR, ENOENT
    r'|\s*\{\s*"error":(?!\s*(?:null|false|""|\{\}|\[\]))'
)
_CLIENTS_FRAME = re.compile(r"\s*Wall time: [^\n]*\n(?:Output:\n)?")
_SHORTLY_FAILED = re.compile(
    r"\s*(?:(?:[Ff]ailed|Unable) to |Search failed\b|Access denied\b|access to [^\n]* is not allowed"
    r"|[Mm]issing required)"
)
_SHORTLY = 600  # characters: longer texts that begin so are what was asked for
_UNFINISHED = re.compile(
    r"[^\n]*(?:\n[^\n]*){0,4}(?P<running>Process running with session ID|Script running with cell ID"
    r"|Command did not complete within its \w+ timeout and was moved to the background)"
    r"|\s*(?:Command running in background with ID|Async agent launched)"
    r'|\s*\{[^{}]*"(?P<waited>timed_out)":\s*true'
    r"|\s*\{[^{}]*\bWait (?P<stopped>interrupted)"
    r'|\s*\{[^{}]*"message":\s*"[^{}]*\bin the background\b[^{}]*\bnotified when it finishes'
    r'|\s*\{\s*"(?:agent_id|task_name)":\s*"[^"]*"(?:,\s*"nickname":\s*[^{},]*)?\s*\}\s*\Z'
    r"|\s*<retrieval_status>(?P<waiting>timeout|not_ready)"
)
_PRINTED = re.compile(
    r"^(?:--- FAIL|FAIL(?:ED)?\b|fatal: |panic: |npm (?:ERR!|error )|make(?:\[\d+\])?: \*\*\*|E   )"
    r"|^(?:\[ERR_[A-Z_]+\]| ?ERR_[A-Z_]+ ) "
    r"|(?:^|[ \t])Traceback \(most recent|^[ \t]{1,4}Error: \S|[Ff]ailed with return code [1-9]"
    r"|^(?:error|ERROR|Error)(?:\[\w+\])?[: ]|\b[Tt]ask failed\b|\[build failed\]|: (?:fatal )?error(?: [A-Z]+\d+)?: "
    r"|No module named |: command not found|: not found$|^\w*(?:Error|Exception): "
    r"|\b[1-9]\d* (?:failed|failures?|errors?)\b|: cannot use |: undefined: |^[a-z]+ ERROR |\bERROR task failed"
    r"|^level=error\b|\bTest failed\. See above"
    r"|[\])][ \t]+FAIL(?:ED)?[ \t]*$|\.\.\.[ \t]+FAIL(?:ED)?[ \t]*$"
    r"|^pattern \S+: (?:directory prefix|no matching|no required|open |lstat )|^invalid value \"[^\"\n]*\" for flag -"
    r"|^[^\s:]+\.\w+:\d+:\d+: \S",  # what compilers and linters find
    re.MULTILINE,
)
_NO_TESTS = re.compile(r"^(?!ok\s)[^\n]*\bno tests (?:ran|to run)\b|^=+ \d+ deselected in [^\n]*", re.MULTILINE)
_TESTED = re.compile(r"^(?:--- PASS|=== RUN)|^ok\s+\S+\s+[^\n\[]+$|\b[1-9]\d* passed\b", re.MULTILINE)
_COMPLAINS = re.compile(
    r"^(?:\S*/)?(?P<name>awk|bash|cat|chmod|cp|diff|find|grep|head|ls|mkdir|mv|rg|rm|sed|sh|sort|stat|tail|touch|wc|zsh"
    r"|\(eval\))(?:: line \d+|:\d+|:cd:\d+)?: [^\n]*?"
    r"(?:[Nn]o such file|[Nn]o matches|[Cc]an(?:no|')t |not found|[Dd]enied|[Ii]llegal|[Ii]nvalid|[Uu]nrecognized"
    r"|[Uu]nknown|[Uu]nmatched|[Uu]nterminated|[Ss]yntax|[Ee]xpected|[Mm]issing|(?:Is|Not) a directory|[Uu]nexpected"
    r"|bad )",
    re.MULTILINE,
)
_BEGINS_OR_ENDS = re.compile(r"(?:\A\s*|\n(?=[^\n]+\s*\Z))(?:[Ff]ailed to \w|[Ii]nvalid value |Unknown command )[^\n]*")
_SHELLS = ("bash", "sh", "zsh", "(eval)")
_LOOKS = re.compile(
    r"^\s*(?:cd [^&;|]+(?:&&|;)\s*)?"
    r"(?:cat(?!\s*[<>])|grep|rg|ls|find|head|tail|sed -n|awk|git (?:log|diff|show|grep|blame)|gh)\b"
)
_LAST_COMMAND = re.compile(r"(?:^|[|&;]\s*)(grep|egrep|rg|ag|diff|git diff --(?:no-index|exit-code))\b[^|&;\n]*\Z")
_BEHIND_THE_END = re.compile(r"\s*<system-reminder>Warning: the file exists but is shorter than the provided offset")
_LAST_SEARCH = re.compile(
    r"(?:^|[|&;]\s*)(?:grep|egrep|rg|ag)\b[^|&;\n]*(?:\|\s*(?:head|tail|sort|uniq)\b[^|&;\n]*)*\Z"
)
_FOUND_NOTHING = re.compile(r"\s*No (?:matches|files) found\.?\s*\Z")
_SAYS_NO_OUTPUT = ("(Bash completed with no output)", "(no output)")
_IN_QUOTES = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_SEARCHES = ("grep", "egrep", "rg", "ag")
_EXIT_1 = re.compile(
    r"\A(?:Error: )?Exit code:? 1\b|Process exited with code 1\b|<returncode>1<|\"exit_code\":\s*1\b"
    r"|Command completed with return code: 1\b"
)
_EXIT_OF_A_SEARCH = re.compile(
    r"\A(?:Error: )?Exit code:? [12]\b|Process exited with code [12]\b|<returncode>[12]<|\"exit_code\":\s*[12]\b"
    r"|Command completed with return code: [12]\b"
)
_MISSING_MOST = 4
BEGUN = "begun in the background"
_USER_SAID = "To tell you how to proceed, the user said:"
_ASKS_BACK = "The user wants to clarify these questions"  # the client's words, where the user has said nothing yet
_TRACEBACK = "Traceback (most recent call last)"
_LOOKED_AT = 2_000
_LONGEST = 300  # characters of the line that says how a call ended


class Outcome(StrEnum):
    OK = "ok"
    UNCLEAR = "unclear"
    FAILED = "failed"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


_SAID = {
    Outcome.OK: "ok",
    Outcome.UNCLEAR: "errors in its output",
    Outcome.FAILED: "FAILED",
    Outcome.REFUSED: "REFUSED by the user",
    Outcome.INTERRUPTED: "INTERRUPTED",
}


@frozen
class CallEnding:
    """How a call ended, and the line of its result that says so where it did not end well. `claimed`: only the result
    says that the user refused it, and a tool can say so too. `ran`: whether it may have done anything. `missing`: what
    a search did not find, that found something in other places."""

    outcome: Outcome
    line: str = ""
    claimed: bool = False
    ran: bool = True
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In words, on one line: `ok` or what its exit code answers, or how it ended and why."""
        if self.outcome is Outcome.OK:
            return self.line or _SAID[self.outcome]
        if self.missing:
            more = f" and {len(self.missing) - _MISSING_MOST} more" if len(self.missing) > _MISSING_MOST else ""
            places = ", ".join(self.missing[:_MISSING_MOST])
            return f"found something, but there is no {printable(places[:_LONGEST], keep='')}{more}"
        how = f"{_SAID[self.outcome]}, says its result" if self.claimed else _SAID[self.outcome]
        return f"{how}: {printable(self.line[:_LONGEST], keep='')}"


def ending_of(result: str, *, failed: bool = False, script: str = "", by_client: bool = False) -> CallEnding:
    """How a call with this result ended; `failed` is what the wire format says, `script` what a shell was given.
    `by_client`: a refusal in it is the client's word and not the tool's."""
    result = text_in(result)
    head = result[:_LOOKED_AT]
    if _NOT_RUN.match(head):
        return CallEnding(Outcome.FAILED, first_line(result), ran=False)
    if _REFUSED.match(head):
        return CallEnding(Outcome.REFUSED, _users_words(result) or first_line(result), not by_client)
    if _INTERRUPTED.match(head):
        return CallEnding(Outcome.INTERRUPTED, first_line(result))
    says_error = _SAYS_ERROR.match(head) is not None or (not script and _tool_failed(result))
    if failed or (says_error and not script) or _says_failed(result, head):
        if (quiet := _told_by_exit(script, head)) is not None:
            return CallEnding(Outcome.OK, quiet)
        partly = _EXIT_OF_A_SEARCH.search(head) is not None and missing_places(script, result)
        if partly:
            return CallEnding(Outcome.UNCLEAR, telling_line(result), missing=tuple(partly))
        return CallEnding(Outcome.FAILED, telling_line(result))
    if (unfinished := _UNFINISHED.match(head)) is not None:
        return CallEnding(Outcome.OK, _unfinished(unfinished))
    if _found_nothing(script, head):
        return CallEnding(Outcome.OK, "no match")
    if not script and _BEHIND_THE_END.match(head):
        return CallEnding(Outcome.OK, "nothing there: the file is shorter")
    return _ending_of_script(script, result, says_error=says_error) if script else CallEnding(Outcome.OK)


def _ending_of_script(script: str, result: str, *, says_error: bool) -> CallEnding:
    """How a script ended of which nothing says that it failed: its output may."""
    head, tail, looks = result[:_LOOKED_AT], result[-_LOOKED_AT:], _LOOKS.match(script) is not None
    printed = None if looks else _printed(result, head, tail)
    printed = printed or _complaint(script, head) or _complaint(script, tail)
    if not says_error and printed is None:
        return CallEnding(Outcome.OK)
    line = and_others(line_at(printed), result) if printed is not None else telling_line(result)
    if line.startswith(_TRACEBACK):
        line = raised(result[result.index(_TRACEBACK) :]) or line
    return CallEnding(Outcome.UNCLEAR, line, missing=tuple(missing_places(script, result)))


def _tool_failed(result: str) -> bool:
    """Whether a tool that is no shell says that it failed, also below the lines that a client puts above its words."""
    frame = _CLIENTS_FRAME.match(result)
    said = result[frame.end() :] if frame is not None else result
    shortly = len(said) <= _SHORTLY and _SHORTLY_FAILED.match(said) is not None
    return shortly or _TOOL_FAILED.match(said[:_LOOKED_AT]) is not None


def _says_failed(result: str, head: str) -> bool:
    """Whether a result says that what was called has failed, as shells and clients say it."""
    if _FAILED.match(head) or _FAILED_WITHIN.search(head):
        return True
    end = result[-_LOOKED_AT:]
    return _SAYS_CODE in end and _FAILED_AT_END.search(end) is not None


def _printed(result: str, head: str, tail: str) -> re.Match[str] | None:
    """Where a script's output tells of an error. That there are no tests to run is one where none ran at all."""
    told = (match for text in (head, tail) for match in _PRINTED.finditer(text) if not went_well(line_at(match)))
    found = next(told, None) or _BEGINS_OR_ENDS.search(result)
    return found or (None if _TESTED.search(result) else _NO_TESTS.search(head) or _NO_TESTS.search(tail))


def _complaint(script: str, printed: str) -> re.Match[str] | None:
    """Where one of a script's own commands, or its shell, says that something is wrong."""
    found = _COMPLAINS.finditer(printed)
    return next((match for match in found if match["name"] in _SHELLS or match["name"] in script), None)


def _unfinished(match: re.Match[str]) -> str:
    """What is said of a call that came back before what it began, or waited for, had ended; it may have ended since."""
    if match["stopped"] or match["waited"] or match["waiting"]:
        return "the wait ended before what it waited for"
    return "still running when it came back" if match["running"] else BEGUN


def _found_nothing(script: str, head: str) -> bool:
    """Whether a search found nothing: it says so, or a shell whose last command searches printed nothing."""
    if not script:
        return _FOUND_NOTHING.match(head) is not None
    said = [line for line in head.split("\n") if not FRAME.match(line) and line.strip() not in _SAYS_NO_OUTPUT]
    return not said and _LAST_SEARCH.search(_IN_QUOTES.sub("''", script.strip())) is not None


def _told_by_exit(script: str, head: str) -> str | None:
    """What an exit code of 1 says where it is an answer and no failure; None for any other ending."""
    command = _LAST_COMMAND.search(_IN_QUOTES.sub("''", script.strip()))
    if command is None or not _EXIT_1.search(head):
        return None
    return "no match" if command[1] in _SEARCHES else "they differ"


def _users_words(result: str) -> str:
    """What the user said with a refusal, on one line."""
    _, asked, words = result.partition(_USER_SAID)
    if words.strip().startswith(_ASKS_BACK):
        return "they want to clarify what was asked first"
    return f"the user said: {' '.join(words.split())}" if asked and words.strip() else ""
