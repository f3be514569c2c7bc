"""`pagefold serve`: the model proxy."""

import argparse
import json

from pagefold import config
from pagefold.cli import show
from pagefold.errors import ConfigError
from pagefold.model_proxy import server
from pagefold.model_proxy.http import Upstreams
from pagefold.model_proxy.server import Proxy

EXAMPLE = """\
Requests go on as they came, streaming included; what passes is counted and told at /pagefold/status, and once more at
the end. Nothing of it is written anywhere.

Examples:
  pagefold serve --observe
  ANTHROPIC_BASE_URL=http://127.0.0.1:8377 claude
  curl http://127.0.0.1:8377/pagefold/status
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--observe", action="store_true", default=None, help="change nothing, count what passes")
    command.add_argument("--host", help="address to listen on (default: 127.0.0.1; others need a token)")
    command.add_argument("--port", type=int, metavar="N", help="port to listen on (default: 8377; 0: any free one)")
    command.add_argument("--anthropic-url", metavar="URL", help="where Anthropic requests go")
    command.add_argument("--openai-url", metavar="URL", help="where OpenAI requests go")


def run(options: argparse.Namespace) -> int:
    names = ("observe", "host", "port", "anthropic_url", "openai_url")
    flags = {f"serve.{name}": getattr(options, name) for name in names}
    settings = config.load(flags={**flags, "config": options.config}).settings.serve
    if not settings.observe:
        raise ConfigError("pagefold serve: no policy works on live requests yet; start it with --observe")
    proxy = Proxy(Upstreams(settings.anthropic_url, settings.openai_url), token=settings.token)

    def started(port: int) -> None:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{host}:{port}"
        if options.json:
            print(json.dumps({"url": url}), flush=True)
        else:
            print(f"pagefold observes on {url} (try ANTHROPIC_BASE_URL={url} claude); Ctrl-C ends it", flush=True)

    server.run(proxy, settings.host, settings.port, started=started)
    if options.json:
        print(proxy.totals.to_json())
    else:
        seen = proxy.totals
        show.tell(
            f"{seen.requests:,} requests, {seen.failed:,} failed; {show.short(seen.usage.prompt)} prompt tokens, "
            f"{show.share(seen.usage.cache_read, seen.usage.prompt)} of them read from cache; {seen.faults:,} faults"
        )
    return 0
