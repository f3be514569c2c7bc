"""The journal's rules: how facts that must survive when the model's context is cleared are staged and committed.

A line is one entry: staged, then validated, then committed, or rejected with a reason. Lines are never removed. A
record is the value that the committed lines of one scope and key add up to; computed from them, it cannot be half
written. Every commit gives its record the next version, and overwrites only what its writer had read.

- `append` adds one more value to a list, and cannot take anything away.
- `merge` adds members to an object. A member that is there already must have the same value.
- `set` replaces the whole value, and only the version that its writer had read.

`journal_steps` has the steps that all stores share; a store adds how lines are kept.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from pagefold.pages.page import PageId

Resolves: TypeAlias = Callable[[PageId], bool]
"""Returns whether a page can be read."""


class Op(StrEnum):
    APPEND = "append"
    MERGE = "merge"
    SET = "set"


class Boundary(StrEnum):
    """An event that destroys context; pending entries must be committed before it."""

    COMPACTION = "compaction"
    PRUNE = "prune"
    RESET = "reset"
    SHUTDOWN = "shutdown"


class LineState(StrEnum):
    STAGED = "staged"
    VALIDATED = "validated"
    COMMITTED = "committed"
    REJECTED = "rejected"


class RejectReason(StrEnum):
    """Why an entry was rejected."""

    DESTRUCTIVE_OP = "destructive_op"
    SCHEMA_MISMATCH = "schema_mismatch"
    PROVENANCE_FAIL = "provenance_fail"
    SCOPE_VIOLATION = "scope_violation"
    INVARIANT_VIOLATION = "invariant_violation"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What to write. `value` is JSON text; `provenance` names the pages it came from.

    `read_version` is the version of the record that the writer had read: 0 if there was no record, None if the writer
    did not read it; not allowed for `set`.
    """

    op: Op
    scope: str
    key: str
    schema: str
    value: str
    provenance: tuple[PageId, ...]
    read_version: int | None = None

    @classmethod
    def of(
        cls,
        op: Op,
        scope: str,
        key: str,
        schema: str,
        value: Any,
        *,
        provenance: Iterable[PageId],
        read_version: int | None = None,
    ) -> "JournalEntry":
        return cls(op, scope, key, schema, json.dumps(value), tuple(provenance), read_version)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """An entry in the journal, and its state. `version` is the record's version after its commit, 0 before that."""

    number: int
    owner: str
    entry: JournalEntry
    state: LineState = LineState.STAGED
    reason: RejectReason | None = None
    detail: str = ""
    boundary: Boundary | None = None
    version: int = 0
    staged_at: float = 0.0

    @property
    def pending(self) -> bool:
        return self.state in (LineState.STAGED, LineState.VALIDATED)


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """The value that the committed lines of one key add up to: a list where they were appended, else one object."""

    scope: str
    key: str
    schema: str
    version: int
    value: Any


@dataclass(frozen=True, slots=True)
class Schema:
    """The members of a value, each a `string`, `number`, `boolean`, `list` or `object`.

    With `many`, a record is a list of such values, else one such value. A `pinned` record may grow, and only a writer
    that may unpin can take something away.
    """

    name: str
    members: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)
    many: bool = False
    pinned: bool = False
    max_bytes: int = 65_536


@dataclass(frozen=True, slots=True)
class Rules:
    """What a writer may write. `policy` returns why an otherwise valid entry is refused, or ""."""

    schemas: Mapping[str, Schema]
    scopes: frozenset[str]
    may_unpin: bool = False
    policy: Callable[[JournalEntry, JournalRecord | None], str] = lambda entry, record: ""


