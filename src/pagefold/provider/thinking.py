"""Preserved thinking: checks the thinking that comes back against what it was made under, and signs what is new.

A block is valid while system, tools and all content before it are what they were, thinking left out, and while the
thinking before it is the run that it was made after: leading blocks may be gone, one between others may not. A block
that the model cannot read is dropped whatever stands before it. (preserved-thinking, prefix-checks; the models that run
the check are in `models.toml`.)

Assumed, because the documentation is silent: what `drop_block` takes out is not part of the run for the blocks made
after it; a block that only another model can read stays part of it; content of the same message before a block belongs
to its prefix; the billing line that Claude Code writes as its first system block is no content.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pagefold.frozen import frozen
from pagefold.provider.messages_content import THINKING, ContentPart, Prompt, Turn, hash_of
from pagefold.provider.models import ClaudeModel, claude_model, reads_thinking
from pagefold.provider.signature import Bound, Summarized, bound_of, sign_summary, sign_thinking
from pagefold.tokens import Counter

BINDING_BETA = "thinking-binding-controls-2026-08-01"
PREFIX, MODEL = "prefix_binding_mismatch", "model_binding_mismatch"


class Behaviour(StrEnum):
    """What becomes of a request with thinking whose prefix changed: a 400, the blocks are dropped, or (accounts from
    before 2026-08-31) the model reads them all the same."""

    ERROR = "error"
    DROP = "drop_block"
    ALLOW = "allow"


@frozen
class Mismatch:
    """One thinking block that failed a check: where it stands, which check, and whether the model does not see it."""

    turn: int
    part: int
    reason: str
    dropped: bool

    @property
    def path(self) -> str:
        return f"messages.{self.turn}.content.{self.part}"

    def report(self) -> dict[str, str]:
        kind = "thinking_dropped" if self.dropped else "thinking_mismatch_allowed"
        return {"type": kind, "path": self.path, "reason": self.reason}


@frozen
class Checked:
    """The outcome for one request: what failed, and what stands before the answer: the hash of the prompt, the last
    thinking that counts, the last role. `forged` is where a signature stands that the provider did not write; `read` is
    how many thinking blocks the model gets to read."""

    mismatches: Sequence[Mismatch]
    prefix: bytes
    previous: bytes
    role: str
    forged: tuple[int, int] | None = None
    read: int = 0

    @property
    def answer_prefix(self) -> bytes:
        """What thinking at the beginning of the answer is bound to."""
        return self.prefix if self.role == "assistant" else hash_of(self.prefix, b"assistant")

    @property
    def dropped(self) -> frozenset[tuple[int, int]]:
        return frozenset((failed.turn, failed.part) for failed in self.mismatches if failed.dropped)


def root_of(prompt: Prompt) -> bytes:
    """The hash of what stands before the messages: the system prompt, and the tools that are not deferred."""
    tools = [part.content for part in prompt.tools if part.kind == "tool"]
    return hash_of(b"system", *[part.content for part in prompt.system], b"tools", *tools)


def check_thinking(prompt: Prompt, model: ClaudeModel, behaviour: Behaviour) -> Checked:
    """Checks every thinking block of a request. Stops at the first that is refused."""
    root = root_of(prompt)
    deferred = {part.name: part.content for part in prompt.tools if part.kind == "deferred_tool"}
    prefix, previous, role = root, b"", ""
    mismatches: list[Mismatch] = []
    blocks = 0
    for index, turn in enumerate(prompt.turns):
        if turn.also:
            prefix = hash_of(prefix, turn.also)
        in_dropped_run = False
        for place, part in enumerate(turn.parts):
            if part.kind == "compaction" and part.summary is not None:
                prefix, role = _after_summary(part.summary, root, _first_kept(prompt, turn))
                continue
            if turn.role != role:
                prefix, role = hash_of(prefix, turn.role.encode()), turn.role
            if part.kind not in THINKING:
                prefix, in_dropped_run = hash_of(prefix, part.content), False
                for name in part.names:
                    prefix = hash_of(prefix, deferred.get(name, b""))
                continue
            blocks += 1
            if part.bound is None:
                return Checked(mismatches, prefix, previous, role, (index, place))
            failure = PREFIX if in_dropped_run else _failure(part.bound, prompt.model, model, prefix, previous)
            if failure:
                dropped = failure == MODEL or behaviour is Behaviour.DROP
                mismatches.append(Mismatch(index, place, failure, dropped))
            if failure == PREFIX and behaviour is Behaviour.ERROR:
                return Checked(mismatches, prefix, previous, role)
            in_dropped_run = failure == PREFIX and behaviour is Behaviour.DROP
            previous = previous if in_dropped_run else part.bound.own
    read = blocks - sum(failed.dropped for failed in mismatches)
    return Checked(mismatches, prefix, previous, role, read=read)


def _failure(bound: Bound, reader: str, model: ClaudeModel, prefix: bytes, previous: bytes) -> str:
    if not reads_thinking(reader, bound.model):
        return MODEL
    follows = not previous or bound.previous == previous
    return PREFIX if model.prefix_check and not (bound.prefix == prefix and follows) else ""


def _after_summary(summary: Summarized, root: bytes, next_role: str) -> tuple[bytes, str]:
    """The prefix after a compaction block. It is that of the messages it replaces, so that thinking in the turns kept
    behind it stays valid, where a model that preserves thinking wrote it, system and tools are the same, and the first
    message kept is no continuation of the last one summarized (compaction-thinking-blocks)."""
    model = claude_model(summary.model)
    same = (
        summary.root == root and model is not None and model.prefix_check and next_role not in (summary.role, "system")
    )
    return summary.prefix if same else hash_of(summary.prefix, root, b"changed"), summary.role


def _first_kept(prompt: Prompt, turn: Turn) -> str:
    """The role of what follows the compaction block that this turn begins with."""
    if len(turn.parts) > 1:
        return turn.role
    return prompt.turns[1].role if len(prompt.turns) > 1 else ""


@frozen
class ThinkingPlace:
    """Where a new thinking block stands: the model, the hash of what comes before it, and the thinking before it."""

    model: str
    prefix: bytes
    previous: bytes

    def after(self, block: Mapping[str, Any], content: Sequence[ContentPart]) -> "ThinkingPlace":
        """The place behind a thinking block and the other blocks that follow it in the same answer."""
        bound = bound_of(block.get("signature") or block["data"])
        assert bound is not None
        prefix = self.prefix
        for part in content:
            prefix = hash_of(prefix, part.content)
        return ThinkingPlace(self.model, prefix, bound.own)

    def signed(self, text: str, counter: Counter, *, shown: bool, redacted: bool = False) -> dict[str, str]:
        """A new block. Its text is in it where thinking is `shown`."""
        shown_text = text if shown else ""
        own = hash_of(self.prefix, self.previous, text.encode("utf-8", "surrogatepass"))
        digest = hash_of(shown_text.encode("utf-8", "surrogatepass"))
        bound = Bound(self.model, self.prefix, self.previous, own, digest, counter.count(text))
        if redacted:
            return {"type": "redacted_thinking", "data": sign_thinking(bound)}
        return {"type": "thinking", "thinking": shown_text, "signature": sign_thinking(bound)}


def signed_summary(prompt: Prompt, checked: Checked, text: str) -> dict[str, str]:
    """The compaction block that stands for all messages of a request."""
    summary = Summarized(checked.prefix, checked.role, root_of(prompt), prompt.model, intact=True)
    return {"type": "compaction", "content": text, "signature": sign_summary(summary, text)}


def first_change(before: Prompt, after: Prompt, upto: Mismatch) -> str:
    """Names what changed before a block, given the request that it was made under, as the API's 400 does."""
    if [part.content for part in before.system] != [part.content for part in after.system]:
        return "The `system` prompt differs from when this block was created."
    if [part.content for part in before.tools] != [part.content for part in after.tools]:
        return "The `tools` list differs from when this block was created."
    old, new = _flat(before, None), _flat(after, upto)
    for at, (place, part) in enumerate(new):
        if at >= len(old) or old[at][1].content != part.content:
            turn, index = place
            where = f"messages.{turn}.content.{index}"
            return f"Content before this block differs from when it was created, first at `{where}`."
    return "Content before this block was removed, or a thinking block between others is gone."


def _flat(prompt: Prompt, upto: Mismatch | None) -> list[tuple[tuple[int, int], ContentPart]]:
    places = [
        ((index, place), part)
        for index, turn in enumerate(prompt.turns)
        for place, part in enumerate(turn.parts)
        if part.kind not in THINKING
    ]
    return [entry for entry in places if upto is None or entry[0] < (upto.turn, upto.part)]
