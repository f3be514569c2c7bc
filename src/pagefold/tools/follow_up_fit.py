"""Finds follow-up links in recorded sessions: which call leads to which, how its arguments follow, and how often.

A call that would have been started after a turn counts as used if a later turn makes the identical call before anything
is written that it reads. Calls of the same turn do not count: they come too soon to be run early. No tool is run, and
the same sessions give the same links.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pagefold.settings.tools import MAX_CALLS_PER_LINK, FollowUpLink
from pagefold.tools.model import ToolValueModel
from pagefold.tools.planner import AnsweredCall
from pagefold.tools.prefetch import WriteEpochs, canonical
from pagefold.tools.projection import CALL, candidates, opened, values_of
from pagefold.tools.registry import ToolRegistry

RecordedTurns: TypeAlias = Sequence[Sequence[AnsweredCall]]
"""Turns, each with its calls and their answers."""

HORIZON_TURNS = 8
_DISCOVERY_TURNS = 3
_MAX_INDEXED = 2_000
_MIN_USED, _MIN_SESSIONS = 0.35, 3
_TEXT_PROJECTIONS = ("$items", "$files", "$folders", "$urls")
_LIST_BOUNDS = (1, 2, 3, 4, 6, 10, 20, None)
_DOUBT = 2.0
"""Unused calls that are added to every count, because a link that was seen twice is not certain."""


class ToolLink(NamedTuple):
    """A link, and the tool that it follows."""

    after: str
    link: FollowUpLink


@dataclass(frozen=True, slots=True)
class FittedLink:
    """A link with its fitted probability, and the counts that it was fitted on."""

    after: str
    link: FollowUpLink
    tries: int
    used: int
    sessions: int


class _Try(NamedTuple):
    """One candidate call: its rank among those that the answer offered, whether it was used, and in which session."""

    rank: int
    offered: int
    used: bool
    session: int


def fit_follow_ups(
    sessions: Sequence[RecordedTurns], registry: ToolRegistry, *, edges: Sequence[ToolLink] | None = None
) -> list[FittedLink]:
    """Returns the links that would have paid on these sessions, best first, with their probability and limits.

    `edges` are the links to judge; with None they are looked for in the sessions. A link pays if at least the share
    _MIN_USED of its calls was used, _DOUBT included, in at least _MIN_SESSIONS sessions.
    """
    judged = discover(sessions, registry) if edges is None else edges
    tries = _tries(sessions, registry, judged)
    fitted = [best for edge in judged if (best := _bounded(edge, tries[edge]))]
    fitted.sort(key=lambda best: (-best.used, -best.link.probability, best.after, best.link.tool))
    return _without_twins(fitted)


def with_follow_ups(registry: ToolRegistry, fitted: Sequence[FittedLink]) -> dict[str, ToolValueModel]:
    """Returns entries for the user's layer: the model of each tool, with the fitted links in place of its own."""
    links: dict[str, tuple[FollowUpLink, ...]] = defaultdict(tuple)
    for best in fitted:
        links[best.after] += (best.link,)
    models = {after: match.model if (match := registry.find(after)) else ToolValueModel() for after in links}
    return {after: replace(model, follow_up=links[after]) for after, model in models.items()}


# ---- finding links ---------------------------------------------------------------------------------------------------


def discover(sessions: Sequence[RecordedTurns], registry: ToolRegistry, *, least: int = 2) -> list[ToolLink]:
    """Returns links whose arguments followed from an answer at least `least` times, to tools that may be run early."""
    seen: Counter[ToolLink] = Counter()
    for session in sessions:
        explained: set[tuple[int, ToolLink]] = set()
        for position, turn in enumerate(session):
            for done in turn:
                if not done.failed and done.arguments is not None:
                    later = list(_readable_after(session, position, registry))
                    if later:
                        index = _index(done)
                        explained |= {
                            (number, edge) for number, call in later for edge in _explained(done, call, index)
                        }
        seen.update(edge for _, edge in explained)
    return [edge for edge, times in seen.most_common() if times >= least]


def _readable_after(
    session: RecordedTurns, position: int, registry: ToolRegistry
) -> Iterator[tuple[int, AnsweredCall]]:
    """Yields the calls of the next turns that could have been run early, up to a write to what they read."""
    near = session[position + 1 : position + 1 + _DISCOVERY_TURNS]
    epochs = WriteEpochs(registry)
    begun = {done.tool: epochs.of(done.tool) for turn in near for done in turn}
    for number, turn in enumerate(near, position + 1):
        for done in turn:
            match = registry.find(done.tool)
            readable = match is not None and match.model.is_speculatable() and not done.failed
            if readable and done.arguments is not None and begun[done.tool] == epochs.of(done.tool):
                yield number, done
        for done in turn:
            epochs.called(done.tool)


def _index(done: AnsweredCall) -> dict[Any, list[str]]:
    """Returns the projections that find each value in an answer, by the value."""
    answer = opened(done.result)
    index: dict[Any, list[str]] = defaultdict(list)
    for name, value in islice(_scalars(answer, ""), _MAX_INDEXED):
        if name and name not in index[_keyed(value)]:
            index[_keyed(value)].append(name)
    for projection in _TEXT_PROJECTIONS:
        for value in islice(values_of(answer, projection, done.arguments or {}), _MAX_INDEXED):
            index[_keyed(value)].append(projection)
            if projection == "$files" and "." in value:
                index[_keyed(value)].append(f"$files.{value.rpartition('.')[2]}")
    if isinstance(answer, str):
        for line in answer.splitlines()[:_MAX_INDEXED]:
            name = line.partition(":")[0].strip().lstrip("-*0123456789. ").strip()
            for value in islice(values_of(line, name, {}), 1) if name else ():
                if name not in index[_keyed(value)]:
                    index[_keyed(value)].append(name)
    return index


