"""One client's connection, put together: its switch, its work and its servers, from settings and descriptions.

Light to import, since a client may drop a server that is slow to come up: what is heavy comes in as functions, and is
called when there is time.
"""

import asyncio
import importlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold import __version__
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import Child
from pagefold.mcp_proxy.listing import PRIMER, STRUCTURED_ALONE, Listing
from pagefold.mcp_proxy.process import Process
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.session import Early, Session, Switch
from pagefold.mcp_proxy.specs import Spec
from pagefold.mcp_proxy.work import Known, Work
from pagefold.pages.context_tools import CONTEXT_TOOLS
from pagefold.settings import Mcp


@dataclass(frozen=True, slots=True)
class Front:
    """`environment` makes that of a server from what its description adds; `context` what answers our tools;
    `remote` an upstream that is reached by its address."""

    specs: Sequence[Spec]
    settings: Mcp
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]
    context: Callable[[Counter[str], Callable[[], None]], Known] | None = None
    remote: Callable[[Spec, Session], Any] | None = None
    early: Callable[[], Early] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    children: dict[str, Child] = field(default_factory=dict)
    """Servers that have been started already."""
    watch: Callable[[str, Mapping[str, int]], None] | None = None
    """Gets to know every answer of a tool: telemetry."""

    def switch(self) -> Switch:
        if len(self.specs) == 1:
            return Relay(self.specs[0].name, self.options(self.specs[0]))
        relays = {spec.name: Relay(spec.name, Options(text_only_for=self._text_only(spec))) for spec in self.specs}
        return Servers(relays, self.options(None), __version__)

    def session(self, tell: Callable[[bytes], Awaitable[None]]) -> Session:
        """A connection whose servers are not started yet."""
        context = self.context
        work = Work(
            context=(lambda forget: context(self.counts, forget)) if context else None,
            tools=self.settings.tools,
            as_is=patterns(self.settings.as_is),
            budget=self.settings.budget,
            untouched=[spec.name for spec in self.specs if spec.own.get("encode") is False],
            references=self.settings.references,
            early=self.early,
        )
        session = Session(self.switch(), work, tell, counts=self.counts)
        session.watch = self.watch
        return session

    async def start(self, session: Session) -> None:
        """Starts every server. Raises ConfigError where the only one cannot be; of several, the others go on."""
        failures = await asyncio.gather(*(self._start(spec, session) for spec in self.specs))
        wrong = [failure for failure in failures if failure]
        if len(wrong) == len(self.specs):
            raise ConfigError("; ".join(wrong))
        if len(self.specs) > 1:
            session.wait_for_greetings(self.settings.start_seconds)

    async def _start(self, spec: Spec, session: Session) -> str:
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

    def options(self, spec: Spec | None) -> Options:
        """What is offered and changed for one server, or for several together."""
        how = str((spec.own if spec else {}).get("slim_tools", self.settings.slim_tools))
        words: Any = importlib.import_module("pagefold.mcp_proxy.slim") if how != "off" else None
        slim = getattr(words, how) if words else None
        text_only = self._text_only(spec)
        ours = [*(CONTEXT_TOOLS if self.settings.tools and self.context else ()), *([words.DESCRIBE] if words else [])]
        wanted = patterns(self.settings.parameters)
        if not ours and not text_only and not wanted:
            return Options()
        # The codecs come with it: they are loaded here only where somebody wants parameters.
        parameters: Any = importlib.import_module("pagefold.encode.parameters") if wanted else None
        listing = Listing(slim, ours, {}, parameters.with_parameters if parameters else None, wanted)
        names = [tool.name for tool in ours]

        def taken_out(tool: str, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any] | None:
            known = listing.names.get(tool)
            return parameters.taken_out(arguments, known) if known else None

        primer = PRIMER if self.settings.tools and self.context else ""
        describe = (lambda asked: words.described_in_full(listing.whole, asked)) if words else None
        return Options(names, listing, describe, taken_out if parameters else None, primer, text_only)

    def _text_only(self, spec: Spec | None) -> frozenset[str]:
        wanted = (spec.own if spec else {}).get("structured", self.settings.structured)
        return STRUCTURED_ALONE if wanted == "auto" else frozenset()


def patterns(text: str) -> list[str]:
    """What commas divide."""
    return [pattern.strip() for pattern in text.split(",") if pattern.strip()]
