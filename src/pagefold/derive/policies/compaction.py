"""compaction: a stand-in for what harnesses do by themselves: at a size everything becomes one summary.

Claude Code compacts at about 142,000 tokens of messages to about 6,000. The summary here is a digest in the session's
own words; a harness has it written by a model, at a cost that is not reckoned. Promises nothing about smaller windows.
"""

from dataclasses import dataclass

from pagefold.derive.fold import Folded, Rule
from pagefold.derive.policies.folding import Folding, State
from pagefold.derive.policy import Notes

AT = 142_000
SUMMARY = 6_000


@dataclass(frozen=True, slots=True)
class Compaction(Folding):
    at: int = AT
    summary: int = SUMMARY

    @property
    def name(self) -> str:
        return "compaction"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        if state.tokens - state.head <= self.at and not notes.smaller:
            return "", None
        rule = Rule(len(state.log), budget=self.summary)
        return "compaction", self.folded_by(state, max(usable, self.at), rule)
