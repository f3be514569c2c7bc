"""Every setting there is, as one frozen value: name, default, what is allowed, and what it means.

Adding a setting is adding a field here: the reader, the listing and the reference page follow from it. A field that is
kept out of `repr` is a secret and is masked wherever settings are shown. Nothing here reads a file, an environment
variable or a flag; `config` does, and checks every value against its rule before it gets here.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any
from urllib.parse import urlsplit

KeyPath = tuple[str, ...]

NAME = "NAME"
"""Stands in a path for the free name of a table."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting may be. `words` completes "expected …"; `holds` is asked of values of the type `of` only."""

    of: type
    words: str
    holds: Callable[[Any], bool] = lambda _: True
    is_file: bool = False

    def admits(self, value: object) -> bool:
        # To Python True is the number 1; to whoever wrote `port = true` it is a mistake.
        if isinstance(value, bool) is not (self.of is bool):
            return False
        return isinstance(value, int | float if self.of is float else self.of) and self.holds(value)


def whole(least: int, most: int | None = None) -> Rule:
    if most is None:
        return Rule(int, f"a whole number of at least {least}", lambda value: bool(value >= least))
    return Rule(int, f"a whole number from {least} to {most}", lambda value: bool(least <= value <= most))


def number(least: float) -> Rule:
    largest = sys.float_info.max
    return Rule(float, f"a number of at least {least:g}", lambda value: bool(least <= value <= largest))


def one_of(*choices: str) -> Rule:
    return Rule(str, "one of " + ", ".join(choices), choices.__contains__)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = text.isprintable() and not any(mark in text for mark in " @?#")
    return named and plain and parts.scheme in ("http", "https")


TEXT = Rule(str, "text")
NAMED = Rule(str, "a name that is not empty", lambda value: bool(value.strip()))
FILE = Rule(str, "the name of a file", lambda value: "\0" not in value, is_file=True)
ADDRESS = Rule(str, "an http or https address without user, query or fragment", _is_address)
SWITCH = Rule(bool, "true or false")


