"""What a refusal says: the value in short, and the nearest names for one that is unknown."""

import difflib
import re
from collections.abc import Iterable, Mapping

from pagefold.errors import ConfigError
from pagefold.settings.knobs import KNOBS, NAME, SECTIONS, generic_path
from pagefold.settings.toml_text import KeyPath, toml_key, toml_value

_MAX_CHARACTERS = 80


def brief(value: object) -> str:
    """Returns a value as TOML spells it, cut to a length fit for a message."""
    # An address that is refused for the password in it must not be repeated with the password.
    text = re.sub(r"//[^/]*@", "//…@", toml_value(value))
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"


def unknown_setting(place: str, path: KeyPath) -> ConfigError:
    # In a table with a free name the suggestions carry that name.
    free_name = path[1] if generic_path(path) != path else NAME
    paths = [tuple(free_name if part == NAME else part for part in known) for known in (*KNOBS, *sorted(SECTIONS))]
    likeness = {toml_key(known): _likeness_of_paths(path, known) for known in paths}
    siblings = [toml_key(known) for known in paths if known[:-1] == path[:-1]]
    return ConfigError(f"{place}: unknown setting {toml_key(path)} ({_hint(siblings, likeness, 0.6)})")


def unknown_variable(variable: str, others: Iterable[str]) -> ConfigError:
    names = [*(knob.variable for knob in KNOBS.values()), *others]
    hint = _hint(names, {name: _likeness(variable, name) for name in names}, 0.8)
    return ConfigError(f"{variable}: unknown environment variable ({hint})")


def _likeness_of_paths(wanted: KeyPath, known: KeyPath) -> float:
    """Compares the last names, which tells a slip from a stranger; a name of the same section counts for more."""
    last = _likeness(wanted[-1], known[-1])
    if wanted[:-1] == known[:-1]:
        return last
    return 0.9 * (last if len(wanted) > 1 else max(last, _likeness(wanted[0], toml_key(known))))


def _likeness(left: str, right: str) -> float:
    return difflib.SequenceMatcher(None, left, right).ratio()


def _hint(names: Iterable[str], likeness: Mapping[str, float], floor: float) -> str:
    """Returns the nearest names, near ties together, or all of `names` where none is near."""
    best = max(likeness.values())
    near = [name for name, ratio in likeness.items() if ratio >= max(floor, best - 0.05)]
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
