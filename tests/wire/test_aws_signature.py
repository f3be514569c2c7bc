"""Signatures of AWS: those of its documentation, botocore's where it is at hand, and what breaks them."""

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.wire.aws_signature import (
    NO_SIGNATURE,
    AwsCredentials,
    SignedRequest,
    SigningScope,
    problem_with,
    scope_of,
    signed,
)
from tests.agents.kit import FOLDER

KEY = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")  # of AWS's own documentation
SCOPE = SigningScope("20261118", "eu-west-1", "bedrock")
NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
PATH = "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke-with-response-stream"


def request(body: bytes = b'{"messages":[]}', path: str = PATH, query: str = "") -> SignedRequest:
    headers = [("content-type", "application/json"), ("x-amzn-bedrock-accept", "*/*")]
    return SignedRequest("POST", path, query, headers, body)


def sent(one: SignedRequest, host: str = "h:1", key: AwsCredentials = KEY, now: datetime = NOW) -> SignedRequest:
    """The request as it arrives, signed."""
    return one._replace(headers=[("host", host), *signed(one, host, key, SCOPE, now)])


def test_the_example_of_the_documentation() -> None:
    names = "content-type;host;x-amz-date"
    signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    place = "AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request"
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded;  charset=utf-8 "),
        ("Host", "iam.amazonaws.com"),
        ("X-Amz-Date", "20150830T123600Z"),
        ("Authorization", f"AWS4-HMAC-SHA256 Credential={place}, SignedHeaders={names}, Signature={signature}"),
    ]
    listing = SignedRequest("GET", "/", "Version=2010-05-08&Action=ListUsers", headers, b"")
    moment = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)

    assert scope_of(headers) == SigningScope("20150830", "us-east-1", "iam")
    assert problem_with(listing, KEY, moment + timedelta(minutes=14)) == ""
    assert "15 minutes" in problem_with(listing, KEY, moment + timedelta(minutes=16))
    assert "does not fit" in problem_with(listing._replace(query="Action=ListUsers"), KEY, moment)


@given(st.binary(max_size=50), st.text(max_size=20), st.sampled_from(["", "a=1&b=%2F&a", "z&y=x%20y"]))
def test_what_is_signed_here_was_signed_with_the_key(body: bytes, token: str, query: str) -> None:
    key = replace(KEY, token=token.encode().hex())
    arrived = sent(request(body, query=query), key=key)
    assert problem_with(arrived, key, NOW) == ""
    assert dict(arrived.headers).get("x-amz-security-token", "") == key.token
    assert scope_of(arrived.headers) == SCOPE


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"body": b"{}"}, "not of its host and its body"),
        ({"path": "/model/other/invoke"}, "does not fit"),
        ({"query": "a=1"}, "does not fit"),
        ({"method": "PUT"}, "does not fit"),
        ({"headers": []}, NO_SIGNATURE),
    ],
)
def test_another_request_was_not(change: dict[str, object], problem: str) -> None:
    assert problem in problem_with(sent(request())._replace(**change), KEY, NOW)  # type: ignore[arg-type]


def test_another_host_key_or_moment_was_not() -> None:
    arrived = sent(request())
    moved = arrived._replace(headers=[("host", "other"), *arrived.headers[1:]])
    assert "does not fit" in problem_with(moved, KEY, NOW)
    assert "another access key" in problem_with(arrived, replace(KEY, key_id="AKIDOTHER"), NOW)
    assert "does not fit" in problem_with(arrived, replace(KEY, secret="no"), NOW)
    for later in (timedelta(minutes=16), timedelta(minutes=-16)):
        assert "15 minutes" in problem_with(arrived, KEY, NOW + later)
    unsaid = arrived._replace(headers=[header for header in arrived.headers if header[0] != "x-amz-date"])
    assert "when it was signed" in problem_with(unsaid, KEY, NOW)


def test_a_signature_that_does_not_cover_the_host_or_the_body_counts_for_nothing() -> None:
    arrived = sent(request())
    without_host = [(name, value.replace("host;", "")) for name, value in arrived.headers]
    assert "not of its host" in problem_with(arrived._replace(headers=without_host), KEY, NOW)
    unsigned = [
        (name, "UNSIGNED-PAYLOAD" if name == "x-amz-content-sha256" else value) for name, value in arrived.headers
    ]
    assert "and its body" in problem_with(arrived._replace(headers=unsigned), KEY, NOW)


def test_a_second_signature_takes_the_place_of_the_first() -> None:
    first = sent(request())
    second = first._replace(body=b"shorter")
    again = signed(second, "bedrock.example", KEY, SCOPE, NOW)
    names = [name.lower() for name, _ in again]
    assert len(names) == len(set(names))
    arrived = second._replace(headers=[("host", "bedrock.example"), *again])
    assert problem_with(arrived, KEY, NOW) == ""


BOTOCORE = """
import json, sys
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
made = []
for key, secret, token, path, body in json.load(sys.stdin):
    one = AWSRequest("POST", "http://127.0.0.1:8377" + path, data=body, headers={"content-type": "application/json"})
    SigV4Auth(Credentials(key, secret, token or None), "bedrock", "eu-west-1").add_auth(one)
    made.append([["host", "127.0.0.1:8377"], *map(list, one.headers.items())])
json.dump(made, sys.stdout)
"""


def test_what_botocore_signs_is_seen_to_be_signed() -> None:
    python = FOLDER / "venv" / "bin" / "python"
    if not list(FOLDER.glob("venv/lib/python*/site-packages/botocore")):
        pytest.skip(f"no botocore in {FOLDER}: run `make agents`")
    asked = [
        (KEY.key_id, KEY.secret, token, path, body)
        for token in ("", "session")
        for path in (
            PATH,
            "/model/arn%3Aaws%3Abedrock%3A%3A%3Aprofile%2Fa/invoke",
            "/model/a~b.c_d-e/converse",
            "/model/x?a=b%20c&A=1",
        )
        for body in ("", '{"a": "漢"}')
    ]
    done = subprocess.run([python, "-c", BOTOCORE], input=json.dumps(asked), capture_output=True, text=True, check=True)
    for (_, _, token, path, body), headers in zip(asked, json.loads(done.stdout), strict=True):
        plain, _, query = path.partition("?")
        arrived = SignedRequest("POST", plain, query, [tuple(header) for header in headers], body.encode())
        assert problem_with(arrived, replace(KEY, token=token), datetime.now(tz=UTC)) == ""
