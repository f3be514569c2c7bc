"""Secrets are taken out of what is stored, nothing else is, and the marks say what is missing.

Every example of a secret is made here at run time out of its format, so that this file holds none.
"""

import random
import string

import pytest
from detect_secrets.plugins import (
    aws,
    github_token,
    gitlab_token,
    jwt,
    npm,
    openai,
    private_key,
    pypi_token,
    sendgrid,
    slack,
    square_oauth,
    stripe,
    telegram_token,
)
from hypothesis import example, given
from hypothesis import strategies as st

from pagefold.pages.redaction import Redactor, mark_of, redaction_words
from pagefold.pages.secret_formats import has_check_digit

_DICE = random.Random(7)
_LETTERS = string.ascii_letters + string.digits


def _some(count: int, alphabet: str = _LETTERS) -> str:
    return "".join(_DICE.choices(alphabet, k=count))


_HEX, _UPPER = "0123456789abcdef", string.ascii_uppercase + "234567"
_PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{_some(64)}\n{_some(40)}=\n-----END RSA PRIVATE KEY-----"

SECRETS = {
    "private-key": [_PEM, _PEM.replace("RSA ", "").replace("\n", "\\n"), _PEM.replace("RSA", "EC")],
    "aws-access-key": ["AKIA" + _some(16, _UPPER), "ASIA" + _some(16, _UPPER)],
    "github-token": [f"ghp_{_some(36)}", f"ghs_{_some(36)}", f"github_pat_{_some(22)}_{_some(59)}"],
    "gitlab-token": [f"glpat-{_some(20)}", f"glrt-{_some(20)}"],
    "slack-token": [f"xoxb-{_some(12, string.digits)}-{_some(12, string.digits)}-{_some(24)}"],
    "stripe-key": [f"sk_live_{_some(24)}", f"rk_live_{_some(24)}"],
    "pagefold-token": [f"pf_{_some(43)}"],
    "anthropic-key": [f"sk-ant-api03-{_some(93)}-{_some(2)}"],
    "openai-key": [f"sk-proj-{_some(74)}T3BlbkFJ{_some(74)}", f"sk-{_some(20)}T3BlbkFJ{_some(20)}"],
    "google-key": [f"AIza{_some(35)}"],
    "hugging-face-token": [f"hf_{_some(34, string.ascii_letters)}"],
    "npm-token": [f"npm_{_some(36)}"],
    "pypi-token": [f"pypi-AgEIcHlwaS5vcmc{_some(70)}"],
    "sendgrid-key": [f"SG.{_some(22)}.{_some(43)}"],
    "databricks-token": [f"dapi{_some(32, _HEX)}"],
    "telegram-token": [f"{_some(9, '123456789')}:AA{_some(33)}"],
    "square-token": [f"sq0csp-{_some(43)}"],
    "json-web-token": [f"eyJ{_some(30)}.eyJ{_some(60)}.{_some(43)}"],
    "card-number": ["4242 4242 4242 4242", "5555555555554444", "3782-822463-10005", "6011111111111117"],
}
IN_CONTEXT = {
    "aws-secret-key": ('aws_secret_access_key = "{}"', _some(40)),
    "password-in-address": ("postgres://app:{}@db.internal:5432/app", _some(12)),
    "authorization-header": ("curl -H 'Authorization: Bearer {}' https://x", _some(32)),
    "azure-storage-key": ("AccountName=a;AccountKey={};EndpointSuffix=core", _some(86) + "=="),
    "slack-webhook": ("https://hooks.slack.com/services/{}", f"T{_some(8)}/B{_some(8)}/{_some(24)}"),
    "twilio-key": ("TWILIO_API_KEY={}", "SK" + _some(32, _HEX)),
}
AROUND = ["{}", "key={}", '{{"key": "{}"}}', "one\n{}\ntwo", r'{{"text": "one\n{}\ntwo"}}', "({}),", "export K={};"]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("kind", "secret"), [(kind, secret) for kind in SECRETS for secret in SECRETS[kind]])
def test_a_secret_is_taken_out_and_what_stands_around_it_stays(kind: str, secret: str, around: str) -> None:
    redacted = Redactor().redact(around.format(secret).encode())

    assert redacted.content == around.format(mark_of(kind).decode()).encode()
    assert redacted.kinds == (kind,)


