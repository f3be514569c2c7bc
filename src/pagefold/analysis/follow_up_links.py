"""Learns from recorded sessions which calls follow which, and tests that on other sessions.

The links are fitted on two sessions in three. They are taken only if, on the third that was held back, more calls would
have been answered early than with the present links, and most of the early calls would have been used.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

from pagefold.analysis.tuning_trials import is_held_out
from pagefold.settings.tools import FollowUpLink, PrefetchSettings
from pagefold.tools.follow_up_fit import FittedLink, fit_follow_ups, with_follow_ups
from pagefold.tools.planner import AnsweredCall, Planner
from pagefold.tools.prefetch_replay import PrefetchFigures, replay_prefetch, turns_of
from pagefold.tools.registry import ToolRegistry
from pagefold.wire.transcripts import Session

_MOST = 300  # sessions that are held in memory at once
_USED = 0.5  # of the early calls, at least this share has to have been used
_LEAST = 10  # early calls on the sessions held back before anything is concluded


@dataclass(frozen=True, slots=True)
class LearnedLinks:
    """Links by the tool they follow, and what prefetching did with the present links (`before`) and these (`after`)."""

    links: dict[str, tuple[FollowUpLink, ...]]
    fitted: tuple[FittedLink, ...]
    before: PrefetchFigures
    after: PrefetchFigures
    taken: bool

    @property
    def effect(self) -> str:
        before, after = self.before, self.after
        return (
            f"{after.used:,} of {after.dispatched:,} early calls used on sessions held back, "
            f"{before.used:,} of {before.dispatched:,} with what is known now"
        )


def follow_ups(sessions: Iterable[Session], registry: ToolRegistry, hosts: Collection[str] = ()) -> LearnedLinks:
    """Reads at most a few hundred sessions. `hosts` are those that early calls may ask."""
    fitted_on: list[list[list[AnsweredCall]]] = []
    held: list[list[list[AnsweredCall]]] = []
    for session in sessions:
        (held if is_held_out(session.id) else fitted_on).append(turns_of(session))
        if len(fitted_on) + len(held) >= _MOST:
            break
    fitted = tuple(fit_follow_ups(fitted_on, registry))
    models = with_follow_ups(registry, fitted)
    links = {name: model.follow_up for name, model in models.items()}
    planner = partial(Planner, limits=PrefetchSettings(hosts=tuple(hosts)))
    before = replay_prefetch(held, registry, planner=planner)
    after = replay_prefetch(held, ToolRegistry(models), planner=planner) if models else before
    used = after.used / after.dispatched if after.dispatched else 0.0
    taken = after.dispatched >= _LEAST and after.used > before.used and used >= _USED
    return LearnedLinks(links, fitted, before, after, taken)
