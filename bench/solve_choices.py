"""One step of every task of `lab solve`, as a choice that a small model can make: which of four is the right next step?

    python -m bench.solve_choices --endpoint http://127.0.0.1:8399 --model gemma-3-270m --resume kept.jsonl

A task is worked on by the simulated agent as it is. Of the last ask the first edit or new file is what has to be got
right: the numbers of the code that it replaces, the value that it writes, or the file that it touches. The right one
and three others, of the same shape and mostly out of the same task, are scored by likelihood after what each arm would
have sent, and after as many plain last tokens as the last arm sent. It tells whether what is needed can be read there
by a real model. It does not tell whether an agent solves the task: nothing is done with the choice, and no file is read
again. Histories have about 5,000 tokens.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.recorded import table
from pagefold.adapters.model_endpoint import EndpointApi, ModelEndpoint
from pagefold.analysis.compare import draw_ratios
from pagefold.analysis.kept_answers import KeptAnswers, asked_key
from pagefold.analysis.likelihood.turns import LAST, last_tokens
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.pages.memory_store import MemoryStore
from pagefold.solve.arms import AS_IT_IS, PATH, Arm, policy_of
from pagefold.solve.experiment import MODEL, Job, simulate
from pagefold.solve.figures import wilson
from pagefold.solve.kinds import KINDS
from pagefold.solve.loop import SYSTEM, Outcome
from pagefold.solve.project import DOMAINS
from pagefold.solve.task import Task
from pagefold.tokens import counter

COUNT = counter("o200k")
NUMBERS = re.compile(r"(\d+ in a hundred, at most \d+, and \d+)\.")
WRONG = 3
TOUCHES_A_FILE = ("refused-edit", "locked-file", "pick-from-list")


@dataclass(frozen=True)
class Choice:
    """The history before a step, how the step begins, and how it may go on: the right way first."""

    name: str
    kind: str
    messages: Sequence[Mapping[str, Any]]
    begins: str
    ways: tuple[str, ...]


def choice_of(job: Job) -> Choice:
    held: list[Outcome] = []
    simulate(job, keep=lambda job, result, outcome: held.append(outcome))
    task, messages = job.task(), held[0].messages
    place = last_ask(task, messages)
    while (call := change_in(messages[place])) is None:
        place += 1
    dice = random.Random(job.key)
    begins, right, others = parts_of(task, call, messages[:place])
    wrong = sorted(set(others) - {right})
    dice.shuffle(wrong)
    while len(wrong) < WRONG:  # the task holds too few of that shape
        made = re.sub(r"\d", lambda _: str(dice.randrange(10)), right)
        wrong += [made] if made not in (right, *wrong) else []
    return Choice(job.key, job.kind, messages[:place], begins, (right, *wrong[:WRONG]))


def last_ask(task: Task, messages: Sequence[Mapping[str, Any]]) -> int:
    said = [[block.get("text") for block in message["content"]] for message in messages]
    return max(place for place, texts in enumerate(said) if task.asks[-1].text in texts) + 1


def change_in(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    calls = (block for block in message["content"] if block.get("type") == "tool_use")
    return next((dict(call) for call in calls if call["name"] in ("Edit", "Write")), None)


def parts_of(
    task: Task, call: Mapping[str, Any], before: Sequence[Mapping[str, Any]]
) -> tuple[str, str, Sequence[str]]:
    """How a call begins, how it goes on, and how others of its sort would."""
    given, files = call["input"], "\n".join(task.files.values())
    if call["name"] == "Write":
        right = given["content"].strip()
        shape = re.sub("[a-z]", "[a-z]", re.sub("[A-Z]", "[A-Z]", re.sub(r"\d", "[0-9]", right)))
        met = re.findall(rf"(?<!\w){shape}(?!\w)", transcript(before) + files)
        return f'calls Write {{"file_path": "{given["file_path"]}", "content": "', right, met
    if task.kind in TOUCHES_A_FILE:
        paths = [path for path in task.files if path.startswith(given["file_path"].split("/")[0]) and "_" not in path]
        return 'calls Edit {"file_path": "', given["file_path"], paths
    before_numbers, right = NUMBERS.split(json.dumps(given["old_string"])[1:-1])[:2]
    begins = f'calls Edit {{"file_path": "{given["file_path"]}", "old_string": "{before_numbers}'
    return begins, right, NUMBERS.findall(files)


def transcript(messages: Sequence[Mapping[str, Any]]) -> str:
    """Messages of the Messages API as plain text."""
    return "".join(f"### {who}\n{text}\n\n" for message in messages for who, text in said(message))


def said(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = message["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "text":
            yield message["role"], block["text"]
        elif block["type"] == "tool_use":
            yield "assistant", f"calls {block['name']} {json.dumps(block['input'])}"
        elif block["type"] == "tool_result":
            held = block["content"]
            yield "tool result", held if isinstance(held, str) else "\n".join(part["text"] for part in held)


def sent(arm: Arm, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The messages that an arm sends for a history, the same whether it saw all of it grow or not."""
    if arm.policy == AS_IT_IS:
        return messages
    body = json.dumps({"model": MODEL, "max_tokens": 500, "system": SYSTEM, "messages": messages}).encode()
    exchange = Exchange("POST", PATH, body, Conversations(policy_of(arm), store=MemoryStore(), window=arm.window))
    derived = exchange.derive(0.0) if exchange.derives and exchange.read(0.0) else None
    return list(json.loads(body if derived is None else derived)["messages"])


