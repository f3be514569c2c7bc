"""The frame of every dashboard page (head, header, search field), and its numbers, times and links."""

from datetime import UTC, datetime
from urllib.parse import urlencode

from pagefold import number_format
from pagefold.html import HtmlChild, el

SHORT = 8
"""Letters of a session's name that are shown."""


def short(number: float) -> str:
    """1,234 as it is, then 12.3k, 4.56M, 7.89G. The script writes numbers alike."""
    return number_format.short(number, space="")


def share(part: float, whole: float) -> str:
    return number_format.share(part, whole, digits=0)


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%H:%M:%S}"


def link(handle: str, within: str) -> str:
    """Returns the link to a page as listed in a history, where it has a name."""
    return f"/pagefold/page/{handle}?{urlencode({'in': within})}"


def page(title: str, *content: HtmlChild, query: str = "", live: str = "", seen: tuple[int, int] = (0, 0)) -> str:
    """Returns a whole page. `live` is what the script follows: "now" or a session; `seen` is how far it already is."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · pagefold"),
        el("link", rel="icon", href="data:,"),
        el("link", rel="stylesheet", href="/pagefold/style.css"),
        el("script", src="/pagefold/script.js", defer=True),
    )
    pause = el("button", "Pause", type="button", id="pause", aria_pressed="false", hidden=True)
    header = el(
        "header",
        el("a", "pagefold", href="/pagefold/", class_="brand"),
        el(
            "span", el("span", "", id="dot", aria_hidden="true"), el("span", "", id="state"), id="live", hidden=not live
        ),
        pause if live else None,
        el(
            "form",
            el("label", "Search pages", for_="q", class_="unseen"),
            el("input", id="q", name="q", type="search", value=query, placeholder="Search pages  ( / )"),
            role="search",
            action="/pagefold/search",
        ),
    )
    skip = el("a", "To the content", href="#content", class_="skip")
    main = el("main", *content, id="content", data_live=live or None, data_n=seen[0], data_k=seen[1])
    return "<!doctype html>" + el("html", head, el("body", skip, header, main), lang="en")


def notice(title: str, *words: HtmlChild) -> str:
    return page(title, el("section", el("h1", title), *(el("p", one) for one in words), class_="notice"))


def key_form() -> str:
    """Returns the page that asks for the key."""
    words = "Open the address that pagefold serve or pagefold dashboard prints, or show the key here."
    form = el(
        "form",
        el("label", "Key", for_="key"),
        el("input", id="key", name="key", type="password", autocomplete="off", required=True),
        el("button", "Open", type="submit"),
        method="get",
        action="/pagefold/",
        class_="door",
    )
    return page("Key needed", el("section", el("h1", "Key needed"), el("p", words), form, class_="notice"))
