"""Shell scripts as the simple commands they are made of, as far as that can be read without running them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pagefold.frozen import frozen
from pagefold.pages.files.loops import unrolled

_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(['\"\\]?)([A-Za-z_]\w*)['\"]?")
_KEYWORDS = frozenset(
    ("do", "then", "else", "elif", "if", "while", "until", "time", "sudo", "command", "exec", "xargs", "!")
)
_EXPANDS = re.compile(r"[$`\\]")
_OPERATORS = frozenset(("&&", "||", ";", "|", "|&", "&", "(", ")", "{", "}", ";;"))
_BEGINS, _ENDS = frozenset(("if", "while", "until", "for", "case", "select")), frozenset(("fi", "done", "esac"))
_REDIRECTS = frozenset((">", ">>", "<", ">&", "&>", ">|", "<<<"))
_ASSIGNED = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_HERE = "\x00here"
EXPANDED = "\x00expanded"  # in place of a here-document that the shell fills in


@frozen
class Redirect:
    sign: str
    target: str


@frozen
class ShellCommand:
    """One simple command. `before` is the operator or keyword before it; `document` is its here-document.

    `subshell` tells the subshells that it runs in, the innermost last; `conditional` whether it stands in a loop, in a
    branch, or in a group that runs only if something before it fails. `folder` is where it runs, None where nobody can
    tell; it is set by `folders.located`.
    """

    words: tuple[str, ...]
    before: str = ""
    redirects: tuple[Redirect, ...] = ()
    document: str | None = None
    subshell: tuple[int, ...] = ()
    conditional: bool = False
    folders: tuple[str, ...] = ("",)

    @property
    def name(self) -> str:
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def is_redirected(self) -> bool:
        """Whether what it prints goes into a file."""
        return any(redirect.sign in (">", ">>", ">|", "&>") for redirect in self.redirects)


def git_words(command: ShellCommand) -> tuple[str, list[str]]:
    """The verb of a git command, and what stands behind it; no verb where it is none of git's."""
    words = [word for word in command.words[1:] if word not in ("--no-pager", "-P")] if command.name == "git" else []
    while words[:1] in (["-C"], ["-c"]):
        words = words[2:]
    return (words[0], words[1:]) if words else ("", [])


def pipelines_of(commands: Sequence[ShellCommand]) -> list[list[ShellCommand]]:
    """The commands in runs of those that are piped into one another."""
    found: list[list[ShellCommand]] = []
    for command in commands:
        if command.before == "|" and found:
            found[-1].append(command)
        else:
            found.append([command])
    return found


def commands_in(script: str) -> list[ShellCommand]:
    """The simple commands of a script in order; none where its quotes do not match."""
    return list(_read(script))


@lru_cache(maxsize=1 << 6)  # a call's script is read for the files, for the folder and for git
def _read(script: str) -> tuple[ShellCommand, ...]:
    documents: list[str] = []
    try:
        tokens = _tokens(_lines_as_lists(_without_documents(script, documents)))
        return tuple(_commands(unrolled(tokens, (_HERE,)), documents))
    except ValueError:
        return ()


def _without_documents(script: str, documents: list[str]) -> str:
    """The script with every here-document taken out into a list."""
    kept: list[str] = []
    lines = iter(script.split("\n"))
    for line in lines:
        marks = list(_HEREDOC.finditer(line))
        for mark in marks:
            body: list[str] = []
            for inner in lines:
                if (inner.lstrip("\t") if mark.group(1) else inner) == mark.group(3):
                    break
                body.append(inner.lstrip("\t") if mark.group(1) else inner)
            documents.append("\n".join(body) + "\n" if body else "")
            if not mark.group(2) and _EXPANDS.search(documents[-1]):
                documents[-1] = EXPANDED
        kept.append(_HEREDOC.sub(f" {_HERE} ", line) if marks else line)
    return "\n".join(kept)


def _lines_as_lists(script: str) -> str:
    """The script with line breaks outside quotes as `;`, and without comments and continued lines."""
    out: list[str] = []
    quote, at = "", 0
    while at < len(script):
        char = script[at]
        if char == "\\" and quote != "'":
            out.append("" if script[at + 1 : at + 2] == "\n" else script[at : at + 2])
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (not out or out[-1][-1:] in " \t\n;"):
            end = script.find("\n", at)
            at = len(script) if end < 0 else end
            continue
        elif char == "\n":
            char = " ; "
        out.append(char)
        at += 1
    return "".join(out)


def _tokens(script: str) -> list[str]:
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


@dataclass
class _Nesting:
    """Where in a script its commands are read: in which groups, and how deep in loops and branches. A group is told by
    its number, 0 for one in braces, and by whether it runs only if something before it fails."""

    groups: list[tuple[int, bool]] = field(default_factory=list)
    subshells: int = 0
    blocks: int = 0

    def passed(self, operator: str, before: str) -> str:
        """What stands before the next command behind an operator that may open or close groups."""
        for sign in operator:
            if sign == "(":
                self.subshells += 1
            if sign in "({":
                self.groups.append((self.subshells if sign == "(" else 0, before == "||" or operator[:2] == "||"))
            elif sign in ")}" and self.groups:
                self.groups.pop()
        own = operator.strip("(){}")
        return own if own or operator.strip("({") else before

    def command(self, words: list[str], before: str, redirects: list[Redirect], document: str | None) -> ShellCommand:
        subshell = tuple([number for number, _ in self.groups if number])
        conditional = self.blocks > 0 or any(if_failed for _, if_failed in self.groups)
        return ShellCommand(tuple(words), before, tuple(redirects), document, subshell, conditional)


def _commands(tokens: list[str], documents: list[str]) -> Iterator[ShellCommand]:
    words: list[str] = []
    redirects: list[Redirect] = []
    document: str | None = None
    before, variables, pending, nesting = "", dict[str, str](), iter(documents), _Nesting()
    at = 0
    while at <= len(tokens):
        token = tokens[at] if at < len(tokens) else ";"
        at += 1
        if not words and token in _BEGINS | _ENDS:
            nesting.blocks = max(0, nesting.blocks + (1 if token in _BEGINS else -1))
        if token in _OPERATORS or (token and set(token) <= set("();&|")):
            if words or redirects:
                yield nesting.command(words, before, redirects, document)
                before = ""
            words, redirects, document, before = [], [], None, nesting.passed(token, before)
        elif token == _HERE:
            document = next(pending, None)
        elif token in _REDIRECTS and at < len(tokens):
            if words and words[-1].isdigit() and len(words[-1]) == 1:
                words.pop()
                redirects.append(Redirect("2" + token, tokens[at]))
            else:
                redirects.append(Redirect(token, _expanded(tokens[at], variables)))
            at += 1
        elif not words and (assigned := _ASSIGNED.match(token)):
            variables[assigned.group(1)] = _expanded(assigned.group(2), variables)
        elif not words and token in _KEYWORDS:
            before = before if before == "|" else token
        else:
            words.append(_expanded(token, variables))


def _expanded(word: str, variables: dict[str, str]) -> str:
    """A word with the variables that the script itself has set."""
    if "$" not in word:
        return word
    return _VARIABLE.sub(lambda found: variables.get(found.group(1) or found.group(2), found.group(0)), word)
