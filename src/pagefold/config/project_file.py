"""What a project's file may set.

A `pagefold.toml` comes with a repository, and so may be somebody else's. What is listed here decides how texts are
written and what a replay reckons with. Everything else is refused, also what is added later: where pages are kept, for
how long and under which key, who answers a recall, where anything is sent, what is run unasked, what is shown to whom.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.settings.knobs import NAME, generic_path
from pagefold.settings.sections import Settings
from pagefold.settings.toml_text import KeyPath

ALLOWED: tuple[KeyPath, ...] = (
    ("policy",),
    ("window",),
    ("tokens",),
    ("prices",),
    ("prices_usd",),
    ("replay",),
    ("serve", "policy"),
    ("mcp", "slim_tools"),
    ("mcp", "structured"),
    ("mcp", "budget"),
    ("mcp", "parameters"),
    ("mcp", "as_is"),
    ("tools",),
    ("file_tools",),
)
"""Settings, and sections with all that is in them."""

REFUSED: frozenset[KeyPath] = frozenset(
    {
        ("tools", NAME, "rate_limit_host"),  # which hosts may be asked early
        ("tools", NAME, "watch"),
        ("tools", NAME, "follow_up"),  # which calls are run early, and with what in their arguments
    }
)
"""Settings in those sections that are refused all the same."""

STRICTER: Mapping[KeyPath, Callable[[object], bool]] = {
    ("serve", "policy"): lambda value: value in ("identity", "lossless", "economic"),
    ("tools", NAME, "side_effect_class"): lambda value: value not in ("pure", "read_only"),
    ("tools", NAME, "open_world"): lambda value: value is not False,
    ("tools", NAME, "memoise"): lambda value: value is not True,
    ("file_tools", NAME, "does"): lambda value: value not in ("ask_user", "plan"),  # whose results are the user's word
}
"""Settings of which some values are allowed: those that let pagefold do less."""


def may_set(path: KeyPath, value: object) -> bool:
    """Whether a project's file may give a setting this value."""
    generic = generic_path(path)
    listed = any(generic[: len(allowed)] == allowed for allowed in ALLOWED)
    refused = generic in REFUSED or (path[0] == "file_tools" and _ships(path[1]))
    return listed and not refused and (generic not in STRICTER or STRICTER[generic](value))


def _ships(tool: str) -> bool:
    """Whether pagefold says itself what a tool does to files: what Edit does is not the repository's to say."""
    from pagefold.pages.files.file_tools import KNOWN_TOOLS  # noqa: PLC0415 - most starts need no table

    return tool in KNOWN_TOOLS.listed


def project_scope(settings: Settings, folder: Path | None = None) -> StoreScope:
    """Returns the scope of the project that a folder belongs to: that of the nearest folder with `.git`, or its own.

    All that is the user's, where the settings join projects.
    """
    if settings.store.projects == "joined":
        return THIS_USER
    here = (folder or Path.cwd()).resolve()
    root = next((parent for parent in (here, *here.parents) if (parent / ".git").exists()), here)
    return StoreScope(THIS_USER.principal, str(root))
