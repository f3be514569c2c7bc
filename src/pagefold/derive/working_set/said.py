"""What was said before the fold: the user's words whole as far as they fit, the answers that matter, the rest in short.

The answer that the latest ask replies to stays whole: "do 2 and 3" means nothing without the list. So does the client's
last summary, which is all that is left of what came before it, and what agents reported last.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from pagefold.derive.selection import Candidate, Offer, select
from pagefold.derive.working_set.parts import GAP, Part, on_one_line, shortened
from pagefold.frozen import frozen
from pagefold.pages.exchanges import Exchange, result_of
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.outcome import BEGUN, Outcome
from pagefold.pages.pins import OPENING
from pagefold.pages.voices import INSTRUCTIONS, Voice, Words, expands, without_reminders, words_of
from pagefold.wire.message import BlockKind, Message, Role

_WHOLE_ANSWERS, _WHOLE_REPORTS = 3, 2
_REPORT = 300  # characters: a shorter result only says that an agent was begun
_SKILLS = ("Skill", "skill")
_A_COMMAND = "a command"
_NAME_ENDS = "</command-args>"
_LAUNCHES = "Launching skill"  # a result; what follows it in the user's place is the skill's text
_ASK, _OLD_REPORT, _CLIENT = 2_000, 600, 300  # characters of what does not have to stay whole
_LONGEST = {Voice.SUMMARY: 24_000, Voice.AGENT: 8_000}
_LONGEST_OTHER, _LONGEST_ANSWERED = 12_000, 24_000
_SHORT, _LEAST = 300, 1_500  # characters that are told at least, of the latest ask and what it replies to the second
_TITLE = 12  # tokens
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z#*`\d-])")
_ANNOUNCES = re.compile(
    r"\A(?:(?:Now|Next|First|Then|Good|Great|Perfect|Okay|OK|So|And)[,.!:]?\s+)*"
    r"(?:let me|let's|I'll|I will|I'm going to)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]+")
_CHOICE = re.compile(r"(?<![\w.#/-])#?(\d{1,2}|[A-Z])(?![\w/-]|\.\d)")  # "1 and 3", "#2", "B"
_ITEM = re.compile(r"\A(?:[-*]\s+|#+\s*)?(?:\*\*)?(?:[Oo]ption\s+)?(\d{1,2}|[A-Z])(?:\*\*)?[.):]")
_CHOOSES, _LABEL = 200, 4  # characters of an ask that may choose from a list; a longer one may begin with its choice
_ACCEPTS = re.compile(
    r"\A\W*(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|approved?|proceed|implement|lgtm|perfect|all good|do (?:it|that|this)"
    r"|go(?: ahead| with| for)?|let'?s (?:go|do|give)|please (?:do|proceed|go|implement)|(?:sounds|looks) good)\b",
    re.IGNORECASE,
)
_OBJECTS = re.compile(r"\b(?:but|except|instead|not|no|back|wait)\b|n't\b", re.IGNORECASE)
_IS_PLAN = re.compile(r"<proposed_plan>|^#+ .*\b(?:[Pp]lan|[Pp]roposal|[Dd]esign|[Aa]pproach)\b", re.MULTILINE)
_TAKES_PLAN = re.compile(r"\b(?:plan|implement(?:ation)?)\b", re.IGNORECASE)
_GIVES_PLAN = re.compile(r"\A\W*(?:please )?(?:implement|execute) (?:the following|this) plan\b", re.IGNORECASE)
_PLAN, _LISTED, _ACCEPTING = 300, 3, 300  # characters and items of a proposal; characters of the ask that accepts it
_LIST = re.compile(r"^\s*(?:[-*]|\d+[.)]|#+)\s", re.MULTILINE)
_CHOSEN = 200  # characters that are told of a chosen item
_NO_ASKS = ("/compact", "!")
_TELLING = 25  # characters: "Great idea!" tells nothing
_ANSWERED, _LATEST = "the answer that the latest ask replies to", "the latest ask"  # these give way last
APPROVED, GIVEN = "the plan that the user said yes to last", "the last plan that the user gave"  # and these
_GIVE_WAY_LAST = (_ANSWERED, _LATEST, APPROVED, GIVEN)


@frozen
class Saying:
    """One message's words. `reason` says why they have to stay whole; nothing where they may be shortened. `acts` where
    the message also calls tools: what it only announces is told by the calls; `answers` where the user answered a
    question of the agent's by a tool; `chosen` are the numbers and letters that the next ask may choose of its list;
    `behind` is the command that the words were typed, or put in, behind; `plan` says why it is the plan that was
    approved last, and nothing where it is not."""

    place: int
    voice: Voice
    text: str
    reason: str = ""
    speaker: str = ""
    acts: bool = False
    answers: bool = False
    chosen: frozenset[str] = frozenset()
    behind: str = ""
    plan: str = ""

    @property
    def title(self) -> str:
        number = self.place + 1
        match self.voice:
            case Voice.AGENT:
                return f"report of {f'the agent {self.speaker!r}' if self.speaker else 'an agent'}, message {number}:"
            case Voice.SUMMARY:
                return f"the client's summary of what came before, message {number}:"
            case Voice.TOOL:
                return f"from a tool, late, message {number}:"
            case Voice.CLIENT:
                return f"put in by the client, not by the user, message {number}:"
        if self.plan == APPROVED:
            return f"{self.voice}, a plan that the user said yes to, message {number}:"
        how = "answering what you asked, " if self.answers else f"behind {self.behind}, " if self.behind else ""
        return f"{self.voice}, {how}message {number}:"


def sayings(said: Sequence[Saying], cut: int) -> list[Saying]:
    """What of this was said before the cut, in order, with those marked that have to stay whole."""
    asks = [index for index, saying in enumerate(said) if _asks(saying)]
    found = [_with_choice(saying, after) for saying, after in pairwise([*said, None]) if saying and saying.place < cut]
    by_voice = {
        voice: [index for index, saying in enumerate(found) if saying.voice is voice and not saying.answers]
        for voice in Voice
    }
    whole = dict.fromkeys(_accepted(said, len(found)), "the last proposal that the user accepted")
    whole |= dict.fromkeys(by_voice[Voice.YOU][-_WHOLE_ANSWERS:], "one of the last answers")
    whole |= dict.fromkeys(by_voice[Voice.AGENT][-_WHOLE_REPORTS:], "what an agent reported last")
    whole |= dict.fromkeys(by_voice[Voice.SUMMARY][-1:], "all that is left of what came before it")
    whole |= dict.fromkeys(by_voice[Voice.USER][:1], "what the user asked first")
    instructions = [index for index in by_voice[Voice.CLIENT] if found[index].text.startswith(INSTRUCTIONS)]
    whole |= dict.fromkeys(instructions[-1:], "the instructions of the project")
    newest = [index for index, saying in enumerate(said) if saying.voice is not Voice.YOU]
    for ask in {*asks[-1:], *newest[-1:]}:
        answers = [index for index in by_voice[Voice.YOU] if index < ask]
        whole |= dict.fromkeys(answers[-1:], _ANSWERED)
        if ask < len(found):
            whole[ask] = _LATEST
    plan = _last_plan(said, len(found))
    for index in plan:
        if whole.get(index) not in (_ANSWERED, _LATEST):
            whole[index] = plan[index]
    for index, reason in whole.items():
        found[index] = replace(found[index], reason=reason, plan=plan.get(index, ""))
    return found


def _asks(saying: Saying) -> bool:
    """Whether the user asks for something: what stands behind `/compact` is for whoever writes the summary, and what
    stands behind `!` the user's own shell has run."""
    return saying.voice is Voice.USER and not saying.answers and saying.behind not in _NO_ASKS


