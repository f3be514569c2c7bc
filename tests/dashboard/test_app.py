"""The dashboard over real sockets: who is let in, and what is shown, whatever there is to show."""

import http.client
import json
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.adapters.library import Library
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.stores import open_store
from pagefold.cli import telemetry_setup
from pagefold.dashboard import overview
from pagefold.dashboard.app import Dashboard
from pagefold.dashboard.auth import COOKIE, DashboardAuth, key_in
from pagefold.dashboard.page_levels import difference, levels_of
from pagefold.dashboard.store_view import StoreFigures
from pagefold.html import Html, el
from pagefold.model_proxy.server import running
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import handle_of, id_of
from pagefold.telemetry.events import CallEvent, TracedFault, TurnEvent
from pagefold.telemetry.live import LiveView
from pagefold.telemetry.trace import TraceWriter
from tests.dashboard.traffic import Agent, Behind, behind, settings_for, settled, shown

KEY = "a-key"
NAME = "ab" * 32


def asked(url: str, path: str, *, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=20)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=given)
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


@contextmanager
def alone(folder: Path, live: LiveView | None = None, **options: object) -> Iterator[str]:
    """A dashboard by itself over a store in the folder."""
    store_view = telemetry_setup.store_view_of(settings_for(folder, "http://127.0.0.1:1"))
    with running(Dashboard(live or LiveView(), store_view, DashboardAuth(KEY), **options)) as url:  # type: ignore[arg-type]
        yield url


# ---- the door


