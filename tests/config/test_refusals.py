"""What is refused, and in which words: place, value and what would do."""

from pathlib import Path

import pytest

from pagefold.config import load
from pagefold.errors import ConfigError
from pagefold.settings.knobs import KNOBS
from tests.config.loading import ALL_AT_THE_TOP, loaded_from, refusal_of

LONG = "x" * 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n\n[serve]\nport = "abc"', '4: serve.port = "abc": expected a whole number from 0 to 65535'),
        ("serve.port = 65536", "1: serve.port = 65536: expected a whole number from 0 to 65535"),
        ("serve.port = -1", "1: serve.port = -1: expected a whole number from 0 to 65535"),
        ("serve = { port = true }", "1: serve.port = true: expected a whole number from 0 to 65535"),
        ("window = 0", "1: window = 0: expected a whole number of at least 1"),
        ("window = 1.0", "1: window = 1.0: expected a whole number of at least 1"),
        ("window = [\n1]", "1: window = a list: expected a whole number of at least 1"),
        ("window = 2020-01-01", "1: window = 2020-01-01: expected a whole number of at least 1"),
        ("[window]", "1: window = a table: expected a whole number of at least 1"),
        ("policy = 3", "1: policy = 3: expected a name that is not empty"),
        ('policy = " "', '1: policy = " ": expected a name that is not empty'),
        ('tokens = "gpt"', '1: tokens = "gpt": expected one of o200k, cl100k, claude-3, claude-5'),
        ("replay.strict = 1", "1: replay.strict = 1: expected true or false"),
        ('replay.strict = "yes"', '1: replay.strict = "yes": expected true or false'),
        ("replay.max_line_bytes = 1023", "1: replay.max_line_bytes = 1023: expected a whole number of at least 1024"),
        ('store.path = "\\u0000"', '1: store.path = "\\u0000": expected the name of a file'),
        ("[prices_usd.x]\nread = -0.5", "2: prices_usd.x.read = -0.5: expected a number of at least 0"),
        ("[prices_usd.x]\nread = nan", "2: prices_usd.x.read = nan: expected a number of at least 0"),
        ("[prices_usd.x]\nread = inf", "2: prices_usd.x.read = inf: expected a number of at least 0"),
        ("[prices_usd.x]\nread = true", "2: prices_usd.x.read = true: expected a number of at least 0"),
        ('[prices_usd."x.y"]\nread = ""', '2: prices_usd."x.y".read = "": expected a number of at least 0'),
        (f'window = "{LONG}"', f'1: window = "{LONG[:79]}…: expected a whole number of at least 1'),
        ("serve.port = 0x" + "f" * 9999, f"1: serve.port = 0x{'f' * 78}…: expected a whole number from 0 to 65535"),
        (
            "[prices_usd.x]\nread = 0x" + "f" * 256,
            f"2: prices_usd.x.read = 0x{'f' * 78}…: expected a number of at least 0",
        ),
        ("serve = 5", "1: serve = 5: expected a table"),
        ("\n[[serve]]\nport = 1", "2: serve = a list: expected a table"),
        ("prices_usd.x = 5", "1: prices_usd.x = 5: expected a table"),
        ("[serve]\nprot = 1", "2: unknown setting serve.prot (did you mean serve.port?)"),
        ("serve.token_ = 'hush'", "1: unknown setting serve.token_ (did you mean serve.token?)"),
        ("port = 1", "1: unknown setting port (did you mean serve.port?)"),
        ("max-bytes = 1", "1: unknown setting max-bytes (did you mean store.max_bytes or telemetry.max_bytes?)"),
        ("storepath = 1", "1: unknown setting storepath (did you mean store.path?)"),
        ("[serve]\njobs = 1", "2: unknown setting serve.jobs (did you mean replay.jobs?)"),
        ("[srve]\nport = 1", "1: unknown setting srve (did you mean serve?)"),
        ("[prices_usd.x]\n\nraed = 1", "3: unknown setting prices_usd.x.raed (did you mean prices_usd.x.read?)"),
        (
            '"a b" = 1',
            f'1: unknown setting "a b" (known are {ALL_AT_THE_TOP})',
        ),
        (
            "[replay]\nzzz = 1",
            "2: unknown setting replay.zzz (known are replay.jobs, replay.strict, replay.max_line_bytes)",
        ),
        ("window = 1\nwindow = 2", "2: not valid TOML: Cannot overwrite a value (at line 2, column 11)"),
        ("\n\nwindow = x", "3: not valid TOML: Invalid value (at line 3, column 10)"),
        (b"window = 1\npolicy = '\xff'", "2: not UTF-8 text: byte 0xff"),
    ],
)
def test_a_file_that_will_not_do_is_refused_with_place_value_and_what_would(
    text: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded_from(text, tmp_path)

    assert str(caught.value) == f"pagefold.toml:{message}"


@pytest.mark.parametrize(
    "text",
    ['window = """', "window = " + "1" * 5000, "window = " + "[" * 100_000],
    ids=["unclosed", "long number", "deep list"],
)
def test_broken_text_without_a_place_is_refused_with_the_file_alone(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^pagefold.toml: not valid TOML: "):
        loaded_from(text, tmp_path)


@pytest.mark.parametrize(
    ("address", "echo"),
    [
        ("ftp://example.com", "ftp://example.com"),
        ("api.example.com", "api.example.com"),
        ("https://", "https://"),
        ("https://a b.example", "https://a b.example"),
        ("https://example.com:99999", "https://example.com:99999"),
        ("https://[::1", "https://[::1"),
        ("https://example.com/?x=1", "https://example.com/?x=1"),
        ("https://me:hush@example.com", "https://…@example.com"),
    ],
)
def test_an_address_that_cannot_be_called_is_refused_without_repeating_a_password(
    address: str, echo: str, tmp_path: Path
) -> None:
    message = refusal_of({"serve.openai_url": address}, {}, tmp_path)

    assert message == f'--openai-url = "{echo}": expected an http or https address without user, query or fragment'


@pytest.mark.parametrize("address", ["http://localhost:8080", "https://gateway.example/v1/x", "http://[::1]:1"])
def test_an_address_that_can_be_called_is_taken_as_it_is(address: str, tmp_path: Path) -> None:
    assert load({"serve.openai_url": address}, {}, tmp_path).settings.serve.openai_url == address


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"PAGEFOLD_SERVE_PORT": "abc"}, 'PAGEFOLD_SERVE_PORT = "abc": expected a whole number from 0 to 65535'),
        ({"PAGEFOLD_SERVE_PORT": ""}, 'PAGEFOLD_SERVE_PORT = "": expected a whole number from 0 to 65535'),
        ({"PAGEFOLD_WINDOW": "0"}, "PAGEFOLD_WINDOW = 0: expected a whole number of at least 1"),
        ({"PAGEFOLD_SERVE_OBSERVE": "maybe"}, 'PAGEFOLD_SERVE_OBSERVE = "maybe": expected true or false'),
        (
            {"PAGEFOLD_TOKENS": "\x1b[1m"},
            'PAGEFOLD_TOKENS = "\\u001b[1m": expected one of o200k, cl100k, claude-3, claude-5',
        ),
        (
            {"PAGEFOLD_SERVE_PROT": "1"},
            "PAGEFOLD_SERVE_PROT: unknown environment variable (did you mean PAGEFOLD_SERVE_PORT?)",
        ),
        ({"PAGEFOLD_CONFG": "x"}, "PAGEFOLD_CONFG: unknown environment variable (did you mean PAGEFOLD_CONFIG?)"),
        (
            {"PAGEFOLD_PRICES_USD_X_RAED": "1"},
            "PAGEFOLD_PRICES_USD_X_RAED: unknown environment variable (did you mean PAGEFOLD_PRICES_USD_NAME_READ?)",
        ),
    ],
)
def test_a_variable_that_will_not_do_is_refused_by_its_name(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    assert refusal_of({}, environment, tmp_path) == message


def test_a_variable_like_no_other_is_refused_with_all_there_are(tmp_path: Path) -> None:
    message = refusal_of({}, {"PAGEFOLD_XYZZY_QUUX": "hush"}, tmp_path)

    assert message.startswith("PAGEFOLD_XYZZY_QUUX: unknown environment variable (known are PAGEFOLD_POLICY, ")
    assert all(knob.variable in message for knob in KNOBS.values())
    assert "hush" not in message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"serve.port": "abc"}, '--port = "abc": expected a whole number from 0 to 65535'),
        ({"serve.port": True}, "--port = true: expected a whole number from 0 to 65535"),
        ({"store.path": 5}, "--store = 5: expected the name of a file"),
        ({"serve.prot": 1}, "--serve.prot: unknown setting serve.prot (did you mean serve.port?)"),
        (
            {"#": 1},
            f'--#: unknown setting "#" (known are {ALL_AT_THE_TOP})',
        ),
        ({"serve.": 1}, '--serve.: unknown setting "serve." (did you mean serve?)'),
    ],
)
def test_a_flag_that_will_not_do_is_refused_by_its_name(flags: dict[str, object], message: str, tmp_path: Path) -> None:
    assert refusal_of(flags, {}, tmp_path) == message


