"""How tests run everywhere: how long one example takes is the machine's affair, so no example has a deadline."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("pagefold", deadline=None)
settings.load_profile("pagefold")

pytest.register_assert_rewrite("tests.conformance")

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)
