"""How a line of the journal stands in a database: foreign text as bytes, the entry's other fields as JSON."""

import json
from typing import Any

from pagefold.adapters.columns import read_back
from pagefold.pages.journal import Boundary, JournalEntry, JournalLine, LineState, Op, RejectReason
from pagefold.pages.page import PageId

COLUMNS = "number, owner, scope, key, entry, state, reason, detail, boundary, version, staged_at"


def line_of(row: tuple[Any, ...]) -> JournalLine:
    """The line of a row of COLUMNS. Raises what its columns lead to, if the row is damaged."""
    number, owner, scope, key, entry, state, reason, detail, boundary, version, staged_at = row[:11]
    fields = json.loads(entry)
    provenance = tuple(map(PageId, fields["provenance"]))
    place = (Op(fields["op"]), read_back(scope), read_back(key))
    return JournalLine(
        number,
        read_back(owner),
        JournalEntry(*place, fields["schema"], fields["value"], provenance, fields["read"]),
        LineState(state),
        None if reason is None else RejectReason(reason),
        read_back(detail),
        None if boundary is None else Boundary(boundary),
        version or 0,
        staged_at,
    )


def entry_column(entry: JournalEntry) -> str:
    fields = {name: getattr(entry, name) for name in ("op", "schema", "value", "provenance")}
    return json.dumps(fields | {"read": entry.read_version})
