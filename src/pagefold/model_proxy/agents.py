"""Sets the environment and command line of an agent so that it works behind the proxy as it does without it.

Behind an address that is not the vendor's, Claude Code expects a gateway with fewer features: it sends every tool's
schema instead of searching for tools, and takes a window of a million tokens for a smaller one. The proxy passes
everything on, so variables set here bring both back. Nothing that the user has set is overruled.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pagefold.wire.apis import CHATGPT

VENDOR = "api.anthropic.com"
SEARCH = "ENABLE_TOOL_SEARCH"
FIRST_PARTY = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
ANTHROPIC, OPENAI, GEMINI = "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"
OPENCODE = "OPENCODE_CONFIG_CONTENT"
VERTEX, BEDROCK, FOUNDRY = (
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


_LEAVE_OUT_THINKING = {"claude": "Claude Code", "opencode": "OpenCode"}
"""Agents that leave earlier thinking out by themselves where it would be refused."""


def leaving(command: Sequence[str]) -> str:
    """What is said at the end of a session whose thinking the provider would refuse without pagefold."""
    if name := _LEAVE_OUT_THINKING.get(_name(command)):
        return f"the session can go on without pagefold, too: {name} then leaves earlier thinking out by itself"
    return "before this session goes on without pagefold, see docs/thinking.md: its thinking is bound to what was sent"


@dataclass(frozen=True, slots=True)
class Start:
    """How an agent is started: its command line and the variables that are set for it."""

    command: tuple[str, ...]
    variables: Mapping[str, str]


def upstreams(
    command: Sequence[str], environment: Mapping[str, str], codex: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Returns where an agent would go without a proxy, by the environment, as settings of upstreams. Codex goes by its
    own settings file, whose content is `codex`.

    A key for that address must not be sent to the vendor."""
    if _name(command) == "codex":
        address = _codex_provider(codex or {})[1]
        # Codex goes there with a login as well.
        keys = ("serve.openai_url", f"upstreams.{CHATGPT.name}.url") if _ends_in_version(address) else ()
        return dict.fromkeys(keys, address)
    clouds = {f"upstreams.{name}.url": url for name, (_, _, url) in _clouds(environment).items()}
    addresses = {"serve.anthropic_url": ANTHROPIC, "serve.openai_url": OPENAI, "upstreams.gemini.url": GEMINI}
    return clouds | {key: address for key, name in addresses.items() if (address := _meant(name, environment))}


def start(
    command: Sequence[str],
    url: str,
    upstream: str,
    environment: Mapping[str, str],
    codex: Mapping[str, Any] | None = None,
    settled: Mapping[str, str] | None = None,
) -> Start:
    """Returns how to start an agent. `url` is the proxy's, `upstream` where it sends Anthropic requests, `codex` what
    Codex's own settings file says, and `settled` what files of other agents set and is to be overruled: Claude
    Code's variables, or OpenCode's addresses by provider. Files win over the environment, and over files win Claude
    Code's option --settings and the settings in OpenCode's environment."""
    variables: dict[str, str] = {}
    for name in (ANTHROPIC, OPENAI, GEMINI):
        # An address whose paths are not those of the API is left as it is.
        if not environment.get(name) or _meant(name, environment):
            variables[name] = f"{url}/v1" if _versioned(command, name) else url
    variables |= {name: f"{url}{path}" for name, path, _ in _clouds(environment).values()}
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
        key, address = _codex_provider(codex or {})
        replaced = ("-c", f'{key}="{url}/v1"') if key and (not address or _ends_in_version(address)) else ()
        return Start((program, *replaced, *arguments), variables)
    settled = settled or {}
    if settled and is_opencode(command) and OPENCODE not in environment:
        providers = {name: {"options": {"baseURL": f"{url}/v1"}} for name in settled}
        variables[OPENCODE] = json.dumps({"provider": providers})
    changed = {name: value for name, value in variables.items() if settled.get(name, value) != value}
    if changed and is_claude(command) and not has_settings(command):
        return Start((program, "--settings", json.dumps({"env": changed}), *arguments), variables)
    return Start(tuple(command), variables)


def is_claude(command: Sequence[str]) -> bool:
    return _name(command) == "claude"


def is_opencode(command: Sequence[str]) -> bool:
    return _name(command) == "opencode"


def settled_elsewhere(command: Sequence[str], file: str, address: str) -> str:
    """Returns what the user should know where a settings file of Claude Code names an address that stays."""
    if has_settings(command):
        return (
            f"{file} sends Claude Code to {address}, past pagefold, and is not overruled because --settings is given "
            f"already; name {ANTHROPIC} in neither, or start it without --settings"
        )
    return (
        f"{file} sends Claude Code to {address}, past pagefold; a project's choice is not followed: take {ANTHROPIC} "
        "out of it, and name the address by --anthropic-url if you trust it"
    )


def has_settings(command: Sequence[str]) -> bool:
    return any(one == "--settings" or one.startswith("--settings=") for one in command[1:])


