"""Figures of the code itself: its size, its longest files and functions, and the names that are used more than once.

    python bench/house.py [--names]

Lines are lines of code: without blank lines, comments and docstrings. A name counts where a class or a type alias of
that name is defined in more than one place in src.
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "pagefold"
_SKIPPED = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)


def code_lines(text: str, tree: ast.Module) -> int:
    """How many lines hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def defined_types(tree: ast.Module) -> Iterator[str]:
    """Names of the classes and type aliases that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            yield ast.unparse(node.target)


def long_functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > 60:
                yield node.name, length


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list the names that are used more than once")
    asked = parser.parse_args()
    by_room: Counter[str] = Counter()
    lengths: dict[str, int] = {}
    places: dict[str, list[str]] = defaultdict(list)
    functions: list[tuple[str, str, int]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        name = str(path.relative_to(SOURCE))
        lengths[name] = text.count("\n")
        by_room[name.split("/")[0] if "/" in name else "."] += code_lines(text, tree)
        for defined in defined_types(tree):
            places[defined].append(name)
        functions += ((name, function, length) for function, length in long_functions(tree))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for room, count in sorted(by_room.items()):
        print(f"{room:15} {count:6,}")
    print(f"{'all':15} {by_room.total():6,} lines of code in {len(lengths)} files")
    print(f"files: median {statistics.median(lengths.values()):.0f} lines")
    print("over 400:", ", ".join(f"{name} {length}" for name, length in lengths.items() if length > 400) or "none")
    print("functions over 60:", ", ".join(f"{where} {name} {length}" for where, name, length in functions) or "none")
    print(f"class and alias names used twice: {len(twice)}")
    if asked.names:
        for name, where in sorted(twice.items()):
            print(f"  {name}: {', '.join(where)}")


if __name__ == "__main__":
    main()
