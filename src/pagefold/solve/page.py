"""Writes the figures of an experiment as Markdown, and as one HTML file that needs nothing else."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pagefold.html import Html, el
from pagefold.package_data import package_text
from pagefold.printable import printable
from pagefold.solve.figures import COLUMNS, SizeFigures, figures_of, kinds_of, sample_told
from pagefold.solve.verdict import Result

TITLE = "Does an agent work as well behind pagefold?"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SIMULATED = (
    "The agent was simulated: it follows a plan and acts only on what each request holds. Its solve rates say what the "
    "requests keep. They do not say what a real model would do."
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What was run: with which `model`, "" for the simulated agent; `ended` is why not all of it was, or ""."""

    model: str
    results: Sequence[Result]
    planned: int
    prices: str
    ended: str = ""

    def notes(self) -> list[str]:
        asked = SIMULATED if not self.model else f"The model was {self.model}."
        made = f"{len(self.results):,} of {self.planned:,} planned runs were made"
        arms = len({result.arm for result in self.results if result.size == self.results[0].size})
        runs = Counter(result.pair for result in self.results)
        return [
            asked,
            f"{made}: {self.ended}." if self.ended else f"{made}.",
            f"Cost is by the provider's usage (prices: {self.prices}).",
            sample_told(sum(count == arms for count in runs.values())),
        ]


def markdown(experiment: Experiment) -> str:
    return "\n".join(_markdown(experiment)) + "\n"


def _markdown(experiment: Experiment) -> Iterator[str]:
    yield f"# {TITLE}\n"
    for figures in figures_of(experiment.results):
        yield f"## {figures.title.capitalize()}\n"
        yield from (f"- {_escaped(line)}" for line in figures.sentences())
        yield ""
        yield from markdown_table([COLUMNS, *(arm.cells() for arm in figures.arms)])
        yield ""
    if experiment.results:
        yield "## By kind of task\n"
        yield from markdown_table(kinds_of(experiment.results))
        yield ""
    yield "## What was run\n"
    yield from (f"- {_escaped(note)}" for note in experiment.notes())


def markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *others = rows
    for cells in (head, ["---"] + ["---:"] * (len(head) - 1), *others):
        yield "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def page(experiment: Experiment) -> str:
    style = package_text("pagefold.analysis.report", "style.css").strip()
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("link", rel="icon", href="data:,"),
        el("title", TITLE),
        el("style", Html(style)),
    )
    body = el("body", el("main", el("h1", TITLE), _sections(experiment)))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _sections(experiment: Experiment) -> Iterator[Html]:
    if not experiment.results:
        yield el("p", "No run was finished.")
    for figures in figures_of(experiment.results):
        yield from _size(figures)
    if experiment.results:
        yield el("h2", "Solved, by kind of task")
        yield _table(kinds_of(experiment.results))
    yield el("h2", "What was run")
    yield el("ul", (el("li", note) for note in experiment.notes()))


def _size(figures: SizeFigures) -> Iterator[Html]:
    yield el("h2", figures.title.capitalize())
    yield el("ul", (el("li", line) for line in figures.sentences()))
    yield _table([COLUMNS, *(arm.cells() for arm in figures.arms)])


def _table(rows: Sequence[Sequence[str]]) -> Html:
    head, *others = rows
    body = (el("tr", (el("td", cell) for cell in cells)) for cells in others)
    table = el("table", el("thead", el("tr", (el("th", cell, scope="col") for cell in head))), el("tbody", body))
    return el("div", table, class_="scroll", tabindex=0)
