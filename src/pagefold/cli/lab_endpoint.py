"""The flags by which studies of `pagefold lab` reach a model, and the endpoint they lead to."""

import argparse

from pagefold import config
from pagefold.adapters.model_endpoint import EndpointApi, ModelEndpoint
from pagefold.cli.command_parser import tokens
from pagefold.errors import ConfigError
from pagefold.loopback import is_loopback_url

_KEYS = {EndpointApi.OPENAI: "OPENAI_API_KEY", EndpointApi.ANTHROPIC: "ANTHROPIC_API_KEY"}


DEFAULT_BUDGET = 5_000_000
"""Tokens that reading and likelihood may read."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reading, likelihood and solve")
    group.add_argument("--endpoint", metavar="URL", help="an OpenAI- or Anthropic-compatible address, a local one too")
    group.add_argument("--model", metavar="NAME", help="the model that is asked")
    group.add_argument("--api", choices=list(map(str, EndpointApi)), help="(default: by the address)")
    group.add_argument(
        "--key-variable",
        metavar="NAME",
        help="the environment variable with the key (default: OPENAI_API_KEY or ANTHROPIC_API_KEY, and none for this "
        "machine)",
    )
    group.add_argument(
        "--budget", type=tokens, metavar="N", help=f"tokens (default: {DEFAULT_BUDGET:,}, for solve no limit)"
    )
    group.add_argument("--resume", metavar="FILE", help="keep every answer or run here, and go on from them")


def endpoint_of(options: argparse.Namespace) -> ModelEndpoint:
    """Raises ConfigError where the address is none, or a key is missing."""
    api = EndpointApi(options.api or ("anthropic" if "anthropic" in options.endpoint else "openai"))
    environment = config.process_environment({})
    key = ""
    if options.key_variable:
        key = environment.get(options.key_variable, "")
        if not key:
            raise ConfigError(f"--key-variable {options.key_variable}: there is no such environment variable")
    elif not is_loopback_url(options.endpoint):
        key = environment.get(_KEYS[api], "")
        if not key:
            raise ConfigError(f"{options.endpoint}: expected a key in {_KEYS[api]}, or in another --key-variable")
    return ModelEndpoint(options.endpoint, options.model, api, key)
