"""Chooses which calls to run early after a turn: the follow-ups of its calls, ranked by what they should save.

A candidate's score is its probability times the value class of the tool, raised by what the agent looks for and by the
time the call takes, and divided by the tokens it costs. Every call is charged to the budget. Candidates that are left
out are declined with a reason. The planner runs nothing. It remembers only the lists that it has seen, so that after
the third entry of a list the fourth can be next. Whether a call is safe is decided by `may_dispatch`, never here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pagefold.settings.tools import FollowUpLink
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
_LARGEST_BOOST = 2.5
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
class PrefetchBudget:
    """What one turn may spend on calls that nobody has asked for yet.

    `min_prior` is the least probability of a shipped link. It is higher than `min_probability`, because shipped links
    say how often a tool follows a tool, and not how often exactly this call does.
    """

    tokens: int = 8_000
    calls: int = 3
    per_host: int = 4
    min_probability: float = 0.35
    dollars: float = 0.0
    min_prior: float = 0.5


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to run early: why it is expected, how likely, and what it is charged."""

    tool: str
    arguments: Mapping[str, Any]
    after: str
    probability: float
    tokens: int
    score: float
    host: str | None = None


@dataclass(frozen=True, slots=True)
class DeclinedCall:
    """A call that is not run early, and why."""

    tool: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class PrefetchPlan:
    """The calls to run now, those that were declined, and what is spent and left of the budget."""

    calls: tuple[PlannedCall, ...] = ()
    declined: tuple[DeclinedCall, ...] = ()
    total_cost_tokens: int = 0
    remaining_budget_tokens: int = 0


HasAnswer: TypeAlias = Callable[[str, str], bool]
"""Tells whether the answer to a call (tool, canonical arguments) is there already, under way, or was just shown."""


