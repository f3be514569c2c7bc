"""Follow-ups out of recorded sessions: which call leads to which, how its arguments follow, and how often.

Counted is what counts when it runs: a call that would have been started after a turn is used if a later turn makes the
identical call before anything was written that it reads. What the same turn asked for is too late to be run early.
Nothing is run here, and the same sessions give the same links.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pagefold.settings import MAX_CALLS_PER_LINK, FollowUpLink
from pagefold.tools.model import ToolValueModel
from pagefold.tools.planner import AnsweredCall
from pagefold.tools.prefetch import WriteEpochs, canonical
from pagefold.tools.projection import CALL, candidates, opened, values_of
from pagefold.tools.registry import ToolRegistry

RecordedTurns: TypeAlias = Sequence[Sequence[AnsweredCall]]
"""Turns, each with its calls and their answers."""

HORIZON = 8
_DISCOVERY = 3
_INDEXED = 2_000
_WRITTEN = ("$items", "$files", "$folders", "$urls")
_LISTS = (1, 2, 3, 4, 6, 10, 20, None)
_DOUBT = 2.0
"""Calls that were not used, added to what was counted: a link seen twice is not certain."""


class ToolLink(NamedTuple):
    """What is learned about: after which tool comes which call."""

    after: str
    link: FollowUpLink


@dataclass(frozen=True, slots=True)
class FittedLink:
    """A link with its fitted probability, and the counts behind it."""

    after: str
    link: FollowUpLink
    tries: int
    used: int
    sessions: int


class _Try(NamedTuple):
    """One candidate: which of the answer's, of how many, whether it was used, in which session."""

    rank: int
    offered: int
    used: bool
    session: int


def fit_follow_ups(
    sessions: Sequence[RecordedTurns],
    registry: ToolRegistry,
    *,
    edges: Sequence[ToolLink] | None = None,
    floor: float = 0.35,
    least_sessions: int = 3,
) -> list[FittedLink]:
    """The links that would have paid on these sessions, best first, each with its probability, limit and bound.

    `edges` are the links to judge; None finds them in the sessions. A link pays if its calls were used at least
    `floor` of the time, doubts included, in at least `least_sessions` sessions.
    """
    judged = discover(sessions, registry) if edges is None else edges
    tries = _tries(sessions, registry, judged)
    fitted = [one for edge in judged if (one := _bounded(edge, tries[edge], floor, least_sessions))]
    return _without_twins(sorted(fitted, key=lambda one: (-one.used, -one.link.probability, one.after, one.link.tool)))


def follow_ups(fitted: Sequence[FittedLink]) -> dict[str, tuple[FollowUpLink, ...]]:
    """The links by the tool they follow."""
    links: dict[str, list[FollowUpLink]] = defaultdict(list)
    for one in fitted:
        links[one.after].append(one.link)
    return {after: tuple(found) for after, found in links.items()}


def with_follow_ups(registry: ToolRegistry, fitted: Sequence[FittedLink]) -> dict[str, ToolValueModel]:
    """Entries for a user's layer: what is known of each tool, with the fitted links in place of its own."""
    models: dict[str, ToolValueModel] = {}
    for after, links in follow_ups(fitted).items():
        found = registry.find(after)
        models[after] = replace(found.model if found else ToolValueModel(), follow_up=links)
    return models


# ---- finding links ---------------------------------------------------------------------------------------------------


def discover(sessions: Sequence[RecordedTurns], registry: ToolRegistry, *, least: int = 2) -> list[ToolLink]:
    """Links whose arguments followed from an answer at least `least` times. Only tools that may be run early."""
    seen: Counter[ToolLink] = Counter()
    for session in sessions:
        found: set[tuple[int, ToolLink]] = set()
        for at, turn in enumerate(session):
            for done in turn:
                if not done.failed and done.arguments is not None:
                    later = list(_readable_after(session, at, registry))
                    if later:
                        index = _index(done)
                        found |= {(number, edge) for number, call in later for edge in _explained(done, call, index)}
        seen.update(edge for _, edge in found)
    return [edge for edge, times in seen.most_common() if times >= least]


def _readable_after(session: RecordedTurns, at: int, registry: ToolRegistry) -> Iterator[tuple[int, AnsweredCall]]:
    """Calls of the next turns that could have been run early, up to the first write that touches them."""
    near = session[at + 1 : at + 1 + _DISCOVERY]
    epochs = WriteEpochs(registry)
    begun = {done.tool: epochs.of(done.tool) for turn in near for done in turn}
    for number, turn in enumerate(near, at + 1):
        for done in turn:
            found = registry.find(done.tool)
            readable = found is not None and found.model.is_speculatable() and not done.failed
            if readable and done.arguments is not None and begun[done.tool] == epochs.of(done.tool):
                yield number, done
        for done in turn:
            epochs.called(done.tool)