@dataclass(frozen=True, slots=True)
class Rejection:
    reason: RejectReason
    detail: str


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush did with the pending lines, in their order."""

    boundary: Boundary
    committed: tuple[JournalLine, ...] = ()
    rejected: tuple[JournalLine, ...] = ()


class Journal(Protocol):
    """Every method may raise StoreError. Lines of other owners are read, never changed."""

    @property
    def where(self) -> str:
        """The file or address, for people; without credentials."""

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        """Stages an entry; nothing is applied yet. The same token is staged once, however often it is tried."""

    def validate(self, number: int) -> JournalLine:
        """Checks a staged line, which is then validated or rejected. Any other line is returned as it is."""

    def commit(self, number: int, boundary: Boundary) -> JournalLine:
        """Commits a validated line after checking it against what was committed meanwhile.

        A committed line is returned as it is. Raises ValueError for a line that is unknown, another owner's, rejected,
        or not validated.
        """

    def record(self, scope: str, key: str) -> JournalRecord | None: ...

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        """Returns the lines of all owners, in the order in which they were staged."""

    def pending(self) -> Sequence[JournalLine]:
        """Returns the owner's lines that are neither committed nor rejected."""

    def close(self) -> None: ...


def flush(journal: Journal, boundary: Boundary) -> Flushed:
    """Validates and commits all pending lines of the owner, before the context they came from is destroyed."""
    committed: list[JournalLine] = []
    rejected: list[JournalLine] = []
    for line in journal.pending():
        checked = journal.validate(line.number)
        if checked.state is not LineState.REJECTED:
            checked = journal.commit(line.number, boundary)
        (committed if checked.state is LineState.COMMITTED else rejected).append(checked)
    return Flushed(boundary, tuple(committed), tuple(rejected))


def record_of(lines: Iterable[JournalLine]) -> JournalRecord | None:
    """Returns the record of the committed lines of one scope and key, which come in the order of their versions."""
    record: JournalRecord | None = None
    for line in lines:
        record = applied(line.entry, record)
        assert record.version == line.version, f"{line.entry.key}: version {line.version} follows {record.version - 1}"
    return record


def applied(entry: JournalEntry, record: JournalRecord | None) -> JournalRecord:
    """Returns the record after an entry for which `rejection` returned None."""
    value = json.loads(entry.value)
    version = 1 if record is None else record.version + 1
    if entry.op is Op.APPEND:
        value = [*(record.value if record else ()), value]
    elif entry.op is Op.MERGE and record is not None:
        value = _merged(record.value, value)
    return JournalRecord(entry.scope, entry.key, entry.schema, version, value)


def rejection(entry: JournalEntry, record: JournalRecord | None, rules: Rules, resolves: Resolves) -> Rejection | None:
    """Returns why an entry may not be committed on top of a record, or None where it may."""
    if detail := _schema_problem(entry, record, rules):
        return Rejection(RejectReason.SCHEMA_MISMATCH, detail)
    if not entry.provenance:
        return Rejection(RejectReason.PROVENANCE_FAIL, "it names no page that it came from")
    lost = [page for page in entry.provenance if not resolves(page)]
    if lost:
        return Rejection(RejectReason.PROVENANCE_FAIL, f"page {lost[0]} cannot be read")
    if entry.scope not in rules.scopes:
        allowed = ", ".join(sorted(rules.scopes)) or "none"
        return Rejection(RejectReason.SCOPE_VIOLATION, f"scope {entry.scope!r}: this writer may write to {allowed}")
    if detail := _unread_overwrite(entry, record):
        return Rejection(RejectReason.DESTRUCTIVE_OP, detail)
    if detail := _pinned_loss(entry, record, rules) or rules.policy(entry, record):
        return Rejection(RejectReason.INVARIANT_VIOLATION, detail)
    return None


