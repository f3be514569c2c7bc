"""The line of a result that says how its call ended: what is told of a call that did not end well."""

import json
import re

_TELLS = re.compile(
    r"error|fail|reject|refus|denied|not found|no such|cannot|can't|exception|panic|proceed|undefined|expected"
    r"|malformed|\*\*\* |conflict \(",
    re.IGNORECASE,
)
_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: ?\S|(?:\w+\.)*\w+(?:Error|Exception)\Z")
_FINDING = re.compile(r"--- FAIL|FAIL\b|fatal: |panic: |[^\s:()]+\.\w+(?::\d+:\d+: |\(\d+,\d+\): error)\S?")
_QUOTED = re.compile(r"[+-](?![+-])|[^\s:]+:\d+[:-]|.* \|\s+\d+ [+-]")
_WENT_WELL = re.compile(r"=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:PASS|SKIP)\b|PASS\b|ok\s|test \S+ \.\.\. ok\b|✓|✔|√")
FRAME = re.compile(
    r"^(?:Chunk ID:|Wall time|Process exited|Script completed|Original token count|Output:|Exit code|<returncode>"
    r"|</?output>|=== [A-Z ]+ ===$|\s*$)"
)
_EXIT = re.compile(r"exited with code|[Ee]xit code|<returncode>")
_EXITED = re.compile(r"(?:exited with code|[Ee]xit code:?|<returncode>)\s*(-?\d+)")
_SHELL_SAYS = re.compile(r"(?:(?:\S*/)?(?:bash|dash|sh|zsh)|\(eval\)):(?: line )?\d+: ")
_PROGRAM_SAYS = re.compile(r"[\w./-]+: \S")
_CODE = re.compile(r'\{[^{}]*"exit_code":\s*(-?\d+)')


def telling_line(result: str) -> str:
    """The line that tells of the failure: an error's own, else what a compiler or a test found, else the first that
    sounds like a failure and is no search hit, line of a diff or test that went well, else what a shell or a program
    says under its name, else how it exited and the first that is not part of the frame."""
    text = "\n".join(map(_printed, result.split("\n")))
    exits = next((line.strip() for line in text.split("\n") if _EXIT.search(line)), "")
    lines = [line.strip() for line in text.split("\n") if not FRAME.match(line)]
    errors = [line for line in lines if _ERROR.match(line)]
    found = next(filter(_FINDING.match, lines), "")
    sounding = (
        line for line in lines if _TELLS.search(line) and not _QUOTED.match(line) and not _WENT_WELL.match(line)
    )
    if errors or found:
        return errors[-1] if errors else and_others(found, text)
    said = next(sounding, "") or next(filter(_SHELL_SAYS.match, lines), "")
    said = said or next(filter(_PROGRAM_SAYS.match, lines[:1]), "")
    if said or not lines:
        return said or exits or first_line(text)
    code = _EXITED.search(exits)
    return f"exit code {code[1]}, and it printed: {lines[0]}" if code is not None else lines[0]


def went_well(line: str) -> bool:
    """Whether a line tells of a test that passed: its name may speak of errors."""
    return _WENT_WELL.match(line) is not None


def raised(result: str) -> str:
    """The line of the error that a program ended with, below where it stands; nothing where that was cut off."""
    lines = [line.strip() for line in result.split("\n")]
    return next((line for line in reversed(lines) if _ERROR.match(line)), "")


def _printed(line: str) -> str:
    """What a command printed, and its exit code, where the line is an object in JSON that says so."""
    if (code := _CODE.match(line)) is None:
        return line
    try:
        output = json.loads(line).get("output")
    except ValueError:
        return line
    return f"Exit code {code[1]}\n{output}" if isinstance(output, str) else line


def first_line(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def line_at(match: re.Match[str]) -> str:
    """The line in which something was found."""
    text = match.string
    end = text.find("\n", match.start() + 1)
    return text[text.rfind("\n", 0, match.end()) + 1 : end if end >= 0 else len(text)].strip()


def and_others(line: str, text: str) -> str:
    """A line that tells of one failed test, and how many others the text names."""
    names = {
        found.split()[2] for found in text.split("\n") if found.startswith("--- FAIL: ") and len(found.split()) > 2
    }
    more = len(names) - 1 if line.startswith("--- FAIL: ") else 0
    return f"{line} and {more} more that failed" if more > 0 else line