def _index(done: AnsweredCall) -> dict[Any, list[str]]:
    """Each value in an answer with the projections that find it."""
    value = opened(done.result)
    found: dict[Any, list[str]] = defaultdict(list)
    for name, one in islice(_scalars(value, ""), _INDEXED):
        if name and name not in found[_keyed(one)]:
            found[_keyed(one)].append(name)
    for projection in _WRITTEN:
        for one in islice(values_of(value, projection, done.arguments or {}), _INDEXED):
            found[_keyed(one)].append(projection)
            if projection == "$files" and "." in one:
                found[_keyed(one)].append(f"$files.{one.rpartition('.')[2]}")
    if isinstance(value, str):
        for line in value.splitlines()[:_INDEXED]:
            name = line.partition(":")[0].strip().lstrip("-*0123456789. ").strip()
            for one in islice(values_of(line, name, {}), 1) if name else ():
                if name not in found[_keyed(one)]:
                    found[_keyed(one)].append(name)
    return found


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
    """The links that would have led from the one to the other: all arguments kept or constant, but for one."""
    given, wanted = done.arguments or {}, call.arguments or {}
    keep = tuple(sorted(name for name, value in wanted.items() if name in given and given[name] == value))
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
    """A switch or a small number: what agents set the same way every time."""
    return isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 1000)


# ---- counting --------------------------------------------------------------------------------------------------------


def _tries(
    sessions: Sequence[RecordedTurns], registry: ToolRegistry, edges: Sequence[ToolLink]
) -> Mapping[ToolLink, list[_Try]]:
    after: dict[str, list[ToolLink]] = defaultdict(list)
    for edge in edges:
        after[edge.after].append(edge)
    found: dict[ToolLink, list[_Try]] = defaultdict(list)
    for number, session in enumerate(sessions):
        for at, turn in enumerate(session):
            for done in turn:
                if done.failed or done.arguments is None or done.tool not in after:
                    continue
                ahead: dict[str, set[str]] = {}
                for edge in after[done.tool]:
                    if edge.link.tool not in ahead:
                        ahead[edge.link.tool] = calls_ahead(session, at, edge.link.tool, registry)
                    loose = replace(edge.link, limit=MAX_CALLS_PER_LINK, most=None)
                    listed = candidates(done.tool, done.result, loose, done.arguments)
                    for rank, arguments in enumerate(listed[:MAX_CALLS_PER_LINK]):
                        used = canonical(arguments) in ahead[edge.link.tool]
                        found[edge].append(_Try(rank, len(listed), used, number))
    return found


def calls_ahead(session: RecordedTurns, at: int, tool: str, registry: ToolRegistry) -> set[str]:
    """The arguments with which later turns call `tool` before anything is written that it reads."""
    epochs = WriteEpochs(registry)
    for done in session[at]:
        epochs.called(done.tool)
    epoch = epochs.of(tool)
    found: set[str] = set()
    for turn in session[at + 1 : at + 1 + HORIZON]:
        for done in turn:
            if done.tool == tool and (text := canonical(done.arguments)) is not None:
                found.add(text)
        for done in turn:
            epochs.called(done.tool)
        if epochs.of(tool) != epoch:
            break
    return found


def _bounded(edge: ToolLink, tries: Sequence[_Try], floor: float, least_sessions: int) -> FittedLink | None:
    """The link with the limit and the bound under which most of its calls are used and it still pays, or None."""
    best: FittedLink | None = None
    for limit in range(1, MAX_CALLS_PER_LINK + 1):
        for most in _LISTS:
            within = [one for one in tries if one.rank < limit and (most is None or one.offered <= most)]
            used = [one for one in within if one.used]
            probability = len(used) / (len(within) + _DOUBT)
            where = len({one.session for one in used})
            if probability < floor or where < least_sessions:
                continue
            if best is None or (len(used), probability) > (best.used, best.used / (best.tries + _DOUBT)):
                link = replace(edge.link, probability=round(probability, 2), limit=limit, most=most)
                best = FittedLink(edge.after, link, len(within), len(used), where)
    return best


def _without_twins(fitted: Sequence[FittedLink]) -> list[FittedLink]:
    """One link for each way to the same arguments: the one that was used most."""
    kept: dict[tuple[Any, ...], FittedLink] = {}
    for one in fitted:
        link = one.link
        kept.setdefault((one.after, link.tool, link.projection_arg, link.keep, link.constants), one)
    return list(kept.values())
