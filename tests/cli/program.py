"""Runs the command line as a user does."""

import os
import subprocess
import sys
from pathlib import Path


def pagefold(
    *arguments: object, home: Path, code: int = 0, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """A run with an empty home and an empty environment."""
    done = subprocess.run(
        [sys.executable, "-m", "pagefold", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **environment},
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr.decode()
    return done
