"""Reads the bill of materials of a release and prints its licences; fails where it is not what was locked.

    python -m bench.licences dist/sbom.cdx.json requirements/run.txt

Exit code 1 where a component has no licence, a licence that a user of an Apache-2.0 program has to think about, or a
version that requirements/run.txt does not lock.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

_FREE = re.compile(
    r"Apache|MIT|BSD|ISC|PSF|Python|Zlib|zlib|MPL|Unlicense|CC0|0BSD|any-OSI|public domain|OSI Approved", re.I
)
_OURS = "pagefold"
# Where the package's own data name none that can be read: what its licence file says.
_READ = {"apsw-sqlite3mc": "any-OSI (apsw), MIT (SQLite3 Multiple Ciphers), public domain (SQLite)"}
# pip and setuptools come with every virtual environment.
_TOOLS = frozenset({"pip", "setuptools"})


def licence_of(component: dict[str, Any]) -> str:
    """The licence as its identifier, expression or name; a text alone counts by its first line."""
    if read := _READ.get(_normal(component["name"])):
        return read
    names: list[str] = []
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        names.append(entry.get("expression") or licence.get("id") or licence.get("name") or "")
    named = [name for name in names if name and not name.startswith("declared license")]
    return ", ".join(dict.fromkeys(named)) or ", ".join(dict.fromkeys(filter(None, names)))


def locked_in(text: str) -> dict[str, str]:
    """The version of every package in a requirements file."""
    return {_normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.M)}


def problems(components: list[dict[str, Any]], locked: dict[str, str]) -> list[str]:
    wrong = []
    for component in components:
        name, version = _normal(component["name"]), component["version"]
        licence = licence_of(component)
        if not _FREE.search(licence):
            wrong.append(f"{name} {version}: the licence is {licence or 'not declared'}")
        if locked.get(name) != version:
            wrong.append(f"{name} {version}: requirements/run.txt locks {locked.get(name, 'no version of it')}")
    return wrong


def main() -> int:
    bill, requirements = map(Path, sys.argv[1:])
    components = [
        component
        for component in json.loads(bill.read_text(encoding="utf-8"))["components"]
        if component["name"] not in _TOOLS and component["name"] != _OURS
    ]
    print("# Licences of what pagefold brings along\n\n| package | version | licence |\n|---|---|---|")
    for component in sorted(components, key=lambda component: component["name"].lower()):
        print(f"| {component['name']} | {component['version']} | {licence_of(component)} |")
    wrong = problems(components, locked_in(requirements.read_text(encoding="utf-8")))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong or not components else 0


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
