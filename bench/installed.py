"""What `pip install pagefold` brings, in MB, package by package, without and with the modules that pip compiles.

    python -m bench.installed

Read from this environment: the packages that pagefold needs without extras, and what those need. What only
tests need counts nowhere.
"""

import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import pagefold

AIM = 60.0
OURS = "pagefold"


def weights() -> dict[str, tuple[float, float]]:
    """By package, MB of its files and of its compiled modules."""
    found = {name: _sizes(map(Path, _files(distribution(name)))) for name in sorted(needed(OURS) - {OURS})}
    return found | {OURS: _sizes(Path(pagefold.__file__).parent.rglob("*"))}


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


def _files(package: Distribution) -> Iterator[str]:
    return (str(package.locate_file(file)) for file in package.files or ())


def _sizes(files: Iterator[Path]) -> tuple[float, float]:
    plain = compiled = 0
    for file in {file.resolve() for file in files if file.is_file()}:
        if file.suffix == ".pyc":
            compiled += file.stat().st_size
        else:
            plain += file.stat().st_size
    return plain / 1e6, compiled / 1e6


def main() -> None:
    print(f"{'package':24}{'MB':>8}{'compiled':>10}   ({sysconfig.get_platform()})")
    sizes = weights()
    for name, (plain, compiled) in sorted(sizes.items(), key=lambda item: -item[1][0]):
        print(f"{name:24}{plain:8.2f}{compiled:10.2f}")
    plain, compiled = (sum(size[at] for size in sizes.values()) for at in (0, 1))
    print(f"{'all':24}{plain:8.1f}{compiled:10.1f}   aim: {AIM:g} without compiled modules")


if __name__ == "__main__":
    main()
