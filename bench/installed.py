"""What `pip install pagefold` brings, in MB, package by package, without and with the modules that pip compiles.

    python -m bench.installed

Builds the wheel and installs it into a fresh environment, with what it needs without extras in the releases and hashes
of requirements/run.txt, and weighs site-packages without pip and setuptools.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

import pagefold

AIM = 60.0
OURS = "pagefold"
_ROOT = Path(__file__).parents[1]
_TOOLS = ("pip", "setuptools")
_PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


class Weight(NamedTuple):
    """In MB."""

    plain: float
    compiled: float


def weights() -> dict[str, Weight]:
    """By package, of what pagefold needs of this environment. What only tests need counts nowhere."""
    found = {name: _weight(_files(distribution(name))) for name in sorted(needed(OURS) - {OURS})}
    return found | {OURS: _weight(Path(pagefold.__file__).parent.rglob("*"))}


def fresh_weights(site: Path) -> dict[str, Weight]:
    """By package, of all that is in a folder of packages."""
    found = {package.name: _weight(_files(package)) for package in distributions(path=[str(site)])}
    return {name: weight for name, weight in found.items() if name not in _TOOLS}


def needed(name: str) -> set[str]:
    """A package and what it needs here, without extras."""
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop().lower().replace("_", "-").replace(".", "-")
        if one in found:
            continue
        found.add(one)
        requirements = map(Requirement, distribution(one).requires or ())
        waiting += [each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def installed(folder: Path) -> Path:
    """Installs the wheel and what it needs into a fresh environment; where its packages are."""
    locked, environment = folder / "locked.txt", os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    packages = re.split(r"\n(?=\w)", (_ROOT / "requirements" / "run.txt").read_text())
    locked.write_text("\n".join(package for package in packages if package.split("==")[0] in needed(OURS)) + "\n")
    python = str(folder / "venv" / "bin" / "python")
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(_ROOT))
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    subprocess.run([sys.executable, *_PIP, *build], check=True, env=environment | {"PATH": path})
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    for what in (("--require-hashes", "-r", str(locked)), ("--no-deps", *map(str, folder.glob("*.whl")))):
        subprocess.run([python, *_PIP, "install", "--no-cache-dir", "--compile", *what], check=True, env=environment)
    return next((folder / "venv" / "lib").glob("*/site-packages"))


def _files(package: Distribution) -> Iterator[Path]:
    return (Path(str(package.locate_file(file))) for file in package.files or ())


def _weight(files: Iterable[Path]) -> Weight:
    plain = compiled = 0
    for file in {file.resolve() for file in files if file.is_file()}:
        if file.suffix == ".pyc":
            compiled += file.stat().st_size
        else:
            plain += file.stat().st_size
    return Weight(plain / 1e6, compiled / 1e6)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sizes = fresh_weights(site := installed(Path(folder)))
        others = {file for file in site.iterdir() if file.name.split("-")[0] in _TOOLS}
        whole = _weight(file for each in site.iterdir() if each not in others for file in (each, *each.rglob("*")))
    print(f"{'package':24}{'MB':>8}{'compiled':>10}   ({sysconfig.get_platform()})")
    for name, weight in sorted(sizes.items(), key=lambda item: -item[1].plain):
        print(f"{name:24}{weight.plain:8.2f}{weight.compiled:10.2f}")
    plain, compiled = (sum(column) for column in zip(*sizes.values(), strict=True))
    print(f"{'all':24}{plain:8.1f}{compiled:10.1f}   aim: {AIM:g} without compiled modules")
    print(f"{'site-packages':24}{whole.plain:8.1f}{whole.compiled:10.1f}   without {' and '.join(_TOOLS)}")


if __name__ == "__main__":
    main()
