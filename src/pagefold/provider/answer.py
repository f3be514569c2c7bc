"""What a model says in one turn, whatever API it is asked through."""

from collections.abc import Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen

DEFAULT_THINKING = "What has been read so far decides the next step."


@frozen
class AnswerCall:
    """One call. Without an id the provider gives it one."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@frozen
class Answer:
    """One turn of the model: a text, calls, and the thinking that a model which thinks has before them.
    `second_thinking` comes between the text and the calls; `redacted` hides the first."""

    text: str = ""
    calls: Sequence[AnswerCall] = ()
    thinking: str = DEFAULT_THINKING
    second_thinking: str = ""
    redacted: bool = False
