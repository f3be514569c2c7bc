"""Requests that a team's member has signed for AWS: what the front takes out of them does not break their signature."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pagefold.settings.sections import UpstreamTable
from pagefold.wire.aws_signature import AwsCredentials, SignedRequest, SigningScope, _signature, problem_with
from tests.teams.server import settings_for, team_server
from tests.teams.stand_in import Scripted, stand_in

KEY = AwsCredentials("AKIDEXAMPLE", "secret of the server")
PATH = "/model/anthropic.claude-opus-5/invoke"
BODY = json.dumps({"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}).encode()


def signed_with_all(headers: dict[str, str], host: str) -> dict[str, str]:
    """The headers with a signature of all of them, as Anthropic's SDK makes it."""
    moment = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%SZ")
    whole = {"host": host, "x-amz-date": moment, **headers}
    scope, names = SigningScope(moment[:8], "eu-west-1", "bedrock"), sorted(whole)
    signature = _signature(SignedRequest("POST", PATH, "", list(whole.items()), BODY), KEY, scope, moment, names)
    place = f"{KEY.key_id}/{'/'.join(scope)}/aws4_request"
    said = f"AWS4-HMAC-SHA256 Credential={place}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return {**whole, "authorization": said}


def test_headers_that_the_front_takes_out_may_have_been_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY.secret)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    with stand_in(Scripted()) as model:
        bedrock = UpstreamTable(name="bedrock", url=model.url, sign=True)
        settings = replace(settings_for(tmp_path, model.url), upstreams=(bedrock,))
        with team_server(settings) as server:
            token = server.add("red")
            own = {"accept-encoding": "gzip, br", "content-type": "application/json", "x-pagefold-token": token}
            headers = signed_with_all(own, urlsplit(server.url).netloc)
            assert server.ask("POST", PATH, BODY, headers)[:2] == (200, "{}")
    [(method, path, arrived, body)] = model.asked
    assert problem_with(SignedRequest(method, path, "", list(arrived.items()), body), KEY, datetime.now(tz=UTC)) == ""
    assert (arrived["accept-encoding"], "x-pagefold-token" in arrived) == ("gzip", False)
