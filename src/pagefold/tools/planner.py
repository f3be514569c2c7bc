"""What to run early after a turn: the follow-ups of its calls, ranked by what they are expected to save.

A candidate is worth its probability times the class of the tool, raised by what the agent is after and by the time it
takes, and lowered by the tokens it costs. Every call is charged. Candidates that are left out are declined with a
reason. The planner runs nothing and remembers nothing but which lists it has seen, so that after the third entry of a
list the fourth can be next; whether a planned call is safe is asked of `may_dispatch`, never answered here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pagefold.settings import MAX_CALLS_PER_LINK, FollowUpLink
from pagefold.tools.model import CostModel, ToolValueModel, ValueClass
from pagefold.tools.prefetch import canonical, may_dispatch
from pagefold.tools.projection import candidates
from pagefold.tools.registry import Layer, ToolMatch, ToolRegistry

_CLASS = {ValueClass.CRITICAL: 1.0, ValueClass.SUPPORTING: 0.5, ValueClass.OPTIONAL: 0.2, ValueClass.AUDIT_ONLY: 1.0}
_LARGEST_BOOST = 2.5
_USUAL_LATENCY_MS = 200
_BYTES_PER_TOKEN = 4
_TRAILS = 256


class AnsweredCall(NamedTuple):
    """A call that was answered. `arguments` is None where what was sent is no JSON object."""

    tool: str
    arguments: Mapping[str, Any] | None
    result: Any
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PrefetchBudget:
    """What one turn may spend on calls that nobody asked for yet.

    `min_prior` is asked of shipped links: those tell how often a tool follows a tool, not how often the very call does.
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
    tool: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class PrefetchPlan:
    calls: tuple[PlannedCall, ...] = ()
    declined: tuple[DeclinedCall, ...] = ()
    total_cost_tokens: int = 0
    remaining_budget_tokens: int = 0


Has: TypeAlias = Callable[[str, str], bool]
"""Whether the answer to a call (tool, canonical arguments) is at hand, under way or was just shown."""


