"""The Claude Agent SDK: the model proxy for as long as a block lasts, and options that send the agent through it.

    with derived_options(ClaudeAgentOptions(model="claude-opus-5-5")) as options:
        async for message in query(prompt=task, options=options): ...

The SDK starts Claude Code, which asks the model itself: so what is sent is derived by a proxy on loopback, in a thread
of this process. The model's recalls are answered inside its turns.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pagefold import config
from pagefold.adapters.given_store import given_store
from pagefold.adapters.library import Library
from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import Policy
from pagefold.integrations.histories import missing
from pagefold.model_proxy import agents
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.store import Store

try:
    from claude_agent_sdk import ClaudeAgentOptions
except ImportError as error:
    raise missing("the Claude Agent SDK", "claude-agent-sdk") from error

_VENDOR = "https://api.anthropic.com"
_RECALL_ROUNDS = 4


@contextmanager
def derived_options(
    options: ClaudeAgentOptions | None = None,
    *,
    window: int = 0,
    policy: str | Policy = "economic",
    store: Store | str | Path | None = None,
) -> Iterator[ClaudeAgentOptions]:
    """Options like these, by which an agent goes through pagefold until the block ends. They may be used many times.

    Requests go where ANTHROPIC_BASE_URL says, in `options.env` or the environment, else to the vendor. `window`,
    `policy` and `store` are those of `pagefold.wrap`. Raises ConfigError where a policy has no such name.
    """
    options = options or ClaudeAgentOptions()
    opened = given_store(store) or MemoryStore()
    library = Library(opened)
    keeper = PageKeeper(library)
    conversations = Conversations(
        policy_named(policy) if isinstance(policy, str) else policy,
        store=opened,
        window=window,
        known=ModelPrices(),
        recall_rounds=_RECALL_ROUNDS,
    )
    given = config.process_environment(options.env)
    meant = agents.upstreams(("claude",), given).get("serve.anthropic_url", _VENDOR)
    proxy = Proxy(
        Upstreams({"anthropic": meant}),
        conversations,
        put=keeper,
        write_back=keeper.write_back,
        answers=RecallAnswers(library, alone=True),
        http_proxies=config.proxies_for((meant,)),
    )
    try:
        with running(proxy) as url:
            variables = agents.start(("claude",), url, meant, given).variables
            yield replace(options, env={**options.env, **variables})
    finally:
        if isinstance(store, str | Path):
            library.close()
