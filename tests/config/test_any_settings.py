"""Any settings in any layers survive being written and read back."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pagefold.config import load
from pagefold.config.project_file import may_set
from pagefold.errors import ConfigError
from pagefold.settings.knobs import KNOBS, NAME, Knob, settings_of
from pagefold.settings.toml_text import KeyPath, toml_key, toml_value
from tests.config.loading import loaded_from, on_disk

CONSTANTS = {"n": 1, "s": "\n"}
LISTS: Mapping[str, st.SearchStrategy[object]] = {
    "a list of names": st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
    "a list of tables": st.sampled_from(
        [
            [],
            [{"tool": "Read"}],
            [{"tool": "a b", "probability": 0.25, "projection": "$call", "keep": ["x"], "constants": CONSTANTS}],
        ]
    ),
    "a list of regular": st.sampled_from([[], ["ACME-\\d+", "pin: (?P<secret>x)"]]),
    "paths": st.sampled_from([[], ["/v1/embeddings", "/a b"]]),
    "six whole numbers": st.sampled_from([[], [30, 27, 31, 34, 35, 55]]),
    "tables with fields": st.sampled_from(
        [{"must": {"fields": ["a"], "estimated_value": 1.0, "default_include": False}, "ü": {"estimated_value": 0.0}}]
    ),
}


def values_for(knob: Knob) -> st.SearchStrategy[object]:
    if knob.rule.of is tuple:
        lists = next(values for words, values in LISTS.items() if knob.rule.words.startswith(words))
        return lists.filter(knob.rule.admits).map(knob.rule.kept)
    if knob.path == ("serve", "host"):
        return st.sampled_from(["127.0.0.1", "::1", "localhost"])
    if knob.rule.words.startswith("one of "):
        return st.sampled_from(knob.rule.words.removeprefix("one of ").split(", "))
    if knob.rule.words.startswith("an http"):
        return st.from_regex(r"https?://[a-z]{1,9}(:[1-9][0-9]{0,3})?(/[a-z]{1,5})?", fullmatch=True)
    if knob.rule.is_file:
        return st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/."), min_size=1).map(
            "/data/{}".format
        )
    by_type: Mapping[type, st.SearchStrategy[object]] = {
        bool: st.booleans(),
        int: st.integers(0, 65535) | st.integers(0, 10**15),
        float: st.floats(0, allow_nan=False, allow_infinity=False),
        str: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    }
    return by_type[knob.rule.of].filter(knob.rule.admits)


TABLE_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def some_values(draw: st.DrawFn, table_names: st.SearchStrategy[str] = TABLE_NAMES) -> dict[KeyPath, object]:
    chosen = draw(st.lists(st.sampled_from(list(KNOBS.values())), unique=True, max_size=8))
    return {
        tuple(draw(table_names) if part == NAME else part for part in knob.path): draw(values_for(knob))
        for knob in chosen
    }


def as_dotted_keys(values: Mapping[KeyPath, object]) -> str:
    return "".join(f"{toml_key(path)} = {toml_value(value)}\n" for path, value in values.items())


def as_tables(values: Mapping[KeyPath, object]) -> str:
    by_table: dict[KeyPath, str] = {(): ""}
    for path, value in values.items():
        by_table[path[:-1]] = by_table.get(path[:-1], "") + f"{path[-1]} = {toml_value(value)}\n"
    return "\n".join(f"[{toml_key(table)}]\n{rows}" if table else rows for table, rows in by_table.items())


@on_disk
@given(some_values(), st.sampled_from([as_dotted_keys, as_tables]))
def test_any_settings_survive_being_written_as_toml_and_read_back(values: dict[KeyPath, object], write: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        loaded = loaded_from(write(values), Path(name))

    assert loaded.settings == settings_of(values)
    lines = write(values).split("\n")
    for path in values:
        file, _, line = loaded.origins[toml_key(path)].partition(":")
        assert file == "pagefold.toml"
        assert lines[int(line) - 1].endswith(f" = {toml_value(values[path])}")


PLAIN_NAMES = st.sampled_from(["a", "b_c", "read"])


def harmless(values: dict[KeyPath, object]) -> dict[KeyPath, object]:
    """Without what a project's file may not set."""
    return {path: value for path, value in values.items() if may_set(path, value)}


@on_disk
@given(
    some_values(PLAIN_NAMES),
    some_values(PLAIN_NAMES).map(harmless),
    some_values(PLAIN_NAMES),
    some_values(PLAIN_NAMES),
)
def test_the_rightmost_layer_that_gives_a_value_wins(
    user: dict[KeyPath, object],
    project: dict[KeyPath, object],
    variables: dict[KeyPath, object],
    flags: dict[KeyPath, object],
) -> None:
    environment = {
        "_".join(("PAGEFOLD", *path)).upper(): value if isinstance(value, str) else toml_value(value)
        for path, value in variables.items()
    }
    with tempfile.TemporaryDirectory() as name:
        home, folder = Path(name, "home"), Path(name, "project")
        (home / ".config" / "pagefold").mkdir(parents=True)
        folder.mkdir()
        (home / ".config" / "pagefold" / "pagefold.toml").write_text(as_tables(user), "utf-8")
        (folder / "pagefold.toml").write_text(as_dotted_keys(project), "utf-8")

        typed = {toml_key(path): toml_value(value) if type(value) is tuple else value for path, value in flags.items()}
        loaded = load(typed, environment | {"HOME": str(home)}, folder)

    assert loaded.settings == settings_of({**user, **project, **variables, **flags})
    for key, origin in loaded.origins.items():
        path = tuple(key.split("."))
        layers: Mapping[str, Mapping[KeyPath, object]] = {
            "--": flags,
            "PAGEFOLD_": variables,
            "pagefold.toml:": project,
            "~/.config/": user,
            "default": {path: 0},
        }
        rightmost = next(prefix for prefix, layer in layers.items() if path in layer)
        assert origin.startswith(rightmost)


@on_disk
@given(st.binary(max_size=60) | st.text("abserv.port=[]{}\"'\n 1#,", max_size=60).map(str.encode))
def test_any_bytes_give_settings_or_one_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        try:
            origins = set(loaded_from(content, Path(name)).origins.values())
        except ConfigError as error:
            origins = {str(error)}

    assert all(origin.startswith(("default", "pagefold.toml:")) for origin in origins)
