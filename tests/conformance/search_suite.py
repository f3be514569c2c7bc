"""What every store promises about search: exact names first, one history or all, never a page that is gone."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId
from pagefold.pages.search import SearchIndex
from pagefold.pages.store import PageStore, Store

SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
NAMES = [
    "load_config",
    "loadConfig",
    "src/pages/store.py",
    "C:\\work\\app.ini",
    "E0308",
    "404",
    "0x7fff5fbff8c0",
    "192.168.10.7",
    "v1.24.3-rc2",
    "std::vector",
    "--no-cache",
    "user@example.com",
    "a1b2c3d4-0001-4002",
    "größe_ändern",
]


def pages_of(index: SearchIndex, query: str, history: str | None = None, limit: int = 10) -> list[PageId]:
    return [found.page for found in index.search(query, history=history, limit=limit)]


class SearchSuite:
    @pytest.fixture
    def pages(self, store: Store) -> PageStore:
        return store.pages

    @pytest.fixture
    def index(self, store: Store) -> SearchIndex:
        return store.search_index

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_found_as_typed_before_pages_that_only_have_its_words(
        self, pages: PageStore, index: SearchIndex, name: str
    ) -> None:
        words = " ".join("".join(one if one.isalnum() else " " for one in name).split())
        # The words alone, more often and in shorter texts, as BM25 prefers; and the name within a longer one.
        for n in range(30):
            if words != name:
                pages.put(f"{n} {words} {words} {words}\n".encode())
            pages.put(f"{n} x{name}x\n".encode())
        page = pages.put(f"some text before\nthen {name}, and more after it\n{'filler ' * 300}".encode())

        found = index.search(name)

        assert found[0].page == page
        assert found[0].exact == (name,)
        assert name in found[0].excerpt

    def test_words_rank_by_how_rare_they_are_and_how_many_match(self, pages: PageStore, index: SearchIndex) -> None:
        for n in range(20):
            pages.put(f"the cache number {n} is warm".encode())
        both = pages.put(b"the cache is cold because the lease expired")
        one = pages.put(b"a lease of some other thing, of which there is more to say at length")

        assert pages_of(index, "lease cache")[:2] == [both, one]

    def test_a_quoted_phrase_is_one_name(self, pages: PageStore, index: SearchIndex) -> None:
        pages.put(b"reset by the peer, connection lost, connection reset")
        page = pages.put(b"read: connection reset by peer")

        assert pages_of(index, '"connection reset by peer"') == [page]

    def test_a_search_in_one_history_finds_nothing_of_another_not_even_by_its_name_there(
        self, pages: PageStore, index: SearchIndex
    ) -> None:
        shared = pages.put(b"shared words", history="one", name="Read secret_plan.md", kind=PageKind.EVIDENCE)
        pages.put(b"shared words", history="two", name="Read notes.md", kind=PageKind.CONVERSATION)
        alone = pages.put(b"words of one", history="one")

        assert pages_of(index, "words", "two") == [shared]
        assert sorted(pages_of(index, "words", "one")) == sorted([shared, alone])
        assert pages_of(index, "words", "three") == []
        assert pages_of(index, "secret_plan.md", "one") == [shared]
        assert pages_of(index, "secret_plan.md", "two") == []
        (found,) = index.search("words", history="two")
        assert (found.name, found.kind, found.history) == ("Read notes.md", PageKind.CONVERSATION, "two")

    def test_a_page_is_found_by_its_name_once(self, pages: PageStore, index: SearchIndex) -> None:
        page = pages.put(b"fn main() {}", history="h", name="Read src/main.rs", kind=PageKind.EVIDENCE)

        (found,) = index.search("src/main.rs main")

        assert (found.page, found.name, found.history, found.exact) == (page, "Read src/main.rs", "h", ("src/main.rs",))

    def test_what_is_put_after_a_search_is_found_by_the_next(self, pages: PageStore, index: SearchIndex) -> None:
        assert pages_of(index, "word") == []
        first = pages.put(b"word one")
        assert pages_of(index, "word") == [first]
        second = pages.put(b"word two")
        assert sorted(pages_of(index, "word")) == sorted([first, second])

    def test_collected_pages_are_gone_and_what_takes_their_places_is_found(
        self, pages: PageStore, index: SearchIndex
    ) -> None:
        for n in range(5):
            pages.put(f"old word {n}".encode(), history="h", name=f"name {n}", now=n)
        assert len(pages_of(index, "word")) == 5

        pages.collect(before=3.0)
        assert len(pages_of(index, "word")) == 2
        pages.collect(max_bytes=0)
        fresh = [pages.put(f"new word {n}".encode(), history="h", name="fresh") for n in range(3)]

        assert sorted(pages_of(index, "word")) == sorted(fresh)
        assert pages_of(index, "old") == []
        assert sorted(pages_of(index, "fresh", "h")) == sorted(fresh)

    @pytest.mark.parametrize(
        "query",
        [
            "",
            "   ",
            "->",
            '""',
            '"',
            "''",
            "AND",
            "NEAR(a b)",
            "a*",
            "text:x",
            "^a",
            '"a" OR',
            "\0",
            "\ud800x",
            "(" * 99,
        ],
    )
    def test_no_query_is_an_error(self, pages: PageStore, index: SearchIndex, query: str) -> None:
        pages.put(b"text: a and b, near x")

        index.search(query)

    @settings(max_examples=150, deadline=None, suppress_health_check=SUPPRESSED)
    @given(query=st.text(max_size=30), content=st.binary(max_size=60))
    def test_any_query_over_any_content_answers(
        self, query: str, content: bytes, pages: PageStore, index: SearchIndex
    ) -> None:
        # A history of its own, so that one file serves every example.
        history = f"{query}|{content!r}"
        page = pages.put(content, history=history, name=query)

        assert set(pages_of(index, query, history)) <= {page}

    @settings(max_examples=25, deadline=None, suppress_health_check=SUPPRESSED)
    @given(
        contents=st.lists(st.lists(st.sampled_from(["alpha", "beta", "gamma_ray", "x1"]), max_size=4), max_size=8),
        word=st.sampled_from(["alpha", "beta", "gamma_ray", "x1"]),
    )
    def test_it_finds_what_a_plain_scan_finds(
        self, contents: list[list[str]], word: str, pages: PageStore, index: SearchIndex
    ) -> None:
        # A history of its own, so that one store serves every example.
        history = f"{word} {contents}"
        put = {pages.put(" ".join(words).encode(), history=history): words for words in contents}
        expected = {page for page, words in put.items() if word in words}

        assert set(pages_of(index, word, history, limit=20)) == expected

    @pytest.mark.parametrize("query", ["load config", "loadConfig", "load_config", "Config load", "config"])
    @pytest.mark.parametrize("name", ["loadConfig", "load_config", "LoadConfig", "HTTPLoadConfig", "load-config"])
    def test_a_name_is_found_by_its_words(self, pages: PageStore, index: SearchIndex, query: str, name: str) -> None:
        pages.put(b"unloading reconfigured configurations")
        page = pages.put(f"see {name}() there".encode())

        assert pages_of(index, query) == [page]

    @pytest.mark.parametrize(
        ("query", "best"), [("failed", 0), ("Bash failed", 0), ("refused", 1), ("Edit", 1), ("a.py", 1)]
    )
    def test_what_a_page_is_called_counts_before_what_it_says(
        self, pages: PageStore, index: SearchIndex, query: str, best: int
    ) -> None:
        pages.put(b"failed failed refused refused Edit a b py", history="h", name="Read b.txt: ok")
        called = ["Bash make: FAILED: no rule", "Edit /srv/a.py x y: REFUSED by the user"]
        found = [pages.put(name.encode() * 20, history="h", name=name) for name in called]

        assert pages_of(index, query, "h")[0] == found[best]

    def test_pages_that_list_others_come_last(self, pages: PageStore, index: SearchIndex) -> None:
        listing = pages.put(b"needle needle needle", history="h", name="what was said and done")
        page = pages.put(b"a needle in much hay " + b"hay " * 200, history="h", name="Read hay")

        assert pages_of(index, "needle", "h") == [page, listing]
