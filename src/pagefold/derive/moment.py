"""What a history is in the middle of: whether this is a good moment to fold.

After a new ask nothing is under way: the thinking of earlier turns no longer matters, and what was read for the last
task has served. Between reading a file and editing it a fold is at its worst: the agent needs what it has just read.
"""

from enum import StrEnum

from pagefold.derive.entry import Entry
from pagefold.log import Log
from pagefold.pages.exchanges import Work
from pagefold.pages.files.changes import Act
from pagefold.pages.files.file_tools import FileTools
from pagefold.wire.message import Role


class Moment(StrEnum):
    NEW_ASK = "a new ask"
    READ = "a file was just shown"
    AT_WORK = "at work"


def moment_of(log: Log[Entry], tools: FileTools) -> Moment:
    """What the last message of a history says: a user asked, or the calls of the last answer have their results."""
    if not len(log) or (log[-1].message.role is Role.USER and log[-1].opens):
        return Moment.NEW_ASK
    first = len(log) - 1
    while first > 0 and not log[first].own:
        first -= 1
    work = Work(tools=tools)
    for place in range(first, len(log)):
        work = work.after(log[place].message, place)
    return Moment.READ if any(exchange.act is Act.SHOWED for exchange in work.exchanges) else Moment.AT_WORK
