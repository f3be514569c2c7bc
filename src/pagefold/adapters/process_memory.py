"""The memory of this process: how much of it is in use, and giving back what is not."""

import ctypes
import os
import sys
from pathlib import Path


def resident_bytes() -> int:
    """The resident memory of this process; 0 where the system does not tell it so."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Gives memory that nothing uses any more back to the system, where its allocator keeps it for itself."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)
