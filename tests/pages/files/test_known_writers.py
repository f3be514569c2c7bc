"""Programs that nobody has listed: what they are asked to write is in doubt; what was cut off is no end of a file."""

import pytest

from tests.pages.files.sessions import call, conversation, result, user, work_of

TEXT = "\n".join(f"SELECT column_{at}" for at in range(1, 9))


@pytest.mark.parametrize(
    ("command", "doubted"),
    [("sqlfluff fix -f a.sql", True), ("sqlfluff lint a.sql", False), ("grep -i SELECT a.sql", False)],
)
def test_a_program_that_is_asked_to_fix_a_file_puts_it_in_doubt(command: str, *, doubted: bool) -> None:
    steps = (
        call("c1", "Bash", {"command": f"cat > a.sql << 'EOF'\n{TEXT}\nEOF"}),
        result("c1", ""),
        call("c2", "Bash", {"command": command}),
        result("c2", "Done."),
    )
    text = work_of(conversation(user("Go."), *steps)).files.files["a.sql"].text

    assert text.is_doubted(text.regions[0].seen[0]) is doubted


@pytest.mark.parametrize(("asked", "length"), [(9, None), (40, 8)])
def test_a_range_that_lacks_a_line_at_its_end_does_not_tell_the_length(asked: int, length: int | None) -> None:
    steps = (call("c1", "Bash", {"command": f"sed -n '1,{asked}p' a.sql"}), result("c1", TEXT))

    assert work_of(conversation(user("Go."), *steps)).files.files["a.sql"].text.length == length
