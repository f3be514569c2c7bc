"""The sections of a settings file, and all of them together as one frozen value."""

from dataclasses import dataclass, field

from pagefold.settings.learned import FoldsSettings, LastingSettings, LearnedTable, ReferencesSettings, ValuesSettings
from pagefold.settings.rules import (
    ADDRESS,
    FILE,
    FOLDER_OF_KEYS,
    MAYBE_ADDRESS,
    NAMED,
    SWITCH,
    TEXT,
    about,
    number,
    one_of,
    whole,
)
from pagefold.settings.tools import PrefetchSettings, ToolTable


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
class StoreSettings:
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
class SinkSettings:
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
class ServeSettings:
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
    tls_certificate: str = field(
        default="",
        metadata=about("The certificate chain (PEM) to serve https with; empty serves http.", FILE, own=True),
    )
    tls_key: str = field(
        default="",
        metadata=about("The certificate's private key (PEM), where it is not in the same file.", FILE, own=True),
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
    instructions: str = field(
        default="",
        metadata=about(
            "Instruction files, divided by commas: where the policy folds, every section of them is a constraint that "
            "stands in every request.",
            TEXT,
            own=True,
        ),
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
class McpSettings:
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
            "Without the model proxy: refer to earlier results of the connection. Only for a client with one agent "
            "that reports compaction by `notifications/pagefold/compacted` or `context_reset`. With the model proxy on "
            "the same store, it refers to what stands.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Replaying recorded sessions."""

    jobs: int = field(default=0, metadata=about("Sessions replayed side by side; 0 uses every core.", whole(0)))
    strict: bool = field(
        default=False, metadata=about("Exit with code 2 if anything in a recording was skipped or odd.", SWITCH)
    )
    max_line_bytes: int = field(
        default=67_108_864, metadata=about("The longest line of a recording that is read.", whole(1024))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
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
class Settings:
    """What holds everywhere."""

    policy: str = field(
        default="identity",
        metadata=about("The policy that recordings are replayed by. Live requests go by `serve.policy`.", NAMED),
    )
    window: int = field(
        default=200_000,
        metadata=about("How many tokens a replayed request may hold. Live ones go by `serve.window`.", whole(1)),
    )
    tokens: str = field(
        default="o200k",
        metadata=about("The vocabulary tokens are counted with.", one_of("o200k", "cl100k", "claude-3", "claude-5")),
    )
    prices: str = field(default="anthropic", metadata=about("The price table costs are reckoned with.", NAMED))
    # Sorted by name and not a dict: equal, hashable and fit for another process whatever order a file had.
    prices_usd: tuple[PriceTable, ...] = field(default=(), metadata={"tables": PriceTable})
    store: StoreSettings = field(default_factory=StoreSettings)
    sink: SinkSettings = field(default_factory=SinkSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    prefetch: PrefetchSettings = field(default_factory=PrefetchSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    values: ValuesSettings = field(default_factory=ValuesSettings)
    lasting: LastingSettings = field(default_factory=LastingSettings)
    folds: FoldsSettings = field(default_factory=FoldsSettings)
    references: ReferencesSettings = field(default_factory=ReferencesSettings)
    learned: tuple[LearnedTable, ...] = field(default=(), metadata={"tables": LearnedTable})
    tools: tuple[ToolTable, ...] = field(default=(), metadata={"tables": ToolTable})
