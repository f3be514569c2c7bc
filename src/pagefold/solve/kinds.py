"""The kinds of tasks: what each makes hard for an agent whose context is made smaller.

All of them are work on one small project with a long handbook in between, which has to be read and pushes what came
before out of a small window. `size` is how many tokens that is.
"""

from collections.abc import Callable, Mapping, Sequence

from pagefold.solve.project import DOMAINS, Function, Project, checker
from pagefold.solve.task import Ask, Change, Look, Pick, Recollect, Retry, Run, Say, Step, Task

_DOCUMENT = 2_600  # tokens of a document, about
_PAST = 1.25  # times the size, so that it is passed
HOUR = 3_700.0


def _reading(project: Project, size: int) -> Ask:
    paths = project.documents(-(-int(size * _PAST) // _DOCUMENT))
    text = f"Read every file of handbook/ ({len(paths)} files), one after the other, and tell me when you are done."
    return Ask(text, (*map(Look, paths), Say("I have read the handbook.")))


def _first(project: Project, modules: int, functions: int = 5) -> list[Function]:
    """The first function of each of so many modules."""
    return [project.module(noun, functions)[0] for noun in project.nouns[:modules]]


def _caps(targets: Sequence[tuple[Function, int]]) -> str:
    return "\n".join(f"- {function.name} in {function.path}: {cap}" for function, cap in targets)


def _changes(targets: Sequence[tuple[Function, int]], *, looks: bool = False) -> tuple[Step, ...]:
    steps: list[Step] = []
    for function, cap in targets:
        steps += [Look(function.path)] if looks else []
        steps.append(Change(function.path, function.anchor, cap))
    return tuple(steps)


def _new_caps(project: Project, functions: Sequence[Function]) -> list[tuple[Function, int]]:
    return [(function, project.dice.randrange(1_000, 9_999)) for function in functions]


def _task(project: Project, kind: str, asks: Sequence[Ask], check: str, **more: frozenset[str]) -> Task:
    """The task, with a wrong way of doing it: everything but the last step that changes something."""
    wrong = list(asks)
    for place in range(len(asks) - 1, -1, -1):
        plan = asks[place].plan
        acts = [at for at, step in enumerate(plan) if isinstance(step, Change | Recollect | Pick | Retry)]
        if acts:
            kept = tuple(step for at, step in enumerate(plan) if at != acts[-1])
            wrong[place] = Ask(asks[place].text, kept, asks[place].removed, asks[place].idle)
            break
    name = f"{kind}-{project.domain}"
    return Task(name, kind, project.seed, project.files, tuple(asks), check, tuple(wrong), **more)


def several_edits(project: Project, size: int) -> Task:
    """Files are read first, then comes the handbook, then all of them are edited."""
    targets = _new_caps(project, _first(project, 6))
    looks = tuple(Look(function.path) for function, _ in targets)
    asks = [
        Ask(f"Read the modules in {project.domain}/. Change nothing yet.", (*looks, Say("I know the modules now."))),
        _reading(project, size),
        Ask(
            f"Set these caps, and change nothing else:\n{_caps(targets)}",
            (*_changes(targets), Say("All caps are set.")),
        ),
    ]
    return _task(project, "several-edits", asks, checker(targets, {}))


def failing_tests(project: Project, size: int) -> Task:
    """Tests name what is wrong; after the handbook the failures have to be known still, or be run for again."""
    targets = _new_caps(project, _first(project, 5))
    cases = [(f.path.removesuffix(".py").replace("/", "."), f.name, cap) for f, cap in targets]
    project.files["check_caps.py"] = (
        f"import importlib\n\nbad = 0\nfor module, name, cap in {cases!r}:\n"
        "    function = getattr(importlib.import_module(module), name)\n"
        "    found = function(10**9) - function(0)\n"
        "    if found != cap:\n        bad += 1\n        print(f'FAIL {name}: the cap is {found}, expected {cap}')\n"
        "print('failures:', bad)\n"
    )
    looks = tuple(Look(function.path) for function, _ in targets)
    asks = [
        Ask(
            "Run python check_caps.py and look at the modules it complains about.",
            (Run("python check_caps.py"), *looks, Say("Five caps are wrong.")),
        ),
        _reading(project, size),
        Ask(
            "Now mend all that failed, then run python check_caps.py again.",
            (*_changes(targets), Run("python check_caps.py"), Say("All pass.")),
        ),
    ]
    return _task(project, "failing-tests", asks, checker(targets, {}))


def change_of_mind(project: Project, size: int) -> Task:
    """The user takes a part of it back; at last the newest number of an early change is asked for."""
    functions = _first(project, 6)
    before = [(function, 3_000 + place) for place, function in enumerate(functions)]
    after = [(function, 2_750 + place) for place, function in enumerate(functions[:3])]
    asked = functions[1]
    pattern = rf"{_escaped(asked.anchor)}\n.*\n.*\n\s+if part > (\d+):"
    asks = [
        Ask(f"Set these caps:\n{_caps(before)}", (*_changes(before, looks=True), Say("Done."))),
        Ask(
            f"On second thought, make these smaller; the others stay:\n{_caps(after)}", (*_changes(after), Say("Done."))
        ),
        _reading(project, size),
        Ask(
            f"Write the cap that {asked.name} has now into answer.txt, the number alone.",
            (Recollect(pattern, "answer.txt", Look(asked.path)), Say("It is in answer.txt.")),
        ),
    ]
    return _task(project, "change-of-mind", asks, checker([*after, *before[3:]], {"answer.txt": str(after[1][1])}))


def early_fact(project: Project, size: int) -> Task:
    """Something that was read at the beginning, and can be read nowhere else any more, is asked for at the end."""
    code = f"{project.dice.choice('KLMN')}{project.dice.randrange(10_000, 99_999)}"
    limit = project.dice.randrange(100, 999)
    project.files["NOTES.md"] = (
        f"# Notes\n\n- The release code is {code}.\n- The retry limit is {limit} tries.\n- Ask Ada before a release.\n"
    )
    targets = _new_caps(project, _first(project, 4))
    asks = [
        Ask(
            "Read NOTES.md and keep in mind what it says: I will delete it.",
            (Look("NOTES.md"), Say("I have read the notes.")),
        ),
        Ask(
            f"Set these caps:\n{_caps(targets)}", (*_changes(targets, looks=True), Say("Done.")), removed=("NOTES.md",)
        ),
        _reading(project, size),
        Ask(
            "Write the release code from NOTES.md into code.txt and the retry limit into limit.txt.",
            (
                Recollect(r"release code is ([A-Z]\d+)", "code.txt"),
                Recollect(r"retry limit is (\d+) tries", "limit.txt"),
                Say("Both are written."),
            ),
        ),
    ]
    return _task(project, "early-fact", asks, checker(targets, {"code.txt": code, "limit.txt": str(limit)}))


def pick_from_list(project: Project, size: int) -> Task:
    """The answer is a list, and the user chooses from it by numbers after an hour."""
    functions = _first(project, 6)
    targets = {function.name: (function, 5_000 + place) for place, function in enumerate(functions)}
    listed = "\n".join(f"{place}. {name}" for place, name in enumerate(targets, 1))
    changes = {name: Change(function.path, function.anchor, cap) for name, (function, cap) in targets.items()}
    looks = tuple(Look(function.path) for function in functions)
    chosen = (2, 3, 5)
    picked = [targets[functions[number - 1].name] for number in chosen]
    rest = [(function, function.cap) for place, function in enumerate(functions, 1) if place not in chosen]
    asks = [
        _reading(project, size),
        Ask(
            f"Look at the modules in {project.domain}/ and list the first function of each, numbered from 1, in the "
            "order of the file names. Suggest that each gets a cap of 5000 plus its place, counted from 0. "
            "Change nothing yet.",
            (*looks, Say(f"I suggest new caps for these:\n{listed}\nEach gets 5000 plus its place, counted from 0.")),
        ),
        Ask("Do 2, 3 and 5.", (Pick(chosen, changes), Say("Done.")), idle=HOUR),
    ]
    return _task(project, "pick-from-list", asks, checker([*picked, *rest], {}))


def refused_edit(project: Project, size: int) -> Task:
    """The user refuses one edit and asks for it later in another form."""
    targets = _new_caps(project, _first(project, 5))
    refused, other = targets[2][0], project.dice.randrange(1_000, 9_999)
    asks = [
        Ask(
            f"Set these caps:\n{_caps(targets)}",
            (*_changes(targets, looks=True), Say("Done, but for what you refused.")),
        ),
        _reading(project, size),
        Ask(
            f"Make the edit that I refused, but with a cap of {other}.",
            (Retry(tuple(Change(function.path, function.anchor, other) for function, _ in targets)), Say("Done.")),
        ),
    ]
    expected = [*targets[:2], (refused, other), *targets[3:]]
    return _task(project, "refused-edit", asks, checker(expected, {}), refuses=frozenset((refused.path,)))


def locked_file(project: Project, size: int) -> Task:
    """One edit fails for the moment; what failed has to be known at the end and be done again."""
    targets = _new_caps(project, _first(project, 5))
    asks = [
        Ask(
            f"Set these caps. If an edit fails, go on; I will tell you when to try again:\n{_caps(targets)}",
            (*_changes(targets, looks=True), Say("Done as far as it went.")),
        ),
        _reading(project, size),
        Ask(
            "Try again what failed.", (Retry(tuple(Change(f.path, f.anchor, cap) for f, cap in targets)), Say("Done."))
        ),
    ]
    return _task(project, "locked-file", asks, checker(targets, {}), locked=frozenset((targets[3][0].path,)))


def long_log(project: Project, size: int) -> Task:
    """A program prints much, once; two questions about single lines come later."""
    lines: list[str] = []
    for number in range(160):
        noun, ident = project.dice.choice(project.nouns), f"{project.dice.randrange(16**4):04x}{number:03}"
        level, took = "ERROR" if number == 97 else "INFO", project.dice.randrange(10, 9_000)
        time = f"2026-11-{1 + number // 60:02}T08:{number % 60:02}:07"
        lines.append(f"{time} {level} {noun} {ident} took {took} ms")
    project.files["day.log"] = "\n".join(lines) + "\n"
    failed, asked = lines[97].split(), lines[33].split()
    targets = _new_caps(project, _first(project, 3))
    asks = [
        Ask(
            "Look at the whole of day.log (cat day.log). I will ask about it.",
            (Run("cat day.log"), Say("I have seen the log.")),
        ),
        Ask(f"Set these caps:\n{_caps(targets)}", (*_changes(targets, looks=True), Say("Done."))),
        _reading(project, size),
        Ask(
            "Write into error.txt the id that the only ERROR line of day.log names, and into took.txt how many ms "
            f"{asked[3]} took.",
            (
                Recollect(r"ERROR \w+ (\w+) took", "error.txt", Run("grep ERROR day.log")),
                Recollect(rf"{asked[3]} took (\d+) ms", "took.txt", Run(f"grep {asked[3]} day.log")),
                Say("Both are written."),
            ),
        ),
    ]
    return _task(project, "long-log", asks, checker(targets, {"error.txt": failed[3], "took.txt": asked[5]}))


def moved_code(project: Project, size: int) -> Task:
    """A script rewrites files by itself; afterwards they are edited, and what stood there before is no longer true."""
    functions = _first(project, 5)
    doubled = [Function(f.path, f.name, f.factor, 2 * f.cap, f.extra) for f in functions]
    project.files["double_caps.py"] = (
        "import pathlib, re\n\n"
        f"for path, name in {[(f.path, f.name) for f in functions]!r}:\n"
        "    file = pathlib.Path(path)\n"
        "    head, mark, rest = file.read_text().partition(f'def {name}(')\n"
        "    body, gap, after = rest.partition('\\n\\n\\n')\n"
        "    cap = re.search(r'part > (\\d+)', body)[1]\n"
        "    file.write_text(head + mark + body.replace(cap, str(2 * int(cap))) + gap + after)\n"
        "print('done')\n"
    )
    asked = doubled[0]
    targets = _new_caps(project, doubled[1:])
    pattern = rf"{_escaped(asked.anchor)}\n.*\n.*\n\s+if part > (\d+):"
    looks = tuple(Look(function.path) for function in functions)
    asks = [
        Ask(f"Read the modules in {project.domain}/.", (*looks, Say("I know them."))),
        Ask(
            "Run python double_caps.py: it doubles the cap of the first function of each module.",
            (Run("python double_caps.py"), Say("It ran.")),
        ),
        _reading(project, size),
        Ask(
            f"Write the cap that {asked.name} has now into answer.txt, then set these caps:\n{_caps(targets)}",
            (Look(asked.path), Recollect(pattern, "answer.txt", Look(asked.path)), *_changes(targets), Say("Done.")),
        ),
    ]
    return _task(project, "moved-code", asks, checker([(asked, asked.cap), *targets], {"answer.txt": str(asked.cap)}))


def idle_hours(project: Project, size: int) -> Task:
    """The same files are edited again and again, with hours in between."""
    functions = _first(project, 4)
    asks, caps = (
        [Ask(f"Read the modules in {project.domain}/.", (*(Look(f.path) for f in functions), Say("I know them.")))],
        dict[str, int](),
    )
    reading = _reading(project, size)
    parts = [reading.plan[at::3] for at in range(3)]
    for round_, part in enumerate(parts):
        files = [step for step in part if isinstance(step, Look)]
        names = ", ".join(step.path for step in files)
        if files:
            asks.append(Ask(f"Read {names}.", (*files, Say("I have read them."))))
        targets = [
            (function, 4_000 + 100 * round_ + place) for place, function in enumerate(functions[round_ % 2 :: 2])
        ]
        caps |= {function.name: cap for function, cap in targets}
        asks.append(Ask(f"Set these caps:\n{_caps(targets)}", (*_changes(targets), Say("Done.")), idle=HOUR))
    expected = [(function, caps.get(function.name, function.cap)) for function in functions]
    return _task(project, "idle-hours", asks, checker(expected, {}))


def _escaped(text: str) -> str:
    return text.replace("(", r"\(").replace(")", r"\)")


KINDS: Mapping[str, Callable[[Project, int], Task]] = {
    "several-edits": several_edits,
    "failing-tests": failing_tests,
    "change-of-mind": change_of_mind,
    "early-fact": early_fact,
    "pick-from-list": pick_from_list,
    "refused-edit": refused_edit,
    "locked-file": locked_file,
    "long-log": long_log,
    "moved-code": moved_code,
    "idle-hours": idle_hours,
}


def tasks(size: int, seed: int = 0, kinds: Sequence[str] = tuple(KINDS), domains: Sequence[str] = ()) -> list[Task]:
    """Every kind in every domain, for one seed: 50 tasks."""

    return [KINDS[kind](Project(seed, domain), size) for kind in kinds for domain in domains or DOMAINS]