def test_a_wrong_value_is_refused_also_where_a_later_layer_would_win(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^pagefold.toml:1: window = 0"):
        loaded_from("window = 0", tmp_path, window=5)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost"])
def test_a_loopback_host_needs_no_token(host: str, tmp_path: Path) -> None:
    assert load({"serve.host": host}, {}, tmp_path).settings.serve.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.2", "example.com", "localhost.example.com"])
def test_any_other_host_is_refused_without_a_token_and_taken_with_one(host: str, tmp_path: Path) -> None:
    needs = "a host that is not a loopback address needs serve.token (PAGEFOLD_SERVE_TOKEN) or serve.teams"

    assert refusal_of({"serve.host": host}, {}, tmp_path) == f'--host = "{host}": {needs}'
    assert refusal_of({"serve.host": host}, {"PAGEFOLD_SERVE_TOKEN": " "}, tmp_path) == f'--host = "{host}": {needs}'
    assert load({"serve.host": host}, {"PAGEFOLD_SERVE_TOKEN": "t"}, tmp_path).settings.serve.host == host
    assert load({"serve.host": host}, {"PAGEFOLD_SERVE_TEAMS": "on"}, tmp_path).settings.serve.host == host


def test_an_open_host_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'^pagefold.toml:2: serve.host = "0.0.0.0": a host that is not'):
        loaded_from('[serve]\nhost = "0.0.0.0"', tmp_path)
