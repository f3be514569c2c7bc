"""Writes folded requests as text for fresh readers: could they go on, and is what stands there true?

    python -m bench.read_folds folds/ [--each 5] [--seed 1]

From each of four families (July and February Claude Code and Codex in a window of 64,000 tokens, a bash agent in one of
32,000) so many folds are chosen by a hash of the seed and of where they are, at most one of a session and of sessions
that begin alike. Each is a folder with

    request.txt    what the model gets, and nothing else: read this alone first
    recording.txt  the messages that the request was derived from, each with its number
    goes_on.txt    what really followed
    questions.md   what a reader is asked
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.recorded import family, sessions
from pagefold.derive.policies.economic import Economic
from pagefold.wire.message import Message, Role

FAMILIES = {
    "coding-claude-code-july": 64_000,
    "coding-claude-code": 64_000,
    "coding-codex": 64_000,
    "coding-bash": 32_000,
}
_MESSAGES_LEFT = 8  # of a session after the fold, at least: what follows is what a reader's next step is held against
_GOES_ON = 24  # messages of what followed
QUESTIONS = """\
# What is asked of a reader

Read request.txt alone. You are the model that has to go on with it.

1. What is the task? What has been done, what is open, what is the next step?
2. Answer from the request alone, and say where it stands: three facts that you would rely on in the next step (a name
   with its file and line, the outcome of a call, a word of the user's).

Then read recording.txt and goes_on.txt beside it.

3. Were 1 and 2 right? Could you have gone on: yes, mostly, no?
4. Every statement in the request that is untrue or misleading, with its words and the number of the message that shows
   it: a line that is not in the file, a number that is wrong, an outcome that was another one, somebody's words told as
   another's, an omission without a mark, an old state told as the present one.
"""


@dataclass(frozen=True)
class Fold:
    """A request at a fold point. `place` is that of the answer to it."""

    session: str
    place: int
    request: Sequence[Message]
    messages: Sequence[Message]


def folds(name: str, window: int) -> Iterator[Fold]:
    policy = Economic(window=window)
    for session in sessions(family(name)):
        state, sent = policy.begin(), list[Message]()
        for place, message in enumerate(session.messages):
            if message.role is Role.ASSISTANT:
                state, derived = policy.request(state)
                sent = [*sent[: derived.keep], *derived.append]
                if derived.reason and len(session.messages) - place >= _MESSAGES_LEFT:
                    yield Fold(session.id, place, sent, session.messages)
            state = policy.step(state, message)


def chosen(found: Sequence[Fold], count: int, seed: int) -> Iterator[Fold]:
    """So many of these folds, by a hash; one at most of sessions whose first messages are the same."""
    begun = set[str]()
    for fold in sorted(found, key=lambda fold: _hash(f"{seed} {fold.session} {fold.place}")):
        begins = _hash("\n".join(message.text for message in fold.messages[:2]))
        if begins not in begun and len(begun) < count:
            begun.add(begins)
            yield fold


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def told(messages: Sequence[Message], first: int = 1) -> str:
    """Messages as text, each behind a line with its number and role."""
    return "\n".join(line for number, message in enumerate(messages, first) for line in _lines(message, number))


def _lines(message: Message, number: int) -> Iterator[str]:
    value: dict[str, Any] = json.loads(message.raw)
    content = value.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    yield f"======== message {number}, {value['role']} ========"
    if text:
        yield text
    for call in value.get("tool_calls") or []:
        yield f"-------- calls {call['function']['name']} {call['function']['arguments']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", type=int, default=5, help="folds of each family")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for name, window in FAMILIES.items():
        for number, fold in enumerate(chosen(list(folds(name, window)), asked.each, asked.seed), 1):
            folder = asked.folder / f"{name}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            followed = fold.messages[fold.place : fold.place + _GOES_ON]
            texts = {
                "request.txt": told(fold.request),
                "recording.txt": told(fold.messages[: fold.place]),
                "goes_on.txt": told(followed, fold.place + 1),
                "questions.md": QUESTIONS,
            }
            for file, text in texts.items():
                (folder / file).write_text(text + "\n", encoding="utf-8", errors="replace")
            print(f"{folder}: {fold.session}, before message {fold.place + 1}, {len(fold.request)} messages")


if __name__ == "__main__":
    main()
