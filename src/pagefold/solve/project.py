"""A small project to work on: modules with functions whose numbers tests can see, notes, logs and long documents.

Everything follows from a seed: words, names and numbers differ from task to task, the shapes are everyday code.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DOMAINS: Mapping[str, tuple[str, ...]] = {
    "shop": ("basket", "crate", "invoice", "parcel", "refund", "shelf", "token", "voucher", "wrap", "zone"),
    "garage": ("axle", "brake", "clutch", "damper", "filter", "gasket", "hinge", "lever", "piston", "valve"),
    "clinic": ("bandage", "chart", "dose", "intake", "needle", "patient", "ramp", "scan", "triage", "ward"),
    "orchard": ("apple", "branch", "cellar", "drain", "fence", "graft", "ladder", "press", "row", "stem"),
    "harbour": ("anchor", "berth", "crane", "dock", "ferry", "hull", "mast", "pilot", "quay", "tide"),
}
_VERBS = ("fee", "quota", "weight", "delay", "score", "margin", "points", "stock", "rate", "load")
_TOPICS = ("intake", "billing", "storage", "transport", "returns", "audit", "seasons", "safety", "training", "planning")
_SENTENCES = (
    "The {noun} team reviews {topic} every {number} days and writes the outcome into the ledger.",
    "When {topic} takes longer than {number} minutes, the {noun} on duty calls the next one.",
    "Nobody changes the {topic} of a {noun} without a second signature, since case {number}.",
    "A {noun} that fails {topic} is marked with code {code} and set aside.",
    "In the year before, {topic} cost {number} for each {noun}, which is why code {code} exists.",
)


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a module: `cap` and `extra` are the numbers in it."""

    path: str
    name: str
    factor: int
    cap: int
    extra: int

    @property
    def anchor(self) -> str:
        return f"def {self.name}(amount: int) -> int:"

    @property
    def text(self) -> str:
        what = self.name.replace("_", " ")
        return (
            f"{self.anchor}\n"
            f'    """The {what} of an amount: {self.factor} in a hundred, at most {self.cap}, and {self.extra}."""\n'
            f"    part = amount * {self.factor} // 100\n"
            f"    if part > {self.cap}:\n"
            f"        part = {self.cap}\n"
            f"    return part + {self.extra}\n"
        )

    def of(self, amount: int) -> int:
        """What it returns."""
        return min(amount * self.factor // 100, self.cap) + self.extra


@dataclass(slots=True)
class Project:
    """The modules of one domain, and documents as long as asked for."""

    seed: int
    domain: str
    dice: random.Random = field(init=False)
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice = random.Random(f"{self.domain}/{self.seed}")  # noqa: S311

    @property
    def nouns(self) -> tuple[str, ...]:
        return DOMAINS[self.domain]

    def module(self, noun: str, functions: int = 5) -> list[Function]:
        """Adds the module of a noun and returns its functions."""
        path = f"{self.domain}/{noun}.py"
        made = [
            Function(
                path,
                f"{noun}_{verb}",
                self.dice.randrange(3, 60),
                self.dice.randrange(100, 999),
                self.dice.randrange(2, 99),
            )
            for verb in self.dice.sample(_VERBS, functions)
        ]
        self.files[path] = f'"""Rules for every {noun}."""\n\n\n' + "\n\n".join(function.text for function in made)
        self.files.setdefault(f"{self.domain}/__init__.py", "")
        return made

    def documents(self, count: int, paragraphs: int = 24) -> list[str]:
        """Adds so many documents of about 2,600 tokens each, and returns their paths."""
        paths: list[str] = []
        for number in range(1, count + 1):
            topic = self.dice.choice(_TOPICS)
            path = f"handbook/{number:02}-{topic}.md"
            self.files[path] = f"# {topic.title()}, part {number}\n\n" + "\n\n".join(
                self._paragraph(topic) for _ in range(paragraphs)
            )
            paths.append(path)
        return paths

    def _paragraph(self, topic: str) -> str:
        return " ".join(
            sentence.format(
                noun=self.dice.choice(self.nouns),
                topic=topic,
                number=self.dice.randrange(10, 900),
                code=f"{self.dice.choice('ABCDEFGH')}{self.dice.randrange(1000, 9999)}",
            )
            for sentence in self.dice.sample(_SENTENCES, 3)
        )


def checker(expected: Sequence[tuple[Function, int]], answers: Mapping[str, str]) -> str:
    """The program that checks: functions return what they should with these caps, and files hold these answers."""
    cases = [
        (function.path.removesuffix(".py").replace("/", "."), function.name, amount, _with(function, cap).of(amount))
        for function, cap in expected
        for amount in (50, 5_000, 200_000)
    ]
    return (
        "import importlib, pathlib, sys\n"
        "sys.path.insert(0, '.')\n"
        f"for module, name, amount, value in {cases!r}:\n"
        "    found = getattr(importlib.import_module(module), name)(amount)\n"
        "    assert found == value, (module, name, amount, found, value)\n"
        f"for path, answer in {dict(answers)!r}.items():\n"
        "    found = pathlib.Path(path).read_text().strip()\n"
        "    assert found == answer, (path, found, answer)\n"
    )


def _with(function: Function, cap: int) -> Function:
    return Function(function.path, function.name, function.factor, cap, function.extra)
