"""Encodes a text in its cheapest lossless form, and decodes forms.

`encode` opens envelopes, tries the codecs that apply on what is inside, and replaces lines that were shown earlier in
the same request with references. Candidates are ranked by length; only the winner is counted. Before it is used it is
decoded: the same bytes have to come back, for JSON the same values with types, key order and spelling of numbers. A
form that fails this gate, raises or is not cheaper is dropped, and the text itself is shown.

Of a large text, codecs for lines are tried on a part first, and tokens are estimated from samples: `reason` says so,
and a form has to save more than such an estimate may be off.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import field
from functools import cache, lru_cache, partial

from pagefold.encode import delta, near_ref, reference
from pagefold.encode.codec import PLAIN, Codec, first_line
from pagefold.encode.codec import decode as decode_self_contained
from pagefold.encode.codecs import INSIDE, LINE_CODECS, TOP
from pagefold.encode.codecs.json_codec import JsonCodec
from pagefold.encode.codecs.numbered import NumberedCodec
from pagefold.encode.notation.json_value import Members, container
from pagefold.frozen import frozen
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.tokens import counter, estimates_words

_LARGE = 1_000_000
_LINES = 60_000
_PARTLY = 150_000  # characters from which on a text is tried in part first, and its tokens are estimated
_STRETCH, _STRETCHES = 8_000, 3
_SLICE, _EVERY = 2_000, 5  # one slice in five is counted
_OFF = 0.05
_RUN = 4096
_SUSPECT = 40_000  # shorter texts are counted in time whatever they hold
_ENDLESS = 15_000
_SHORT = 200
_NUMBERED = re.compile(r" *\d+[→\t]")
_HINTED = 200  # characters below which a hint is hardly shorter than the text
_LITTLE = 0.02
_COMPARED = 20_000
_LINE_CODECS = frozenset(codec.name for codec in LINE_CODECS)
_json = JsonCodec(exact=False)
_numbered = NumberedCodec()

REFERRING = frozenset(("reference", "near-ref", "delta"))
"""Codecs whose forms refer to what was shown earlier in the request."""


@frozen
class EncodedText:
    """What the model is shown in place of a text: by which codecs, at what cost, and which codecs failed the gate."""

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
    """Returns the cheapest lossless form. `tool` names the text; with a ledger, the form may refer to earlier texts.

    The result of a call that failed is shown whole: a retry must not look like an echo. `without` names codecs to leave
    out, `floor` is what lines have to be worth, in tokens, to be referred to.
    """
    earlier, exact = ledger if ledger is not None else Ledger(), count or counter("o200k").count
    name = tool or "text"
    if reason := _why_unfit(text):
        return EncodedText(_unencoded(text), reason=reason, standing=(LedgerEntry(earlier.label_for(name), ()),))
    partly = len(text) > _PARTLY
    count = partial(_estimate, exact) if partly else exact
    before = count(text)
    own = _own_form(text, without) if partly else _cached_own_form(text, without)
    skipped = list(own.skipped)
    if _is_endless(own.form):
        made = EncodedText(own.form, own.codecs, standing=(LedgerEntry(earlier.label_for(name), ()),))
    elif ledger is None or failed or "delta" in without:
        made = _without_references(own, earlier.label_for(name))
    else:
        made = _with_references(own, name, earlier, skipped, floor)
    if ledger is not None and not failed:
        made = _as_hint(text, own.keys, earlier, count, made, without) or made
    tokens = count(made.text) if made.text != text else before
    if made.text == text or tokens >= (before * (1 - _OFF) if partly else before):
        plain = _unencoded(text)
        tokens = count(plain) if plain != text else before
        lines = () if _is_endless(plain) else tuple(plain.split("\n"))
        made = EncodedText(plain, reason="as it is", standing=(LedgerEntry(earlier.label_for(name), lines),))
    standing = made.standing
    if not made.references and standing:
        # The text is shown whole, so a later one may be the same, or nearly.
        first = standing[0]
        standing = (LedgerEntry(first.label, first.lines, first.first, text, own.keys), *standing[1:])
    estimated = "tokens estimated" if partly else "long words estimated" if estimates_words(text) else ""
    reason = "; ".join(filter(None, (made.reason, estimated)))
    return EncodedText(made.text, made.codecs, tokens, before, made.references, tuple(skipped), reason, standing)


def decode(form: str, ledger: Ledger | None = None) -> str:
    """Returns the text of a form; JSON at the top comes back compact. `ledger` is the one it was encoded with.

    Raises ValueError where the form refers to what the ledger does not know.
    """
    earlier = ledger if ledger is not None else Ledger()
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
    return decode_self_contained(_numbered.decode(delta.decode(form, earlier), str), TOP)


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
    """What a text becomes without references: its form, the form with sparse line numbers where there are any, the
    codecs used, those that failed, and the keys of a JSON object."""

    form: str
    codecs: tuple[str, ...]
    skipped: tuple[str, ...]
    sparse: str | None
    keys: Hashable


def _own_form(text: str, without: frozenset[str]) -> _OwnForm:
    skipped: list[str] = []
    form, codecs = self_contained(text, skipped, *_chains(without))
    if not codecs or _numbered.holds(form):
        form, codecs = _unencoded(text), ()  # a form in which a line looks like a header could be misread
    numbers = None if _numbered.name in without or _is_endless(form) else _numbered.encode(form, str)
    sparse = numbers if numbers and _passes(lambda: _numbered.decode(numbers, str) == form) else None
    return _OwnForm(form, codecs, tuple(skipped), sparse, _keys_of(text))


# After a fold the last results are encoded anew, against other texts; their own forms have not changed.
_cached_own_form = lru_cache(maxsize=64)(_own_form)


def self_contained(
    text: str, skipped: list[str], codecs: tuple[Codec, ...], inside: tuple[Codec, ...]
) -> tuple[str, tuple[str, ...]]:
    """Returns the shortest form without references, and its codecs; adds to `skipped` whichever failed the gate."""
    form, names = _shortest(text, codecs, inside, skipped)
    if not names or _passes(lambda: _json.says(form, text) or decode_self_contained(form, codecs) == text):
        return form, names
    skipped.append(names[0])
    return text, ()


def _why_unfit(text: str) -> str:
    """Returns why a text is not encoded and not even counted, or "": both would take longer than they are worth."""
    if len(text) > _LARGE:
        return f"more than {_LARGE:,} characters"
    if "\x00" in text:
        return "binary"
    if text.count("\n") > _LINES:
        return f"more than {_LINES:,} lines"
    return "one character over and over" if len(text) > _SUSPECT and _is_monotonous(text) else ""


def _is_monotonous(text: str) -> bool:
    # A run that long fills one of the stretches of half its length, so it is looked for only there.
    half = _RUN // 2
    for start in range(0, len(text) - half + 1, half):
        sign = text[start]
        if text.startswith(sign * half, start) and sign * _RUN in text[max(0, start - half) : start + 2 * half]:
            return True
    return False


def _is_endless(text: str) -> bool:
    """Whether a text has too many lines to look at them one by one in time."""
    return len(text) > _ENDLESS and text.count("\n") > _ENDLESS


def _estimate(count: Callable[[str], int], text: str) -> int:
    """Estimates the tokens of a large text from slices of it; counts other texts."""
    if len(text) <= _PARTLY:
        return count(text)
    slices = "\n".join(text[at : at + _SLICE] for at in range(0, len(text), _SLICE * _EVERY))
    return round(count(slices) * len(text) / len(slices))


def _sample(text: str) -> str:
    """Returns some stretches of a large text, in whole lines."""
    step = (len(text) - _STRETCH) // (_STRETCHES - 1)
    stretches = (text[at : at + _STRETCH] for at in range(0, len(text), step))
    return "\n".join(it[it.find("\n") + 1 : it.rfind("\n") + 1 or len(it)].rstrip("\n") for it in stretches)


@cache
def _chains(without: frozenset[str]) -> tuple[tuple[Codec, ...], tuple[Codec, ...]]:
    """Returns the codecs for a whole result and for a text inside one, without those that are switched off."""
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
            if codec.name not in _LINE_CODECS or len(best) < _LITTLE * len(text):
                break  # an envelope or JSON, or hardly anything is left: no codec for lines would save more
    return best, names


def _not_worth_trying(
    text: str, codecs: tuple[Codec, ...], inside: tuple[Codec, ...], skipped: list[str]
) -> frozenset[str]:
    """Returns the codecs for lines that are not tried on a text; on a large one only the best for a sample of it is."""
    if len(text) < _SHORT or _NUMBERED.match(text):
        return _LINE_CODECS  # too short, or a numbered file, which has a codec of its own
    promising: tuple[str, ...] = ()
    if len(text) > _PARTLY:
        for_lines = tuple(codec for codec in codecs if codec.name in _LINE_CODECS)
        promising = _shortest(_sample(text), for_lines, inside, skipped)[1][:1]
    elif not _is_endless(text):
        return frozenset()
    return _LINE_CODECS - ({"repeats"} if _is_endless(text) else {"repeats", *promising})


def _without_references(own: _OwnForm, label: str, *, numbered: bool = True) -> EncodedText:
    form, codecs = own.form, own.codecs
    if numbered and own.sparse is not None:
        form, codecs = own.sparse, (*codecs, _numbered.name)
    return EncodedText(form, codecs, standing=(LedgerEntry(label, tuple(form.split("\n"))),))


def _with_references(own: _OwnForm, name: str, ledger: Ledger, skipped: list[str], floor: int) -> EncodedText:
    """Replaces lines that were shown earlier with references, if decoding gives them back."""
    numbered = own.sparse is not None
    referring = delta.encode(own.form, ledger, name, numbered=numbered, floor=floor)
    if referring is not None:
        if _passes(lambda: delta.decode(referring.text, ledger) == (own.sparse if numbered else own.form)):
            names = (*own.codecs, *((_numbered.name,) if numbered else ()))
            names += ("delta",) if referring.references else ()
            return EncodedText(referring.text, names, references=referring.references, standing=referring.standing)
        skipped.append("delta")
    return _without_references(own, ledger.label_for(name), numbered=False)


def _as_hint(
    text: str, keys: Hashable, ledger: Ledger, count: Callable[[str], int], made: EncodedText, without: frozenset[str]
) -> EncodedText | None:
    """Returns one line for a text that equals an earlier one, or differs from it in a few fields. None for others."""
    if len(text) < _HINTED:
        return None
    if "reference" not in without and (same := ledger.same(text)) is not None:
        # A label is made of what an agent wrote; one that a hint could not carry leaves the form as it is.
        if _passes(lambda: decode(reference.ref_hint(same.label), ledger) == text):
            return _hint(reference.ref_hint(same.label), "reference", ledger)
        return None
    if "near-ref" not in without and keys is not None and (base := ledger.like(keys)) is not None:
        hint = near_ref.hint_for(base.label, base.whole or "", text)
        if hint is not None and count(hint) < count(made.text):
            return _hint(hint, "near-ref", ledger)
    return None


def _hint(text: str, name: str, ledger: Ledger) -> EncodedText:
    return EncodedText(text, (name,), references=1, standing=(LedgerEntry(ledger.label_for("hint"), ()),))


def _keys_of(text: str) -> Hashable:
    """Returns the keys of a JSON object, None for other texts: near-ref compares objects with the same keys."""
    if not text.startswith("{") or len(text) > _COMPARED:
        return None
    value = container(text)
    return tuple(key for key, _ in value) if isinstance(value, Members) else None


def _unencoded(text: str) -> str:
    """Returns the text itself, marked where it would be taken for a form."""
    return f"{PLAIN}\n{text}" if _is_hint(text) or _numbered.holds(text) else _marked(text)


def _marked(text: str) -> str:
    """Does the same for a text inside another, where only its first line counts."""
    return f"{PLAIN}\n{text}" if text.startswith("[") and _is_header(first_line(text)) else text


def _is_header(line: str) -> bool:
    return line == PLAIN or delta.is_title(line) or any(codec.owns(line) for codec in TOP)


def _is_hint(text: str) -> bool:
    return text.startswith("> [") and (reference.ref_label(text) or near_ref.hint_label(text)) is not None
