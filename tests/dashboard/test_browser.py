"""The dashboard in a real browser: drawn without an error, live, by keyboard, dark and light, wide and narrow.

Needs playwright (`pip install playwright`) and the system's Chromium (Debian: `apt-get install chromium`); skips where
one of them is not there.
"""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.traffic import Agent, Behind, behind, settled

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine")

PATIENCE = 20_000
TURNS = "document.querySelector('#sessions tr:first-child [data-label=Turns]')?.textContent"
CSS = Path(__file__).parent.parent.parent / "src" / "pagefold" / "dashboard" / "assets" / "style.css"


def wait(page: Any, holds: str) -> None:
    """Until an expression holds. The page's own policy forbids playwright's way, which hands strings to eval."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(holds):
        assert time.monotonic() < deadline, holds
        time.sleep(0.01)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # Chromium's own sandbox does not run as root, and CI does.
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    with behind(tmp_path_factory.mktemp("store"), 30) as made:
        for name, turns in (("ada", 14), ("bob", 6)):
            agent = Agent(made.url, name)
            for _ in range(turns):
                agent.turn()
        settled(made, 20)
        yield made


class Opened:
    """A page in a window of its own, with everything that it complained about or asked for."""

    def __init__(self, browser: Any, one: Behind, *, width: int = 1280, scheme: str = "light") -> None:
        self.one = one
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(f"{one.url}/pagefold/?key={one.key}")

    def __enter__(self) -> Any:
        self.page.wait_for_selector("#dot.on")
        return self

    def __exit__(self, *raised: object) -> None:
        self.context.close()
        assert self.wrong == []
        assert [url for url in self.asked if not url.startswith((self.one.url, "data:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_drawn_without_an_error_and_without_scrolling_sideways(
    browser: Any, one: Behind, width: int, scheme: str
) -> None:
    with Opened(browser, one, width=width, scheme=scheme) as seen:
        page = seen.page
        addresses = ["/pagefold/", page.get_attribute("#sessions tr:last-child a", "href"), "/pagefold/search?q=part_3"]
        page.goto(one.url + addresses[1])
        addresses.append(page.get_attribute(".pages a", "href"))
        for address in addresses:
            page.goto(one.url + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.evaluate("document.querySelectorAll('h1').length") == 1
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(part) for part in re.findall(r"\d+", ground)[:3]) > 3 * 128
        assert light is (scheme == "light")


def test_a_turn_shows_without_reloading_and_a_new_session_gets_a_row(browser: Any, one: Behind) -> None:
    with Opened(browser, one) as seen:
        page = seen.page
        rows = page.locator("#sessions tr").count()
        agent = Agent(one.url, f"new{time.monotonic_ns()}")
        agent.turn()
        wait(page, f"document.querySelectorAll('#sessions tr').length === {rows + 1}")
        assert page.inner_text("#sessions tr:first-child a") == "Claude Code"
        agent.turn()
        page.wait_for_function(
            "document.querySelector('#sessions tr:first-child [data-label=Turns]').textContent >= '1'"
        )
        bars = page.locator("#sessions tr").last.locator("svg rect")
        widths = [float(bars.nth(at).get_attribute("width")) for at in range(4)]
        assert abs(sum(widths) - 100) < 0.1
        assert sum(width > 0 for width in widths) >= 2


def test_a_session_page_follows_its_session(browser: Any, one: Behind) -> None:
    agent = Agent(one.url, f"followed{time.monotonic_ns()}")
    agent.turn()
    agent.turn()
    with Opened(browser, one) as seen:
        page = seen.page
        page.click("#sessions tr:first-child a")
        page.wait_for_selector("svg.timeline")
        agent.turn()
        wait(page, "document.querySelector('figcaption').textContent.startsWith('3 turns')")


def test_pause_stops_updates_and_says_so(browser: Any, one: Behind) -> None:
    with Opened(browser, one) as seen:
        page = seen.page
        page.click("#pause")
        assert page.get_attribute("#pause", "aria-pressed") == "true"
        page.wait_for_timeout(300)
        before = page.inner_text("#words-sessions")
        Agent(one.url, f"unseen{time.monotonic_ns()}").turn()
        page.wait_for_timeout(400)
        assert page.inner_text("#words-sessions") == before
        page.click("#pause")
        wait(page, f"document.getElementById('words-sessions').textContent !== {before!r}")


def test_everything_is_reached_by_keyboard(browser: Any, one: Behind) -> None:
    with Opened(browser, one) as seen:
        page = seen.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().width") > 40
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "q"
        page.keyboard.type("part_2")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?q=part_2")
        page.wait_for_selector(".found a")
        page.focus(".found a")
        page.keyboard.press("Enter")
        page.wait_for_selector(".levels")
        assert page.locator(".levels section").count() == 4


def test_a_screen_reader_is_told_what_is_drawn(browser: Any, one: Behind) -> None:
    with Opened(browser, one) as seen:
        page = seen.page
        nameless = "[...document.querySelectorAll('svg, input, button')].filter(e => !(e.getAttribute('aria-label')"
        nameless += " || e.textContent || e.labels?.length)).length"
        assert page.evaluate(nameless) == 0
        assert page.get_attribute("[role=log]", "aria-live") == "polite"
        assert page.evaluate("document.documentElement.lang") == "en"
        bare = "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.querySelector('th[scope]')).length"
        assert page.evaluate(bare) == 0
        assert "full" in page.get_attribute("#sessions tr:last-child svg", "aria-label")


def test_an_update_is_there_in_a_fifth_of_a_second_when_the_machine_is_not_busy(browser: Any, one: Behind) -> None:
    """Of several turns the quickest counts: how long the others take says more of the machine than of the page."""
    took = []
    with Opened(browser, one) as seen:
        agent = Agent(one.url, f"quick{time.monotonic_ns()}")
        for turn in range(1, 7):
            agent.turn()
            ended = time.monotonic()
            wait(seen.page, f"{TURNS} === '{turn}'")
            took.append(time.monotonic() - ended)
    assert min(took) < 0.2


def contrast(one: str, other: str) -> float:
    def brightness(colour: str) -> float:
        full = colour.lstrip("#")
        full = "".join(letter * 2 for letter in full) if len(full) == 3 else full
        parts = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        lit = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * lit[0] + 0.7152 * lit[1] + 0.0722 * lit[2]

    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


TEXTS = [("ink", "ground"), ("ink", "card"), ("soft", "ground"), ("soft", "card"), ("accent", "card")]
TEXTS += [("accent", "ground"), ("bad", "bad-ground"), ("wary", "wary-ground"), ("calm", "calm-ground")]
TEXTS += [("ink", "add"), ("ink", "gone")]


@pytest.mark.parametrize(("text", "behind_it"), TEXTS)
def test_text_stands_out_from_what_is_behind_it(text: str, behind_it: str) -> None:
    light, dark = CSS.read_text(encoding="utf-8").split("@media (prefers-color-scheme: dark)", 1)
    for part in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", part))
        assert contrast(colours[text], colours[behind_it]) >= 4.5
