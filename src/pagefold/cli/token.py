"""`pagefold token`: makes, lists and revokes the tokens of teams, and shows who did what.

A token is shown once, when it is made; what is kept is a hash. Instances take a new one, and refuse a revoked one,
within a second.

Examples:
  pagefold team set research --usd-day 200      a team, before its first token
  pagefold token create research --label ci     prints the token
  pagefold token list
  pagefold token revoke 1f0c62ab9e
  pagefold token audit                          every administrative act, the oldest first
"""

import argparse
import secrets
import time
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime

from pagefold.access.store import AccessStore
from pagefold.access.team import TOKEN_PREFIX, AdministrativeAct, IssuedToken, stored_hash, token_id
from pagefold.cli import output
from pagefold.cli.arguments import access_store, add_store
from pagefold.config import whoami
from pagefold.errors import ConfigError

_SECRET_BYTES = 32
_MOST_LABEL = 60


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["create", "list", "revoke", "audit"])
    command.add_argument("name", nargs="?", default="", metavar="TEAM|ID", help="create: the team; revoke: the token")
    command.add_argument("--label", default="", help="create: what the token is for")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    with closing(access_store(options)) as access:
        return _ACTIONS[options.action](options, access)


def _create(options: argparse.Namespace, access: AccessStore) -> int:
    names = [team.name for team in access.teams()]
    if options.name not in names:
        known = f" (there are {', '.join(names)})" if names else ""
        raise ConfigError(f"pagefold token create: there is no team {options.name!r}{known}: pagefold team set NAME")
    if len(options.label) > _MOST_LABEL:
        raise ConfigError(f"--label: expected at most {_MOST_LABEL} characters, got {len(options.label)}")
    token = TOKEN_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    digest, now = stored_hash(token), time.time()
    issued = IssuedToken(token_id(digest), options.name, options.label, now)
    access.add_token(digest, issued, AdministrativeAct(now, whoami(), "token created", options.name, issued.id))
    output.print_result(options.json, {"token": token, "id": issued.id, "team": issued.team}, token)
    if not options.json:
        output.to_stderr(f"token {issued.id} of team {issued.team}: it is not shown again")
    return 0


def _list(options: argparse.Namespace, access: AccessStore) -> int:
    tokens = [token for token in access.tokens() if options.name in ("", token.team)]
    rows = [(token.id, token.team, token.label, _day(token.created), _day(token.revoked)) for token in tokens]
    shown = output.table("Tokens", ("id", "team", "label", "made", "revoked"), rows, left=True)
    output.print_result(options.json, [asdict(token) for token in tokens], shown)
    return 0


def _revoke(options: argparse.Namespace, access: AccessStore) -> int:
    team = next((token.team for token in access.tokens() if token.id == options.name), "")
    act = AdministrativeAct(time.time(), whoami(), "token revoked", team, options.name)
    if not access.revoke(options.name, act):
        raise ConfigError(f"pagefold token revoke: no valid token has the id {options.name!r}: pagefold token list")
    output.print_result(options.json, {"revoked": options.name, "team": team}, f"token {options.name} is revoked")
    return 0


def _audit(options: argparse.Namespace, access: AccessStore) -> int:
    acts = access.audit()
    rows = [(_minute(act.at), act.actor, act.act, act.team, act.detail) for act in acts]
    shown = output.table("Administrative acts", ("when (UTC)", "who", "what", "team", "detail"), rows, left=True)
    output.print_result(options.json, [asdict(act) for act in acts], shown)
    return 0


_ACTIONS = {"create": _create, "list": _list, "revoke": _revoke, "audit": _audit}


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d}" if at else ""


def _minute(at: float) -> str:
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d %H:%M:%S}"