def _accepted(said: Sequence[Saying], count: int) -> list[int]:
    """Of the first so many sayings, the last proposal that the user took up: an answer with a list, behind which the
    user briefly said yes. It is what is done from there on."""
    return [
        index
        for index, (answer, ask) in enumerate(pairwise(said[: count + 1]))
        if _says_yes(answer, ask) and len(_LIST.findall(answer.text)) >= _LISTED
    ][-1:]


def _says_yes(answer: Saying, ask: Saying) -> bool:
    """Whether an ask briefly says yes to an answer that may be a proposal."""
    by_whom = answer.voice is Voice.YOU and ask.voice is Voice.USER
    return by_whom and len(answer.text) >= _PLAN and len(ask.text) <= _ACCEPTING and bool(_ACCEPTS.match(ask.text))


def _last_plan(said: Sequence[Saying], count: int) -> dict[int, str]:
    """Of the first so many sayings, the plan that the user approved last, with why it is that: one that the user gave,
    or an answer that is a plan, behind which the user said yes without an objection."""
    for index in range(count - 1, -1, -1):
        saying, ask = said[index], said[index + 1] if index + 1 < len(said) else None
        if _asks(saying) and _GIVES_PLAN.match(saying.text) and len(saying.text) >= _PLAN:
            return {index: GIVEN}
        if ask is None or not _says_yes(saying, ask) or _OBJECTS.search(ask.text):
            continue
        if _IS_PLAN.search(saying.text) or (_TAKES_PLAN.search(ask.text) and _LIST.search(saying.text)):
            return {index: APPROVED}
    return {}


