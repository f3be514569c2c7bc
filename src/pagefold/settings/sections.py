"""Declares the sections of a settings file, and all of them together as one frozen value."""

from dataclasses import dataclass, field

from pagefold.settings.learned import FoldsSettings, LastingSettings, LearnedTable, ReferencesSettings, ValuesSettings
from pagefold.settings.rules import (
    ADDRESS,
    FILE,
    FOLDER_OF_KEYS,
    MAYBE_ADDRESS,
    NAMED,
    PATHS,
    PATTERNS,
    SWITCH,
    TEXT,
    number,
    one_of,
    setting,
    whole,
)
from pagefold.settings.tools import FileToolTable, PrefetchSettings, ToolTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """USD per million tokens, of a model whose other numbers stay as listed, or in a table of your own."""

    name: str
    read: float | None = setting(None, "Prompt tokens read from the provider's cache.", number(0))
    write: float | None = setting(None, "Prompt tokens written to the provider's cache.", number(0))
    fresh: float | None = setting(None, "Prompt tokens neither read from nor written to the cache.", number(0))
    output: float | None = setting(None, "Tokens the model writes.", number(0))
    ttl_seconds: float | None = setting(None, "How long the cache stays warm after its last use.", number(0))
    write_long: float | None = setting(None, "Prompt tokens written to the cache of the longer life.", number(0))
    ttl_long_seconds: float | None = setting(None, "How long that one stays warm after its last use.", number(0))
    tier_tokens: int | None = setting(None, "Longer prompts cost `tier_times` as much.", whole(1))
    tier_times: float | None = setting(None, "How many times as much, every token.", number(0))
    window: int | None = setting(None, "How many tokens a request to this model may hold.", whole(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamTable:
    """An upstream of the model proxy. `anthropic`, `openai`, `chatgpt` (requests with a ChatGPT login), `gemini` and
    `openrouter` are there; `vertex`, `bedrock`, `azure`, `foundry` need an address; others are for APIs, or paths."""

    name: str
    url: str | None = setting(None, "Where its requests are sent on to.", ADDRESS)
    paths: tuple[str, ...] | None = setting(None, "Requests at these paths, or below them, go to it.", PATHS)
    key: str | None = setting(
        None,
        "The provider's key for clients that show a team's token in place of one (see `serve.teams`); best set as "
        "PAGEFOLD_UPSTREAMS_ANTHROPIC_KEY.",
        TEXT,
        secret=True,
    )
    sign: bool | None = setting(
        None,
        "For bedrock: whether requests that were signed with the access key in AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) are signed with it again, after they were derived.",
        SWITCH,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where pages are kept, and for how long."""

    path: str = setting(
        "",
        "The database of the store, relative to the file that names it; "
        "when empty, store.sqlite3 in the user data directory.",
        FILE,
        flag="--store",
    )
    url: str = setting(
        "",
        "A Postgres database that keeps the store instead, for many instances: postgresql://USER@HOST:PORT/DATABASE; "
        "a password is best in PGPASSWORD or ~/.pgpass.",
        TEXT,
        secret=True,
    )
    projects: str = setting(
        "apart",
        "Whether each project (the folder with `.git`, or else the current one) is a scope of its own: recall and "
        "search reach no other, unless they are joined.",
        one_of("apart", "joined"),
    )
    max_age_days: int = setting(30, "Pages older than this are removed; 0 keeps them for ever.", whole(0))
    deadline_seconds: float = setting(
        0.25, "How long a request waits for the store; past that it goes on without it.", number(0.01)
    )
    max_bytes: int = setting(2_000_000_000, "The oldest pages are removed above this size; 0 is no bound.", whole(0))
    objects_over: int = setting(
        0,
        "Contents of more than so many bytes are kept in the bucket of `sink`, and the database names them; 0 keeps "
        "all in the database. For a store in Postgres, once every instance knows of it.",
        whole(0),
    )
    redact: bool = setting(
        True,
        "Take keys, tokens, PEM blocks and card numbers out of what is stored; a recall shows a mark in their place.",
        SWITCH,
    )
    redact_patterns: tuple[str, ...] = setting(
        (), "Regular expressions of your own for what is taken out too; a group `secret` names the part.", PATTERNS
    )
    key: str = setting(
        "",
        "The key that encrypts the store's files, 64 hex digits; best set as PAGEFOLD_STORE_KEY.",
        TEXT,
        secret=True,
    )
    key_command: str = setting("", "A command that prints that key.", TEXT)
    keyring: bool = setting(
        False, "Take that key from this computer's keyring; it is made there the first time.", SWITCH
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """The history sink: sessions in S3-compatible object storage. Off unless endpoint and bucket are set."""

    endpoint: str = setting("", "The address of the object storage.", MAYBE_ADDRESS)
    bucket: str = setting("", "The bucket, which has to exist.", TEXT)
    prefix: str = setting("history/", "The beginning of every key, before the session.", FOLDER_OF_KEYS)
    region: str = setting("us-east-1", "The region requests are signed for.", NAMED)
    access_key: str = setting("", "The key id; empty for requests without a signature.", TEXT, secret=True)
    secret_key: str = setting("", "The secret key.", TEXT, secret=True)
    timeout_seconds: float = setting(10.0, "How long one request may take.", number(0.1))
    flush_seconds: float = setting(
        5.0, "How long sending may go on when the program ends; the rest is sent at the next start.", number(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The proxy in front of the model APIs."""

    host: str = setting(
        "127.0.0.1", "The address to listen on; any but a loopback address needs `serve.token` or `serve.teams`.", NAMED
    )
    port: int = setting(8377, "The port to listen on; 0 takes any that is free.", whole(0, 65535))
    anthropic_url: str = setting("https://api.anthropic.com", "Where Anthropic requests are sent on to.", ADDRESS)
    openai_url: str = setting("https://api.openai.com", "Where OpenAI requests are sent on to.", ADDRESS)
    token: str = setting(
        "",
        "The token that a client must present, also to `pagefold mcp --http`; empty asks for none.",
        TEXT,
        secret=True,
    )
    teams: bool = setting(
        False,
        "Ask every client for a team's token (`pagefold token create`): pages, budgets and limits are then the team's, "
        "and `serve.token` is the operator's.",
        SWITCH,
    )
    tls_certificate: str = setting("", "The certificate chain (PEM) to serve https with; empty serves http.", FILE)
    tls_key: str = setting("", "The certificate's private key (PEM), where it is not in the same file.", FILE)
    observe: bool = setting(False, "Send every request on unchanged, and only count.", SWITCH)
    policy: str = setting("lossless", "The policy that derives live requests: identity, lossless or economic.", NAMED)
    trial: float = setting(
        0.0,
        "The share of new sessions that go on untouched, to be compared with the others by `pagefold trial`; 0 is "
        "none.",
        number(0, 0.9),
    )
    keep_alive: bool = setting(
        False,
        "Keep the provider's prompt cache alive through silences, by requests of pagefold's own without an answer, "
        "where that is expected to be cheaper than a cold cache. The client's key is held in memory meanwhile.",
        SWITCH,
    )
    window: int = setting(0, "How many tokens a live request may hold; 0 takes the model's own window.", whole(0))
    memory: int = setting(
        512,
        "Megabytes that the process may take; about 100 are the program itself. Beyond, the histories used least "
        "recently are forgotten, and derived again when they come back.",
        whole(16),
    )
    workers: int = setting(
        1,
        "How many processes serve on the one port; they share what they decide through the store, and `serve.memory`.",
        whole(1, 64),
    )
    instructions: str = setting(
        "",
        "Instruction files, divided by commas: where the policy folds, each of their sections is a constraint that "
        "stays in every request.",
        TEXT,
    )
    recall: str = setting(
        "mcp", "Who answers the context tools: the MCP proxy, or this proxy inside the turn.", one_of("mcp", "inline")
    )
    grace_seconds: float = setting(
        300.0, "How long answers that are under way may go on after SIGTERM or Ctrl-C.", number(0)
    )
    recall_rounds: int = setting(4, "How often in one turn the proxy answers context tools itself.", whole(1, 20))
    other_version: str = setting(
        "",
        "During an upgrade, the address of the instances of the other version: conversations that they began are "
        "handed on to them for as long as they answer. Empty derives those anew.",
        MAYBE_ADDRESS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """The proxy in front of MCP servers."""

    tools: bool = setting(
        True, "Offer tools of pagefold's own (`context_recall` and others) beside the servers'.", SWITCH
    )
    context_servers: str = setting(
        "pagefold",
        "The names by which clients know the servers that offer pagefold's tools, divided by commas. The model proxy "
        "follows `context_pin` and the others of these servers alone; `pagefold init` says which server offers them.",
        TEXT,
    )
    slim_tools: str = setting(
        "off",
        "How tools are described: as they are, in smaller schemas that mean the same, or by a signature, with the "
        "whole schema on demand.",
        one_of("off", "same", "lazy"),
    )
    structured: str = setting(
        "auto",
        "Whether `structuredContent` stays beside a text that says the same: always, or only for clients that do "
        "not show it to their model in place of the text.",
        one_of("auto", "keep"),
    )
    references: bool = setting(
        False,
        "Without the model proxy: refer to earlier results of the connection. Only for a client with one agent "
        "that reports compaction by `notifications/pagefold/compacted` or `context_reset`. With the model proxy on "
        "the same store, it refers to results that are still in the request.",
        SWITCH,
    )
    budget: int = setting(
        0,
        "Tokens above which a result is cut to its most useful part; `context_recall` returns the rest. 0 cuts "
        "nothing.",
        whole(0),
    )
    parameters: str = setting(
        "",
        "Tools that get the parameters `format`, `budget` and `chunk`: names or patterns with `*`, divided by commas.",
        TEXT,
    )
    as_is: str = setting(
        "", "Tools whose results are not changed: names or patterns with `*`, divided by commas.", TEXT
    )
    max_message_bytes: int = setting(
        67_108_864, "The longest message of a server that is read; a call with a longer answer fails.", whole(65_536)
    )
    start_seconds: float = setting(
        5.0,
        "How long to wait for several servers before the client is answered without those that are late.",
        number(0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Replaying recorded sessions."""

    jobs: int = setting(0, "Sessions replayed side by side; 0 uses every core.", whole(0))
    strict: bool = setting(False, "Exit with code 2 if anything in a recording was skipped or odd.", SWITCH)
    max_line_bytes: int = setting(67_108_864, "The longest line of a recording that is read.", whole(1024))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What the proxies report about their work: figures and hashes, never texts, headers or arguments."""

    dashboard: bool = setting(True, "Show the dashboard on the model proxy's port, below /pagefold/.", SWITCH)
    log: str = setting(
        "text", "How problems are told on stderr: by a sentence or a JSON object.", one_of("text", "json")
    )
    trace: bool = setting(False, "Write every decision to a file beside the store, a JSON line each.", SWITCH)
    content: bool = setting(
        False,
        "Write the names of all tools in the trace; otherwise only shipped tools are named and others are hashed.",
        SWITCH,
    )
    max_bytes: int = setting(
        64_000_000,
        "The size at which a new trace file is begun and the old one kept beside it; 0 is no bound.",
        whole(0),
    )
    otel_endpoint: str = setting("", "The OpenTelemetry collector that gets spans (OTLP over HTTP).", MAYBE_ADDRESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that belong to no section."""

    policy: str = setting(
        "identity", "The policy that recordings are replayed with. Live requests use `serve.policy`.", NAMED
    )
    window: int = setting(
        200_000, "How many tokens a replayed request may hold. Live requests use `serve.window`.", whole(1)
    )
    tokens: str = setting(
        "o200k", "The vocabulary tokens are counted with.", one_of("o200k", "cl100k", "claude-3", "claude-5")
    )
    prices: str = setting(
        "",
        "The model, or the table of your own, whose prices count for every request; when empty, each request's own "
        "model.",
        TEXT,
    )
    # Tuples sorted by name, and not dicts: so settings are hashable, and equal whatever order a file had.
    prices_usd: tuple[PriceTable, ...] = field(default=(), metadata={"tables": PriceTable})
    upstreams: tuple[UpstreamTable, ...] = field(default=(), metadata={"tables": UpstreamTable})
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
    file_tools: tuple[FileToolTable, ...] = field(default=(), metadata={"tables": FileToolTable})