def test_without_the_key_nothing_is_shown_but_where_to_find_it(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        for path in (
            "/pagefold/",
            "/pagefold/changes",
            "/pagefold/live.json",
            "/pagefold/metrics",
            "/pagefold/search?q=a",
        ):
            answer = asked(url, path)
            assert answer.status == 401
            assert "Key needed" in answer.text  # type: ignore[attr-defined]
        assert asked(url, "/pagefold/?key=wrong").status == 401


def test_the_key_is_shown_once_and_a_cookie_that_is_not_the_key_stands_for_it(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        first = asked(url, f"/pagefold/search?q=x&key={KEY}")
        assert (first.status, first.getheader("location")) == (303, "/pagefold/search")
        cookie = first.getheader("set-cookie") or ""
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/pagefold"))
        assert KEY not in cookie
        value = cookie.split(";")[0]
        assert asked(url, "/pagefold/", cookie=f"other=1; {value}").status == 200
        assert asked(url, "/pagefold/", cookie=f"{COOKIE}={KEY}").status == 401
        assert asked(url, "/pagefold/", authorization=f"Bearer {KEY}").status == 200


FOREIGN = [
    {"host": "evil.example"},
    {"host": "evil.example:8377"},
    {"origin": "http://evil.example"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    {"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=[json.dumps(one) for one in FOREIGN])
def test_another_site_is_refused_even_with_the_key(headers: dict[str, str], tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        assert asked(url, "/pagefold/", x_pagefold_token=KEY, **headers).status == 403


def test_a_link_from_elsewhere_may_open_the_page(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        headers = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
        assert asked(url, "/pagefold/", x_pagefold_token=KEY, **headers).status == 200


def test_nothing_can_be_changed_and_nothing_foreign_be_loaded(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        assert asked(url, "/pagefold/", method="POST", x_pagefold_token=KEY).status == 405
        page = asked(url, "/pagefold/", x_pagefold_token=KEY)
        assert "default-src 'none'" in (page.getheader("content-security-policy") or "")
        assert page.getheader("cache-control") == "no-store"
        for address in re.findall(r'(?:src|href)="([^"]*)"', page.text):  # type: ignore[attr-defined]
            assert address.startswith(("/pagefold/", "#", "data:,"))


def test_the_key_in_the_store_is_made_once_for_its_owner(tmp_path: Path) -> None:
    key = key_in(LocalFiles(tmp_path / "deep" / "store.sqlite3").dashboard_key)
    assert len(key) >= 32
    assert key_in(LocalFiles(tmp_path / "deep" / "store.sqlite3").dashboard_key) == key
    assert (tmp_path / "deep" / "store.key").stat().st_mode & 0o777 == 0o600


def test_on_the_proxys_port_a_set_token_is_the_key_and_the_rest_is_as_before(tmp_path: Path) -> None:
    with behind(tmp_path, 4) as one:
        assert asked(one.url, "/pagefold/").status == 401
        assert asked(one.url, "/pagefold/status").status == 200
        assert asked(one.url, "/pagefold/health").status == 200
        assert asked(one.url, "/pagefold").status == 401
        assert shown(one, "/pagefold/")[0] == 200


# ---- what there may be to show


def test_an_empty_store_gives_sensible_pages_and_is_not_made_by_looking(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        page = asked(url, "/pagefold/", x_pagefold_token=KEY)
        assert "No session has been seen yet." in page.text  # type: ignore[attr-defined]
        for path, status in (("search?q=a", 200), ("search", 200), ("page/pf-aaaaaaaaaa", 404), ("session/ab", 404)):
            assert asked(url, f"/pagefold/{path}", x_pagefold_token=KEY).status == status
        assert asked(url, "/pagefold/metrics", x_pagefold_token=KEY).status == 200
    assert not (tmp_path / "store.sqlite3").exists()


def test_a_damaged_trace_is_shown_as_far_as_it_goes_and_the_damage_is_told(tmp_path: Path) -> None:
    path = LocalFiles(tmp_path / "store.sqlite3").trace
    path.write_bytes(b'{"v":1,"event":"tu\n\x00\xff\n[]\n')
    writer = TraceWriter(path)
    writer.see(TurnEvent(at=1.0, session=NAME, agent="Codex", status=200, tokens=5, levels={"full": 5}))
    writer.close()
    live = LiveView()
    following = telemetry_setup.TraceFollower(path, live)
    with alone(tmp_path, live, refresh=following, notes=following.notes) as url:
        page = asked(url, "/pagefold/", x_pagefold_token=KEY).text  # type: ignore[attr-defined]
    assert "3 lines of the trace are damaged" in page
    assert "Codex" in page


def test_a_store_that_cannot_be_used_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite3").write_bytes(b"this is no database" * 100)
    with alone(tmp_path) as url:
        page = asked(url, "/pagefold/", x_pagefold_token=KEY)
        assert page.status == 200
        assert "store.sqlite3" in page.text  # type: ignore[attr-defined]
        assert asked(url, "/pagefold/page/pf-aaaaaaaaaa", x_pagefold_token=KEY).status == 503


def test_odd_addresses_are_answered(tmp_path: Path) -> None:
    with alone(tmp_path) as url:
        for path in ("//", "/pagefold/..%2f", "/pagefold/changes?n=-1&k=x", "/pagefold/session/", "/pagefold/page/%00"):
            assert asked(url, path, x_pagefold_token=KEY).status in (200, 303, 404)


def test_one_session_is_shown_with_its_bands_its_fold_and_its_faults(tmp_path: Path) -> None:
    with behind(tmp_path, 16) as one:
        agent = Agent(one.url, "ada")
        for _ in range(14):
            agent.turn()
        settled(one, 14)
        session = view_of(one)["sessions"][0]["name"]
        page = shown(one, f"/pagefold/session/{session[:8]}")[1]
        part = json.loads(shown(one, f"/pagefold/session/{session[:8]}/part")[1])
        handle = re.findall(r"/pagefold/page/(pf-[a-z2-7]{10})\?in=", page)[-1]
        leaf = shown(one, f"/pagefold/page/{handle}?in={session}&level=structured")[1]
    assert "Every decision and its reason" in page
    assert "duplicate call" in page
    assert 'class="structured"' in part["html"]
    assert "one of the last exchanges" in page
    for level in ResidencyLevel:
        assert f"level {level}" in leaf
    assert "context_recall(" in leaf


def view_of(one: Behind) -> dict[str, list[dict[str, str]]]:
    view: dict[str, list[dict[str, str]]] = json.loads(shown(one, "/pagefold/live.json")[1])
    return view


def test_pages_are_found_by_search_with_a_link(tmp_path: Path) -> None:
    library = Library(open_store(tmp_path / "store.sqlite3"))
    text = b"def needle(): pass\n<script>alert(1)</script>"
    library.put(text, history="h", now=1.0, kind=PageKind.EVIDENCE, name="Read <b>a.py</b>")
    library.close()
    with alone(tmp_path) as url:
        page = asked(url, "/pagefold/search?q=needle", x_pagefold_token=KEY).text  # type: ignore[attr-defined]
        leaf = asked(url, f"/pagefold/page/{handle_of(id_of(text))}?in=h", x_pagefold_token=KEY)
    assert f"/pagefold/page/{handle_of(id_of(text))}?in=h" in page
    for one in (page, leaf.text):  # type: ignore[attr-defined]
        assert "<script>alert" not in one
        assert "Read &lt;b&gt;a.py" in one


# ---- updates


def busy(sessions: int = 50) -> LiveView:
    live = LiveView()
    for turn in range(12):
        for number in range(sessions):
            name = f"{number:08x}" * 8
            levels = {"full": 31_234, "compressed": 12_345, "structured": 4_321, "pointer": 99}
            live.see(
                TurnEvent(
                    at=1000.0 + turn,
                    session=name,
                    agent="Claude Code",
                    model="claude-sonnet-4-5",
                    status=200,
                    tokens=47_999,
                    saved=12_345,
                    fresh=10,
                    cache_read=47_000,
                    levels=levels,
                )
            )
    return live


def test_an_update_of_fifty_busy_sessions_is_about_two_kilobytes(tmp_path: Path) -> None:
    live = busy()
    with alone(tmp_path, live, clock=lambda: 1012.0) as url:
        answer = asked(url, f"/pagefold/changes?n={live.number - 50}&k=0", x_pagefold_token=KEY)
    update = json.loads(answer.text)  # type: ignore[attr-defined]
    assert len(update["s"]) == 50
    assert len(answer.text) < 3_500  # type: ignore[attr-defined]


def test_an_update_holds_what_changed_and_nothing_else() -> None:
    live = busy(5)
    number, told = live.number, live.told
    name = "7" * 64
    live.see(
        TurnEvent(at=1.0, session=name, status=200, tokens=9, faults=(TracedFault("refetch", "pf-a", "it was gone"),))
    )
    update = overview.update(live, StoreFigures(), 2.0, number, told)
    assert [one[0] for one in update["s"]] == [name[:8]]  # type: ignore[attr-defined]
    assert [("it was gone" in one) for one in update["h"]] == [True]  # type: ignore[attr-defined]
    assert overview.update(live, StoreFigures(), 2.0, live.number, live.told)["s"] == []


def test_figures_of_the_mcp_proxies_are_shown() -> None:
    live = LiveView()
    live.see(CallEvent(at=1.0, session="mcp-1", tool="Read", before=100, after=60))
    mcp = {"tokens before": 1000, "tokens after": 600, "early calls": 5, "calls answered early": 3}
    page = overview.overview_page(live, StoreFigures(pages=7, mcp=mcp), 2.0)
    assert "40 %" in page
    assert "of 5 early calls were used" in page


# ---- parts


@given(st.text())
def test_whatever_a_text_holds_it_stays_text(text: str) -> None:
    made = el("p", text, title=text)
    inner = made.removeprefix('<p title="').partition('">')
    assert not set(inner[0]) & set('"<>')
    assert not set(inner[2].removesuffix("</p>")) & set("<>")
    assert el("p", Html("<b>x</b>")) == "<p><b>x</b></p>"


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_a_difference_holds_every_line_that_came_or_went(before: list[str], after: list[str]) -> None:
    lines = list(difference("\n".join(before), "\n".join(after)))
    gone, new = ([one.text for one in lines if one.sign in signs] for signs in ("-", "+"))
    same = sum(1 if one.sign == " " else int(one.text.split()[0]) for one in lines if one.sign in " …")
    assert len(gone) + same == max(1, len(before))
    assert len(new) + same == max(1, len(after))


def test_the_levels_of_a_page_get_smaller_and_the_last_one_recalls_it() -> None:
    text = "\n".join(f"{n}\tdef name_{n}(self) -> int:  # a line of a file" for n in range(1, 200))
    page = id_of(text.encode())
    levels = levels_of(text.encode(), "Read src/a.py")
    assert [one.level for one in levels] == list(ResidencyLevel)
    assert [one.tokens for one in levels] == sorted((one.tokens for one in levels), reverse=True)
    assert handle_of(page) in levels[-1].text
    assert "Read src/a.py" in levels[-1].text


@given(st.text(max_size=300))
def test_any_text_has_levels(text: str) -> None:
    assert levels_of(text.encode())[0].text == text


def test_a_huge_page_is_shown_in_part_and_not_worked_on() -> None:
    (level,) = levels_of(b"x" * 1_000_000)
    assert len(level.text) == 400_000


def test_what_a_page_follows_is_told_by_the_dashboard_also_beside_the_proxys_own_paths(tmp_path: Path) -> None:
    with behind(tmp_path, 3) as one:
        followed = re.search(r'follows === "now" \? "(/pagefold/\w+)"', shown(one, "/pagefold/script.js")[1])
        assert followed
        Agent(one.url, "ada").turn()
        settled(one, 1)
        told = json.loads(shown(one, f"{followed[1]}?n=0&k=0")[1])

    assert set(told) >= {"n", "k", "t", "s", "h"}