def _with_choice(saying: Saying, after: Saying | None) -> Saying:
    """An answer with what the ask behind it may choose of its list: "1 and 2" means nothing without the items."""
    replied = saying.voice is Voice.YOU and after is not None and after.voice is Voice.USER
    if not replied or after is None:
        return saying
    choosing = after.text if len(after.text) <= _CHOOSES else after.text[:_LABEL]
    return replace(saying, chosen=frozenset(_CHOICE.findall(choosing)))


def said_parts(found: Sequence[Saying], room: int, share: int) -> list[tuple[Part, list[Saying]]]:
    """The parts that tell these sayings, each with the sayings that it tells. What has to stay whole may take all the
    room; with the rest they make about `share` tokens."""
    forms = [_forms(saying, share) for saying in found]
    candidates = [_candidate(saying, forms[at], at / len(found)) for at, saying in enumerate(found)]
    told: list[tuple[Saying, str]] = []
    for at, offer in enumerate(select(candidates, room, share).offers):
        if offer is not None:
            told.append((found[at], forms[at][candidates[at].offers.index(offer)]))
    return list(_parts(told))


def _forms(saying: Saying, share: int) -> tuple[str, ...]:
    """The texts that may stand for a saying, the longest first; none where it says nothing of its own."""
    longest = _told(saying, share)
    if saying.voice is Voice.YOU:
        short = in_short(saying.text, saying.chosen, acts=saying.acts)
        return tuple(filter(None, (longest, short) if saying.reason else (short,)))
    return longest, shortened(saying.text, _SHORT)


