"""Places that a search did not find, where it found something in others: no failure, and not all that was asked."""

import re

from pagefold.pages.telling_line import FRAME

_IN_QUOTES = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_BETWEEN = re.compile(r"&&|\|\||;|\n")
_HIDES = re.compile(r"\d?>\s*&\s*\d|\d?>\s*/dev/null")
_SEARCHES = frozenset(("ag", "egrep", "fd", "fgrep", "find", "grep", "ls", "rg"))
_PASS_ON = frozenset(("cut", "egrep", "grep", "head", "sort", "tail", "tr", "uniq"))
_COUNTS = re.compile(r"\s(?:-\w*[cL]\w*|--count|--files-without-match)\b")  # whose answer may be that nothing is there
_MISSING = re.compile(
    "^(?:\\S*/)?(?P<name>\\w+): (?:cannot access )?['\"\u2018]?(?P<path>(?:[A-Za-z]:)?[^:\n]*?)['\"\u2019]?: "
    "(?:[^\n]*: )?No such file or directory(?: \\(os error 2\\))?\\s*$"
)
_SAYS_MISSING = "No such file or directory"  # without which no line need be looked at


def missing_places(script: str, result: str) -> list[str]:
    """What a script that does nothing but search did not find, although it found something elsewhere; nothing where it
    found nothing, or where anything else may have gone wrong."""
    if _SAYS_MISSING not in result:
        return []
    plain = _HIDES.sub("", _IN_QUOTES.sub("''", script.strip()))
    pipelines = [pipeline for pipeline in map(_names_in, _BETWEEN.split(plain)) if pipeline[0] != "cd"]
    if not pipelines or ">" in plain or _COUNTS.search(plain) or not all(map(_only_searches, pipelines)):
        return []
    names = {pipeline[0] for pipeline in pipelines}
    found, missing = False, list[str]()
    for line in result.split("\n"):
        match = _MISSING.match(line)
        if match is not None and match["name"] in names:
            missing.append(match["path"])
        elif not FRAME.match(line):
            found = True
    return list(dict.fromkeys(missing)) if found else []


def _names_in(pipeline: str) -> list[str]:
    """The names of the commands that are piped into one another."""
    return [(command.split() or [""])[0].rpartition("/")[2] for command in pipeline.split("|")]


def _only_searches(names: list[str]) -> bool:
    return names[0] in _SEARCHES and all(name in _PASS_ON for name in names[1:])
