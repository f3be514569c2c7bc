"""Report, dashboard and site as axe-core sees them in a real browser: no violation, light and dark, wide and narrow.

Needs axe-core and playwright (`make agents` installs them), the system's Chromium, and for the site `make site`; skips
where one of them is not there. Of the site some pages are looked at here, each different in what it holds; with
AXE_PAGES=all, all of them.
"""

import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pagefold import cli
from pagefold.adapters import recordings
from tests.agents.kit import FOLDER
from tests.dashboard.traffic import Agent, Behind, behind, settled
from tests.docs.test_site import built

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), "")
AXE = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not AXE.exists(), reason=f"no axe-core in {FOLDER}: run `make agents`, or set AGENTS_DIR"),
]
LOOKS = [("light", 1280), ("dark", 390)]
SOME = ("index", "quick-start", "concepts", "cli", "proxy", "404")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def opened(browser: Any, look: tuple[str, int]) -> Iterator[Any]:
    scheme, width = look
    # The dashboard's own policy lets no script of others run, and axe-core is one.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    yield context.new_page()
    context.close()


def violations(page: Any, address: str) -> list[str]:
    page.goto(address)
    page.wait_for_selector("h1")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")["violations"]
    return [
        f"{address}: {one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_the_report_has_no_violation(browser: Any, look: tuple[str, int], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert cli.main(["report", str(recordings.example()), "-o", str(file), "--jobs", "1"]) == 0
    with opened(browser, look) as page:
        assert violations(page, file.as_uri()) == []


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    with behind(tmp_path_factory.mktemp("store"), 14) as made:
        agent = Agent(made.url, "ada")
        for _ in range(14):
            agent.turn()
        settled(made, 14)
        yield made


@pytest.mark.parametrize("look", LOOKS)
def test_the_dashboard_has_no_violation(browser: Any, look: tuple[str, int], one: Behind) -> None:
    with opened(browser, look) as page:
        found = violations(page, f"{one.url}/pagefold/?key={one.key}")
        session = page.get_attribute("#sessions tr:last-child a", "href")
        found += violations(page, one.url + session)
        stored = page.get_attribute(".pages a", "href")
        for path in (stored, "/pagefold/search?q=part_3", "/pagefold/page/pf-aaaaaaaaaa"):
            found += violations(page, one.url + path)

    assert found == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing of each request."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = built(tmp_path_factory.mktemp("site") / "html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()
    server.server_close()
    serving.join()


@pytest.mark.parametrize("look", LOOKS)
def test_the_site_has_no_violation(browser: Any, look: tuple[str, int], site: tuple[str, Path]) -> None:
    address, folder = site
    names = [str(page.relative_to(folder)) for page in folder.rglob("*.html")]
    chosen = names if os.environ.get("AXE_PAGES") == "all" else [f"{name}.html" for name in SOME]
    with opened(browser, look) as page:
        assert [one for name in sorted(chosen) for one in violations(page, f"{address}/{name}")] == []


def test_a_page_with_a_violation_is_seen(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<html><h1>x</h1><img src='x.png'></html>")
    with opened(browser, LOOKS[0]) as page:
        found = " ".join(violations(page, (tmp_path / "bad.html").as_uri()))

    assert "image-alt" in found
    assert "html-has-lang" in found