@dataclass(slots=True)
class Planner:
    """Plans the early calls of one conversation. `allowed_hosts` and `annotations` are handed to `may_dispatch`."""

    registry: ToolRegistry
    budget: PrefetchBudget = field(default_factory=PrefetchBudget)
    allowed_hosts: Collection[str] = ()
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _places: dict[tuple[str, str], "_ListPlace"] = field(default_factory=dict)

    def plan(
        self,
        turn: Sequence[AnsweredCall],
        *,
        has: HasAnswer = lambda tool, arguments: False,
        intent: Collection[str] = (),
        busy_hosts: Mapping[str, int] | None = None,
    ) -> PrefetchPlan:
        """Returns what to run after these calls were answered. `busy_hosts` counts the calls under way to each host."""
        offers = [offer for done in turn for offer in self._offers(done)]
        if not offers:
            return PrefetchPlan(remaining_budget_tokens=self.budget.tokens)
        declined: list[DeclinedCall] = []
        wanted = self._wanted(offers, has, intent, declined)
        return self._admitted(wanted, dict(busy_hosts or {}), declined)

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
            tool = self.registry.next_tool(done.tool, link.tool)
            if link.projection is None or link.probability < least:
                offers.append(_Offer(tool, done.tool, link, None, least))
                continue
            listed = candidates(_entry_name(match, done.tool), done.result, link, done.arguments)
            self._remember(tool, done.tool, link, listed)
            offers += (_Offer(tool, done.tool, link, arguments) for arguments in likeliest(listed, link))
        return offers

    def _least_probability(self, match: ToolMatch | None) -> float:
        prior = match is not None and match.layer is Layer.SHIPPED
        return max(self.budget.min_probability, self.budget.min_prior if prior else 0.0)

    def _next_in_list(self, done: AnsweredCall) -> list["_Offer"]:
        """Returns the entries after this one, where this call was an entry of a list that an earlier answer gave."""
        text = canonical(done.arguments)
        place = self._places.get((done.tool, text)) if text is not None else None
        if place is None:
            return []
        ahead = likeliest(place.listed[place.position + 1 :], place.link)
        return [_Offer(done.tool, place.after, place.link, arguments) for arguments in ahead]

    def _remember(self, tool: str, after: str, link: FollowUpLink, listed: Sequence[Arguments]) -> None:
        if len(listed) <= link.limit:
            return
        for position, arguments in enumerate(listed):
            if (text := canonical(arguments)) is not None:
                self._places[tool, text] = _ListPlace(listed, position, link, after)
        while len(self._places) > _MAX_LIST_PLACES:
            del self._places[next(iter(self._places))]

    def _wanted(
        self, offers: Sequence["_Offer"], has: HasAnswer, intent: Collection[str], declined: list[DeclinedCall]
    ) -> list[PlannedCall]:
        wanted: dict[tuple[str, str], PlannedCall] = {}
        for offer in offers:
            reason = self._weighed(offer, has, intent, wanted)
            if reason:
                declined.append(DeclinedCall(offer.tool, offer.after, reason))
        return sorted(wanted.values(), key=lambda planned: -planned.score)

    def _weighed(
        self, offer: "_Offer", has: HasAnswer, intent: Collection[str], wanted: dict[tuple[str, str], PlannedCall]
    ) -> str | None:
        """Adds an offer to the wanted calls, or returns why it is declined."""
        if offer.link.probability < offer.least:
            return f"expected in {offer.link.probability:.0%} of cases, {offer.least:.0%} are asked for"
        if offer.arguments is None:
            return "no projection says what its arguments would be"
        match = self.registry.find(offer.tool)
        verdict = may_dispatch(
            offer.tool,
            match,
            offer.arguments,
            annotations=self.annotations.get(offer.tool),
            allowed_hosts=self.allowed_hosts,
        )
        if not verdict or match is None:
            return verdict.reason
        text = canonical(offer.arguments) or ""
        if has(offer.tool, text):
            return "its answer is at hand"
        dollars = match.model.cost_model.dollars
        if dollars is not None and dollars > self.budget.dollars:
            return f"it costs {dollars:g} USD"
        tokens = 0 if match.model.excluded_from_budget() else tokens_of(match.model.cost_model)
        score = score_of(match.model, offer.link.probability, intent)
        earlier = wanted.get((offer.tool, text))
        if earlier is None or earlier.score < score:
            wanted[offer.tool, text] = PlannedCall(
                offer.tool, offer.arguments, offer.after, offer.link.probability, tokens, score, verdict.host
            )
        return None

    def _admitted(
        self, wanted: Sequence[PlannedCall], busy: dict[str, int], declined: list[DeclinedCall]
    ) -> PrefetchPlan:
        calls: list[PlannedCall] = []
        left = self.budget.tokens
        for planned in wanted:
            if len(calls) >= self.budget.calls:
                reason = f"{self.budget.calls} calls a turn are enough"
            elif planned.host is not None and busy.get(planned.host, 0) >= self.budget.per_host:
                reason = f"{planned.host} is busy"
            elif planned.tokens > left:
                reason = f"budget exceeded: {planned.tokens} tokens, {left} are left"
            else:
                calls.append(planned)
                left -= planned.tokens
                if planned.host is not None:
                    busy[planned.host] = busy.get(planned.host, 0) + 1
                continue
            declined.append(DeclinedCall(planned.tool, planned.after, reason))
        return PrefetchPlan(tuple(calls), tuple(declined), self.budget.tokens - left, left)


class _Offer(NamedTuple):
    tool: str
    after: str
    link: FollowUpLink
    arguments: Mapping[str, Any] | None
    least: float = 0.0


class _ListPlace(NamedTuple):
    """Where the arguments of a call stand in a list of candidates."""

    listed: Sequence[Arguments]
    position: int
    link: FollowUpLink
    after: str


def _entry_name(match: ToolMatch | None, live_name: str) -> str:
    """Returns the name that projections go by: the entry's, which is the same however an agent spells the tool."""
    return match.pattern if match is not None and match.by_name else live_name


def tokens_of(cost: CostModel) -> int:
    """Returns what an answer is charged: its typical length at four bytes a token, at least one token."""
    return max(1, round(cost.typical_kb * 1024 / _BYTES_PER_TOKEN))


def score_of(model: ToolValueModel, probability: float, intent: Collection[str] = ()) -> float:
    """Returns the expected value per token: by probability, value class, the agent's intent and the time saved."""
    latency = model.cost_model.latency_ms_p50 or _USUAL_LATENCY_MS
    time_saved = latency / (latency + _USUAL_LATENCY_MS)
    boost = intent_boost(model, intent)
    return probability * _CLASS_WEIGHT[model.value_class] * boost * time_saved / tokens_of(model.cost_model)


def intent_boost(model: ToolValueModel, intent: Collection[str]) -> float:
    """Returns 1, plus the value of each group of fields that is left out by default and that a keyword names."""
    words = [word.casefold() for word in intent if word]
    gained = sum(
        group.estimated_value
        for group in model.field_groups.values()
        if not group.default_include and any(word in name.casefold() for word in words for name in group.fields)
    )
    return min(_LARGEST_BOOST, 1 + gained)
