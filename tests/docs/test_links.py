"""Every link of a page leads to a file that is there, and to a heading in it."""

from pathlib import Path

import pytest

from tests.docs.pages import NAMES, ROOT, anchors, links


def dead(page: Path, target: str) -> bool:
    if target.startswith(("http://", "https://", "mailto:")):
        return False
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return not file.exists() or bool(anchor and anchor not in anchors(file))


@pytest.mark.parametrize("name", NAMES)
def test_no_link_is_dead(name: str) -> None:
    page = ROOT / name

    assert [target for target in links(page) if dead(page, target)] == []


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A `b` C\n\n[x](#a-b-c) [y](#a-c) [z](b.md) `[not](a-link.md)`\n```\n[nor](this.md)\n```\n")

    assert [target for target in links(page) if dead(page, target)] == ["#a-c", "b.md"]
