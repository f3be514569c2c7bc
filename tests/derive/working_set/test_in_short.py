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


LIST = f"{FIRST}\n1. **Cut** the stone.\n2. Buy another. It is dear.\n3) Leave it.\n{LAST}"


@pytest.mark.parametrize(
    ("chosen", "short"),
    [
        ((), f"{FIRST} … {LAST}"),
        (("7",), f"{FIRST} … {LAST}"),
        (("1", "3"), f"{FIRST} 1. **Cut** the stone. … 3) Leave it. {LAST}"),
        (("2",), f"{FIRST} … 2. Buy another. It is dear. … {LAST}"),
    ],
)
def test_chosen_items_of_a_list_stand_in_order_and_the_others_are_marked(chosen: tuple[str, ...], short: str) -> None:
    assert in_short(LIST, frozenset(chosen)) == short


@pytest.mark.parametrize(
    ("text", "chosen", "short"),
    [
        (f"{FIRST}\n1. Old one.\n{MIDDLE}\n1. New one.\n2. Other.", "1", f"{FIRST} … 1. New one. …"),
        (f"{FIRST}\n- **A:** cut it\n- **B:** leave it\n{LAST}", "B", f"{FIRST} … - **B:** leave it {LAST}"),
        (f"{FIRST}\n2. Only one.\n{LAST}", "2", f"{FIRST} … {LAST}"),
    ],
)
def test_the_last_list_is_meant_and_one_item_is_no_list(text: str, chosen: str, short: str) -> None:
    assert in_short(text, frozenset((chosen,))) == short
