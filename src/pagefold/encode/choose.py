"""Encodes a text in its cheapest lossless form, and decodes forms.

A form is what the model is shown in place of a text. `encode` opens envelopes, tries the codecs that apply on what is
inside, and replaces lines that were shown earlier in the same request with references; the ledger knows those lines.
Candidates are ranked by length. Tokens are counted for the winner only, and for the hint that may replace it.

Before a form is used it is decoded: the same bytes have to come back, for JSON the same values with types, key order
and spelling of numbers (near_ref.hint_for checks its hints itself). It also has to pass a second gate, the literal
reader, which knows nothing but the words of the form and shares no code with the codecs. A form that fails a gate,
raises or is not cheaper is dropped, and the text itself is shown.

Of a large text, codecs for lines are tried on a sample first, and tokens are estimated from slices: `reason` says so,
and a form has to save more than the estimate may be wrong by.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import field
from functools import cache, lru_cache, partial

from pagefold.encode import changed_rows, delta, literal_forms, literal_reader, near_ref, reference
from pagefold.encode.borders import tells_outcome
from pagefold.encode.codec import PLAIN, Codec, first_line
from pagefold.encode.codec import decode as decode_self_contained
from pagefold.encode.codecs import INSIDE, LINE_CODECS, TOP
from pagefold.encode.codecs.json_codec import JsonCodec
from pagefold.encode.codecs.numbered import NumberedCodec
from pagefold.encode.large_texts import (
    ESTIMATE_ERROR,
    SAMPLED_ABOVE,
    FormCounter,
    has_too_many_lines,
    sample,
    why_unfit,
)
from pagefold.encode.notation.json_value import Members, container
from pagefold.frozen import frozen
from pagefold.pages.ledger import FLOOR, Ledger, LedgerEntry
from pagefold.tokens import counter, estimates_words

_SHORTEST_FOR_LINES = 200  # characters from which on codecs for lines are tried
_NUMBERED = re.compile(r" *\d+[→\t]")
_SHORTEST_HINTED = 200  # characters below which a hint is hardly shorter than the text
_GOOD_ENOUGH_RATIO = 0.02  # of the text; after a form as short as this, no other codec is tried
_LONGEST_COMPARED = 20_000  # characters up to which near-ref compares JSON objects
_DATA_CODECS = frozenset(("json", "json-text"))
_DATA = re.compile(r"(?:\[[^\n]*\n)*\s*(?:[{<]|\[\s*[{\[\"0-9])")
_TITLE_TOKENS = 6  # what a title may cost a text that is not shortened, so that later texts can refer to it
_LINE_CODECS = frozenset(codec.name for codec in LINE_CODECS)
_BUILT_IN = frozenset(codec.name for codec in TOP)  # what the literal reader knows; codecs may be added
_json = JsonCodec(exact=False)
_numbered = NumberedCodec()

REFERRING = frozenset(("reference", "near-ref", "delta"))
"""Codecs whose forms refer to what was shown earlier in the request."""


@frozen
class EncodedText:
    """What the model is shown in place of a text, and how it came about.

    `tokens` and `before` are the tokens of the form and of the original. `references` counts the references in the
    form, `skipped` names codecs that failed the gate, `ledger_entries` are to be added to the ledger once the form is
    shown.
    """

    text: str
    codecs: tuple[str, ...] = ()
    tokens: int = 0
    before: int = 0
    references: int = 0
    skipped: tuple[str, ...] = ()
    reason: str = ""
    ledger_entries: tuple[LedgerEntry, ...] = field(default=(), repr=False)


def encode(
    text: str,
    *,
    tool: str = "",
    ledger: Ledger | None = None,
    failed: bool = False,
    without: frozenset[str] = frozenset(),
    count: Callable[[str], int] | None = None,
    floor: int = FLOOR,
    title: str = "",
    source: str = "",
) -> EncodedText:
    """Returns the cheapest lossless form. `tool` names the text; with a ledger, the form may refer to earlier texts.

    The result of a failed call is encoded without references, so that a retry with the same error is shown again.
    `without` names codecs to leave out, `floor` is what lines have to be worth, in tokens, to be referred to. A text
    that is given a `title` is shown with it, unless it cannot be encoded at all. `source` is what was called for it.
    """
    earlier = ledger if ledger is not None else Ledger()
    if reason := why_unfit(text):
        return EncodedText(plain(text), reason=reason, ledger_entries=(LedgerEntry("", ()),))
    sampled = len(text) > SAMPLED_ABOVE
    tokens_of = FormCounter(text, count)
    own = _own_form(text, without) if sampled else _cached_own_form(text, without)
    skipped = list(own.skipped)
    if has_too_many_lines(own.form):
        made = EncodedText(own.form, own.codecs, ledger_entries=(LedgerEntry("", ()),))
    elif ledger is None or failed or "delta" in without:
        made = _without_references(own)
    else:
        made = _with_references(own, earlier, skipped, partial(delta.encode, source=source, floor=floor, title=title))
    if ledger is not None and not failed:
        made = _as_hint(text, own.keys, earlier, tokens_of.form, made, without) or made
    before, tokens = tokens_of.before, tokens_of.form(made.text)
    titled = any(entry.label for entry in made.ledger_entries)
    most = before * (1 - ESTIMATE_ERROR) if sampled else before + (_TITLE_TOKENS if titled else 0)
    if made.text == text or tokens >= most:
        whole = plain(text) if own.codecs else own.form
        made = EncodedText(whole, reason="as it is", ledger_entries=(LedgerEntry("", ()),))
        tokens = tokens_of.form(made.text)
    estimated = "tokens estimated" if sampled else "long words estimated" if estimates_words(text) else ""
    reason = "; ".join(filter(None, (made.reason, estimated)))
    entries = _as_shown(made, text, own.keys)
    return EncodedText(made.text, made.codecs, tokens, before, made.references, tuple(skipped), reason, entries)


def _as_shown(made: EncodedText, text: str, keys: Hashable) -> tuple[LedgerEntry, ...]:
    """Returns what the ledger is to know of a form: the form itself, where it has a title, and the text, where the form
    shows it whole, so that a hint for an equal or similar text may refer to it later."""
    entries = list[LedgerEntry]()
    for entry in made.ledger_entries:
        is_whole = not made.references and not entries
        whole, like = (text, keys) if is_whole else (entry.whole, entry.like)
        form = made.text if entry.label else entry.text
        entries.append(LedgerEntry(entry.label, entry.lines, entry.first, whole, like, entry.source, form))
    return tuple(entries)


def decode(form: str, ledger: Ledger | None = None) -> str:
    """Returns the text of a form; JSON at the top comes back compact. `ledger` is the one it was encoded with.

    Raises ValueError where the form refers to what the ledger does not know, or is none that was written here.
    """
    try:
        return _decoded(form, ledger if ledger is not None else Ledger())
    except (LookupError, AssertionError, RecursionError) as error:
        raise ValueError(f"a form that was not written here, or was changed: {error!r}") from error


def _decoded(form: str, earlier: Ledger) -> str:
    if first_line(form) == PLAIN:
        return form[len(PLAIN) + 1 :]
    label = reference.ref_label(form)
    if label is not None and (base := earlier.labelled(label)) is not None and base.whole is not None:
        return base.whole
    near = near_ref.hint_label(form)
    if near is not None and (base := earlier.labelled(near)) is not None and base.whole is not None:
        body = near_ref.undo(form, base.whole)
        if body is not None:
            return body
    again = changed_rows.hint_label(form)
    if again is not None and (base := earlier.labelled(again)) is not None and base.whole is not None:
        rows = changed_rows.undo(form, base.whole)
        if rows is not None:
            return rows
    return decode_self_contained(_numbered.decode(delta.decode(form, earlier), str), TOP)


def says(form: str, text: str) -> bool:
    """Whether a form without references stands for a text, by the gate that forms pass when they are made."""
    return _passes(lambda: _json.says(form, text) or decode(form) == text)


def may_be_form(text: str) -> bool:
    """False where a text is certainly no form: each has a header or a title, and those begin with a bracket."""
    return text.startswith(("[", "> [")) or "\n[" in text


def candidates(text: str, count: Callable[[str], int] | None = None) -> list[tuple[str, int]]:
    """Returns what each codec alone would make of a text, in tokens, the cheapest first: why the winner won."""
    count = count or counter("o200k").count
    ranked = [("as it is", count(text))]
    for codec in (*TOP, _numbered):
        form, names = self_contained(text, [], (codec,), INSIDE)
        if names:
            ranked.append((" > ".join(names), count(form)))
    return sorted(ranked, key=lambda candidate: candidate[1])


@frozen
class _OwnForm:
    """The form of a text without references. `sparse` is it with fewer line numbers, which the decoder restores and the
    literal reader has not seen yet; `signs` is whether a line looks like delta's, `keys` are an object's."""

    form: str
    codecs: tuple[str, ...]
    skipped: tuple[str, ...]
    sparse: str | None
    signs: bool
    keys: Hashable


def _own_form(text: str, without: frozenset[str]) -> _OwnForm:
    skipped: list[str] = []
    form, codecs = self_contained(text, skipped, *_chains(without))
    signs = delta.holds_signs(form)
    if codecs and signs:
        form, codecs, signs = text, (), delta.holds_signs(text)  # a line that looks like a header could be misread
    if not codecs:
        form = _plain(text, signs=signs)
    # All below the mark PLAIN is the text itself, so nothing there is left out.
    keeps_numbers = _numbered.name in without or "hits" in codecs or has_too_many_lines(form) or _is_plain(form)
    numbers = None if keeps_numbers else _numbered.encode(form, str)
    sparse = numbers if numbers and _passes(lambda: _numbered.decode(numbers, str) == form) else None
    return _OwnForm(form, codecs, tuple(skipped), sparse, signs, _keys_of(text))


def _is_plain(form: str) -> bool:
    return first_line(form) == PLAIN


def _is_read_as(sparse: str, form: str) -> bool:
    """Whether the literal reader gives the form with all its numbers, as the decoder does already."""
    return _passes(lambda: literal_reader.read(sparse, Ledger().shown) == form)


# After a fold (older messages shortened) the last results are encoded again with another ledger; their forms without
# references have not changed.
_cached_own_form = lru_cache(maxsize=64)(_own_form)


def self_contained(
    text: str, skipped: list[str], codecs: tuple[Codec, ...], inside: tuple[Codec, ...]
) -> tuple[str, tuple[str, ...]]:
    """Returns the shortest form without references, and its codecs; adds to `skipped` whichever failed the gate."""
    form, names = _shortest(text, codecs, inside, skipped)
    if not names or _passes(
        lambda: (
            (_json.says(form, text) or decode_self_contained(form, codecs) == text) and _is_literal(form, text, names)
        )
    ):
        return form, names
    skipped.append(names[0])
    return text, ()


def _is_literal(form: str, text: str, names: tuple[str, ...]) -> bool:
    return not _BUILT_IN.issuperset(names) or literal_forms.agrees(form, text)


@cache
def _chains(without: frozenset[str]) -> tuple[tuple[Codec, ...], tuple[Codec, ...]]:
    """Returns the codecs for a whole result and for a text inside one, without those that are switched off."""
    kept = (tuple(codec for codec in chain if codec.name not in without) for chain in (TOP, INSIDE))
    return next(kept), next(kept)


def _passes(check: Callable[[], bool]) -> bool:
    """Returns the result of a check, or False if it raises. This is the gate: a form that fails it is not used."""
    try:
        return check()
    except Exception:  # noqa: BLE001 - a codec that cannot undo what it did is skipped and counted
        return False


def _shortest(
    text: str, codecs: tuple[Codec, ...], inside: tuple[Codec, ...], skipped: list[str]
) -> tuple[str, tuple[str, ...]]:
    """Returns the shortest form that any of the codecs makes of a text, and which codecs made it."""
    best, names = text, tuple[str, ...]()
    used: list[str] = []

    def inner(body: str) -> str:
        form, used[:] = _shortest(body, inside, inside, skipped)
        return form if used else _marked(form)

    left_out = _not_worth_trying(text, codecs, inside, skipped)
    for codec in codecs:
        if codec.name in left_out or not codec.begins.match(text):
            continue
        used.clear()
        try:
            made = codec.encode(text, inner)
        except Exception:  # noqa: BLE001 - the gate: a codec that raises is skipped and counted
            skipped.append(codec.name)
            continue
        if made is None or len(made) > (1 - codec.least_saving) * len(text):
            continue
        if len(made) < len(best):
            best, names = made, (codec.name, *used)
            if codec.name not in _LINE_CODECS or len(best) < _GOOD_ENOUGH_RATIO * len(text):
                break  # an envelope or JSON, or short enough: no codec for lines would save more
    return best, names


def _not_worth_trying(
    text: str, codecs: tuple[Codec, ...], inside: tuple[Codec, ...], skipped: list[str]
) -> frozenset[str]:
    """Returns the codecs for lines that are not tried on a text. On a large one, the best for a sample is tried."""
    if len(text) < _SHORTEST_FOR_LINES or _NUMBERED.match(text):
        return _LINE_CODECS  # too short, or a numbered file, which has a codec of its own
    promising: tuple[str, ...] = ()
    if len(text) > SAMPLED_ABOVE:
        for_lines = tuple(codec for codec in codecs if codec.name in _LINE_CODECS)
        promising = _shortest(sample(text), for_lines, inside, skipped)[1][:1]
    elif not has_too_many_lines(text):
        return frozenset()
    return _LINE_CODECS - ({"repeats"} if has_too_many_lines(text) else {"repeats", *promising})


def _without_references(own: _OwnForm, *, numbered: bool = True) -> EncodedText:
    form, codecs = own.form, own.codecs
    if numbered and own.sparse is not None and _is_read_as(own.sparse, own.form):
        form, codecs = own.sparse, (*codecs, _numbered.name)
    return EncodedText(form, codecs, ledger_entries=(LedgerEntry("", ()),))


def _with_references(
    own: _OwnForm, ledger: Ledger, skipped: list[str], refer: Callable[..., delta.ReferencedText]
) -> EncodedText:
    """Returns the form with references to lines shown earlier, or without any if decoding does not restore it."""
    numbered = own.sparse is not None
    is_data = not _DATA_CODECS.isdisjoint(own.codecs) or (
        "mcp-text" in own.codecs and _DATA.match(own.form) is not None
    )
    if own.signs:
        return _without_references(own, numbered=False)
    referring = refer(own.form, ledger, numbered=numbered, data=is_data)
    if _passes(
        lambda: (
            delta.decode(referring.text, ledger) == (own.sparse if numbered else own.form)
            and literal_reader.read(referring.text, ledger.shown) == own.form
        )
    ):
        names = (*own.codecs, *((_numbered.name,) if numbered else ()))
        names += ("delta",) if referring.references else ()
        return EncodedText(
            referring.text, names, references=referring.references, ledger_entries=referring.ledger_entries
        )
    skipped.append("delta")
    return _without_references(own, numbered=False)


def _as_hint(
    text: str, keys: Hashable, ledger: Ledger, count: Callable[[str], int], made: EncodedText, without: frozenset[str]
) -> EncodedText | None:
    """Returns a one-line hint for a text that equals an earlier one or differs from it in a few fields, else None."""
    if len(text) < _SHORTEST_HINTED:
        return None
    if "reference" not in without and (same := ledger.same(text)) is not None:
        is_outcome = keys is None and any(map(tells_outcome, text.split("\n")))
        return None if is_outcome else _hint(reference.ref_hint(same.label), "reference")
    for base in ledger.like(keys) if "near-ref" not in without and keys is not None else ():
        hint = _difference(base.label, base.whole or "", text)
        if hint is not None and count(hint) < count(made.text):
            return _hint(hint, "near-ref")
    return None


def _difference(label: str, old: str, new: str) -> str | None:
    """Returns what `new` has other than `old`, which was shown as `label`: a few plain fields, or rows of a list."""
    if new.startswith("{") and len(new) <= _LONGEST_COMPARED and (hint := near_ref.hint_for(label, old, new)):
        return hint
    return changed_rows.hint_for(label, old, new)


def _hint(text: str, name: str) -> EncodedText:
    return EncodedText(text, (name,), references=1, ledger_entries=(LedgerEntry("", ()),))


def _keys_of(text: str) -> Hashable:
    """Returns what JSON that near-ref compares has in common: the keys of an object, those of a list's first row."""
    if (rows := changed_rows.kind_of(text)) is not None:
        return rows
    if not text.startswith("{") or len(text) > _LONGEST_COMPARED:
        return None
    value = container(text)
    return tuple(key for key, _ in value) if isinstance(value, Members) else None


def plain(text: str) -> str:
    """Returns the text itself, prefixed with PLAIN if it would be read as a form or holds a line like pagefold's."""
    return _plain(text, signs=delta.holds_signs(text))


def _plain(text: str, *, signs: bool) -> str:
    return f"{PLAIN}\n{text}" if signs or _is_hint(text) else _marked(text)


def _marked(text: str) -> str:
    """Returns a nested text, prefixed with PLAIN if its first line would be read as a codec header."""
    return f"{PLAIN}\n{text}" if text.startswith("[") and _is_header(first_line(text)) else text


def _is_header(line: str) -> bool:
    return line == PLAIN or delta.is_title(line) or any(codec.owns(line) for codec in TOP)


def _is_hint(text: str) -> bool:
    if not text.startswith("> ["):
        return False
    return (reference.ref_label(text) or near_ref.hint_label(text) or changed_rows.hint_label(text)) is not None
