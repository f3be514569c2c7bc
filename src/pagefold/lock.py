"""The lock of values that grow in place and that threads share.

It is all that the core knows of threads: it starts none and waits for nothing but a few instructions of another.
"""

from threading import Lock

__all__ = ["APPENDING", "Lock"]

APPENDING = Lock()
"""Held while something is appended in place, and for no longer: whether nobody else has gone on is decided then."""
