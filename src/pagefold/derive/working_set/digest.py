"""The digest: one message that stands for everything before the last exchanges.

It says what was said, the plan, what was done and how that ended, shows the files as they are now, and tells names
that nothing else holds. What is left out is marked, and handles recall it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from pagefold.derive.entry import Entry
from pagefold.derive.selection import Candidate, Offer, select
from pagefold.derive.working_set.attention import attention_of
from pagefold.derive.working_set.chunks import chunks_of
from pagefold.derive.working_set.done import counted_lines, done_lines, mended_by, only_showed, told_always
from pagefold.derive.working_set.file_views import FileView, file_views, ledger_of, removed_lines
from pagefold.derive.working_set.held import DigestPart, Held
from pagefold.derive.working_set.names import IN_FILES, Names, Standing, name_parts
from pagefold.derive.working_set.not_shown import TITLE as NOT_SHOWN
from pagefold.derive.working_set.not_shown import NotShown, not_shown
from pagefold.derive.working_set.parts import Part, shortened
from pagefold.derive.working_set.reading import WorkReading
from pagefold.derive.working_set.said import Saying, names_in, said_parts, sayings
from pagefold.frozen import frozen
from pagefold.pages.copies_told import newest_lines
from pagefold.pages.exchange_page import exchange_page
from pagefold.pages.exchanges import Exchange, Work, result_of
from pagefold.pages.facts import facts_of
from pagefold.pages.files.changes import Act
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.ledger import Ledger
from pagefold.pages.outcome import Outcome
from pagefold.pages.page import Page, PageId
from pagefold.pages.voices import Voice
from pagefold.wire.message import Block, BlockKind, Message, arguments_of

_NAMES, _NAMES_MOST = 0.15, 8_000  # of a digest at least, and tokens at most, for names that stand nowhere else
_SAID, _DONE, _PLAN, _FILES, _RECALLED = 0.30, 0.12, 0.06, 0.62, 0.7  # of the rest, at most
_APPROVED = 0.3  # of the rest, for the plan that the user approved
_DONE_MOST = 400  # exchanges, the newest, of which one may have a line of its own: there is no room for more
_COPIES, _PATHS = 2, 12  # working copies of git, and paths of each that are not committed
_FILES_MOST = 16_000  # tokens of file text: beyond, it is rarely needed
_FILE_RATE = 0.7  # of the price of a token: text that an edit needs is worth more than a name


@frozen
class Material:
    """What a digest is made of: the entries of a history, where the last exchanges begin, and what was read of them."""

    entries: Sequence[Entry]
    cut: int
    turn: int
    reading: WorkReading
    rate: float = 0.0  # the least probability of being needed, for each token
    kept: frozenset[int] = frozenset()  # places that stand by themselves
    recalled: frozenset[PageId] = frozenset()  # pages that were asked for after they had left
    recalled_files: frozenset[str] = frozenset()
    handles: Mapping[str, str] = field(default_factory=dict)  # that recall results, by the call they answer

    @property
    def work(self) -> Work:
        return self.reading.work

    @property
    def standing(self) -> list[Entry]:
        """The entries that stand outside the digest."""
        return [*(self.entries[place] for place in sorted(self.kept)), *self.entries[self.cut :]]


@frozen
class WorkingSet:
    """A digest: its parts, the pages that their handles recall with the file each shows, what it holds of each message,
    the lines that later results may refer to, and the names in it."""

    parts: tuple[Part, ...] = ()
    pages: tuple[tuple[Page, str], ...] = ()
    held: Held = field(default_factory=Held)
    ledger: Ledger = field(default_factory=Ledger)
    facts: frozenset[str] = frozenset()


def working_set(material: Material, names: Names, budget: int) -> WorkingSet:
    """The digest for about so many tokens; nothing but its handle where there is no budget."""
    if budget <= 0:
        return WorkingSet()
    held = Held()
    room = budget - min(int(budget * _NAMES), _NAMES_MOST)
    parts = _recalled(material, int(room * _RECALLED), held)
    said = sayings(material.reading.said, material.cut)
    parts += _said(material, said, max(0, room - _cost(parts)), int(room * _SAID), held)
    parts += _plans(material, said, room, held)
    parts += _done(material, max(0, room - _cost(parts)), int(room * _DONE), held)
    if told := list(newest_lines(material.work.copies, _COPIES, _PATHS)):
        parts.append(Part("from git, what it last told of the working copy:", tuple(told)))
    left = room - _cost(parts)
    views = _files(material, max(0, min(int(room * _FILES), left, _FILES_MOST)), said, held)
    parts += [part for view in views for part in view.parts]
    absent = _not_shown(material, views, held, budget)
    parts += [Part(NOT_SHOWN, absent.lines)] if absent.lines else []
    if removed := removed_lines(material.work.files.removed):
        parts.append(Part("files that are known to be deleted or moved away; there may be others:", tuple(removed)))
    mentioned = facts_of("\n".join([part.text for part in parts]))
    shown = facts_of(
        "\n".join([line for view in views for part in view.parts for line in part.lines if line is not None])
    )
    stands = material.standing
    mentioned = mentioned.union(*[entry.facts for entry in stands if entry.own])
    shown = shown.union(*[entry.facts for entry in stands if not entry.own])
    standing = Standing(shown, mentioned)
    left = min(budget - _cost(parts), _NAMES_MOST)
    quoted = name_parts(names, material.entries, material.cut, material.reading, standing, left)
    for place, _ in quoted:
        if place != IN_FILES:
            held.add(place, DigestPart.NAMES, "lines with names that stand nowhere else")
    lines = [part for _, part in quoted]
    facts = mentioned | facts_of("\n".join([part.text for part in lines]))
    pages = (*((view.page, view.key) for view in views), *absent.pages)
    return WorkingSet((*parts, *lines), pages, held, ledger_of(views), facts)


def _cost(parts: Sequence[Part]) -> int:
    return sum(part.tokens for part in parts)


def _recalled(material: Material, budget: int, held: Held) -> list[Part]:
    """Results that were recalled after they had been folded, whole: they were missed."""
    recalled: list[tuple[int, Part]] = []
    exchanges = {exchange.call_id: exchange for exchange in material.work.exchanges} if material.recalled else {}
    for place, entry in enumerate(material.entries[: material.cut] if material.recalled else ()):
        for text in _recalled_texts(entry.message, exchanges, material):
            recalled.append((place, Part("a result that you recalled, whole:", tuple(text.split("\n")))))
    offers = [Offer(ResidencyLevel.STRUCTURED, part.tokens, 1.0) for _, part in recalled]
    selected = select([Candidate(place, (offer,)) for (place, _), offer in zip(recalled, offers, strict=True)], budget)
    parts: list[Part] = []
    for (place, part), offer in zip(recalled, selected.offers, strict=True):
        if offer is None:
            held.leave_out((place,), "it was recalled, but there is no room for all of it")
        else:
            parts.append(part)
            held.add(place, DigestPart.RECALLED, "it was recalled after it had been folded")
    return parts


def _recalled_texts(message: Message, exchanges: Mapping[str, Exchange], material: Material) -> Iterator[str]:
    """The results of a message that were recalled: with their exchange, or one text by itself, where it was trimmed."""
    blocks = [block for block in message.blocks if block.kind is BlockKind.RESULT]
    for call_id in dict.fromkeys(block.call_id for block in blocks):
        result = result_of(message, call_id)
        if result is not None and _was_recalled(result, exchanges.get(call_id), material):
            yield result.text
            continue
        for block in blocks:
            if block.call_id == call_id and Page.of(PageKind.EVIDENCE, block.text).id in material.recalled:
                yield block.text


def _was_recalled(result: Block, exchange: Exchange | None, material: Material) -> bool:
    """Whether a result was recalled with its exchange."""
    calls = material.entries[exchange.called].message.blocks if exchange is not None else ()
    call = next((block for block in calls if block.call_id == result.call_id), None)
    if exchange is None or call is None:
        return False
    return exchange_page(exchange, arguments_of(call), result.text).id in material.recalled


def _said(material: Material, said: Sequence[Saying], room: int, share: int, held: Held) -> list[Part]:
    found = [saying for saying in said if saying.place not in material.kept]
    unsaid = [saying.place for saying in found]
    held.leave_out(unsaid, "an older answer that only announces its calls, or for which there is no room")
    parts: list[Part] = []
    for part, told in said_parts(found, room, share):
        parts.append(part)
        for saying in told:
            held.add(saying.place, DigestPart.SAID, saying.reason or f"what was said ({saying.voice}), in short")
    return parts


def _plans(material: Material, said: Sequence[Saying], room: int, held: Held) -> list[Part]:
    """The plan that the user approved last by a call, and the one that was last written, where that is another; no
    draft of a plan that was approved later, in the words of an answer."""
    plan, work, parts = material.reading.plan, material.work, list[Part]()
    approved, lines = plan.approved if plan.approved_at < material.cut else (), plan.lines
    if approved:
        text = shortened("\n".join(approved), int(room * _APPROVED) * 4)
        parts.append(Part.of(f"your plan, which the user approved, message {plan.approved_at + 1}:", text))
        held.add(plan.approved_at, DigestPart.PLAN, "the plan that the user approved last")
    is_draft = plan.in_words and any(one.plan and one.place > work.plan for one in said)
    if lines and work.plan < material.cut and tuple(lines) != approved and not (is_draft and not plan.tasks):
        text = shortened("\n".join(lines), int(room * _PLAN) * 4)
        refused = any(
            exchange.called == work.plan and exchange.ending.outcome is Outcome.REFUSED
            for exchange in work.answered_between(work.plan, len(material.entries))
        )
        parts.append(Part.of(f"the plan as you last wrote it{', which the user refused' if refused else ''}:", text))
        held.add(work.plan, DigestPart.PLAN, "the plan as it was last written")
    return parts


def _done(material: Material, room: int, share: int, held: Held) -> list[Part]:
    exchanges = material.work.answered_between(0, material.cut)
    recent = exchanges[-_DONE_MOST:]
    lines, mended = done_lines(recent, material.handles), mended_by(recent)
    always = told_always(recent, mended)
    candidates = [
        line.candidate((place + 1) / len(lines), must_stand=line.exchanges[-1].call_id in always)
        for place, line in enumerate(lines)
    ]
    offers = select(candidates, room, share).offers
    chosen = [line for line, offer in zip(lines, offers, strict=True) if offer is not None]
    told = {exchange.call_id for line in chosen for exchange in line.exchanges}
    # A failure without its success would pass for one that nothing has mended.
    chosen = [line for line in chosen if (mended.get(line.exchanges[-1].call_id) or line.exchanges[-1].call_id) in told]
    told = {exchange.call_id for line in chosen for exchange in line.exchanges}
    for exchange in exchanges:
        if exchange.call_id in told:
            held.add(exchange.answered, DigestPart.DONE, f"its outcome: {exchange.ending.outcome}")
            held.add(exchange.called, DigestPart.DONE, f"a call with its outcome: {exchange.ending.outcome}")
    untold = [exchange for exchange in exchanges if exchange.call_id not in told and not only_showed(exchange)]
    room_for = "only counted: there is no room for it"
    held.leave_out((exchange.called for exchange in untold), f"a call that is {room_for}")
    held.leave_out((exchange.answered for exchange in untold), f"a result that is {room_for}")
    reads = any(only_showed(exchange) and exchange.call_id not in told for exchange in exchanges)
    title = f"what was done, in order, with its outcome{', without what only showed files' if reads else ''}:"
    texts = [*counted_lines(untold), *(line.text for line in chosen)]
    return [Part(title, tuple(texts))] if texts else []


def _files(material: Material, budget: int, said: Sequence[Saying], held: Held) -> list[FileView]:
    now = attention_of(material.reading, material.entries, material.cut, material.turn)
    files = material.work.files.files
    chunks = list(chunks_of(files, now, material.recalled_files))
    showed = (exchange.answered for exchange in material.work.exchanges if exchange.act is Act.SHOWED)
    held.leave_out(showed, "what it showed has changed since, or is less likely needed than the rest")
    asked_for = material.recalled_files | _named([chunk.key for chunk in chunks if chunk.small], said)
    wanted = [
        chunk for chunk in chunks if chunk.key in asked_for or chunk.need >= _FILE_RATE * material.rate * chunk.tokens
    ]
    candidates = [chunk.candidate(asked_for=chunk.key in asked_for) for chunk in wanted]
    offers = select(candidates, budget).offers
    chosen = [chunk for chunk, offer in zip(wanted, offers, strict=True) if offer is not None]
    for chunk in chosen:
        for place in set(files[chunk.key].text.regions[chunk.region].seen[chunk.begin : chunk.end]):
            held.add(place, DigestPart.FILES, "lines that it showed or wrote stand in a view of the file")
    return file_views(files, chosen)


def _not_shown(material: Material, views: Sequence[FileView], held: Held, budget: int) -> NotShown:
    standing = material.kept | held.places_in(DigestPart.RECALLED)
    return not_shown(material.work.files.files, {view.key for view in views}, standing, material.cut, budget)


def _named(keys: Sequence[str], said: Sequence[Saying]) -> frozenset[str]:
    """The files that the user's words name. These words stand in the digest, and what they speak of is short and may be
    gone from the disk: "keep in mind what it says" means nothing without it."""
    by_user = [saying.text for saying in said if saying.voice is Voice.USER] if keys else []
    words = frozenset[str]().union(*map(names_in, by_user))
    return frozenset(key for key in keys if key.rpartition("/")[2] in words)
