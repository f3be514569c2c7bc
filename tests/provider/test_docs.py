"""docs/provider.md names every rule there is, and none that is not."""

import re
from pathlib import Path

from pagefold.provider.refusal import RULES

PAGE = Path(__file__).parents[2] / "docs" / "provider.md"


def test_the_page_names_every_rule() -> None:
    section = PAGE.read_text().partition("## What it refuses")[2].partition("Not checked:")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", "".join(rows))) == set(RULES)


def test_every_rule_is_used() -> None:
    sources = (Path(__file__).parents[2] / "src" / "pagefold" / "provider").glob("*.py")
    code = "".join(path.read_text() for path in sources if path.name != "refusal.py")
    assert [rule for rule in RULES if f'"{rule}"' not in code] == []
