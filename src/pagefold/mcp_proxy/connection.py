"""Puts a client's connection together from settings and server descriptions: its relay, its processor, its servers.

Light to import, since a client may drop a server that is slow to start: what is heavy comes in as functions that are
called later.
"""

import asyncio
import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pagefold import __version__
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import ChildProcess
from pagefold.mcp_proxy.listing import PRIMER, STRUCTURED_ALONE, ToolListing
from pagefold.mcp_proxy.process import Process
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.result_processor import ResultProcessor
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.session import ProxySession, Switch, Tell, Upstream
from pagefold.mcp_proxy.specs import Spec
from pagefold.pages.context_tools import CONTEXT_TOOLS, ContextTool
from pagefold.settings.sections import McpSettings

if TYPE_CHECKING:  # both are imported when they are needed
    from pagefold.mcp_proxy.prefetch_driver import PrefetchDriver
    from pagefold.mcp_proxy.result_store import ResultStore


@dataclass(frozen=True, slots=True)
class ConnectionFactory:
    """`environment` adds a description's variables to those of a server's process; `open_store` makes what keeps
    results and answers pagefold's own tools; `remote` makes an upstream that is reached by its address."""

    specs: Sequence[Spec]
    settings: McpSettings
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]
    open_store: "Callable[[Counter[str], Callable[[], None]], ResultStore] | None" = None
    remote: Callable[[Spec, ProxySession], Upstream] | None = None
    open_prefetch: "Callable[[], PrefetchDriver] | None" = None
    counts: Counter[str] = field(default_factory=Counter)
    children: dict[str, ChildProcess] = field(default_factory=dict)
    """Servers that have been started already."""
    watch: Callable[[str, Mapping[str, int]], None] | None = None
    """Telemetry: gets the name of a tool and the counts of each of its results."""

    def switch(self) -> Switch:
        if len(self.specs) == 1:
            return Relay(self.specs[0].name, self.options(self.specs[0]))
        relays = {spec.name: Relay(spec.name, self._options(spec, ())) for spec in self.specs}
        own_tools = self._own_tools(any(self._slimming(spec) != "off" for spec in self.specs))
        names = [tool.name for tool in own_tools]
        return Servers(relays, Options(names, ToolListing(None, own_tools), primer=self._primer), __version__)

    def processor(self, *, shared: bool = False) -> ResultProcessor:
        """Where clients share it, no result refers to an earlier one: that may have been another client's."""
        open_store = self.open_store
        return ResultProcessor(
            open_store=(lambda forget: open_store(self.counts, forget)) if open_store else None,
            tools=self.settings.tools,
            untouched=self._is_untouched,
            budget=self.settings.budget,
            references=self.settings.references and not shared,
            open_prefetch=self.open_prefetch,
        )

    def session(self, tell: Tell, *, shared: bool = False) -> ProxySession:
        """A connection whose servers are not started yet."""
        return self.session_of(self.switch(), self.processor(shared=shared), tell)

    def session_of(self, switch: Switch, processor: ResultProcessor, tell: Tell) -> ProxySession:
        return ProxySession(switch, processor, tell, counts=self.counts, watch=self.watch)

    async def start(self, session: ProxySession) -> None:
        """Starts every server. Raises ConfigError where none can be started; otherwise the others go on."""
        failures = [why for why in await asyncio.gather(*(self._start(spec, session) for spec in self.specs)) if why]
        if failures and len(failures) == len(self.specs):
            raise ConfigError("; ".join(failures))
        if len(self.specs) != 1:
            session.wait_for_greetings(self.settings.start_seconds)

    async def _start(self, spec: Spec, session: ProxySession) -> str:
        """Why the server could not be started, or ""."""
        if spec.url:
            assert self.remote is not None
            session.upstreams[spec.name] = self.remote(spec, session)
            return ""
        process = Process(
            spec.name,
            spec.command,
            session,
            environment=self.environment(spec.environment) if spec.environment else None,
            folder=spec.folder,
            longest_bytes=self.settings.max_message_bytes,
            label=f"{spec.name}: " if len(self.specs) > 1 else "",
            first=self.children.pop(spec.name, None),
        )
        session.upstreams[spec.name] = process
        try:
            await process.start()
        except ConfigError as error:
            del session.upstreams[spec.name]
            if len(self.specs) > 1:
                await session.lost(spec.name, f"is not there: {error}")
            return str(error)
        return ""

    def options(self, spec: Spec) -> Options:
        """What is offered and changed for the only server."""
        return self._options(spec, self._own_tools(self._slimming(spec) != "off"))

    def _options(self, spec: Spec, own_tools: Sequence[ContextTool]) -> Options:
        """What is changed for one server; `own_tools` are listed after its tools."""
        slimming = self._slimming(spec)
        slim: Any = importlib.import_module("pagefold.mcp_proxy.slim") if slimming != "off" else None
        wanted = patterns(self.settings.parameters)
        text_only = STRUCTURED_ALONE if spec.own.get("structured", self.settings.structured) == "auto" else frozenset()
        if not own_tools and not slim and not text_only and not wanted:
            return Options()
        # This loads the codecs, so it is imported only where parameters are wanted.
        parameters: Any = importlib.import_module("pagefold.encode.output_parameters") if wanted else None
        with_parameters = parameters.with_parameters if parameters else None
        listing = ToolListing(getattr(slim, slimming) if slim else None, own_tools, {}, with_parameters, wanted)

        def split_arguments(tool: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any] | None:
            names = listing.names.get(tool)
            return parameters.split_arguments(arguments, names) if names else None

        describe = (lambda asked: slim.described_in_full(listing.whole, asked)) if slim else None
        names, primer = [tool.name for tool in own_tools], self._primer if own_tools else ""
        return Options(names, listing, describe, split_arguments if parameters else None, primer, text_only)

    def _own_tools(self, slim: bool) -> list[ContextTool]:
        """The tools of pagefold's own, with one more where lists are shortened."""
        module: Any = importlib.import_module("pagefold.mcp_proxy.slim") if slim else None
        return [*(CONTEXT_TOOLS if self._primer else ()), *([module.DESCRIBE] if module else [])]

    def _slimming(self, spec: Spec) -> str:
        return str(spec.own.get("slim_tools", self.settings.slim_tools))

    @property
    def _primer(self) -> str:
        return PRIMER if self.settings.tools and self.open_store else ""

    def _is_untouched(self, server: str, tool: str) -> bool:
        """Whether the results of a tool pass as they come. A server's own entry goes before the settings."""
        own = next((spec.own for spec in self.specs if spec.name == server), {})
        as_is = patterns(str(own.get("as_is", self.settings.as_is)))
        return own.get("encode") is False or any(fnmatchcase(tool, pattern) for pattern in as_is)


def patterns(text: str) -> list[str]:
    """The parts of a text that commas divide."""
    return [pattern.strip() for pattern in text.split(",") if pattern.strip()]
