"""Runs inside a checkout of the first fold (2ac9f8b): derives requests as its proxy did, for `bench.first_fold`.

Speaks JSON lines: gets {"begin": window} or {"body": …, "now": …}; answers {"send": body} for what goes to the
provider, gets {"status": …, "kind": …, "answer": …} back, and ends the request with {"folds": so many}. Context tools
are offered to nobody: the simulated agent never uses them.
"""

import json
import sys
from typing import Any

from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending


def say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def asked(body: bytes) -> dict[str, Any]:
    say({"send": body.decode()})
    return dict(json.loads(sys.stdin.readline()))


def handle(conversations: Any, body: bytes, now: float) -> int:
    """Takes one request to the provider and back. Returns how often it was folded."""
    exchange: Any = Exchange("POST", "/v1/messages", body, conversations)
    derived = exchange.derive(now) if exchange.derives and exchange.read(now) else None
    exchange.owed.clear()
    answer = asked(body if derived is None else derived)
    if answer["status"] != 200 and (smaller := exchange.smaller(answer["status"], answer["answer"].encode())):
        exchange.owed.clear()
        answer = asked(smaller)
    exchange.answer_began(answer["status"], answer["kind"])
    exchange.hear(answer["answer"].encode())
    return int(exchange.finish(Ending.WHOLE, now=now).work.folds)


def main() -> None:
    conversations: Any = None
    for line in sys.stdin:
        told = json.loads(line)
        if "begin" in told:
            conversations = Conversations(policy_named("economic"), window=told["begin"])
            say({"begun": True})
        else:
            say({"folds": handle(conversations, told["body"].encode(), told["now"])})


if __name__ == "__main__":
    main()
