"""Chooses which calls to run early after a turn: the follow-ups of its calls, ranked by what they should save.

A candidate's score is its probability times the value class of the tool, raised by the time the call takes, and divided
by the tokens it costs. Every call is charged to the budget. The planner runs nothing. It remembers only the lists that
it has seen, so that after the third entry of a list the fourth can be next. Whether a call is safe is decided by
`may_dispatch`, never here.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pagefold.settings.tools import FollowUpLink, PrefetchSettings
from pagefold.tools.model import CostModel, ToolValueModel, ValueClass
from pagefold.tools.prefetch import canonical, may_dispatch
from pagefold.tools.projection import Arguments, candidates, likeliest
from pagefold.tools.registry import Layer, ToolMatch, ToolRegistry

_CLASS_WEIGHT = {
    ValueClass.CRITICAL: 1.0,
    ValueClass.SUPPORTING: 0.5,
    ValueClass.OPTIONAL: 0.2,
    ValueClass.AUDIT_ONLY: 1.0,
}
_USUAL_LATENCY_MS = 200
_BYTES_PER_TOKEN = 4
_MAX_LIST_PLACES = 256


class AnsweredCall(NamedTuple):
    """A call with its answer. `arguments` is None where they were no JSON object."""

    tool: str
    arguments: Mapping[str, Any] | None
    result: Any
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to run early, and the tokens that it is charged."""

    tool: str
    arguments: Mapping[str, Any]
    tokens: int
    score: float
    host: str | None = None


HasAnswer: TypeAlias = Callable[[str, str], bool]
"""Tells whether the answer to a call (tool, canonical arguments) is there already, under way, or was just shown."""


@dataclass(slots=True)
class Planner:
    """Plans the early calls of one conversation. `annotations` are handed to `may_dispatch`.

    `min_prior` is the least probability of a shipped link. It is higher than `limits.min_probability`, because shipped
    links say how often a tool follows a tool, and not how often exactly this call does. `max_dollars` is what a call
    may cost.
    """

    registry: ToolRegistry
    limits: PrefetchSettings = field(default_factory=PrefetchSettings)
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    min_prior: float = 0.5
    max_dollars: float = 0.0
    _places: dict[tuple[str, str], "_ListPlace"] = field(default_factory=dict)

    def plan(
        self,
        turn: Sequence[AnsweredCall],
        *,
        has: HasAnswer = lambda tool, arguments: False,
        busy_hosts: Mapping[str, int] | None = None,
    ) -> list[PlannedCall]:
        """Returns what to run after these calls were answered. `busy_hosts` counts the calls under way to each host."""
        wanted: dict[tuple[str, str], PlannedCall] = {}
        for offer in (offer for done in turn for offer in self._offers(done)):
            planned, text = self._weighed(offer), canonical(offer.arguments) or ""
            if planned is None or has(offer.tool, text):
                continue
            earlier = wanted.get((offer.tool, text))
            if earlier is None or earlier.score < planned.score:
                wanted[offer.tool, text] = planned
        return self._admitted(sorted(wanted.values(), key=lambda planned: -planned.score), Counter(busy_hosts))

    def looks_into(self, tool: str) -> bool:
        """Tells whether an answer of this tool is searched for the arguments of a next call."""
        match = self.registry.find(tool)
        return match is not None and any(link.projection is not None for link in match.model.follow_up)

    def _offers(self, done: AnsweredCall) -> list["_Offer"]:
        """Returns every follow-up of one call with the arguments it would have, the likeliest of a link first."""
        if done.failed or done.arguments is None:
            return []
        offers = self._next_in_list(done)
        match = self.registry.find(done.tool)
        least = self._least_probability(match)
        for link in match.model.follow_up if match else ():
            if link.projection is None or link.probability < least:
                continue
            tool = self.registry.next_tool(done.tool, link.tool)
            listed = candidates(_entry_name(match, done.tool), done.result, link, done.arguments)
            self._remember(tool, link, listed)
            offers += (_Offer(tool, link, arguments) for arguments in likeliest(listed, link))
        return offers

    def _least_probability(self, match: ToolMatch | None) -> float:
        prior = match is not None and match.layer is Layer.SHIPPED
        return max(self.limits.min_probability, self.min_prior if prior else 0.0)

    def _next_in_list(self, done: AnsweredCall) -> list["_Offer"]:
        """Returns the entries after this one, where this call was an entry of a list that an earlier answer gave."""
        text = canonical(done.arguments)
        place = self._places.get((done.tool, text)) if text is not None else None
        if place is None:
            return []
        ahead = likeliest(place.listed[place.position + 1 :], place.link)
        return [_Offer(done.tool, place.link, arguments) for arguments in ahead]

    def _remember(self, tool: str, link: FollowUpLink, listed: Sequence[Arguments]) -> None:
        if len(listed) <= link.limit:
            return
        for position, arguments in enumerate(listed):
            if (text := canonical(arguments)) is not None:
                self._places[tool, text] = _ListPlace(listed, position, link)
        while len(self._places) > _MAX_LIST_PLACES:
            del self._places[next(iter(self._places))]

    def _weighed(self, offer: "_Offer") -> PlannedCall | None:
        """Returns an offer with its score and cost, or None where it may not be run or costs too many dollars."""
        match = self.registry.find(offer.tool)
        verdict = may_dispatch(
            offer.tool,
            match,
            offer.arguments,
            annotations=self.annotations.get(offer.tool),
            allowed_hosts=self.limits.hosts,
        )
        if not verdict or match is None or (match.model.cost_model.dollars or 0.0) > self.max_dollars:
            return None
        tokens = 0 if match.model.excluded_from_budget() else tokens_of(match.model.cost_model)
        score = score_of(match.model, offer.link.probability)
        return PlannedCall(offer.tool, offer.arguments, tokens, score, verdict.host)

    def _admitted(self, wanted: Sequence[PlannedCall], busy: Counter[str | None]) -> list[PlannedCall]:
        """Returns the calls that the budget and the hosts allow, the best first."""
        calls: list[PlannedCall] = []
        left = self.limits.budget_tokens
        for planned in wanted:
            is_busy = planned.host is not None and busy[planned.host] >= self.limits.per_host
            if is_busy or planned.tokens > left or len(calls) >= self.limits.parallel:
                continue
            calls.append(planned)
            left -= planned.tokens
            busy[planned.host] += 1
        return calls


class _Offer(NamedTuple):
    tool: str
    link: FollowUpLink
    arguments: Mapping[str, Any]


class _ListPlace(NamedTuple):
    """Where the arguments of a call stand in a list of candidates."""

    listed: Sequence[Arguments]
    position: int
    link: FollowUpLink


def _entry_name(match: ToolMatch | None, live_name: str) -> str:
    """Returns the name that projections go by: the entry's, which is the same however an agent spells the tool."""
    return match.pattern if match is not None and match.by_name else live_name


def tokens_of(cost: CostModel) -> int:
    """Returns what an answer is charged: its typical length at four bytes a token, at least one token."""
    return max(1, round(cost.typical_kb * 1024 / _BYTES_PER_TOKEN))


def score_of(model: ToolValueModel, probability: float) -> float:
    """Returns the expected value per token: by probability, value class and the time saved."""
    latency = model.cost_model.latency_ms_p50 or _USUAL_LATENCY_MS
    time_saved = latency / (latency + _USUAL_LATENCY_MS)
    return probability * _CLASS_WEIGHT[model.value_class] * time_saved / tokens_of(model.cost_model)
