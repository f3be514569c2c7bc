"""Every setting there is, as one frozen value: name, default, what is allowed, and what it means.

Adding a setting is adding a field to a section: the reader, the listing and the reference page follow from it. A field
that is kept out of `repr` is a secret and is masked wherever settings are shown. Nothing here reads a file, an
environment variable or a flag; `config` does, and checks every value against its rule before it gets here.
"""

from pagefold.settings.knobs import KNOBS, NAME, SECTIONS, Knob, general, settings_of, values_of
from pagefold.settings.rules import TEXT, Rule
from pagefold.settings.sections import Mcp, PriceTable, Serve, Settings, Sink, Store, Telemetry
from pagefold.settings.toml_text import KeyPath, dotted, spelled
from pagefold.settings.tools import FollowUp, Group, ToolTable

__all__ = [
    "KNOBS",
    "NAME",
    "SECTIONS",
    "TEXT",
    "FollowUp",
    "Group",
    "KeyPath",
    "Knob",
    "Mcp",
    "PriceTable",
    "Rule",
    "Serve",
    "Settings",
    "Sink",
    "Store",
    "Telemetry",
    "ToolTable",
    "dotted",
    "general",
    "settings_of",
    "spelled",
    "values_of",
]