def _candidate(saying: Saying, forms: Sequence[str], recency: float) -> Candidate:
    """What the forms of a saying cost and are worth. What has to stay whole does, and what others than the agent itself
    said stands at least in short. Where there is no room old answers go first, then what agents reported and what the
    client put in is shortened, then what the user said. `recency` is from 0, the oldest, to 1."""
    worth = recency + {Voice.YOU: 1.0, Voice.USER: 3.0}.get(saying.voice, 2.0)
    costs = [len(form) // 4 + _TITLE for form in forms]
    offers = tuple([Offer(ResidencyLevel.STRUCTURED, cost, worth * cost) for cost in costs])
    floor = 0 if saying.reason else None if saying.voice is Voice.YOU else len(offers) - 1
    return Candidate(saying.place, offers, floor)


def _parts(told: Sequence[tuple[Saying, str]]) -> Iterator[tuple[Part, list[Saying]]]:
    """A part for each saying; answers in short that follow one another share one."""
    run: list[tuple[Saying, str]] = []
    for saying, text in [*told, (None, "")]:
        if run and (saying is None or saying.voice is not Voice.YOU or saying.reason):
            numbers = " to ".join(dict.fromkeys(str(other.place + 1) for other, _ in (run[0], run[-1])))
            title = f"you, in short, each behind the number of its message: {numbers}"
            lines = tuple([f"{other.place + 1}: {short}" for other, short in run])
            yield Part(title, lines), [other for other, _ in run]
            run = []
        if saying is None:
            return
        if saying.voice is Voice.YOU and not saying.reason:
            run.append((saying, text))
        else:
            yield Part.of(saying.title, text), [saying]


def _told(saying: Saying, budget: int) -> str:
    """What is told of a saying where there is room."""
    if saying.reason:
        last = saying.reason in _GIVE_WAY_LAST
        longest = _LONGEST.get(saying.voice, _LONGEST_ANSWERED if last else _LONGEST_OTHER)
        room = max(_LEAST, budget * 4) if last else max(_SHORT, budget * 2)
        return shortened(saying.text, min(longest, room))
    if saying.voice is Voice.YOU:
        return in_short(saying.text, saying.chosen, acts=saying.acts)
    longest = _ASK if saying.behind else {Voice.USER: _ASK, Voice.AGENT: _OLD_REPORT}.get(saying.voice, _CLIENT)
    return shortened(saying.text, longest)


def spoken(message: Message, place: int, answered: Sequence[Exchange], *, expanded: str) -> Iterator[Saying]:
    """What is said by the message at a place. `answered` are the exchanges whose results it holds: an agent's report,
    or the user's answer to a question, is said too. `expanded` is what was launched before it: nothing, a skill or a
    command."""
    if message.role in (Role.USER, Role.ASSISTANT):
        text = words_of_message(message)
        if text and message.role is Role.ASSISTANT:
            acts = any(block.kind is BlockKind.CALL for block in message.blocks)
            yield Saying(place, Voice.YOU, text, acts=acts)
        elif text:
            yield from _in_the_users_place(place, text, expanded)
    told = [exchange for exchange in answered if exchange.ending.outcome is Outcome.OK]
    report = _result(message, [one for one in told if one.delegated and one.ending.line != BEGUN])
    if report and len(report[1]) >= _REPORT:
        yield Saying(place, Voice.AGENT, report[1], speaker=report[0].purpose)
    if answer := _result(message, [exchange for exchange in told if exchange.asked_user]):
        yield Saying(place, Voice.USER, without_reminders(answer[1]), answers=True)


def _in_the_users_place(place: int, text: str, expanded: str) -> Iterator[Saying]:
    """What is said where the user speaks. The text of a command may stand in one message with its name."""
    name, mark, of_command = text.rpartition(_NAME_ENDS)
    if expands(text) and of_command.strip() and words_of(f"{name}{mark}").behind:
        yield from _in_the_users_place(place, f"{name}{mark}", "")
        text, expanded = of_command.strip(), _A_COMMAND
    words = Words(Voice.CLIENT, text) if expanded else words_of(text)
    behind = words.behind or (expanded if expanded == _A_COMMAND else "")
    yield Saying(place, words.voice, words.text, speaker=words.speaker, behind=behind)


def _result(message: Message, answered: Sequence[Exchange]) -> tuple[Exchange, str] | None:
    """The last of these exchanges that has a result in a message, with that result."""
    for exchange in reversed(answered):
        if result := result_of(message, exchange.call_id):
            return exchange, result.text
    return None


def launches(message: Message, answered: Sequence[Exchange]) -> str:
    """Of what the text behind this message in the user's place is that the client has put in: a command or a skill;
    nothing where none is. No other tool's result makes the user's words the client's."""
    if message.role is Role.USER and expands(words_of_message(message)):
        return _A_COMMAND
    return "a skill" if message.text.startswith(_LAUNCHES) and any(one.name in _SKILLS for one in answered) else ""


def words_of_message(message: Message) -> str:
    """The text of a message without what a harness adds to it."""
    texts = [block.text for block in message.blocks if block.kind is BlockKind.TEXT]
    if message.place < 0:  # what is pinned stands in every request: no digest has to quote it
        texts = [text for text in texts if not text.startswith(OPENING)]
    return "\n".join(stripped for text in texts if (stripped := without_reminders(text)))


@lru_cache(maxsize=1 << 10)
def names_in(text: str) -> frozenset[str]:
    """What may be the name of a file in a text: each run of letters, digits, `.`, `-` and `_`, and what stands in it
    before a dot, which may end a sentence."""
    runs = set(_NAME.findall(text))
    return frozenset(runs.union(run[:at] for run in runs for at, letter in enumerate(run) if letter == "."))


@lru_cache(maxsize=1 << 13)
def in_short(text: str, chosen: frozenset[str] = frozenset(), *, acts: bool = False) -> str:
    """The first and the last sentence of a text, and the `chosen` items of its list, on one line. Sentences that only
    announce the calls of a message that `acts` are left out. A mark stands wherever something was."""
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("```")]
    items = {match.group(1): at for at, line in enumerate(lines) if (match := _ITEM.match(line))}
    whole = {at for label, at in items.items() if label in chosen and len(items) > 1}
    sentences = [
        (sentence, at in whole)
        for at, line in enumerate(lines)
        for sentence in ([line] if at in whole else _SENTENCE.split(line))
    ]
    if not sentences:
        return ""
    telling = [at for at, (sentence, _) in enumerate(sentences) if len(sentence) >= _TELLING] or [0]
    ends = [at for at in (telling[0], telling[-1]) if not (acts and _ANNOUNCES.match(sentences[at][0]))]
    kept = sorted({*ends, *(at for at, (_, is_chosen) in enumerate(sentences) if is_chosen)})
    if not kept:
        return ""
    shown: list[str] = []
    for before, at in pairwise([-1, *kept]):
        sentence, is_chosen = sentences[at]
        shown += [GAP] if at > before + 1 else []
        shown.append(on_one_line(shortened(sentence, _CHOSEN if is_chosen else _SHORT)))
    return " ".join([*shown, GAP] if kept[-1] < len(sentences) - 1 else shown)
