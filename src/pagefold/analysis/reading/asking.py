"""Makes the prompts of the reading test, and judges what a model answered.

A prompt says nothing about forms: whether they explain themselves is what is tested. It is the same for the original
and the form, apart from the conversation in it.
"""

import random
import re

from pagefold.analysis.reading.cases import ReadingCase
from pagefold.analysis.reading.question import Question, plain

SYSTEM = (
    "You are shown part of a session of an agent with its tools, and then a question about the last tool result in it. "
    "Answer with exactly what is asked for, word for word, and nothing else."
)
_CLOSING = "### question about the last tool result"
_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_NUMBER = re.compile(r"^ *\d+(?:\t|→|: |:|\|) ?", re.MULTILINE)
_QUOTES = "`'\"“”"


def prompt(case: ReadingCase, *, form: bool) -> str:
    """Returns what the user says: the conversation, as recorded or as shown, and the question."""
    return f"{case.form if form else case.original}\n\n{_CLOSING}\n{case.question.text}"


def scored_prompt(case: ReadingCase, *, form: bool) -> str:
    """Returns the text after which answers are scored by their likelihood."""
    return f"{SYSTEM}\n\n{prompt(case, form=form)}\n\n### answer\n"


def options(question: Question, seed: str) -> list[str]:
    """Returns the right answer among the wrong ones, in an order that the seed decides."""
    dice = random.Random(seed)  # noqa: S311 - an order, not a secret
    return dice.sample([question.answer, *question.wrong], 1 + len(question.wrong))


def is_right(answer: str, question: Question) -> bool:
    """Whether an answer says what was asked for and nothing else.

    White space, a code block or quotes around it, a full stop behind it and numbers before its lines are no difference.
    """
    said = _THOUGHT.sub("", answer).strip()
    if fenced := _FENCE.search(said):
        said = fenced[1]
    wanted = _bare(question.answer)
    return wanted in {_bare(said), _bare(_NUMBER.sub("", said)), _bare(said.strip().removesuffix("."))}


def _bare(text: str) -> str:
    stripped = plain(text)
    while len(stripped) > 1 and stripped[0] in _QUOTES and stripped[-1] in _QUOTES:
        stripped = stripped[1:-1].strip()
    return stripped.lower() if stripped.lower() in ("yes", "no", "true", "false") else stripped