def _scalars(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            listed = isinstance(inner, str | int) and not isinstance(inner, bool)
            yield from ([(f"{name}[]", inner)] if name and listed else _scalars(inner, name) if not listed else ())
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield name, value


def _keyed(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value if isinstance(value, str | int | float | bool) else repr(value)


def _explained(done: AnsweredCall, call: AnsweredCall, index: Mapping[Any, Sequence[str]]) -> Iterator[ToolLink]:
    """Yields the links that would have led from `done` to `call`: all arguments but one are kept or constant."""
    before, wanted = done.arguments or {}, call.arguments or {}
    keep = tuple(sorted(name for name, value in wanted.items() if name in before and before[name] == value))
    rest = [name for name in wanted if name not in keep]
    if not rest and done.tool != call.tool:
        yield ToolLink(done.tool, FollowUpLink(call.tool, projection=CALL, keep=keep))
    for name in rest:
        others = [(other, wanted[other]) for other in rest if other != name]
        if all(_is_constant(value) for _, value in others):
            for projection in index.get(_keyed(wanted[name]), ()):
                constants = tuple(sorted(others))
                yield ToolLink(
                    done.tool,
                    FollowUpLink(call.tool, projection=projection, projection_arg=name, keep=keep, constants=constants),
                )
    if rest and keep and done.tool != call.tool and all(_is_constant(wanted[name]) for name in rest):
        constants = tuple(sorted((name, wanted[name]) for name in rest))
        yield ToolLink(done.tool, FollowUpLink(call.tool, projection=CALL, keep=keep, constants=constants))


def _is_constant(value: Any) -> bool:
    """Tells whether a value is a switch or a small number, which agents set the same way every time."""
    return isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 1000)


# ---- counting --------------------------------------------------------------------------------------------------------


def _tries(
    sessions: Sequence[RecordedTurns], registry: ToolRegistry, edges: Sequence[ToolLink]
) -> Mapping[ToolLink, list[_Try]]:
    after: dict[str, list[ToolLink]] = defaultdict(list)
    for edge in edges:
        after[edge.after].append(edge)
    tries: dict[ToolLink, list[_Try]] = defaultdict(list)
    for number, session in enumerate(sessions):
        for position, turn in enumerate(session):
            for done in turn:
                if done.failed or done.arguments is None or done.tool not in after:
                    continue
                ahead: dict[str, set[str]] = {}
                for edge in after[done.tool]:
                    if edge.link.tool not in ahead:
                        ahead[edge.link.tool] = calls_ahead(session, position, edge.link.tool, registry)
                    loose = replace(edge.link, limit=MAX_CALLS_PER_LINK, most=None)
                    listed = candidates(done.tool, done.result, loose, done.arguments)
                    for rank, arguments in enumerate(listed[:MAX_CALLS_PER_LINK]):
                        used = canonical(arguments) in ahead[edge.link.tool]
                        tries[edge].append(_Try(rank, len(listed), used, number))
    return tries


def calls_ahead(session: RecordedTurns, position: int, tool: str, registry: ToolRegistry) -> set[str]:
    """Returns the arguments with which later turns call `tool` before anything is written that it reads."""
    epochs = WriteEpochs(registry)
    for done in session[position]:
        epochs.called(done.tool)
    epoch = epochs.of(tool)
    called: set[str] = set()
    for turn in session[position + 1 : position + 1 + HORIZON_TURNS]:
        for done in turn:
            if done.tool == tool and (text := canonical(done.arguments)) is not None:
                called.add(text)
        for done in turn:
            epochs.called(done.tool)
        if epochs.of(tool) != epoch:
            break
    return called


def _bounded(edge: ToolLink, tries: Sequence[_Try]) -> FittedLink | None:
    """Returns the link with the limits under which most of its calls are used and it still pays, or None."""
    best: FittedLink | None = None
    for limit in range(1, MAX_CALLS_PER_LINK + 1):
        for most in _LIST_BOUNDS:
            within = [call for call in tries if call.rank < limit and (most is None or call.offered <= most)]
            used = [call for call in within if call.used]
            probability = len(used) / (len(within) + _DOUBT)
            where = len({call.session for call in used})
            if probability < _MIN_USED or where < _MIN_SESSIONS:
                continue
            if best is None or (len(used), probability) > (best.used, best.used / (best.tries + _DOUBT)):
                link = replace(edge.link, probability=round(probability, 2), limit=limit, most=most)
                best = FittedLink(edge.after, link, len(within), len(used), where)
    return best


def _without_twins(fitted: Sequence[FittedLink]) -> list[FittedLink]:
    """Keeps one link for each way to the same arguments: the first, which was used most."""
    kept: dict[tuple[Any, ...], FittedLink] = {}
    for best in fitted:
        link = best.link
        kept.setdefault((best.after, link.tool, link.projection_arg, link.keep, link.constants), best)
    return list(kept.values())
