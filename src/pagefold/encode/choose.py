"""The cheapest form of a text that the gate lets through, and the way back.

`encode` tries what fits: frames are opened, what is inside is said by the codec that says it shortest, then lines that
stand earlier in the same request are referred to. Candidates are ranked by their length, an estimate; only the winner
is counted. The gate then decodes it: the bytes have to come back, for JSON its values with types, key order and number
lexemes. What fails, raises or is not cheaper is left, and counted in `skipped`; the text itself is shown instead.

Of a large text codecs that change its lines are tried on a part first, and its tokens are estimated by another part;
`reason` says so, and a form has to save more than such an estimate may be off.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import field
from functools import cache, lru_cache, partial

from pagefold.encode import delta, near_ref, reference
from pagefold.encode.codec import PLAIN, Codec, first_line
from pagefold.encode.codec import decode as undo
from pagefold.encode.envelopes import ENVELOPES
from pagefold.encode.escapes import EscapesCodec
from pagefold.encode.grep_context import GrepContextCodec
from pagefold.encode.hits import HitsCodec
from pagefold.encode.json_codec import JsonCodec
from pagefold.encode.log import LogCodec
from pagefold.encode.notation.json_value import Members, parse
from pagefold.encode.numbered import NumberedCodec
from pagefold.encode.paths import ListingCodec, PathsCodec
from pagefold.encode.records import RecordsCodec
from pagefold.encode.repeats import ColoursCodec, RepeatsCodec
from pagefold.frozen import frozen
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.tokens import counter, estimates_words

_LARGE = 1_000_000
_LINES = 60_000
_PARTLY = 150_000  # characters from which on a text is looked at in part before it is looked at whole
_STRETCH, _STRETCHES = 8_000, 3
_SLICE, _EVERY = 2_000, 5  # of which one in so many is counted
_OFF = 0.05
_RUN = 4096
_SUSPECT = 40_000  # shorter texts are counted in time whatever they hold
_ENDLESS = 15_000
_SHORT = 200
_NUMBERED = re.compile(r" *\d+[→\t]")
_HINTED = 200  # characters below which a hint is hardly shorter than what it stands for
# Codecs that change the lines of a text, and what share of it they have to save: a line that stands as it came can be
# found and quoted, so it is given up only for a good deal. Hits and paths are quoted most, lines of logs hardly ever.
_GOOD_DEAL = {"hits": 0.6, "paths": 0.6, "listing": 0.3, "records": 0.3, "log": 0.25}
_TEXT: tuple[Codec, ...] = (
    GrepContextCodec(),
    RepeatsCodec(),
    ColoursCodec(),
    LogCodec(),
    PathsCodec(),
    ListingCodec(),
    HitsCodec(),
    RecordsCodec(),
    EscapesCodec(),
)
_RESHAPING = frozenset(codec.name for codec in _TEXT)
_LITTLE = 0.02
_json = JsonCodec(exact=False)
TOP: tuple[Codec, ...] = (*ENVELOPES, _json, *_TEXT)
INSIDE: tuple[Codec, ...] = (*ENVELOPES, JsonCodec(exact=True), *_TEXT)
_numbered = NumberedCodec()


@frozen
class EncodedText:
    """What the model is shown in place of a text: by which codecs, at what cost, and what was not let through."""

    text: str
    codecs: tuple[str, ...] = ()
    tokens: int = 0
    before: int = 0
    references: int = 0
    skipped: tuple[str, ...] = ()
    reason: str = ""
    standing: tuple[LedgerEntry, ...] = field(default=(), repr=False)


def encode(
    text: str,
    *,
    tool: str = "",
    ledger: Ledger | None = None,
    failed: bool = False,
    without: frozenset[str] = frozenset(),
    count: Callable[[str], int] | None = None,
    floor: int = delta.FLOOR,
) -> EncodedText:
    """The cheapest lossless form. `tool` names the text; with a ledger, what stands in the request may be referred to.

    The result of a call that failed is shown whole: a retry must not look like an echo. `without` names codecs to leave
    out, `floor` what lines have to be worth to be referred to.
    """
    known, exact = ledger if ledger is not None else Ledger(), count or counter("o200k").count
    if reason := _unfit(text):
        return EncodedText(_plain(text), reason=reason, standing=(LedgerEntry(known.label_for(tool or "text"), ()),))
    partly = len(text) > _PARTLY
    count = partial(_estimate, exact) if partly else exact
    before = count(text)
    own = _own(text, without) if partly else _known_own(text, without)
    skipped = list(own.skipped)
    if _is_endless(own.form):
        made = EncodedText(own.form, own.codecs, standing=(LedgerEntry(known.label_for(tool or "text"), ()),))
    elif ledger is None or failed or "delta" in without:
        made = _alone(own, known.label_for(tool or "text"))
    else:
        made = _against(own, tool, known, skipped, floor)
    if ledger is not None and not failed:
        made = _hinted(text, own.like, known, count, made, without) or made
    most = before * (1 - _OFF) if partly else before
    tokens = count(made.text) if made.text != text else before
    if made.text == text or tokens >= most:
        plain = _plain(text)
        tokens = count(plain) if plain != text else before
        lines = () if _is_endless(plain) else tuple(plain.split("\n"))
        made = EncodedText(plain, reason="as it is", standing=(LedgerEntry(known.label_for(tool or "text"), lines),))
    there = made.standing
    if not made.references and there:
        # It stands whole: a later text may be the same, or nearly.
        there = (LedgerEntry(there[0].label, there[0].lines, there[0].first, text, own.like), *there[1:])
    estimated = "tokens estimated" if partly else "long words estimated" if estimates_words(text) else ""
    reason = "; ".join(filter(None, (made.reason, estimated)))
    return EncodedText(made.text, made.codecs, tokens, before, made.references, tuple(skipped), reason, there)


@frozen
class _Own:
    """What a text is whatever stands above it: its form, the same with numbered lines in their sparse form where there
    are any, and what it has in common with others like it."""

    form: str
    codecs: tuple[str, ...]
    skipped: tuple[str, ...]
    sparse: str | None
    like: Hashable


def _own(text: str, without: frozenset[str]) -> _Own:
    skipped: list[str] = []
    form, codecs = self_contained(text, skipped, *_chains(without))
    if not codecs or _numbered.holds(form):
        form, codecs = _plain(text), ()  # a form in which a line looks like a header of ours could be misread
    numbers = None if _numbered.name in without or _is_endless(form) else _numbered.encode(form, str)
    sparse = numbers if numbers and _passes(lambda: _numbered.decode(numbers, str) == form) else None
    return _Own(form, codecs, tuple(skipped), sparse, _like(text))


# After a fold the last results are encoded anew, against what then stands: what they are by themselves has not changed.
_known_own = lru_cache(maxsize=64)(_own)


def candidates(text: str, count: Callable[[str], int] | None = None) -> list[tuple[str, int]]:
    """What each codec alone would make of a text, in tokens, the cheapest first: why the winner won."""
    count = count or counter("o200k").count
    found = [("as it is", count(text))]
    for codec in (*TOP, _numbered):
        form, names = self_contained(text, [], (codec,), INSIDE)
        if names:
            found.append((" > ".join(names), count(form)))
    return sorted(found, key=lambda candidate: candidate[1])


def decode(shown: str, ledger: Ledger | None = None) -> str:
    """The text that a form says; JSON that stood by itself comes back compact. `ledger` is the one it was shown under.

    Raises ValueError where it refers to what the ledger does not know.
    """
    known = ledger if ledger is not None else Ledger()
    line = first_line(shown)
    if line == PLAIN:
        return shown[len(PLAIN) + 1 :]
    label = reference.ref_label(shown)
    if label is not None and (base := known.labelled(label)) is not None and base.whole is not None:
        return base.whole
    near = near_ref.hint_label(shown)
    if near is not None and (base := known.labelled(near)) is not None and base.whole is not None:
        body = near_ref.undo(shown, base.whole)
        if body is not None:
            return body
    return undo(_numbered.decode(delta.decode(shown, known), str), TOP)


def self_contained(
    text: str, skipped: list[str], codecs: tuple[Codec, ...] = TOP, inside: tuple[Codec, ...] = INSIDE
) -> tuple[str, tuple[str, ...]]:
    """The shortest form that needs nothing but itself, and the codecs that made it; `skipped` gets who failed."""
    form, names = _shortest(text, codecs, inside, skipped)
    if not names or _passes(lambda: _json.says(form, text) or undo(form, codecs) == text):
        return form, names
    skipped.append(names[0])
    return text, ()


def _unfit(text: str) -> str:
    """Why a text passes as it is and uncounted, if it does: counting it would take longer than it is worth."""
    if len(text) > _LARGE:
        return f"more than {_LARGE:,} characters"
    if "\x00" in text:
        return "binary"
    if text.count("\n") > _LINES:
        return f"more than {_LINES:,} lines"
    return "one character over and over" if len(text) > _SUSPECT and _is_monotonous(text) else ""


def _is_monotonous(text: str) -> bool:
    # A run that long fills one of the stretches of half its length: only there it has to be looked for.
    half = _RUN // 2
    for start in range(0, len(text) - half + 1, half):
        sign = text[start]
        if text.startswith(sign * half, start) and sign * _RUN in text[max(0, start - half) : start + 2 * half]:
            return True
    return False


def _is_endless(text: str) -> bool:
    """Whether a text has more lines than are looked at one by one: nobody reads them, and it would take its time."""
    return len(text) > _ENDLESS and text.count("\n") > _ENDLESS


def _estimate(count: Callable[[str], int], text: str) -> int:
    """The tokens of a text; of a large one by slices of it, because counting all would take longer than all else."""
    if len(text) <= _PARTLY:
        return count(text)
    slices = "\n".join(text[at : at + _SLICE] for at in range(0, len(text), _SLICE * _EVERY))
    return round(count(slices) * len(text) / len(slices))


def _part(text: str) -> str:
    """Some stretches of a large text, in whole lines."""
    step = (len(text) - _STRETCH) // (_STRETCHES - 1)
    stretches = (text[at : at + _STRETCH] for at in range(0, len(text), step))
    return "\n".join(it[it.find("\n") + 1 : it.rfind("\n") + 1 or len(it)].rstrip("\n") for it in stretches)


@cache
def _chains(without: frozenset[str]) -> tuple[tuple[Codec, ...], tuple[Codec, ...]]:
    kept = (tuple(codec for codec in chain if codec.name not in without) for chain in (TOP, INSIDE))
    return next(kept), next(kept)


def _passes(check: Callable[[], bool]) -> bool:
    """The gate. Whatever a codec does there, the text itself is still at hand."""
    try:
        return check()
    except Exception:  # noqa: BLE001 - a codec that cannot undo what it did is skipped and counted
        return False


def _shortest(
    text: str, codecs: tuple[Codec, ...], inside: tuple[Codec, ...], skipped: list[str]
) -> tuple[str, tuple[str, ...]]:
    best, names = text, tuple[str, ...]()
    used: list[str] = []

    def inner(body: str) -> str:
        form, used[:] = _shortest(body, inside, inside, skipped)
        return form if used else _marked(form)

    left_out: frozenset[str] = frozenset()
    if len(text) < _SHORT or _NUMBERED.match(text):
        left_out = _RESHAPING  # too short to reshape, or a numbered file, which has a codec of its own
    elif len(text) > _PARTLY:
        plain = tuple(codec for codec in codecs if codec.name in _RESHAPING)
        promising = _shortest(_part(text), plain, inside, skipped)[1][:1]
        left_out = _RESHAPING - ({"repeats"} if _is_endless(text) else {"repeats", *promising})
    elif _is_endless(text):
        left_out = _RESHAPING - {"repeats"}
    for codec in codecs:
        if codec.name in left_out:
            continue
        used.clear()
        try:
            made = codec.encode(text, inner)
        except Exception:  # noqa: BLE001 - the gate: a codec that raises is skipped and counted
            skipped.append(codec.name)
            continue
        if made is None or len(made) > (1 - _GOOD_DEAL.get(codec.name, 0)) * len(text):
            continue
        if len(made) < len(best):
            best, names = made, (codec.name, *used)
            if codec.name not in _RESHAPING or len(best) < _LITTLE * len(text):
                break  # a frame or JSON, or hardly anything is left: no codec for plain text has more to say
    return best, names


def _alone(own: _Own, label: str, *, numbered: bool = True) -> EncodedText:
    """Numbered runs in their sparse form, with nothing to refer to."""
    form, codecs = own.form, own.codecs
    if numbered and own.sparse is not None:
        form, codecs = own.sparse, (*codecs, _numbered.name)
    return EncodedText(form, codecs, standing=(LedgerEntry(label, tuple(form.split("\n"))),))


def _against(own: _Own, tool: str, ledger: Ledger, skipped: list[str], floor: int) -> EncodedText:
    """The form with what stands above said by reference, if that can be undone."""
    numbered = own.sparse is not None
    against = delta.encode(own.form, ledger, tool or "text", numbered=numbered, floor=floor)
    if against is None:  # the text holds what looks like references of ours
        return _alone(own, ledger.label_for(tool or "text"), numbered=False)
    if _passes(lambda: delta.decode(against.text, ledger) == (own.sparse if numbered else own.form)):
        names = (*own.codecs, *((_numbered.name,) if numbered else ()), *(("delta",) if against.references else ()))
        return EncodedText(against.text, names, references=against.references, standing=against.standing)
    skipped.append("delta")
    return _alone(own, ledger.label_for(tool or "text"), numbered=False)


REFERRING = frozenset(("reference", "near-ref", "delta"))
"""Codecs that say a text by what stands above it."""


def _hinted(
    text: str, like: Hashable, ledger: Ledger, count: Callable[[str], int], made: EncodedText, without: frozenset[str]
) -> EncodedText | None:
    """A whole text said by one line: the same as one that stands, or one in a few fields different."""
    if len(text) < _HINTED:
        return None
    if "reference" not in without and (same := ledger.same(text)) is not None:
        # A label is made of what an agent wrote; one that a hint could not carry leaves the form as it is.
        if _passes(lambda: decode(reference.ref_hint(same.label), ledger) == text):
            return _hint(reference.ref_hint(same.label), "reference", ledger)
        return None
    if "near-ref" in without:
        return None
    if like is not None and (base := ledger.like(like)) is not None:
        hint = near_ref.hint_for(base.label, base.whole or "", text)
        if hint is not None and count(hint) < count(made.text):
            return _hint(hint, "near-ref", ledger)
    return None


def _hint(text: str, name: str, ledger: Ledger) -> EncodedText:
    return EncodedText(text, (name,), references=1, standing=(LedgerEntry(ledger.label_for("hint"), ()),))


def _like(text: str) -> Hashable:
    """What two objects must have in common for one to be told by the other: their keys."""
    if not text.startswith("{") or len(text) > 20_000:
        return None
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    return tuple(key for key, _ in value) if isinstance(value, Members) else None


def _plain(text: str) -> str:
    """The text itself, marked where it would be taken for a form of ours."""
    return f"{PLAIN}\n{text}" if _is_hint(text) or _numbered.holds(text) else _marked(text)


def _marked(text: str) -> str:
    """The same for a text inside another, where only its first line counts."""
    return f"{PLAIN}\n{text}" if text.startswith("[") and _is_header(first_line(text)) else text


def _is_header(line: str) -> bool:
    return line == PLAIN or delta.is_title(line) or any(codec.owns(line) for codec in TOP)


def _is_hint(text: str) -> bool:
    return text.startswith("> [") and (reference.ref_label(text) or near_ref.hint_label(text)) is not None
