"""What became of a tool call: it went well, failed, was refused by the user, or was interrupted."""

import re
from enum import StrEnum

from pagefold.frozen import frozen

_REFUSED = re.compile(
    r"^\s*(?:<tool_use_error>)?\s*(?:The user doesn't want to (?:proceed|take this action)|User (?:rejected|denied)"
    r"|patch rejected|The tool use was rejected)"
)
_INTERRUPTED = re.compile(
    r"^\s*\[Request interrupted|^\s*(?:<tool_use_error>)?\s*(?:Interrupted by user|aborted by user)"
)
_FAILED = re.compile(
    r"^\s*(?:<tool_use_error>|Error\b|error:|No replacement was performed|Invalid\b|Exit code:? [1-9]|Script failed"
    r"|InputValidationError)"
    r"|\A[^\n]*(?:\n[^\n]*){0,4}Process exited with code [1-9]"
    r"|apply_patch verification failed"
    r'|"exit_code":\s*[1-9]'
    r"|<returncode>[1-9-]"
)
_TELLS = re.compile(
    r"error|fail|reject|refus|denied|not found|no such|cannot|can't|exception|panic|proceed|undefined|expected",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"^(?:Chunk ID:|Wall time|Process exited|Original token count|Output:|Exit code|<returncode>|</?output>|\s*$)"
)
_EXIT = re.compile(r"exited with code|[Ee]xit code|<returncode>")
_LOOKED_AT = 2_000
_LONGEST = 200  # characters of the line that says how a call ended


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


_SAID = {
    Outcome.OK: "ok",
    Outcome.FAILED: "FAILED",
    Outcome.REFUSED: "REFUSED by the user",
    Outcome.INTERRUPTED: "INTERRUPTED",
}


@frozen
class Ending:
    """How a call ended, and the line of its result that says so where it did not end well."""

    outcome: Outcome
    line: str = ""

    @property
    def text(self) -> str:
        """In words, on one line: `ok`, or how it ended and why."""
        return _SAID[self.outcome] if self.outcome is Outcome.OK else f"{_SAID[self.outcome]}: {self.line[:_LONGEST]}"


def ending_of(result: str, *, failed: bool = False) -> Ending:
    """How a call with this result ended; `failed` is what the wire format says."""
    head = result[:_LOOKED_AT]
    if _REFUSED.search(head):
        return Ending(Outcome.REFUSED, _first(result))
    if _INTERRUPTED.search(head):
        return Ending(Outcome.INTERRUPTED, _first(result))
    if failed or _FAILED.search(head):
        return Ending(Outcome.FAILED, _telling(result))
    return Ending(Outcome.OK)


def _first(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _telling(text: str) -> str:
    """The first line that tells of the failure, or the first that is not part of the frame."""
    lines = [line.strip() for line in text.split("\n") if not _FRAME.match(line)]
    exits = (line.strip() for line in text.split("\n") if _EXIT.search(line))
    return next(filter(_TELLS.search, lines), lines[0] if lines else next(exits, _first(text)))
