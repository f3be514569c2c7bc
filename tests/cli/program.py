"""Runs the command line as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import pagefold as package

# The code that these tests import is the code that the program runs, in any checkout.
SOURCE = str(Path(package.__file__).parents[1])


def pagefold(
    *arguments: object, home: Path, code: int = 0, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """A run with an empty home and an empty environment."""
    done = subprocess.run(
        [sys.executable, "-m", "pagefold", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **environment},
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr.decode()
    return done
