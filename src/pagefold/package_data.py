"""Reads the data files that ship inside the package.

They belong to the code and never change while it runs, so the pure folders may ask for them.
"""

import pkgutil
import tomllib
from typing import Any


def package_text(package: str, name: str) -> str:
    """Returns the text of a file of a package."""
    content = pkgutil.get_data(package, name)
    assert content is not None, f"{package} has no loader that reads {name}"
    return content.decode()


def package_toml(package: str, name: str) -> dict[str, Any]:
    """Returns a TOML file of a package as a dictionary, parsed anew at each call."""
    return tomllib.loads(package_text(package, name))
