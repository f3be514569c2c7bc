"""The policies of the matrix as sets of flags, as in the paper, and typed pages with one part taken away each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Score(StrEnum):
    """What decides which undemanded pages are kept. Typed: kind, recency, and the cost of getting the page again."""

    NONE = "none"
    RECENCY = "recency"
    LRU = "lru"
    TYPED = "typed"


@dataclass(frozen=True, slots=True)
class PolicyFlags:
    """What one policy of the matrix may do.

    `exact`: pages are chosen by this package's selection, else by the paper's one-pass greedy selector. `pins`: every
    request holds the bootstrap and constraint pages. `pointers`: absent pages are kept as handles where that fits.
    `resolves`: an absent or shortened page is recalled by its handle. `memory`: a repeated pure call is answered from
    what is kept and not run. `foresight` is in turns. `handicap` scales the budget in the multi-session family, as the
    paper does for its baselines.
    """

    name: str
    pins: bool = True
    pointers: bool = True
    writes_at_compaction: bool = True
    writes_at_reset: bool = True
    resolves: bool = True
    memory: bool = False
    score: Score = Score.TYPED
    exact: bool = False
    foresight: int = 0
    handicap: float = 1.0


_NOTHING = {"pins": False, "pointers": False, "writes_at_compaction": False, "writes_at_reset": False}

TYPED = PolicyFlags("typed pages", memory=True, exact=True)
POLICIES = (
    PolicyFlags("retrieval", **_NOTHING, resolves=False, score=Score.NONE, handicap=0.78),
    PolicyFlags("retrieval + cache", **_NOTHING, score=Score.NONE, handicap=0.78),
    PolicyFlags("compaction hybrid", pins=False, writes_at_reset=False, score=Score.RECENCY, handicap=0.85),
    PolicyFlags("lru", score=Score.LRU),
    TYPED,
    PolicyFlags("oracle", foresight=3),
)

ABLATIONS: Mapping[str, PolicyFlags] = {
    # The memory answers with pages that resolve, so without resolution there is no memory.
    "pointer resolution": replace(TYPED, name="no pointer resolution", resolves=False, memory=False),
    "write-back at compaction": replace(TYPED, name="no write-back at compaction", writes_at_compaction=False),
    "pinning": replace(TYPED, name="no pinning", pins=False),
    "write-back at reset": replace(TYPED, name="no write-back at reset", writes_at_reset=False),
    "memory": replace(TYPED, name="no memory", memory=False),
    "scoring": replace(TYPED, name="no scoring", score=Score.NONE),
    "pointers": replace(TYPED, name="no pointers", pointers=False),
}
