"""One client's connection, put together: its switch, its work and its servers, from settings and descriptions.

Light to import, since a client may drop a server that is slow to come up: what is heavy comes in as functions, and is
called when there is time.
"""

import asyncio
import importlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pagefold import __version__
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import ChildProcess
from pagefold.mcp_proxy.listing import PRIMER, STRUCTURED_ALONE, ToolListing
from pagefold.mcp_proxy.process import Process
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.result_processor import ResultKeeper, ResultProcessor
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.session import Early, ProxySession, Switch
from pagefold.mcp_proxy.specs import Spec
from pagefold.pages.context_tools import CONTEXT_TOOLS, ContextTool
from pagefold.settings import McpSettings


@dataclass(frozen=True, slots=True)
class ConnectionFactory:
    """`environment` makes that of a server from what its description adds; `context` what answers our tools;
    `remote` an upstream that is reached by its address."""

    specs: Sequence[Spec]
    settings: McpSettings
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]
    context: Callable[[Counter[str], Callable[[], None]], ResultKeeper] | None = None
    remote: Callable[[Spec, ProxySession], Any] | None = None
    early: Callable[[], Early] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    children: dict[str, ChildProcess] = field(default_factory=dict)
    """Servers that have been started already."""
    watch: Callable[[str, Mapping[str, int]], None] | None = None
    """Gets to know every answer of a tool: telemetry."""

    def switch(self) -> Switch:
        if len(self.specs) == 1:
            return Relay(self.specs[0].name, self.options(self.specs[0]))
        relays = {spec.name: Relay(spec.name, self._changes(spec, ())) for spec in self.specs}
        ours = self._ours(any(self._how(spec) != "off" for spec in self.specs))
        names = [tool.name for tool in ours]
        return Servers(relays, Options(names, ToolListing(None, ours), primer=self._primer), __version__)

    def session(self, tell: Callable[[bytes], Awaitable[None]], *, shared: bool = False) -> ProxySession:
        """A connection whose servers are not started yet. Where clients share it, none is referred to what another was
        shown."""
        context = self.context
        work = ResultProcessor(
            context=(lambda forget: context(self.counts, forget)) if context else None,
            tools=self.settings.tools,
            untouched=self._is_untouched,
            budget=self.settings.budget,
            references=self.settings.references and not shared,
            early=self.early,
        )
        session = ProxySession(self.switch(), work, tell, counts=self.counts)
        session.watch = self.watch
        return session

    async def start(self, session: ProxySession) -> None:
        """Starts every server. Raises ConfigError where the only one cannot be; of several, the others go on."""
        failures = await asyncio.gather(*(self._start(spec, session) for spec in self.specs))
        wrong = [failure for failure in failures if failure]
        if len(wrong) == len(self.specs):
            raise ConfigError("; ".join(wrong))
        if len(self.specs) > 1:
            session.wait_for_greetings(self.settings.start_seconds)

    async def _start(self, spec: Spec, session: ProxySession) -> str:
        """Why it could not be started, if it could not."""
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
        return self._changes(spec, self._ours(self._how(spec) != "off"))

    def _changes(self, spec: Spec, ours: Sequence[ContextTool]) -> Options:
        """What is changed for one server; `ours` stand behind its tools."""
        how = self._how(spec)
        words: Any = importlib.import_module("pagefold.mcp_proxy.slim") if how != "off" else None
        wanted = patterns(self.settings.parameters)
        text_only = STRUCTURED_ALONE if spec.own.get("structured", self.settings.structured) == "auto" else frozenset()
        if not ours and not words and not text_only and not wanted:
            return Options()
        # The codecs come with it: they are loaded here only where somebody wants parameters.
        parameters: Any = importlib.import_module("pagefold.encode.output_parameters") if wanted else None
        slim = getattr(words, how) if words else None
        listing = ToolListing(slim, ours, {}, parameters.with_parameters if parameters else None, wanted)

        def taken_out(tool: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any] | None:
            known = listing.names.get(tool)
            return parameters.taken_out(arguments, known) if known else None

        describe = (lambda asked: words.described_in_full(listing.whole, asked)) if words else None
        names, primer = [tool.name for tool in ours], self._primer if ours else ""
        return Options(names, listing, describe, taken_out if parameters else None, primer, text_only)

    def _ours(self, slim: bool) -> list[ContextTool]:
        """The tools of ours, one more where lists are smaller."""
        words: Any = importlib.import_module("pagefold.mcp_proxy.slim") if slim else None
        return [*(CONTEXT_TOOLS if self._primer else ()), *([words.DESCRIBE] if words else [])]

    def _how(self, spec: Spec) -> str:
        return str(spec.own.get("slim_tools", self.settings.slim_tools))

    @property
    def _primer(self) -> str:
        return PRIMER if self.settings.tools and self.context else ""

    def _is_untouched(self, server: str, tool: str) -> bool:
        """Whether the results of a tool pass as they come: what a server's own entry says goes before the settings."""
        own = next((spec.own for spec in self.specs if spec.name == server), {})
        as_is = str(own.get("as_is", self.settings.as_is))
        return own.get("encode") is False or (
            as_is != "" and any(fnmatchcase(tool, pattern) for pattern in patterns(as_is))
        )


def patterns(text: str) -> list[str]:
    """What commas divide."""
    return [pattern.strip() for pattern in text.split(",") if pattern.strip()]
