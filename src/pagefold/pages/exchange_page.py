"""An exchange as a page that reads like a memory: the call, what became of it, and its result as it was."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pagefold.pages.exchanges import Exchange
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page

_CALL = "[the call] "
_OUTCOME = "[what became of it] "
_RESULT = "[its result]"


def exchange_page(exchange: Exchange, arguments: Mapping[str, Any], result: str) -> Page:
    """The page of an exchange. It is named by its call and outcome; the result stands at its end, byte for byte."""
    lines = [f"{_CALL}{exchange.name}", *_argument_lines(arguments), f"{_OUTCOME}{exchange.ending.text}"]
    lines += [_RESULT, result]
    return Page.of(PageKind.EVIDENCE, "\n".join(lines), exchange.line)


def result_in(text: str) -> str:
    """The result in the text of an exchange's page; any other text is its own result."""
    return text.partition(f"\n{_RESULT}\n")[2] if text.startswith(_CALL) else text


def _argument_lines(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of a call, indented: so none of their lines can pass for one of ours."""
    for key, value in arguments.items():
        name = " ".join(key.split())
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" in text:
            yield f"    {name}:"
            yield from (f"        {line}" for line in text.split("\n"))
        else:
            yield f"    {name}: {text}"
