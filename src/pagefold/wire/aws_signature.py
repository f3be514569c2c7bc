"""Signs requests as AWS asks (Signature Version 4), and tells whether a request was signed with given credentials.

docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. A signature is for one host, one
path, one body and a quarter of an hour.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

Headers: TypeAlias = Sequence[tuple[str, str]]

ALGORITHM = "AWS4-HMAC-SHA256"
NO_SIGNATURE = f"its signature is none of {ALGORITHM}"
_SAID = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[^/]+)/(?P<day>\d{{8}})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, ?"
    r"SignedHeaders=(?P<names>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_MOMENT = "%Y%m%dT%H%M%SZ"
_LASTS = timedelta(minutes=15)
_OWN = ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256", "host")


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """A user's access key, with the token of a session where it has one."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


class SignedRequest(NamedTuple):
    """What a signature is of. `path` is as it stands on the wire, `query` without its question mark."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes


class SigningScope(NamedTuple):
    """For which day, region and service a signature is."""

    day: str
    region: str
    service: str


def scope_of(headers: Headers) -> SigningScope | None:
    """For what a request says it is signed; None where it does not say it in this way."""
    said = _SAID.fullmatch(_named(headers).get("authorization", ""))
    return SigningScope(said["day"], said["region"], said["service"]) if said else None


def problem_with(request: SignedRequest, credentials: AwsCredentials, now: datetime) -> str:
    """Why a request was not signed with these credentials just now; "" where it was."""
    named = _named(request.headers)
    said = _SAID.fullmatch(named.get("authorization", ""))
    if said is None:
        return NO_SIGNATURE
    if said["key"] != credentials.key_id:
        return "it is signed with another access key than pagefold's"
    try:
        moment = datetime.strptime(named.get("x-amz-date", ""), _MOMENT).replace(tzinfo=UTC)
    except ValueError:
        return "it does not say when it was signed"
    if abs(now - moment) > _LASTS:
        return "it was signed more than 15 minutes ago, or will be"
    names = said["names"].split(";")
    if "host" not in names or hashlib.sha256(request.body).hexdigest() != _content_hash(named, request.body):
        return "its signature is not of its host and its body"
    scope = SigningScope(said["day"], said["region"], said["service"])
    right = _signature(request, credentials, scope, named["x-amz-date"], names)
    return "" if hmac.compare_digest(right, said["signature"]) else "its signature does not fit"


def signed(
    request: SignedRequest, host: str, credentials: AwsCredentials, scope: SigningScope, now: datetime
) -> Headers:
    """The headers of a request that is signed for a host: its own, but for those of another signature."""
    moment = now.astimezone(UTC).strftime(_MOMENT)
    kept = [(name, value) for name, value in request.headers if name.lower() not in _OWN]
    added = [("x-amz-date", moment), ("x-amz-content-sha256", hashlib.sha256(request.body).hexdigest())]
    added += [("x-amz-security-token", credentials.token)] if credentials.token else []
    headers = [*kept, *added]
    names = sorted({name.lower() for name, _ in headers if name.lower().startswith("x-amz")} | {"host"})
    whole = SignedRequest(request.method, request.path, request.query, [("host", host), *headers], request.body)
    scope = SigningScope(moment[:8], scope.region, scope.service)
    signature = _signature(whole, credentials, scope, moment, names)
    place = f"{credentials.key_id}/{'/'.join(scope)}/aws4_request"
    said = f"{ALGORITHM} Credential={place}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return [*headers, ("authorization", said)]


def _signature(
    request: SignedRequest, credentials: AwsCredentials, scope: SigningScope, moment: str, names: Iterable[str]
) -> str:
    named = _named(request.headers)
    canonical = "\n".join(
        [
            request.method,
            quote(request.path, safe="/-_.~"),  # what is quoted on the wire is quoted once more
            _canonical_query(request.query),
            *(f"{name}:{' '.join(named.get(name, '').split())}" for name in names),
            "",
            ";".join(names),
            _content_hash(named, request.body),
        ]
    )
    of = f"{'/'.join(scope)}/aws4_request"
    text = f"{ALGORITHM}\n{moment}\n{of}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret}".encode()
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _content_hash(named: Mapping[str, str], body: bytes) -> str:
    return named.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()


def _canonical_query(query: str) -> str:
    parts = [part.partition("=") for part in query.split("&") if part]
    named = sorted((_quoted(name), _quoted(value)) for name, _, value in parts)
    return "&".join(f"{name}={value}" for name, value in named)


def _quoted(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


def _named(headers: Headers) -> dict[str, str]:
    """The value of each header by its name in small letters; of one that is repeated all, with commas between."""
    found: dict[str, str] = {}
    for spelled, value in headers:
        name = spelled.lower()
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