def contexts(choice: Choice, arms: Sequence[Arm]) -> dict[str, str]:
    made = {arm.policy: transcript(sent(arm, choice.messages)) for arm in arms}
    made[LAST] = last_tokens(made[AS_IT_IS], COUNT.count(made[arms[-1].policy]), COUNT)
    return {name: f"### system\n{SYSTEM}\n\n{text}### assistant\n{choice.begins}" for name, text in made.items()}


def nats(endpoint: ModelEndpoint, choice: Choice, name: str, context: str, kept: KeptAnswers) -> Mapping[str, float]:
    """How unlikely each way is after a context, by token."""
    asked = asked_key("choice", endpoint.model, context, *choice.ways)
    if asked not in kept.known:
        scored = {way: -endpoint.likelihood(context, f'{way}"').by_token for way in choice.ways}
        kept.keep(asked, {"task": choice.name, "kind": choice.kind, "arm": name, "nats": scored})
    return dict(kept.known[asked]["nats"])


def row(name: str, kind: str, tokens: Sequence[int], rights: Sequence[bool], likely: Sequence[float]) -> dict[str, Any]:
    low, high = wilson(sum(rights), len(rights))
    return {
        "arm": name,
        "kind": kind,
        "tokens": round(fmean(tokens)),
        "right": f"{sum(rights)} of {len(rights)}",
        "95 of 100": f"{low:.0%} to {high:.0%}",
        "nats a token of the right one": round(fmean(likely), 2),
    }


def paired(before: Sequence[bool], after: Sequence[bool]) -> str:
    """The difference of two arms in points, with where it lies in 95 of 100 draws of the tasks."""
    gains = [float(new) - float(old) for old, new in zip(before, after, strict=True)]
    drawn = sorted(draw[0] for draw in draw_ratios([1.0] * len(gains), [gains]))
    low, high = drawn[int(0.025 * len(drawn))], drawn[int(0.975 * (len(drawn) - 1))]
    return f"{100 * fmean(gains):+.0f} points ({100 * low:+.0f} to {100 * high:+.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--size", type=int, default=2_000, help="tokens of a handbook to read in between")
    parser.add_argument("--window", type=int, default=8_000)
    parser.add_argument("--arms", default="lossless,economic", help="beside as it is; the last gives last tokens")
    parser.add_argument("--domains", default=",".join(DOMAINS))
    parser.add_argument("--most", type=int, default=0, help="tasks; 0 is all")
    parser.add_argument("--resume", type=Path)
    options = parser.parse_args()
    endpoint, kept = ModelEndpoint(options.endpoint, options.model, EndpointApi.OPENAI), KeptAnswers(options.resume)
    arms = [Arm(), *(Arm(name, options.window) for name in options.arms.split(","))]
    jobs = [Job(kind, domain, 1, options.size, Arm()) for domain in options.domains.split(",") for kind in KINDS]
    rights: dict[str, list[bool]] = {}
    likely: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    kinds: list[str] = []
    for job in jobs[: options.most or None]:
        choice = choice_of(job)
        kinds.append(choice.kind)
        for name, context in contexts(choice, arms).items():
            scored = nats(endpoint, choice, name, context, kept)
            rights.setdefault(name, []).append(min(scored, key=lambda way: scored[way]) == choice.ways[0])
            likely.setdefault(name, []).append(scored[choice.ways[0]])
            sizes.setdefault(name, []).append(COUNT.count(context))
        print(choice.name, {name: found[-1] for name, found in rights.items()}, flush=True)
    print(table([row(name, "all", sizes[name], rights[name], likely[name]) for name in rights]))
    for name in rights:
        print(
            f"{name} against {AS_IT_IS}: {paired(rights[AS_IT_IS], rights[name])}; "
            f"against {LAST}: {paired(rights[LAST], rights[name])}"
        )
    print(
        table(
            [
                {
                    "kind": kind,
                    **{
                        name: sum(r for r, k in zip(found, kinds, strict=True) if k == kind)
                        for name, found in rights.items()
                    },
                    "tasks": kinds.count(kind),
                }
                for kind in KINDS
            ]
        )
    )


if __name__ == "__main__":
    main()
