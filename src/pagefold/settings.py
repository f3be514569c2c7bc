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
    """What a setting may be. `words` completes "expected …"; `holds` is asked of values of the type `of` only.

    Lists and tables have a `made`, which turns what a file gives into the tuple that is kept; their `holds` is asked of
    anything.
    """

    of: type
    words: str
    holds: Callable[[Any], bool] = lambda _: True
    is_file: bool = False
    made: Callable[[Any], object] | None = None

    def admits(self, value: object) -> bool:
        if self.made is not None:
            return self.holds(value)
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
MAYBE_ADDRESS = Rule(str, f"{ADDRESS.words}, or nothing", lambda value: value == "" or _is_address(value))
FOLDER_OF_KEYS = Rule(
    str,
    "letters, digits, . _ - and / that end with /, or nothing",
    lambda value: bool(re.fullmatch(r"(?:(?!\.{1,2}/)[\w.-]+/)*", value, re.ASCII)),
)
SWITCH = Rule(bool, "true or false")


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) and one.strip() for one in value)


NAMES = Rule(tuple, "a list of names", _are_names, made=tuple)


def _are_turns(value: Any) -> bool:
    right = isinstance(value, list | tuple) and len(value) in (0, 6)
    return right and all(type(one) is int and one > 0 for one in value)


TURNS = Rule(tuple, "six whole numbers of at least 1, or none", _are_turns, made=tuple)
WEIGHT = Rule(float, "a number from -20 to 20", lambda value: bool(-20 <= value <= 20))


def about(
    meaning: str, rule: Rule, *, flag: str = "", own: bool | Callable[[Any], bool] = False
) -> Mapping[str, object]:
    """The metadata of one setting. `flag` is its name on the command line where that is not its own.

    `own` settings decide who gets the user's keys, or what is run unasked: a project's file, which somebody else may
    have written, sets none. Where only some values are the user's own, `own` tells which.
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
class Sink:
    """The history sink: sessions in S3-compatible object storage. Off unless endpoint and bucket are set."""

    endpoint: str = field(default="", metadata=about("The address of the object storage.", MAYBE_ADDRESS, own=True))
    bucket: str = field(default="", metadata=about("The bucket, which has to exist.", TEXT, own=True))
    prefix: str = field(
        default="history/", metadata=about("What every key begins with, before the session.", FOLDER_OF_KEYS, own=True)
    )
    region: str = field(default="us-east-1", metadata=about("The region requests are signed for.", NAMED, own=True))
    access_key: str = field(
        default="", repr=False, metadata=about("The key id; empty for requests without a signature.", TEXT, own=True)
    )
    secret_key: str = field(default="", repr=False, metadata=about("The secret key.", TEXT, own=True))
    timeout_seconds: float = field(
        default=10.0, metadata=about("How long one request may take.", number(0.1), own=True)
    )
    flush_seconds: float = field(
        default=5.0,
        metadata=about("How long sending may go on at the end; the rest is sent at the next start.", number(0)),
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
    policy: str = field(
        default="lossless",
        metadata=about("The policy that derives live requests: identity, lossless or economic.", NAMED),
    )
    window: int = field(
        default=0,
        metadata=about("How many tokens a live request may hold; 0 goes by the model.", whole(0)),
    )
    recall: str = field(
        default="mcp",
        metadata=about(
            "Who answers the context tools: the MCP proxy, or this proxy inside the turn.", one_of("mcp", "inline")
        ),
    )
    recall_rounds: int = field(
        default=4, metadata=about("How often in one turn the proxy answers context tools itself.", whole(1, 20))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcp:
    """The proxy in front of MCP servers."""

    tools: bool = field(
        default=True,
        metadata=about("Offer tools of pagefold's own (`context_recall` and others) beside the servers'.", SWITCH),
    )
    slim_tools: str = field(
        default="off",
        metadata=about(
            "How tools are described: as they are, in smaller schemas that mean the same, or by a signature with the "
            "whole on demand.",
            one_of("off", "same", "lazy"),
        ),
    )
    structured: str = field(
        default="auto",
        metadata=about(
            "Whether `structuredContent` stays beside a text that says the same: always, or only for clients that do "
            "not show it to their model in place of the text.",
            one_of("auto", "keep"),
        ),
    )
    references: bool = field(
        default=False,
        metadata=about(
            "Refer to earlier results of the connection. Only for a client with one agent that reports compaction by "
            "`notifications/pagefold/compacted` or `context_reset`.",
            SWITCH,
        ),
    )
    budget: int = field(
        default=0,
        metadata=about(
            "Tokens above which a result is cut to its most useful part, the rest to be had by `context_recall`; 0 "
            "cuts nothing.",
            whole(0),
        ),
    )
    parameters: str = field(
        default="",
        metadata=about(
            "Tools that get the parameters `format`, `budget` and `chunk`: names or patterns with `*`, divided by "
            "commas.",
            TEXT,
        ),
    )
    as_is: str = field(
        default="",
        metadata=about("Tools whose results pass untouched: names or patterns with `*`, divided by commas.", TEXT),
    )
    max_message_bytes: int = field(
        default=67_108_864,
        metadata=about("The longest message of a server that is held; a call that it answers fails.", whole(65_536)),
    )
    start_seconds: float = field(
        default=5.0,
        metadata=about(
            "How long several servers are waited for before the client is greeted without the rest.", number(0)
        ),
    )


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One entry of a tool's `follow_up`."""

    tool: str
    probability: float = 0.5
    projection: str | None = None
    projection_arg: str | None = None
    keep: tuple[str, ...] = ()
    constants: tuple[tuple[str, str | int | float | bool], ...] = ()
    limit: int = 3
    most: int | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "FollowUp":
        constants = tuple(sorted(entry.get("constants", {}).items()))
        return cls(**{**entry, "keep": tuple(entry.get("keep", ())), "constants": constants})