def _schema_problem(entry: JournalEntry, record: JournalRecord | None, rules: Rules) -> str:
    schema = rules.schemas.get(entry.schema)
    if schema is None:
        return f"schema {entry.schema!r}: expected one of {', '.join(sorted(rules.schemas))}"
    if record is not None and record.schema != entry.schema:
        return f"{entry.key} is a {record.schema}: a {entry.schema} cannot be written to it"
    length = len(entry.value.encode("utf-8", "surrogatepass"))
    if length > schema.max_bytes:
        return f"{length} bytes: a {schema.name} has at most {schema.max_bytes}"
    try:
        value = json.loads(entry.value, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return "its value is not JSON"
    if _depth(value) > _DEEPEST:
        return f"its value is nested more than {_DEEPEST} deep"
    if schema.many:
        if entry.op is Op.MERGE:
            return f"{schema.name} is a list: append to it or set it"
        if entry.op is Op.SET:
            if not isinstance(value, list):
                return f"a set of {schema.name} is the whole list"
            return next(filter(None, (_shape_problem(item, schema) for item in value)), "")
    elif entry.op is Op.APPEND:
        return f"{schema.name} is not a list: merge into it or set it"
    return _shape_problem(value, schema, partial=entry.op is Op.MERGE and record is not None)


def _depth(value: Any) -> int:
    """Returns how deep a value is nested, without recursion."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            item
            for inner in level
            for item in (inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ())
        ]
    return depth


def _no_json(constant: str) -> None:
    raise ValueError(constant)


_DEEPEST = 32
_SHAPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "object": (dict,),
}


def _shape_problem(value: Any, schema: Schema, *, partial: bool = False) -> str:
    if not isinstance(value, dict):
        return f"a {schema.name} is an object"
    for name in schema.members:
        if name not in value and not partial:
            return f"a {schema.name} needs {name!r}"
    for name, member in value.items():
        shape = schema.members.get(name) or schema.optional.get(name)
        if shape is None:
            return f"a {schema.name} has no {name!r}"
        # In Python a boolean is also a number; in JSON it is not.
        if not isinstance(member, _SHAPES[shape]) or (isinstance(member, bool) and shape != "boolean"):
            return f"{name!r} of a {schema.name} is a {shape}"
    return ""


def _unread_overwrite(entry: JournalEntry, record: JournalRecord | None) -> str:
    """Returns what this entry would overwrite although its writer had not read it, or ""."""
    version = record.version if record else 0
    if entry.op is Op.SET and entry.read_version is None:
        return "a set has to say which version it read"
    if entry.read_version is not None and entry.read_version != version:
        return f"it read version {entry.read_version} of {entry.key}, which is at {version}"
    if entry.op is Op.MERGE and record is not None:
        conflict = _conflict(record.value, json.loads(entry.value))
        if conflict:
            return f"{conflict} of {entry.key} says something else already: set it with the version that was read"
    return ""


def _pinned_loss(entry: JournalEntry, record: JournalRecord | None, rules: Rules) -> str:
    """Returns what a pinned record would lose, or ""."""
    if record is None or rules.may_unpin or not rules.schemas[entry.schema].pinned or entry.op is Op.APPEND:
        return ""
    value = json.loads(entry.value)
    if isinstance(record.value, list):
        new = set(map(_canonical_json, value))
        gone = sum(1 for item in record.value if _canonical_json(item) not in new)
        return f"{gone} of {len(record.value)} pinned {entry.schema} entries would be gone" if gone else ""
    changed = _conflict(record.value, value) or next((name for name in record.value if name not in value), "")
    return f"{changed} of the pinned {entry.schema} would be changed" if changed and entry.op is Op.SET else ""


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {name: _merged(old[name], value) if name in old else value for name, value in new.items()}
    return old


def _conflict(old: Any, new: Any, at: str = "") -> str:
    """Returns the path of a member in which two values differ, or "". A member that one of them lacks is none."""
    if isinstance(old, dict) and isinstance(new, dict):
        shared = (
            _conflict(old[name], value, f"{at}.{name}" if at else name) for name, value in new.items() if name in old
        )
        return next(filter(None, shared), "")
    return "" if _canonical_json(old) == _canonical_json(new) else at or "the value"


def _canonical_json(value: Any) -> str:
    """Returns the same text for the same JSON value: in Python, 1 and true are equal."""
    return json.dumps(value, sort_keys=True)


_STATED = {"statement": "string", "scope": "string", "source": "object"}
SCHEMAS: Mapping[str, Schema] = {
    schema.name: schema
    for schema in (
        Schema("constraint", _STATED, many=True, pinned=True),
        Schema("preference", _STATED, many=True),
        Schema("plan", {"goal": "string", "source": "object"}, {"steps": "list", "current": "number"}),
        Schema("summary", {"text": "string"}, {"model": "string", "turns": "list"}, many=True),
        Schema("note", {"text": "string"}, {"about": "string"}, many=True),
    )
}
"""The records pagefold keeps itself."""
