"""Declares every setting, with its name, default, meaning and the values it takes, as fields of one frozen value.

To add a setting, add a field to a section: the reader, the listing and the reference page follow from it. Nothing here
reads a file, an environment variable or a flag; `config` does, and checks every value against its rule.
"""

from pagefold.settings.knobs import (
    KNOBS,
    NAME,
    SECTIONS,
    Knob,
    generic_path,
    setting_values,
    settings_of,
    tool_tables,
    values_of,
)
from pagefold.settings.rules import TEXT, ValueRule
from pagefold.settings.sections import (
    McpSettings,
    PriceTable,
    ServeSettings,
    Settings,
    SinkSettings,
    StoreSettings,
    TelemetrySettings,
    UpstreamTable,
)
from pagefold.settings.toml_text import KeyPath, toml_key, toml_value
from pagefold.settings.tools import MAX_CALLS_PER_LINK, FollowUpLink, ToolCost, ToolFieldGroup, ToolTable

__all__ = [
    "KNOBS",
    "MAX_CALLS_PER_LINK",
    "NAME",
    "SECTIONS",
    "TEXT",
    "FollowUpLink",
    "KeyPath",
    "Knob",
    "McpSettings",
    "PriceTable",
    "ServeSettings",
    "Settings",
    "SinkSettings",
    "StoreSettings",
    "TelemetrySettings",
    "ToolCost",
    "ToolFieldGroup",
    "ToolTable",
    "UpstreamTable",
    "ValueRule",
    "generic_path",
    "setting_values",
    "settings_of",
    "toml_key",
    "toml_value",
    "tool_tables",
    "values_of",
]
