"""How tests run everywhere.

How long one example takes is the machine's affair, so no example has a deadline. Properties try the same examples in
every run, so that a change is judged by what it changes; `make properties` tries others.
"""

import signal

import pytest
from hypothesis import settings

settings.register_profile("pagefold", deadline=None, derandomize=True)
settings.register_profile("other-examples", deadline=None)
settings.load_profile("pagefold")

pytest.register_assert_rewrite("tests.conformance")

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)
