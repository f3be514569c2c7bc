"""When a fold may wait: not between reading a file and editing it, and best at a new ask."""

import pytest

from pagefold.derive.entry import Entry
from pagefold.derive.moment import Moment, moment_of
from pagefold.log import Log
from pagefold.pages.files.file_tools import KNOWN_TOOLS
from tests.pages.files.sessions import agent, call, cat_n, conversation, result, user

READ = (call("c1", "Read", {"file_path": "/a.py"}), result("c1", cat_n(["one = 1", "two = 2"])))
RAN = (call("c2", "Bash", {"command": "make test"}), result("c2", "3 passed"))


@pytest.mark.parametrize(
    ("steps", "moment"),
    [
        ((user("Go."),), Moment.NEW_ASK),
        ((user("Go."), *READ, agent("Done."), user("And now?")), Moment.NEW_ASK),
        ((user("Go."), *READ), Moment.READ),
        ((user("Go."), *READ, *RAN), Moment.AT_WORK),
        ((user("Go."), *RAN, *READ), Moment.READ),
    ],
)
def test_the_last_messages_tell_what_is_under_way(steps: tuple[dict[str, object], ...], moment: Moment) -> None:
    messages = conversation(*steps)
    log = Log([Entry(message, message, 10, place) for place, message in enumerate(messages)])

    assert moment_of(log, KNOWN_TOOLS) is moment