@pytest.mark.parametrize("kind", IN_CONTEXT)
def test_a_secret_known_by_its_place_is_taken_out_and_its_place_stays(kind: str) -> None:
    around, secret = IN_CONTEXT[kind]

    assert Redactor().redact(around.format(secret).encode()).content == around.format(mark_of(kind).decode()).encode()


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9d0c1b4e5f60718293a4b5c6d7e8f9012345",
        "sha256:" + "ab12" * 16,
        "id 7fc0e2b4-1f6a-4c7e-9d5a-0b6a0e3c1d2f at 1763449200123456789",
        "4242424242424241 is no card, nor is 4111-1111 or 0000000000000000 or 1234567812345670",
        "price 4242424242424242.50 or 0x4242424242424242ff",
        "git@github.com:owner/repo.git and https://example.com:8080/path and http://user@host/",
        "https://${USER}:${PASSWORD}@host and postgres://<user>:<password>@host",
        "sk-learn, sk_test, ghp_ and AKIA are only beginnings; eyJ too",
        "Authorization: Bearer $TOKEN",
        "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
        "pf-abcdefghij",
    ],
)
def test_what_an_agent_needs_stays(text: str) -> None:
    assert Redactor().redact(text.encode()).content == text.encode()


def test_the_patterns_of_the_user_count_too_and_take_out_their_group() -> None:
    redactor = Redactor([r"ACME-\d{4}", r"pin: (?P<secret>\d+)"])

    redacted = redactor.redact(b"ACME-1234 has pin: 99 and 55")

    assert (
        redacted.content == b"[redacted by pagefold: your pattern] has pin: [redacted by pagefold: your pattern] and 55"
    )
    assert redacted.kinds == ("your pattern", "your pattern")


def test_secrets_within_one_another_leave_one_mark() -> None:
    token = SECRETS["github-token"][0]

    redacted = Redactor().redact(f"https://x:{token}@github.com/a Authorization: Bearer {token}".encode())

    assert token.encode() not in redacted.content
    assert len(redacted.kinds) == 2


@given(st.binary(max_size=300), st.sampled_from([secret for group in SECRETS.values() for secret in group]))
@example(b"\\", SECRETS["github-token"][0])
def test_redacting_again_changes_nothing_and_any_bytes_can_be_redacted(noise: bytes, secret: str) -> None:
    redactor = Redactor()

    redacted = redactor.redact(noise + b" " + secret.encode() + b" " + noise)

    assert secret.encode() not in redacted.content
    assert redactor.redact(redacted.content).kinds == ()


def test_values_and_texts_are_redacted_wherever_a_text_stands_in_them() -> None:
    token = SECRETS["npm-token"][0]

    assert Redactor().redact_value({"a": [token, 1, None], "b": {"c": f"x {token}"}}) == {
        "a": ["[redacted by pagefold: npm-token]", 1, None],
        "b": {"c": "x [redacted by pagefold: npm-token]"},
    }


def test_a_reader_is_told_how_many_secrets_of_which_kinds_are_missing() -> None:
    assert redaction_words(()) == ""
    assert "1 secret was taken out of this page" in redaction_words(("npm-token",))
    assert "2 secrets were" in redaction_words(("npm-token", "npm-token"))
    assert "(npm-token, card-number)" in redaction_words(("npm-token", "card-number"))


def test_the_check_digit_is_that_of_luhn() -> None:
    right = [number for number in range(10) if has_check_digit(b"7992739871%d" % number)]

    assert right == [3]


# A second opinion: what the detectors of detect-secrets find in these texts, ours take out.
_DETECTORS = [
    aws.AWSKeyDetector, github_token.GitHubTokenDetector, gitlab_token.GitLabTokenDetector, jwt.JwtTokenDetector,
    npm.NpmDetector, openai.OpenAIDetector, private_key.PrivateKeyDetector, pypi_token.PypiTokenDetector,
    sendgrid.SendGridDetector, slack.SlackDetector, square_oauth.SquareOAuthDetector, stripe.StripeDetector,
    telegram_token.TelegramBotTokenDetector,
]  # fmt: skip


@pytest.mark.parametrize("detector", _DETECTORS, ids=lambda detector: str(detector.__name__))
def test_nothing_is_left_that_detect_secrets_would_find(detector: type) -> None:
    samples = [secret for group in SECRETS.values() for secret in group]
    samples += [around.format(secret) for around, secret in IN_CONTEXT.values()]
    samples += [f"//registry.npmjs.org/:_authToken={SECRETS['npm-token'][0]}"]
    patterns = detector().denylist
    seen = [sample for sample in samples if any(pattern.search(sample) for pattern in patterns)]

    left = [Redactor().redact(f"x = '{sample}'".encode()).content.decode() for sample in seen]

    assert seen, "the detector knows none of the samples"
    assert not [text for text in left if any(pattern.search(text) for pattern in patterns)]
