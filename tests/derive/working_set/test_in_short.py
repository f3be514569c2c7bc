"""An answer in short: its first and last telling sentence, with a mark wherever something was left out."""

import pytest

from pagefold.derive.working_set.said import in_short

FIRST, MIDDLE, LAST = "The stone of the mill is worn.", "Nobody has looked at it.", "It has to be cut again soon."
ANNOUNCES = "Now let me look at the other stone:"


@pytest.mark.parametrize(
    ("text", "acts", "short"),
    [
        (FIRST, False, FIRST),
        (f"{FIRST} {LAST}", False, f"{FIRST} {LAST}"),
        (f"{FIRST} {MIDDLE} {LAST}", False, f"{FIRST} … {LAST}"),
        (f"Great! {FIRST}", False, f"… {FIRST}"),
        (f"{FIRST}\n{ANNOUNCES}", True, f"{FIRST} …"),
        (f"{ANNOUNCES}\n{LAST}", True, f"… {LAST}"),
        (f"{FIRST}\n{ANNOUNCES}", False, f"{FIRST} {ANNOUNCES}"),
        (ANNOUNCES, True, ""),
        ("Done.", False, "Done."),
        ("```\n```", False, ""),
    ],
)
def test_what_is_left_out_is_marked(text: str, short: str, *, acts: bool) -> None:
    assert in_short(text, acts=acts) == short
