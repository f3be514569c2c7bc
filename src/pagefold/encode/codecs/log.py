"""log: leaves out what stands before the time of a line where it is as in the line above.

    [log: what stands before the time is left out where it is as above]
    2026-11-01T09:00:59.482 INFO [worker-0] http.access: GET /items/18 200
    09:00:59.818 DEBUG [worker-1] cache: hit key=items:20
    09:01:01.690 INFO [worker-2] queue: heartbeat ok
    |03:14:00 a line that would be misread

That is a date, or the name of a job, a host or a level. Times stay whole, and so does what follows them. A line of the
text that begins with a time itself has a bar before it. Refuses texts in which fewer than half of the lines have a time
with seconds near their start. Decoded line by line.
"""

import re

from pagefold.encode.codec import Codec, Inner

_HEADER = "[log: what stands before the time is left out where it is as above]"
_STAMP = re.compile(r"(.{1,120}?)(?<!\d)\d\d:\d\d:\d\d(?!\d)")
_TIME = re.compile(r":\d\d:\d\d")  # what every such line holds
_SHORT = re.compile(r"\d\d:\d\d:\d\d(?!\d)")
_LEAST = 4
_SHARE = 0.5


class LogCodec(Codec):
    name = "log"
    header = re.compile(re.escape(_HEADER))
    least_saving = 0.1

    def encode(self, text: str, inner: Inner) -> str | None:
        breaks = text.count("\n")
        if text.count(":") < max(2 * _LEAST, breaks) or len(_TIME.findall(text)) < _SHARE * breaks:
            return None
        lines = text.split("\n")
        stamps = [_STAMP.match(line) for line in lines]
        stamped = sum(stamp is not None for stamp in stamps)
        if stamped < _LEAST or stamped < _SHARE * len(lines):
            return None
        shown, before = [_HEADER], ""
        for line, stamp in zip(lines, stamps, strict=True):
            if _SHORT.match(line) or line.startswith("|"):
                shown.append(f"|{line}")
            elif stamp is not None and stamp[1] == before:
                shown.append(line[len(before) :])
            else:
                shown.append(line)
                before = stamp[1] if stamp else before
        return "\n".join(shown)

    def decode(self, form: str, inner: Inner) -> str:
        _, body = self.opened(form)
        text: list[str] = []
        before = ""
        for line in body.split("\n"):
            if line.startswith("|"):
                text.append(line[1:])
            elif _SHORT.match(line):
                text.append(before + line)
            else:
                stamp = _STAMP.match(line)
                before = stamp[1] if stamp else before
                text.append(line)
        return "\n".join(text)
