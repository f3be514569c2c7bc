"""A provider on loopback that enforces its rules, and a scripted model behind it that reads one file after another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp

WINDOW = 12_000
TURNS = 24
TASK = "Read all parts and say when it is done."
LAST = "All of it was read."
CLAUDE, GPT = "claude-opus-5-5", "gpt-5.6-sol"


def _is_installed(package: str) -> bool:
    """Whether a package is there; one inside another is not where that is missing."""
    outer = package.rpartition(".")[0]
    return (not outer or _is_installed(outer)) and find_spec(package) is not None


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips where a package is not installed."""
    missing = [name for name in packages if not _is_installed(name)]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} here: run `make integrations`")


def read_part(number: int) -> str:
    """The tool of the agent: some seven hundred tokens, different for every part."""
    return "\n".join(
        f"{line}\tdef part_{number}_{line}(page, level_{line % 7}):  # recorded by reader_{line * 7919 % 1000}"
        for line in range(1, 40)
    )


READING: list[dict[str, Any]] = [
    {"text": f"Step {at}.", "tool_call": {"name": "read_part", "input": {"number": at}}} for at in range(TURNS)
]


@dataclass
class Judged:
    """A provider that serves: its address, what it decided about each request, and the requests."""

    url: str
    records: list[RequestRecord] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def largest(self) -> int:
        """The longest list of messages that was sent."""
        return max(len(body.get("messages") or body.get("input") or ()) for body in self.bodies)

    def ended_well(self, requests: int = TURNS + 1) -> None:
        """Every request was accepted; there were as many as the script has turns; they were folded, and fitted."""
        assert [record.rule for record in self.records if record.rule] == []
        assert len(self.records) == requests
        assert "pagefold wrote this message" in json.dumps(self.bodies[-1])
        prompts = [record.charge.prompt for record in self.records if record.charge is not None]
        assert max(prompts) <= WINDOW


@contextmanager
def provider(turns: Sequence[Mapping[str, Any]] = (*READING, {"text": LAST})) -> Iterator[Judged]:
    """A provider whose model says these turns, and takes no more than the window."""
    judged = Judged("")

    def seen(record: RequestRecord, body: bytes) -> None:
        judged.records.append(record)
        judged.bodies.append(json.loads(body))

    referee = Referee(answers=parse_script(json.dumps(turns), "the script"), window=WINDOW)
    with running(ProviderApp(referee, seen=seen)) as judged.url:
        yield judged
