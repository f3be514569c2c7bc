"""Counts every answer once, however many logs hold it: forks begin with a copy of the session that they fork."""

from dataclasses import dataclass, field, replace

from pagefold.analysis.engine import SessionResult, sessions_of
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.session_report import ReportOptions, SessionReport, session_report


@dataclass(slots=True)
class SessionCopies:
    """`copies` are sessions that hold nothing of their own, `forks` those that begin with a copy. The answers that were
    seen are kept as a hash each."""

    job: ReplayJob
    options: ReportOptions
    copies: int = 0
    forks: int = 0
    _seen: set[int] = field(default_factory=set)

    def own_part(self, result: SessionResult[SessionReport]) -> SessionResult[SessionReport] | None:
        """What a session has beyond those before it: itself, mostly; where it begins with answers of theirs, the report
        of what follows; None where nothing does. The log of a fork is read once more."""
        answers = result.value.answers
        own = next((at for at, (_, name) in enumerate(answers) if hash(name) not in self._seen), len(answers))
        self._seen.update(hash(name) for _, name in answers[own:])
        if not own:
            return result
        if own == len(answers):
            self.copies += 1
            return None
        self.forks += 1
        session = next((one for one in sessions_of([result.path], self.job) if one.id == result.id), None)
        if session is None:
            return result  # its log has changed meanwhile
        return replace(result, value=session_report(session.own_from(answers[own][0]), self.job, options=self.options))
