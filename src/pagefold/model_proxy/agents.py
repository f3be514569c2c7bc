"""Sets the environment and command line of an agent so that it works behind the proxy as it does without it.

Behind an address that is not the vendor's, Claude Code expects a gateway with fewer features: it sends every tool's
schema instead of searching for tools, and takes a window of a million tokens for a smaller one. The proxy passes
everything on, so variables set here bring both back. Nothing that the user has set is overruled.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

VENDOR = "api.anthropic.com"
SEARCH = "ENABLE_TOOL_SEARCH"
FIRST_PARTY = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
ANTHROPIC, OPENAI = "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class Start:
    """How an agent is started: its command line and the variables that are set for it."""

    command: tuple[str, ...]
    variables: Mapping[str, str]


def upstreams(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns where an agent would go without a proxy, by the environment, as settings of upstreams.

    A key for that address must not be sent to the vendor."""
    found: dict[str, str] = {}
    if address := _meant(command, ANTHROPIC, environment):
        found["serve.anthropic_url"] = address
    if _name(command) != "codex" and (address := _meant(command, OPENAI, environment)):
        found["serve.openai_url"] = address
    return found


def start(command: Sequence[str], url: str, upstream: str, environment: Mapping[str, str]) -> Start:
    """Returns how to start an agent. `url` is the proxy's, `upstream` where it sends Anthropic requests."""
    variables: dict[str, str] = {}
    for name in (ANTHROPIC, OPENAI):
        # An address whose paths are not those of the API is left as it is.
        if not environment.get(name) or _meant(command, name, environment):
            variables[name] = f"{url}/v1" if _versioned(command, name) else url
    if any(name.lower() in _PROXIES and environment[name] for name in environment):
        # What goes to this computer must not go to another one first.
        spared = environment.get("no_proxy") or environment.get("NO_PROXY")
        spared = ",".join(filter(None, (spared, urlsplit(url).hostname)))
        variables |= {"NO_PROXY": spared, "no_proxy": spared}
    helpful = {SEARCH: "true"}
    if urlsplit(upstream).hostname == VENDOR:
        helpful[FIRST_PARTY] = "1"  # what it is told is true: behind the proxy stands the vendor
    variables |= {name: value for name, value in helpful.items() if name not in environment}
    program, *arguments = command
    if _name(command) == "codex":  # which reads its own file only
        return Start((program, "-c", f'openai_base_url="{url}/v1"', *arguments), variables)
    return Start(tuple(command), variables)


def _name(command: Sequence[str]) -> str:
    return re.split(r"[\\/]", command[0])[-1].partition(".")[0]


def _versioned(command: Sequence[str], variable: str) -> bool:
    """Returns whether the agent expects the API's version in this address. OpenCode does in both."""
    return variable == OPENAI or _name(command) == "opencode"


def _meant(command: Sequence[str], variable: str, environment: Mapping[str, str]) -> str:
    """Returns the address in a variable without the API's version, or "" where the proxy cannot take its place."""
    address = environment.get(variable, "")
    if not _versioned(command, variable):
        return address
    address = address.rstrip("/")
    return address.removesuffix("/v1") if address.endswith("/v1") else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked. `remedy` is empty where nothing is to be done."""

    about: str
    found: str
    remedy: str = ""


def looked_at(environment: Mapping[str, str]) -> list[Finding]:
    """Returns what an agent that is started from this environment would do."""
    address = environment.get(ANTHROPIC, "")
    if not address:
        return [Finding("Claude Code", f"{ANTHROPIC} is not set: it goes straight to {VENDOR}", "pagefold run claude")]
    found = [Finding("Claude Code", f"{ANTHROPIC} is set")]
    if urlsplit(address).hostname == VENDOR:
        return found
    if SEARCH not in environment and FIRST_PARTY not in environment:
        cost = "tool search is off, and every tool's schema goes along with every request: tens of thousands of tokens"
        found.append(Finding("tool search", cost, f"set {SEARCH}=true, or start it by pagefold run claude"))
    if FIRST_PARTY not in environment:
        cost = "models with a window of 1M tokens are taken for 200k: the agent compacts five times as often"
        found.append(Finding("1M window", cost, f"set {FIRST_PARTY}=1, or start it by pagefold run claude"))
    return found