@dataclass(frozen=True, slots=True)
class Group:
    """One entry of a tool's `field_groups`."""

    name: str
    fields: tuple[str, ...] = ()
    estimated_value: float = 0.5
    default_include: bool = True

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> "Group":
        return cls(name, **{**entry, "fields": tuple(entry.get("fields", ()))})


_LINK_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "tool": NAMED.admits,
    "probability": Rule(float, "a share", lambda value: bool(0 <= value <= 1)).admits,
    "projection": NAMED.admits,
    "projection_arg": NAMED.admits,
    "keep": _are_names,
    "constants": lambda value: (
        isinstance(value, dict) and all(isinstance(one, str | int | float) for one in value.values())
    ),
    "limit": whole(1, 3).admits,
    "most": whole(1).admits,
}
_GROUP_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "fields": _are_names,
    "estimated_value": number(0).admits,
    "default_include": SWITCH.admits,
}


def _is_entry(value: Any, members: Mapping[str, Callable[[Any], bool]]) -> bool:
    return isinstance(value, dict) and all(name in members and members[name](one) for name, one in value.items())


FOLLOW_UPS = Rule(
    tuple,
    "a list of tables with tool, probability, projection, projection_arg, keep, constants, limit and most",
    lambda value: (
        isinstance(value, list | tuple)
        and all(isinstance(one, FollowUp) or (_is_entry(one, _LINK_MEMBERS) and "tool" in one) for one in value)
    ),
    made=lambda value: tuple(one if isinstance(one, FollowUp) else FollowUp.of(one) for one in value),
)
GROUPS = Rule(
    tuple,
    "tables with fields, estimated_value and default_include",
    lambda value: (
        all(isinstance(one, Group) for one in value)
        if isinstance(value, tuple)
        else isinstance(value, dict) and all(_is_entry(one, _GROUP_MEMBERS) for one in value.values())
    ),
    made=lambda value: (
        value if isinstance(value, tuple) else tuple(Group.of(name, one) for name, one in sorted(value.items()))
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCost:
    """What an answer of the tool costs."""

    typical_kb: float | None = field(default=None, metadata=about("The typical length of an answer.", number(0)))
    max_kb: float | None = field(default=None, metadata=about("The length of the longest answers.", number(0)))
    latency_ms_p50: int | None = field(default=None, metadata=about("How long half of its calls take.", whole(0)))
    dollars: float | None = field(default=None, metadata=about("What a call costs in USD.", number(0)))
    freshness_ttl_s: int | None = field(
        default=None, metadata=about("How many seconds an answer may wait before it is old.", whole(0))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """What is known of a tool. NAME is its live name, a glob, or `*`; the table replaces a shipped one as a whole."""

    name: str
    value_class: str | None = field(
        default=None,
        metadata=about(
            "How much an answer matters; critical where it is left out.",
            one_of("critical", "supporting", "optional", "audit_only"),
        ),
    )
    side_effect_class: str | None = field(
        default=None,
        metadata=about(
            "What running it does; indeterminate where it is left out. A project's file may only be stricter.",
            one_of("pure", "read_only", "mutates_local", "mutates_external", "indeterminate"),
            own=lambda value: value in ("pure", "read_only"),
        ),
    )
    speculate: bool | None = field(
        default=None, metadata=about("False: never run early. True changes no class.", SWITCH)
    )
    open_world: bool | None = field(
        default=None,
        metadata=about(
            "Whether it reaches beyond this machine; counts as true where it is left out.",
            SWITCH,
            own=lambda value: value is False,
        ),
    )
    rate_limit_host: str | None = field(
        default=None, metadata=about("The host its calls go to, where no argument says so.", NAMED, own=True)
    )
    watch: tuple | None = field(  # type: ignore[type-arg]  # the rule says of what; the reader asks for the bare type
        default=None,
        metadata=about("The arguments that name the files an answer is made of.", NAMES, own=True),
    )
    memoise: bool | None = field(
        default=None,
        metadata=about(
            "Answer a repeated call of a pure tool without running it.", SWITCH, own=lambda value: value is True
        ),
    )
    fail_fast_after_n: int | None = field(
        default=None, metadata=about("Refuse a query after so many empty answers in a row.", whole(1))
    )
    invalidates: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Tools whose answers are old after a call; globs are allowed.", NAMES)
    )
    follow_up: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("What usually comes next.", FOLLOW_UPS)
    )
    field_groups: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Fields of an answer that are wanted or dropped together.", GROUPS)
    )
    cost_model: ToolCost = field(default_factory=ToolCost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """Running likely reads early. Only what reads, and only on this machine unless a host is named."""

    enabled: bool = field(default=True, metadata=about("Run likely reads early.", SWITCH))
    hosts: tuple = field(  # type: ignore[type-arg]
        default=(),
        metadata=about(
            "Hosts that may be asked early: they learn what the agent may want. An MCP server whose host is not known "
            "goes by its name.",
            NAMES,
            own=True,
        ),
    )
    parallel: int = field(default=3, metadata=about("How many early calls may run side by side.", whole(1, 16)))
    per_host: int = field(default=4, metadata=about("How many calls a host may be answering at once.", whole(1, 64)))
    deadline_ms: int = field(default=1000, metadata=about("After this long an early call is given up.", whole(1)))
    budget_tokens: int = field(
        default=8_000, metadata=about("How many tokens of answers one turn may fetch early.", whole(0))
    )
    min_probability: float = field(
        default=0.35,
        metadata=about(
            "How likely a call must be to be run early.",
            Rule(float, "a number from 0 to 1", lambda value: bool(0 <= value <= 1)),
        ),
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
class Telemetry:
    """What the proxies tell about their work: figures and hashes, never texts, headers or arguments."""

    dashboard: bool = field(
        default=True, metadata=about("Show the dashboard on the model proxy's port, below /pagefold/.", SWITCH)
    )
    trace: bool = field(
        default=False, metadata=about("Write every decision to a file beside the store, a JSON line each.", SWITCH)
    )
    content: bool = field(
        default=False,
        metadata=about("Spell the names of all tools in the trace; without it, those not shipped are hashed.", SWITCH),
    )
    max_bytes: int = field(
        default=64_000_000,
        metadata=about("How long the trace may get before it becomes the older one; 0 is no bound.", whole(0)),
    )
    otel_endpoint: str = field(
        default="",
        metadata=about("The OpenTelemetry collector that gets spans (OTLP over HTTP).", MAYBE_ADDRESS, own=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTable:
    """What tune learned of a tool from your own logs. It is laid over what is known of the tool, and says nothing of
    its effect."""

    name: str
    without: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Codecs that never write its results.", NAMES)
    )
    follow_up: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Which calls follow, in place of those known so far.", FOLLOW_UPS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What makes a fact needed again, as weights on the log-odds; learned by tune."""

    age: float = field(default=-0.474, metadata=about("Of the log of turns since anybody last mentioned it.", WEIGHT))
    uses: float = field(
        default=0.980, metadata=about("Of the log of the assistant's own messages that used it.", WEIGHT)
    )
    since_use: float = field(default=-0.335, metadata=about("Of the log of turns since the assistant used it.", WEIGHT))
    sources: float = field(default=-0.369, metadata=about("Of the log of the other messages that hold it.", WEIGHT))
    user: float = field(default=0.540, metadata=about("Where the user has said it.", WEIGHT))
    digit: float = field(default=-1.137, metadata=about("Where it has a digit.", WEIGHT))
    capital: float = field(default=-0.328, metadata=about("Where it has an inner capital.", WEIGHT))
    long: float = field(default=-0.284, metadata=about("Where it is long.", WEIGHT))
    bias: float = field(default=0.052, metadata=about("Of every fact.", WEIGHT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """How long sessions still last; learned by tune."""

    left: tuple = field(  # type: ignore[type-arg]
        default=(),
        metadata=about("Turns left, in the median, after 0, 10, 20, 40, 80 and 160 turns; empty is as shipped.", TURNS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """When the economic policy folds; learned by tune."""

    miss_tokens: int = field(default=48_000, metadata=about("What a fact that is missed costs, in tokens.", whole(1)))
    least_tokens: int = field(default=24_000, metadata=about("Below this size a request is not folded.", whole(0)))
    cold_tokens: int = field(
        default=16_000, metadata=about("The same, where the provider's cache has expired anyway.", whole(0))
    )
    rent: float = field(
        default=2.0,
        metadata=about("How many times the price of a fold is read in vain before it is made.", number(0)),
    )
    horizon_turns: int = field(
        default=35, metadata=about("For at most how many turns a fold weighs what is kept.", whole(1))
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
    sink: Sink = field(default_factory=Sink)
    serve: Serve = field(default_factory=Serve)
    mcp: Mcp = field(default_factory=Mcp)
    replay: Replay = field(default_factory=Replay)
    prefetch: Prefetch = field(default_factory=Prefetch)
    telemetry: Telemetry = field(default_factory=Telemetry)
    values: Values = field(default_factory=Values)
    lasting: Lasting = field(default_factory=Lasting)
    folds: Folds = field(default_factory=Folds)
    learned: tuple[LearnedTable, ...] = field(default=(), metadata={"tables": LearnedTable})
    tools: tuple[ToolTable, ...] = field(default=(), metadata={"tables": ToolTable})


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
    own: bool | Callable[[Any], bool]

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
    if isinstance(value, tuple):
        inner = ", ".join(_spelled_entry(one) if is_dataclass(one) else spelled(one) for one in value)
        return f"{{{inner}}}" if value and isinstance(value[0], Group) else f"[{inner}]"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        # Python refuses to write thousands of decimal digits.
        return hex(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spelled_entry(entry: Any) -> str:
    """One entry of a list of tables, or of a table of tables, without what is as it would be anyway."""
    parts = {item.name: getattr(entry, item.name) for item in fields(entry) if item.name != "name"}
    told = {name: one for name, one in parts.items() if one is not None and one != ()}
    if "constants" in told:
        pairs = ", ".join(f"{dotted((name,))} = {spelled(one)}" for name, one in told.pop("constants"))
        inner = [*(f"{name} = {spelled(one)}" for name, one in told.items()), f"constants = {{{pairs}}}"]
    else:
        inner = [f"{name} = {spelled(one)}" for name, one in told.items()]
    table = f"{{{', '.join(inner)}}}"
    return f"{dotted((entry.name,))} = {table}" if isinstance(entry, Group) else table


def _spelled_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
