"""What every access store promises."""

from collections.abc import Callable

from pagefold.access.budget import Period, UsageReport
from pagefold.access.store import AccessStore
from pagefold.access.team import AdministrativeAct, Attribution, IssuedToken, Team, TeamLimits, TeamUse, token_id

NOON = 1_790_000_000.0
PERIOD = Period.at(NOON)


def act(what: str, team: str = "red", at: float = NOON) -> AdministrativeAct:
    return AdministrativeAct(at, "root@host", what, team, "")


def use(team: str, day: str = PERIOD.day, **more: str) -> Attribution:
    return Attribution(team, day, **more)


class AccessSuite:
    def test_a_team_is_added_and_its_limits_change(self, reopen: Callable[[], AccessStore]) -> None:
        store = reopen()
        store.set_team(Team("red"), act("team set"))
        store.set_team(Team("blue", TeamLimits(1.5, 30.0, 10, 20, 5)), act("team set", "blue"))
        store.set_team(Team("red", TeamLimits(usd_day=2.0)), act("team set"))

        assert reopen().teams() == [Team("blue", TeamLimits(1.5, 30.0, 10, 20, 5)), Team("red", TeamLimits(2.0))]

    def test_a_token_is_valid_until_it_is_revoked(self, reopen: Callable[[], AccessStore]) -> None:
        store = reopen()
        store.set_team(Team("red"), act("team set"))
        digest = "ab" * 32
        token = IssuedToken(token_id(digest), "red", "laptop", NOON)
        store.add_token(digest, token, act("token created"))

        assert reopen().report(UsageReport("a", 1), PERIOD).tokens == {digest: "red"}
        assert reopen().tokens() == [token]
        assert not store.revoke("nothing", act("token revoked"))
        assert store.revoke(token.id, act("token revoked", at=NOON + 1))
        assert not store.revoke(token.id, act("token revoked"))
        assert reopen().report(UsageReport("a", 1), PERIOD).tokens == {}
        assert [listed.revoked for listed in reopen().tokens()] == [NOON + 1]

    def test_every_act_is_one_line_of_the_audit_log_and_changes_the_revision(
        self, reopen: Callable[[], AccessStore]
    ) -> None:
        store = reopen()
        acts = [act("team set"), act("token created", at=NOON + 1), act("token revoked", at=NOON + 2)]
        before = store.report(UsageReport("a", 1), PERIOD).revision
        store.set_team(Team("red"), acts[0])
        store.add_token("cd" * 32, IssuedToken(token_id("cd" * 32), "red", "", NOON), acts[1])
        store.revoke(token_id("cd" * 32), acts[2])

        assert reopen().audit() == acts
        assert reopen().report(UsageReport("a", 1), PERIOD).revision == before + 3

    def test_reports_of_instances_add_up_by_team_day_and_month(self, reopen: Callable[[], AccessStore]) -> None:
        store, other = reopen(), reopen()
        earlier = f"{PERIOD.month}-01"
        for name in ("red", "blue"):
            store.set_team(Team(name), act("team set", name))
        one = TeamUse(1, 10, 5, 2, 3, 400, 50)
        store.report(UsageReport("a", 1, {use("red", agent="x"): one, use("blue"): one}), PERIOD)
        minutes = {("red", PERIOD.minute): 2, ("blue", PERIOD.minute - 1): 9}
        state = other.report(UsageReport("b", 1, {use("red"): one, use("red", earlier): one}, minutes), PERIOD)

        assert state.spent["red"].day == one + one
        assert state.spent["red"].month == one + one + one
        assert state.spent["red"].minute == 2
        assert (state.spent["blue"].day, state.spent["blue"].minute) == (one, 0)
        assert store.uses(PERIOD.day) == {use("red", agent="x"): one, use("red"): one, use("blue"): one}
        assert len(store.uses()) == 4

    def test_a_report_that_is_sent_twice_counts_once(self, reopen: Callable[[], AccessStore]) -> None:
        store = reopen()
        store.set_team(Team("red"), act("team set"))
        store.report(UsageReport("a", 1), PERIOD)  # an empty one uses up no number
        report = UsageReport("a", 1, {use("red"): TeamUse(requests=1)}, {("red", PERIOD.minute): 1})
        store.report(report, PERIOD)
        state = reopen().report(report, PERIOD)

        assert (state.spent["red"].day.requests, state.spent["red"].minute) == (1, 1)
        assert store.report(UsageReport("a", 2, report.uses), PERIOD).spent["red"].day.requests == 2

    def test_what_is_known_is_not_read_again_and_a_change_is(self, reopen: Callable[[], AccessStore]) -> None:
        store = reopen()
        store.set_team(Team("red"), act("team set"))
        known = store.report(UsageReport("a", 1), PERIOD)
        assert store.report(UsageReport("a", 1), PERIOD, known) == known
        reopen().set_team(Team("blue"), act("team set", "blue"))

        assert set(store.report(UsageReport("a", 1), PERIOD, known).teams) == {"red", "blue"}
