"""What every declared setting promises, and the page that documents them."""

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest

from pagefold.settings.knobs import KNOBS, NAME, Knob
from pagefold.settings.rules import TEXT
from pagefold.settings.toml_text import toml_key, toml_value
from tests.config.loading import loaded_from

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("knob", KNOBS.values(), ids=lambda knob: toml_key(knob.path))
def test_each_setting_keeps_its_own_rule_and_says_what_it_means(knob: Knob) -> None:
    assert knob.default is None if NAME in knob.path else knob.rule.admits(knob.default)
    assert re.fullmatch(r"[A-Z].*\.", knob.meaning)
    assert "|" not in knob.meaning + knob.rule.words
    assert bare_type(knob.section.__annotations__[knob.path[-1]]) is knob.rule.of


def bare_type(annotation: Any) -> Any:
    """`tuple` for `tuple[str, ...] | None`."""
    if isinstance(annotation, UnionType):
        (annotation,) = (kind for kind in get_args(annotation) if kind is not NoneType)
    return get_origin(annotation) or annotation


def test_no_two_settings_share_a_variable() -> None:
    assert len({knob.variable for knob in KNOBS.values()}) == len(KNOBS)


def test_only_the_token_keys_and_an_address_are_secret_and_any_text_will_do_for_them() -> None:
    secret = [(knob.path, knob.rule) for knob in KNOBS.values() if knob.secret]
    assert sorted(path for path, _ in secret) == [
        ("serve", "token"),
        ("sink", "access_key"),
        ("sink", "secret_key"),
        ("store", "key"),
        ("store", "url"),
        ("upstreams", "NAME", "key"),
    ]
    assert {rule for _, rule in secret} == {TEXT}


PAGES: Mapping[str, Any] = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    written = (DOCS / name).read_text("utf-8") if (DOCS / name).exists() else ""

    assert written == PAGES[name](), f"docs/{name} is stale: run .venv/bin/python docs/generate.py"


def test_every_setting_is_documented_in_full() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    rows = {cells[1].strip(): cells for line in page.split("\n") if len(cells := line.split("|")) == 7}

    for knob in KNOBS.values():
        _, _, default, variable, allowed, meaning, _ = (cell.strip() for cell in rows[f"`{toml_key(knob.path)}`"])
        assert default == ("as shipped" if NAME in knob.path else f"`{toml_value(knob.default)}`")
        assert (variable, allowed, meaning) == (f"`{knob.variable}`", knob.rule.words, knob.meaning)


def test_the_example_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    settings = loaded_from(example, tmp_path).settings

    assert (settings.window, settings.prices, settings.prices_usd[0].name) == (160_000, "house", "house")
    assert settings.store.max_age_days == 7


def test_importing_the_reader_loads_nothing_heavy() -> None:
    script = "import sys, pagefold.config; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert not {"rich", "argparse", "asyncio", "aiohttp", "splintr", "sqlite3"} & set(ast.literal_eval(loaded))
