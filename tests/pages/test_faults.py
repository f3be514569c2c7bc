"""The fault observer: each kind raised by what it is for and by nothing else, and the sums that are made of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.pages.faults import (
    CallReturned,
    Committed,
    ContextEvent,
    Crossed,
    Demanded,
    Dirtied,
    Dropped,
    FaultKind,
    FaultObserver,
    Mismatched,
    PageFault,
    PageShown,
    Pinned,
    RecallEnded,
    RecallOutcome,
    Requested,
    Served,
    Unpinned,
    outcome_of,
    signature_of,
)
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId, id_of
from pagefold.pages.recall import Denied, Failed, Unknown
from pagefold.pages.recall import Recalled as RecalledPage

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
EVIDENCE, CONSTRAINT, BOOTSTRAP, PLAN = PageKind.EVIDENCE, PageKind.CONSTRAINT, PageKind.BOOTSTRAP, PageKind.PLAN
FOUND, NO_MATCH, DENIED, BACKEND_ERROR = RecallOutcome
A, B, RULE, BOOT = (id_of(name) for name in (b"a", b"b", b"rule", b"boot"))
READ = 'Read {"path":"a"}'


def seen(*events: ContextEvent) -> list[PageFault]:
    observer = FaultObserver()
    return [fault for event in events for fault in observer.see(event)]


def kinds(*events: ContextEvent) -> list[str]:
    return [fault.kind for fault in seen(*events)]


FIRST_READ = (CallReturned(READ, A), PageShown(A, EVIDENCE))

CASES: dict[str, tuple[Sequence[ContextEvent], list[str]]] = {
    "a first call is nothing": (FIRST_READ, []),
    "evidence churn: the call is made again after its result was dropped": (
        (*FIRST_READ, Dropped(A), CallReturned(READ, A)),
        ["duplicate_tool"],
    ),
    "the call is made again while only a pointer stands": (
        (*FIRST_READ, PageShown(A, EVIDENCE, POINTER), CallReturned(READ, A)),
        ["duplicate_tool"],
    ),
    "the call is made again while a handle that resolves stands for its result": (
        (*FIRST_READ, PageShown(A, EVIDENCE, POINTER), CallReturned(READ, A, resolves=True)),
        ["duplicate_alert"],
    ),
    "a handle that does not stand resolves nothing": (
        (*FIRST_READ, Dropped(A), CallReturned(READ, A, resolves=True)),
        ["duplicate_tool"],
    ),
    "the call is made again while its result stands": ((*FIRST_READ, CallReturned(READ, A)), ["duplicate_alert"]),
    "a compressed result stands too": (
        (*FIRST_READ, PageShown(A, EVIDENCE, COMPRESSED), CallReturned(READ, A)),
        ["duplicate_alert"],
    ),
    "the same call brings something else: the world changed": ((*FIRST_READ, Dropped(A), CallReturned(READ, B)), []),
    "then the newer result is what a repeat is measured by": (
        (*FIRST_READ, CallReturned(READ, B), PageShown(B, EVIDENCE), CallReturned(READ, B)),
        ["duplicate_alert"],
    ),
    "another call brings back what was dropped": ((*FIRST_READ, Dropped(A), CallReturned("cat a", A)), ["refetch"]),
    "another call brings what still stands": ((*FIRST_READ, CallReturned("cat a", A)), []),
    "a dropped page is needed": ((*FIRST_READ, Dropped(A), Demanded(A)), ["refetch"]),
    "a page that stands is needed": ((*FIRST_READ, Demanded(A)), []),
    "a pointer is needed and resolves": ((*FIRST_READ, PageShown(A, EVIDENCE, POINTER), Demanded(A)), []),
    "a pointer is needed and does not resolve": (
        (*FIRST_READ, PageShown(A, EVIDENCE, POINTER), Demanded(A, resolves=False)),
        ["refetch"],
    ),
    "what was never shown cannot have been evicted": ((Demanded(A),), []),
    "a constraint is absent from a request": (
        (PageShown(RULE, CONSTRAINT), Dropped(RULE), Requested()),
        PIN := ["pinned_invariant_miss"],
    ),
    "a constraint stands below its floor": ((PageShown(RULE, CONSTRAINT), Requested({RULE: POINTER})), PIN),
    "a constraint stands at its floor": ((PageShown(RULE, CONSTRAINT), Requested({RULE: STRUCTURED})), []),
    "a page pinned by hand is absent": ((Pinned(A, PLAN), Requested()), PIN),
    "a pin taken back may be absent": ((PageShown(RULE, CONSTRAINT), Unpinned(RULE), Requested({})), []),
    "every request without it is a miss": ((PageShown(RULE, CONSTRAINT), Requested({}), Requested({})), PIN * 2),
    "the bootstrap is absent before any compaction": ((PageShown(BOOT, BOOTSTRAP), Requested({})), PIN),
    "the bootstrap is absent after a compaction": (
        (PageShown(BOOT, BOOTSTRAP), Requested(), Crossed(Boundary.COMPACTION), Requested()),
        POST := ["post_compaction_bootstrap"],
    ),
    "the bootstrap is absent after a reset": (
        (PageShown(BOOT, BOOTSTRAP), Crossed(Boundary.RESET, destroyed=[BOOT]), Requested()),
        POST,
    ),
    "the bootstrap is back after a compaction": (
        (PageShown(BOOT, BOOTSTRAP), Crossed(Boundary.COMPACTION), PageShown(BOOT, BOOTSTRAP, STRUCTURED), Requested()),
        [],
    ),
    "once it was back, a later absence is no matter of the compaction": (
        (PageShown(BOOT, BOOTSTRAP), Crossed(Boundary.COMPACTION), Requested({BOOT: FULL}), Requested({})),
        PIN,
    ),
    "what could not have fitted is counted apart": (
        (PageShown(RULE, CONSTRAINT), Requested({}, short=[RULE])),
        ["physical_insufficiency"],
    ),
    "so is a demand for it": (
        (*FIRST_READ, Requested({}, short=[A]), Demanded(A)),
        ["physical_insufficiency"],
    ),
    "and a call for it": ((*FIRST_READ, Requested({}, short=[A]), CallReturned(READ, A)), ["physical_insufficiency"]),
    "insufficiency is of one request": (
        (*FIRST_READ, Requested({}, short=[A]), Requested({}), Demanded(A)),
        ["refetch"],
    ),
    "a dirty page at a reset": ((Dirtied(A), Crossed(Boundary.RESET)), FLUSH := ["flush_miss"]),
    "a dirty page at a compaction": ((PageShown(A, PLAN), Dirtied(A), Crossed(Boundary.COMPACTION)), FLUSH),
    "a dirty page at a shutdown": ((Dirtied(A), Crossed(Boundary.SHUTDOWN)), FLUSH),
    "a prune that takes the dirty page": ((Dirtied(A), Crossed(Boundary.PRUNE, destroyed=[A])), FLUSH),
    "a prune that takes another": ((Dirtied(A), Crossed(Boundary.PRUNE, destroyed=[B])), []),
    "a dirty page that is dropped": ((PageShown(A, PLAN), Dirtied(A), Dropped(A)), FLUSH),
    "a page committed in time": ((Dirtied(A), Committed(A), Crossed(Boundary.RESET)), []),
    "threshold jump: dirtied again after the commit": (
        (Dirtied(A), Committed(A), Dirtied(A), Crossed(Boundary.COMPACTION)),
        FLUSH,
    ),
    "a page is lost only once": ((Dirtied(A), Crossed(Boundary.RESET), Crossed(Boundary.SHUTDOWN)), FLUSH),
    "an empty answer hides a denial": ((RecallEnded(DENIED, NO_MATCH, A),), SILENT := ["silent_recall"]),
    "an empty answer hides a failure": ((RecallEnded(BACKEND_ERROR, NO_MATCH),), SILENT),
    "an empty answer hides a find": ((RecallEnded(FOUND, NO_MATCH, A),), SILENT),
    "a denial that is told": ((RecallEnded(DENIED, DENIED, A),), []),
    "a failure that is told": ((RecallEnded(BACKEND_ERROR, BACKEND_ERROR),), []),
    "nothing was found, and that is told": ((RecallEnded(NO_MATCH, NO_MATCH),), []),
    "a content was made up": ((RecallEnded(NO_MATCH, FOUND, A),), WRONG := ["wrong_content"]),
    "a content is not its page's": ((Mismatched(A, "its hash differs"),), WRONG),
}


@pytest.mark.parametrize(("events", "expected"), CASES.values(), ids=CASES)
def test_each_fault_is_raised_by_what_it_is_for(events: Sequence[ContextEvent], expected: list[str]) -> None:
    assert kinds(*events) == expected


def test_every_kind_of_fault_is_in_the_table() -> None:
    assert {kind for _, expected in CASES.values() for kind in expected} == {kind.value for kind in FaultKind}


def test_a_fault_names_its_page_its_reason_and_its_turn() -> None:
    events = (PageShown(RULE, CONSTRAINT), Requested(), Requested({RULE: POINTER}))

    assert seen(*events) == [
        PageFault(
            FaultKind.PINNED_INVARIANT_MISS,
            RULE,
            "a pinned constraint page: it stands only at pointer",
            turn=2,
        )
    ]


def test_only_what_a_policy_could_have_avoided_is_a_fault() -> None:
    apart = {kind for kind in FaultKind if not kind.controllable}

    assert apart == {FaultKind.WRONG_CONTENT, FaultKind.PHYSICAL_INSUFFICIENCY, FaultKind.DUPLICATE_ALERT}


def test_thrash_is_faults_and_alerts_by_hits_and_one() -> None:
    observer = FaultObserver()
    events: list[ContextEvent] = [
        *FIRST_READ,
        Demanded(A),  # a hit
        CallReturned(READ, A),  # an alert
        Served(A),  # a hit
        PageShown(A, EVIDENCE, POINTER),
        Demanded(A),  # a hit by recall
        RecallEnded(FOUND, FOUND, A),  # another
        Dropped(A),
        Demanded(A),  # a fault
        Mismatched(A, "not counted"),
        Requested(),
    ]

    for event in events:
        observer.see(event)

    assert (observer.faults, observer.alerts, observer.hits, observer.recalls) == (1, 1, 4, 2)
    assert observer.thrash == 2 / 5
    assert observer.strict_thrash == 4 / 3
    assert observer.turn == 1
    assert observer.counts == {
        FaultKind.REFETCH: 1,
        FaultKind.DUPLICATE_ALERT: 1,
        FaultKind.WRONG_CONTENT: 1,
    }


def test_nothing_at_all_does_not_thrash() -> None:
    assert FaultObserver().thrash == 0.0


PAGES = st.sampled_from([A, B, RULE, BOOT])
KINDS = {A: EVIDENCE, B: EVIDENCE, RULE: CONSTRAINT, BOOT: BOOTSTRAP}


@st.composite
def shown_whole(draw: st.DrawFn) -> list[ContextEvent]:
    """A session in which nothing is ever folded: calls are made again, everything stays."""
    events: list[ContextEvent] = []
    for page in draw(st.lists(PAGES)):
        events += [CallReturned(f"call {page}", page), PageShown(page, KINDS[page])]
        events += draw(st.sampled_from([[], [Requested()], [Demanded(page)], [Dirtied(page), Committed(page)]]))
    return events


@given(shown_whole())
def test_where_everything_stays_there_is_no_fault(events: list[ContextEvent]) -> None:
    assert set(kinds(*events)) <= {"duplicate_alert"}


EVENTS: st.SearchStrategy[ContextEvent] = st.one_of(
    st.builds(PageShown, PAGES, st.sampled_from(PageKind), st.sampled_from(ResidencyLevel)),
    st.builds(Dropped, PAGES),
    st.builds(CallReturned, st.sampled_from(["x", "y"]), PAGES),
    st.builds(Demanded, PAGES, st.sampled_from(ResidencyLevel), st.booleans()),
    st.builds(RecallEnded, st.sampled_from(RecallOutcome), st.sampled_from(RecallOutcome)),
    st.builds(Dirtied, PAGES),
    st.builds(Crossed, st.sampled_from(Boundary), st.none() | st.lists(PAGES)),
    st.builds(Requested, st.none() | st.dictionaries(PAGES, st.sampled_from(ResidencyLevel)), st.lists(PAGES)),
)


@given(st.lists(EVENTS))
def test_every_fault_is_counted_once_and_has_a_reason(events: list[ContextEvent]) -> None:
    observer, found = FaultObserver(), list[PageFault]()
    for event in events:
        found += observer.see(event)

    assert sum(observer.counts.values()) == len(found)
    assert observer.faults == sum(fault.kind.controllable for fault in found)
    assert all(fault.reason for fault in found)
    assert [fault.turn for fault in found] == sorted(fault.turn for fault in found)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"path": "a", "limit": 2}', '{"limit":2,"path":"a"}', True),
        ('{"path": "a"}', '{"path": "b"}', False),
        ('{"n": 1}', '{"n": "1"}', False),
        ("ls -la", " ls -la\n", True),
        ("[" * 9999, "[" * 9998, False),
    ],
)
def test_equivalent_calls_have_one_signature(one: str, other: str, same: bool) -> None:
    assert (signature_of("Read", one) == signature_of("Read", other)) is same
    assert signature_of("Read", one) != signature_of("Write", one)


def test_denied_failed_and_empty_recalls_have_codes_of_their_own() -> None:
    page = PageId("0" * 64)
    answers = (RecalledPage(page, b""), Unknown("pf-"), Denied("pf-"), Failed("pf-", "lost"))

    assert [outcome_of(answer) for answer in answers] == [FOUND, NO_MATCH, DENIED, BACKEND_ERROR]
