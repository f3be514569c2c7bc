"""Formats by which keys, tokens and card numbers are known for what they are.

Each is one that its issuer made recognisable (a fixed beginning, a PEM frame, a check digit) or that stands where only
a secret stands (a password in an address, an Authorization header). Texts that merely look random are left alone:
commit hashes and ids of records look so too, and an agent needs them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretFormat:
    """The pattern says where such secrets are; `holds` is asked last. What its group `secret` matches is the secret, or
    the whole match where there is none.

    So that most texts need no pattern: a text has such a secret only if one of the `beginnings` is in it. They are
    looked for in its long words, or, for those `in_context`, in all of it in small letters; none means always.
    """

    kind: str
    beginnings: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    holds: Callable[[bytes], bool] = lambda _: True
    in_context: bool = False


def has_check_digit(number: bytes) -> bool:
    """Whether the digits end with the check digit that Luhn's rule gives, as those of a payment card do."""
    digits = [int(chr(byte)) for byte in number if chr(byte).isdigit()][::-1]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _format(kind: str, pattern: bytes, *beginnings: bytes) -> SecretFormat:
    return SecretFormat(kind, beginnings, re.compile(pattern))


def _in_context(kind: str, pattern: bytes, *beginnings: bytes) -> SecretFormat:
    """A secret that is known by what stands before it."""
    return SecretFormat(kind, beginnings, re.compile(pattern), in_context=True)


# Before a token may stand the n of a line break that JSON writes as two characters.
_START, _END = rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))", rb"(?![A-Za-z0-9_])"


def _token(kind: str, beginning: bytes, rest: bytes) -> SecretFormat:
    """A token that begins with fixed letters and stands alone."""
    return _format(kind, _START + re.escape(beginning) + rest + _END, beginning)


