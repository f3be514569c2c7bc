"""How many Python calls, over how many modules, a warm economic turn of the model proxy takes.

A turn is what the proxy does itself, without sockets: the request arrives as bytes, a policy derives what goes
upstream, the answer is read, and the exchange is counted and recorded. One agent reads a file of 33 lines in every
turn, so each turn brings an answer and a tool result. `sys.setprofile` counts the calls of functions that pagefold
defines and the modules they are in. The median turn is shown; `--by module` and `--by function` list where its
calls go. Commit 2ac9f8b takes 840 calls over 38 modules: run it with PYTHONPATH set to that checkout's src to see.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pagefold
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending, Totals

try:
    from pagefold.model_proxy.turn_recorder import TurnRecorder
except ImportError:  # a checkout from before it was renamed, to compare with
    from pagefold.model_proxy.telling import Teller as TurnRecorder  # type: ignore[import-not-found,no-redef]

ROOT = str(Path(pagefold.__file__).parent)
WARM, MEASURED = 12, 9


class Agent:
    """A conversation that reads one more file with every turn."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        tools = [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}]
        self.rest = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "system": "s", "tools": tools}
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "Why does the parser refuse an empty file?"}]

    def request(self) -> bytes:
        body = json.dumps({**self.rest, "messages": self.messages}).encode()
        turn = len(self.messages)
        said = {"type": "text", "text": f"Next I read module {turn}."}
        call = {"type": "tool_use", "id": f"t{turn}", "name": "Read", "input": {"file_path": f"/src/{turn}.py"}}
        text = "\n".join(f"{n:6}\tdef function_{turn}_{n}(page: Page) -> None: ..." for n in range(1, self.lines))
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}
        self.messages += [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]
        return body


def answer() -> bytes:
    """A short stream, as Anthropic sends one."""
    usage = {"input_tokens": 9, "cache_read_input_tokens": 8_000, "cache_creation_input_tokens": 30}
    events = (
        {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Next I read a module."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def turn(body: bytes, stream: bytes, conversations: Conversations, recorder: Any) -> None:
    """One exchange, from the body that arrives to the event in the trace."""
    exchange = Exchange("POST", "/v1/messages", body, conversations)
    assert exchange.derives
    assert exchange.read(1.0)
    exchange.derive(1.0)
    exchange.answer_began(200, "text/event-stream")
    exchange.hear(stream)
    seen = exchange.finish(Ending.WHOLE, bytes_up=len(body), bytes_down=len(stream), now=2.0)
    record: Any = getattr(exchange, "record", None) or getattr(exchange, "told", None)
    if recorder is not None:
        recorder.tell(record, seen, user_agent="claude-cli/2.0", began=1.0, now=2.0)
        recorder.flush()
    Totals.of(seen)


def counted(step: Callable[[], None]) -> Counter[tuple[str, str]]:
    """The calls of each function of pagefold, by module and name, while a step is taken."""
    calls: Counter[tuple[str, str]] = Counter()

    def see(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            calls[frame.f_code.co_filename[len(ROOT) + 1 : -3], frame.f_code.co_qualname] += 1

    sys.setprofile(see)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=34, help="lines of each file that is read")
    parser.add_argument("--by", choices=("module", "function"), help="list the calls of each module or function")
    parser.add_argument("--untold", action="store_true", help="without the decision trace")
    chosen = parser.parse_args()
    agent, stream = Agent(chosen.lines), answer()
    conversations = Conversations(Economic(window=200_000))
    recorder = None if chosen.untold else TurnRecorder(lambda event: None)
    for _ in range(WARM):
        turn(agent.request(), stream, conversations, recorder)
    turns: list[Counter[tuple[str, str]]] = []
    for _ in range(MEASURED):
        turns.append(counted(partial(turn, agent.request(), stream, conversations, recorder)))
    calls = sorted(turns, key=Counter.total)[MEASURED // 2]
    modules: Counter[str] = Counter()
    for (module, _), count in calls.items():
        modules[module] += count
    print(f"{calls.total()} Python calls over {len(modules)} modules")
    functions = Counter({f"{module}:{name}": count for (module, name), count in calls.items()})
    for place, count in (functions if chosen.by == "function" else modules).most_common() if chosen.by else ():
        print(f"{count:6}  {place}")


if __name__ == "__main__":
    main()