@dataclass(slots=True)
class Planner:
    """The planner of one conversation."""

    registry: ToolRegistry
    budget: PrefetchBudget = field(default_factory=PrefetchBudget)
    allowed_hosts: Collection[str] = ()
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _trails: dict[tuple[str, str], "_Trail"] = field(default_factory=dict)

    def plan(
        self,
        turn: Sequence[AnsweredCall],
        *,
        has: Has = lambda tool, arguments: False,
        intent: Collection[str] = (),
        busy_hosts: Mapping[str, int] | None = None,
    ) -> PrefetchPlan:
        """What to run now that these calls were answered. `busy_hosts` counts the calls under way to each host."""
        offers = [offer for done in turn for offer in self._offers(done)]
        if not offers:
            return PrefetchPlan(remaining_budget_tokens=self.budget.tokens)
        declined: list[DeclinedCall] = []
        wanted = self._wanted(offers, has, intent, declined)
        return self._admitted(wanted, dict(busy_hosts or {}), declined)

    def looks_into(self, tool: str) -> bool:
        """Whether what a tool says may hold arguments of a call that follows."""
        found = self.registry.find(tool)
        return found is not None and any(link.projection is not None for link in found.model.follow_up)

    def _offers(self, done: AnsweredCall) -> list["_Offer"]:
        """Every follow-up of one call with the arguments it would have, likeliest first within a link."""
        if done.failed or done.arguments is None:
            return []
        offers = self._along_a_trail(done)
        found = self.registry.find(done.tool)
        least = self._least(found)
        for link in found.model.follow_up if found else ():
            tool = self.registry.next_tool(done.tool, link.tool)
            if link.projection is None or link.probability < least:
                offers.append(_Offer(tool, done.tool, link, None, least))
                continue
            listed = candidates(_entry_name(found, done.tool), done.result, link, done.arguments)
            self._remember(tool, done.tool, link, listed)
            limit = min(link.limit, MAX_CALLS_PER_LINK)
            offers += (_Offer(tool, done.tool, link, one) for one in listed[:limit])
        return offers

    def _least(self, found: ToolMatch | None) -> float:
        prior = found is not None and found.layer is Layer.SHIPPED
        return max(self.budget.min_probability, self.budget.min_prior if prior else 0.0)

    def _along_a_trail(self, done: AnsweredCall) -> list["_Offer"]:
        """The entries after this one, where this call was an entry of a list."""
        text = canonical(done.arguments)
        trail = self._trails.get((done.tool, text)) if text is not None else None
        if trail is None:
            return []
        ahead = trail.listed[trail.at + 1 : trail.at + 1 + min(trail.link.limit, MAX_CALLS_PER_LINK)]
        return [_Offer(done.tool, trail.after, trail.link, one) for one in ahead]

    def _remember(self, tool: str, after: str, link: FollowUpLink, listed: Sequence[Mapping[str, Any]]) -> None:
        if len(listed) <= link.limit:
            return
        for at, arguments in enumerate(listed):
            if (text := canonical(arguments)) is not None:
                self._trails[tool, text] = _Trail(listed, at, link, after)
        while len(self._trails) > _TRAILS:
            del self._trails[next(iter(self._trails))]

    def _wanted(
        self, offers: Sequence["_Offer"], has: Has, intent: Collection[str], declined: list[DeclinedCall]
    ) -> list[PlannedCall]:
        wanted: dict[tuple[str, str], PlannedCall] = {}
        for offer in offers:
            reason = self._weighed(offer, has, intent, wanted)
            if reason:
                declined.append(DeclinedCall(offer.tool, offer.after, reason))
        return sorted(wanted.values(), key=lambda planned: -planned.score)

    def _weighed(
        self, offer: "_Offer", has: Has, intent: Collection[str], wanted: dict[tuple[str, str], PlannedCall]
    ) -> str | None:
        """Puts an offer among what is wanted, or tells why not."""
        if offer.link.probability < offer.least:
            return f"expected in {offer.link.probability:.0%} of cases, {offer.least:.0%} are asked for"
        if offer.arguments is None:
            return "no projection says what its arguments would be"
        found = self.registry.find(offer.tool)
        verdict = may_dispatch(
            offer.tool,
            found,
            offer.arguments,
            annotations=self.annotations.get(offer.tool),
            allowed_hosts=self.allowed_hosts,
        )
        if not verdict or found is None:
            return verdict.reason
        text = canonical(offer.arguments) or ""
        if has(offer.tool, text):
            return "its answer is at hand"
        dollars = found.model.cost_model.dollars
        if dollars is not None and dollars > self.budget.dollars:
            return f"it costs {dollars:g} USD"
        tokens = 0 if found.model.excluded_from_budget() else tokens_of(found.model.cost_model)
        score = score_of(found.model, offer.link.probability, intent)
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


class _Trail(NamedTuple):
    listed: Sequence[Mapping[str, Any]]
    at: int
    link: FollowUpLink
    after: str


def _entry_name(found: ToolMatch | None, live: str) -> str:
    """Providers' projections go by the name of the entry, which is spelled in one way whatever the agent does."""
    return found.pattern if found is not None and found.by_name else live


def tokens_of(cost: CostModel) -> int:
    """What an answer is charged: its typical length at four bytes a token, and never nothing."""
    return max(1, round(cost.typical_kb * 1024 / _BYTES_PER_TOKEN))


def score_of(model: ToolValueModel, probability: float, intent: Collection[str] = ()) -> float:
    """Expected worth per token: probability, class, what the agent is after, and the time that would be saved."""
    latency = model.cost_model.latency_ms_p50 or _USUAL_LATENCY_MS
    waiting = latency / (latency + _USUAL_LATENCY_MS)
    boost = intent_boost(model, intent)
    return probability * _CLASS[model.value_class] * boost * waiting / tokens_of(model.cost_model)


def intent_boost(model: ToolValueModel, intent: Collection[str]) -> float:
    """One, and the value of each group of fields that is not included anyway and that a keyword speaks of."""
    words = [word.casefold() for word in intent if word]
    gained = sum(
        group.estimated_value
        for group in model.field_groups.values()
        if not group.default_include and any(word in name.casefold() for word in words for name in group.fields)
    )
    return min(_LARGEST_BOOST, 1 + gained)