SECRET_FORMATS = (
    _in_context(
        "private-key",
        rb"-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY(?: BLOCK)?-----[\s\S]{1,20000}?"
        rb"-----END [A-Z0-9 ]{0,20}PRIVATE KEY(?: BLOCK)?-----",
        b"private key",
    ),
    _format(
        "aws-access-key", _START + rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _END, b"AKIA", b"ASIA", b"ABIA", b"ACCA"
    ),
    _in_context(
        "aws-secret-key",
        rb"(?i:secret_?access_?key)[\"']?\s{0,4}[=:,]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        *(b"access_key", b"accesskey"),
    ),
    _format(
        "github-token", _START + rb"gh[pousr]_[A-Za-z0-9]{36,255}" + _END, b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"
    ),
    _token("github-token", b"github_pat_", rb"[A-Za-z0-9_]{50,255}"),
    _format(
        "gitlab-token",
        _START + rb"gl(?:pat|ptt|dt|rt|cbt|soat|imt|agent|ft)-[A-Za-z0-9_.-]{20,255}",
        *(b"glpat-", b"glptt-", b"gldt-", b"glrt-", b"glcbt-", b"glsoat-", b"glimt-", b"glagent-", b"glft-"),
    ),
    _format("slack-token", _START + rb"xox[abceoprs]-[A-Za-z0-9-]{12,255}", b"xox"),
    _format("slack-token", _START + rb"xapp-\d-[A-Za-z0-9-]{20,255}", b"xapp-"),
    _format(
        "slack-webhook", rb"hooks\.slack\.com/services/(?P<secret>T\w{5,20}/B\w{5,20}/\w{10,40})", b"hooks.slack.com"
    ),
    _format("stripe-key", _START + rb"[rs]k_(?:live|test)_[A-Za-z0-9]{10,255}" + _END, b"k_live_", b"k_test_"),
    _token("webhook-secret", b"whsec_", rb"[A-Za-z0-9+/=]{24,255}"),
    _token("pagefold-token", b"pf_", rb"[A-Za-z0-9_-]{43}"),
    _format("anthropic-key", _START + rb"sk-ant-[a-z]{2,12}\d\d-[A-Za-z0-9_-]{20,255}", b"sk-ant-"),
    _format(
        "openai-key",
        _START + rb"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,255}",
        b"sk-proj",
        b"sk-svc",
        b"sk-adm",
        b"sk-None",
    ),
    _format("openai-key", _START + rb"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}" + _END, b"T3BlbkFJ"),
    _token("openrouter-key", b"sk-or-v1-", rb"[0-9a-f]{64}"),
    _token("google-key", b"AIza", rb"[A-Za-z0-9_-]{35}"),
    _token("google-token", b"ya29.", rb"[A-Za-z0-9_-]{20,2000}"),
    _token("google-secret", b"GOCSPX-", rb"[A-Za-z0-9_-]{28}"),
    _token("hugging-face-token", b"hf_", rb"[A-Za-z]{34}"),
    _token("groq-key", b"gsk_", rb"[A-Za-z0-9]{40,64}"),
    _token("xai-key", b"xai-", rb"[A-Za-z0-9]{70,90}"),
    _token("replicate-token", b"r8_", rb"[A-Za-z0-9]{37}"),
    _token("npm-token", b"npm_", rb"[A-Za-z0-9]{36}"),
    _token("pypi-token", b"pypi-AgE", rb"[A-Za-z0-9_-]{50,1000}"),
    _token("docker-token", b"dckr_pat_", rb"[A-Za-z0-9_-]{27}"),
    _token("sendgrid-key", b"SG.", rb"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _in_context(
        "twilio-key",
        rb"(?i:twilio)[^\n]{0,80}?" + _START + rb"(?P<secret>(?:AC|SK)[0-9a-f]{32})" + _END,
        b"twilio",
    ),
    _format(
        "shopify-token",
        _START + rb"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _END,
        b"shpat_",
        b"shpca_",
        b"shppa_",
        b"shpss_",
    ),
    _format("digitalocean-token", _START + rb"do[opr]_v1_[0-9a-f]{64}" + _END, b"_v1_"),
    _token("databricks-token", b"dapi", rb"[0-9a-f]{32}(?:-\d)?"),
    _format("vault-token", _START + rb"hv[sbr]\.[A-Za-z0-9_-]{24,255}", b"hvs.", b"hvb.", b"hvr."),
    _format("terraform-token", _START + rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}", b".atlasv1."),
    _token("linear-key", b"lin_api_", rb"[A-Za-z0-9]{40}"),
    _token("notion-token", b"ntn_", rb"[A-Za-z0-9]{40,60}"),
    _format("grafana-token", _START + rb"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,400}", b"glsa_", b"glc_"),
    _token("new-relic-key", b"NRAK-", rb"[A-Z0-9]{27}"),
    _token("postman-key", b"PMAK-", rb"[0-9a-f]{24}-[0-9a-f]{34}"),
    _token("atlassian-token", b"ATATT3", rb"[A-Za-z0-9_=-]{150,250}"),
    _token("age-key", b"AGE-SECRET-KEY-1", rb"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _format("telegram-token", _START + rb"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", b":AA"),
    _format("azure-storage-key", rb"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)", b"AccountKey="),
    _format("square-token", _START + rb"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}", b"sq0"),
    _format(
        "json-web-token", _START + rb"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}", b"eyJ"
    ),
    _in_context(
        "password-in-address",
        rb"://[^\s:/@\"'<>${}]{0,100}:(?P<secret>[^\s/@\"'<>${}]{3,200})@[\w\[]",
        b"://",
    ),
    _in_context(
        "authorization-header",
        rb"(?i:authorization)[\"']?\s{0,4}[:=,]\s{0,4}[\"']?(?i:bearer|basic|token)\s{1,4}"
        rb"(?P<secret>[A-Za-z0-9._~+/-]{16,4000}={0,2})",
        b"authorization",
    ),
)

CARD_NUMBER = SecretFormat(
    "card-number",
    (),
    re.compile(
        rb"(?:(?<![\w.+/-])|(?<=\\[nrt]))(?:3[47]\d{2}([ -]?)\d{6}\1\d{5}"
        rb"|(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6011|65\d{2})([ -]?)\d{4}\2\d{4}\2\d{4})(?![\w+/=-]|\.\d)"
    ),
    has_check_digit,
)