def remark(command: Sequence[str], environment: Mapping[str, str], codex: Mapping[str, Any] | None = None) -> str:
    """Returns what the user should know of where the agent goes, or "" where that is as expected."""
    if _name(command) == "codex":
        key, address = _codex_provider(codex or {})
        if not key or (address and not _ends_in_version(address)):
            where = address or "a provider without an address"
            return (
                f"Codex's own settings name {where}, which pagefold cannot stand in for: expected one that ends in /v1"
            )
        if environment.get(OPENAI):
            return f"Codex does not read {OPENAI}; set openai_base_url in its config.toml to go there"
    elif environment.get(OPENAI) and not _meant(OPENAI, environment):
        return f"{OPENAI} is left as it is, and what goes there passes by pagefold: expected one that ends in /v1"
    return ""


def _clouds(environment: Mapping[str, str]) -> dict[str, tuple[str, str, str]]:
    """The clouds by which Claude Code is told to ask, by the name of their upstream: the variable that names their
    address, the path that it expects there, and where they are."""
    found: dict[str, tuple[str, str, str]] = {}
    if _is_on(environment, "CLAUDE_CODE_USE_VERTEX"):
        region = environment.get("CLOUD_ML_REGION") or "global"
        host = "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
        found["vertex"] = (VERTEX, "/v1", (environment.get(VERTEX) or f"https://{host}").rstrip("/"))
    if _is_on(environment, "CLAUDE_CODE_USE_BEDROCK"):
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        found["bedrock"] = (BEDROCK, "", environment.get(BEDROCK) or f"https://bedrock-runtime.{region}.amazonaws.com")
    if _is_on(environment, "CLAUDE_CODE_USE_FOUNDRY"):
        resource = environment.get("ANTHROPIC_FOUNDRY_RESOURCE", "")
        address = environment.get(FOUNDRY) or (f"https://{resource}.services.ai.azure.com" if resource else "")
        if address:
            found["foundry"] = (FOUNDRY, "/anthropic", address.rstrip("/").removesuffix("/anthropic"))
    return found


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _codex_provider(codex: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the setting of Codex that holds the address of its provider, and the address that its file names there.

    Both are "" where the provider has no address that could be another."""
    name = codex.get("model_provider", "openai")
    if name == "openai":
        return "openai_base_url", str(codex.get("openai_base_url", ""))
    providers = codex.get("model_providers")
    provider = providers.get(name) if isinstance(providers, Mapping) else None
    address = provider.get("base_url") if isinstance(provider, Mapping) else None
    if not isinstance(address, str) or not _BARE_KEY.fullmatch(str(name)):
        return "", address if isinstance(address, str) else ""
    return f"model_providers.{name}.base_url", address


def _name(command: Sequence[str]) -> str:
    return re.split(r"[\\/]", command[0])[-1].partition(".")[0]


def _versioned(command: Sequence[str], variable: str) -> bool:
    """Returns whether the agent expects the API's version in this address. OpenCode does in Anthropic's too."""
    return variable == OPENAI or (variable == ANTHROPIC and _name(command) == "opencode")


def _meant(variable: str, environment: Mapping[str, str]) -> str:
    """Returns the address in a variable without the API's version, or "" where the proxy cannot take its place.

    Anthropic's is mostly given without its version, and OpenAI's with it; an address of OpenAI without it has other
    paths."""
    address = environment.get(variable, "")
    if variable == OPENAI and not _ends_in_version(address):
        return ""
    return address.rstrip("/").removesuffix("/v1")


def _ends_in_version(address: str) -> bool:
    return address.rstrip("/").endswith("/v1")


@dataclass(frozen=True, slots=True)
class SetupFinding:
    """One thing that was checked. `remedy` is empty where nothing is to be done."""

    about: str
    found: str
    remedy: str = ""


LEAVING_AT_WILL = SetupFinding(
    "leaving",
    "sessions behind the MCP proxy or the hook go on without pagefold as they are: prefer these to leave at any time. "
    "Behind pagefold run or serve, thinking is bound to what was sent; clients leave it out (docs/thinking.md)",
)


def looked_at(environment: Mapping[str, str]) -> list[SetupFinding]:
    """Returns what an agent that is started from this environment would do."""
    address = environment.get(ANTHROPIC, "")
    if not address:
        away = (
            f"{ANTHROPIC} is not set here: without `pagefold run claude`, which sets it, it goes straight to {VENDOR}"
        )
        return [SetupFinding("Claude Code", away)]
    found = [SetupFinding("Claude Code", f"{ANTHROPIC} is set")]
    if urlsplit(address).hostname == VENDOR:
        return found
    if SEARCH not in environment and FIRST_PARTY not in environment:
        cost = "tool search is off, and every tool's schema goes along with every request: tens of thousands of tokens"
        found.append(SetupFinding("tool search", cost, f"set {SEARCH}=true, or start it by pagefold run claude"))
    if FIRST_PARTY not in environment:
        cost = "models with a window of 1M tokens are taken for 200k: the agent compacts five times as often"
        found.append(SetupFinding("1M window", cost, f"set {FIRST_PARTY}=1, or start it by pagefold run claude"))
    return found