def about(meaning: str, rule: Rule, *, flag: str = "", own: bool = False) -> Mapping[str, object]:
    """The metadata of one setting. `flag` is its name on the command line where that is not its own.

    `own` settings decide who gets the user's keys: a project's file, which somebody else may have written, sets none.
    """
    return {"meaning": meaning, "rule": rule, "flag": flag, "own": own}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """USD per million tokens, in a table of your own or over a shipped one, where what is left out stays as shipped."""

    name: str
    read: float | None = field(default=None, metadata=about("Prompt tokens read from the provider's cache.", number(0)))
    write: float | None = field(
        default=None, metadata=about("Prompt tokens written to the provider's cache.", number(0))
    )
    fresh: float | None = field(
        default=None, metadata=about("Prompt tokens neither read from nor written to the cache.", number(0))
    )
    output: float | None = field(default=None, metadata=about("Tokens the model writes.", number(0)))
    ttl_seconds: float | None = field(
        default=None, metadata=about("How long the cache stays warm after its last use.", number(0))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where pages are kept, and for how long."""

    path: str = field(
        default="",
        metadata=about(
            "The database of the store, relative to the file that names it; "
            "when empty, store.sqlite3 in the user data directory.",
            FILE,
            flag="--store",
        ),
    )
    max_age_days: int = field(
        default=30, metadata=about("Pages older than this are removed; 0 keeps them for ever.", whole(0))
    )
    max_bytes: int = field(
        default=2_000_000_000, metadata=about("The oldest pages are removed above this size; 0 is no bound.", whole(0))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """The proxy in front of the model APIs."""

    host: str = field(
        default="127.0.0.1",
        metadata=about("The address to listen on; any but a loopback address needs `serve.token`.", NAMED, own=True),
    )
    port: int = field(default=8377, metadata=about("The port to listen on; 0 takes any that is free.", whole(0, 65535)))
    anthropic_url: str = field(
        default="https://api.anthropic.com",
        metadata=about("Where Anthropic requests are sent on to.", ADDRESS, own=True),
    )
    openai_url: str = field(
        default="https://api.openai.com", metadata=about("Where OpenAI requests are sent on to.", ADDRESS, own=True)
    )
    token: str = field(
        default="",
        repr=False,
        metadata=about("What a client must present to be served; empty asks for nothing.", TEXT, own=True),
    )
    observe: bool = field(
        default=False,
        metadata=about("Send every request on as it came and only count what passes.", SWITCH),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Replaying recorded sessions."""

    jobs: int = field(default=0, metadata=about("Sessions replayed side by side; 0 uses every core.", whole(0)))
    strict: bool = field(
        default=False, metadata=about("Exit with code 2 if anything in a recording was skipped or odd.", SWITCH)
    )
    max_line_bytes: int = field(
        default=67_108_864, metadata=about("The longest line of a recording that is read.", whole(1024))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds everywhere."""

    policy: str = field(default="identity", metadata=about("The policy that derives each request.", NAMED))
    window: int = field(default=200_000, metadata=about("How many tokens a request may hold.", whole(1)))
    tokens: str = field(
        default="o200k",
        metadata=about("The vocabulary tokens are counted with.", one_of("o200k", "cl100k", "claude-3", "claude-5")),
    )
    prices: str = field(default="anthropic", metadata=about("The price table costs are reckoned with.", NAMED))
    # Sorted by name and not a dict: equal, hashable and fit for another process whatever order a file had.
    prices_usd: tuple[PriceTable, ...] = field(default=(), metadata={"tables": PriceTable})
    store: Store = field(default_factory=Store)
    serve: Serve = field(default_factory=Serve)
    replay: Replay = field(default_factory=Replay)


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting as the reader and the reference page see it."""

    path: KeyPath
    section: type
    default: object
    meaning: str
    rule: Rule
    secret: bool
    flag: str
    own: bool

    @property
    def variable(self) -> str:
        return "_".join(("PAGEFOLD", *self.path)).upper()

    def path_of(self, variable: str) -> KeyPath | None:
        """The path that an environment variable sets, free name included, or None where it sets another setting."""
        if NAME not in self.path:
            return self.path if variable == self.variable else None
        at = self.path.index(NAME)
        head = "_".join(("PAGEFOLD", *self.path[:at], "")).upper()
        tail = "_".join(("", *self.path[at + 1 :])).upper()
        name = variable.removeprefix(head).removesuffix(tail)
        return (
            (*self.path[:at], name.lower(), *self.path[at + 1 :]) if name and head + name + tail == variable else None
        )


def _section_of(item: Field[Any]) -> Any:
    factory: Any = item.default_factory
    return factory if is_dataclass(factory) else None


def _knobs(shape: Any, path: KeyPath = ()) -> Iterator[Knob]:
    for item in fields(shape):
        here = (*path, item.name)
        if tables := item.metadata.get("tables"):
            yield from _knobs(tables, (*here, NAME))
        elif section := _section_of(item):
            yield from _knobs(section, here)
        elif rule := item.metadata.get("rule"):
            flag = item.metadata["flag"] or "--" + item.name.replace("_", "-")
            yield Knob(
                here, shape, item.default, item.metadata["meaning"], rule, not item.repr, flag, item.metadata["own"]
            )


KNOBS: Mapping[KeyPath, Knob] = {knob.path: knob for knob in _knobs(Settings)}
SECTIONS = frozenset(path[:end] for path in KNOBS for end in range(1, len(path)))


def general(path: KeyPath) -> KeyPath:
    """The path with NAME in place of a table's free name: what KNOBS and SECTIONS are keyed by."""
    named = (*path[:1], NAME, *path[2:])
    return named if len(path) > 1 and named[:2] in SECTIONS else path


def settings_of(values: Mapping[KeyPath, object]) -> Settings:
    """The defaults with these values in place. They have to have passed their rules."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        table = nested
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    filled = _filled(Settings, nested)
    assert isinstance(filled, Settings)
    return filled


def _filled(shape: Any, values: Mapping[str, Any]) -> object:
    given: dict[str, object] = {}
    for item in fields(shape):
        if item.name not in values:
            continue
        value = values[item.name]
        if tables := item.metadata.get("tables"):
            value = tuple(_filled(tables, {**entry, "name": name}) for name, entry in sorted(value.items()))
        elif section := _section_of(item):
            value = _filled(section, value)
        given[item.name] = value
    return shape(**given)


def values_of(settings: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Each setting with its value, in the order they are declared; what a price table leaves out is left out."""
    for item in fields(settings):
        here, value = (*path, item.name), getattr(settings, item.name)
        if "tables" in item.metadata:
            for table in value:
                yield from values_of(table, (*here, table.name))
        elif is_dataclass(value):
            yield from values_of(value, here)
        elif "rule" in item.metadata and value is not None:
            yield here, value


def dotted(path: KeyPath) -> str:
    """A path as a TOML key."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else spelled(part) for part in path)


def spelled(value: object) -> str:
    """A value as TOML spells it, with nothing in it that a terminal would obey."""
    if isinstance(value, str):
        return '"' + "".join(map(_spelled_character, value)) + '"'
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        # Python refuses to write thousands of decimal digits.
        return hex(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spelled_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
