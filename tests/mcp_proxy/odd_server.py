"""An MCP server over stdio that does what real ones do on bad days. Standard library only; run as a program."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

TOOLS: dict[str, dict[str, Any]] = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}},
    "rows": {"type": "object", "properties": {"count": {"type": "integer"}}},
    "given": {"type": "object", "properties": {"format": {"type": "string"}}},
    "large": {"type": "object", "properties": {"bytes": {"type": "integer"}}},
    "die": {"type": "object"},
    "half": {"type": "object"},
    "hang": {"type": "object"},
    "garbage": {"type": "object"},
    "child": {"type": "object"},
    "progress": {"type": "object"},
    "broken": {"type": "object"},
    "twin": {"type": "object"},
    "sample": {"type": "object"},
}

STATELESS = "io.modelcontextprotocol/protocolVersion"


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def reply(id: object, result: dict[str, Any]) -> None:
    say({"jsonrpc": "2.0", "id": id, "result": result})


def text(id: object, words: str, **more: Any) -> None:
    reply(id, {"content": [{"type": "text", "text": words}], **more})


def call(id: object, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:  # noqa: C901 - one day each
    match name:
        case "echo":
            sys.stderr.write(f"echo {arguments.get('text', '')[:40]}\n")
            text(id, arguments.get("text", ""))
        case "rows":
            text(id, json.dumps([{"id": n, "name": f"row {n}", "ok": True} for n in range(arguments.get("count", 20))]))
        case "given":
            text(id, json.dumps(arguments))
        case "large":
            # Written in pieces: a server that is not held up would need no memory either.
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{{"content":[{{"type":"text","text":"')
            left = arguments["bytes"]
            while left > 0:
                sys.stdout.write("x" * min(left, 1 << 20))
                left -= 1 << 20
            sys.stdout.write('"}]}}\n')
            sys.stdout.flush()
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "half":
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"resu')
            sys.stdout.flush()
            os._exit(3)
        case "hang":
            pass
        case "garbage":
            sys.stdout.write("Listening on nothing\n\n\x1b[32mready\x1b[0m\n{broken\n")
            text(id, "after the garbage")
        case "child":
            child = subprocess.Popen(["sleep", "300"])
            text(id, str(child.pid))
        case "progress":
            for step in range(3):
                token = meta.get("progressToken")
                say(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": step},
                    }
                )
            text(id, "done")
        case "broken":
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "no", "data": {"token": "s3cret"}}})
        case "twin":
            value = {"temperature": 21.5, "days": [1, 2, 3]}
            text(id, json.dumps(value), structuredContent=value)
        case "raw":
            sys.stdout.write(arguments["line"].replace("ID", json.dumps(id)) + " " * arguments.get("spaces", 0) + "\n")
            sys.stdout.flush()
        case "sample":
            say({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"asked_by": str(id)}})
        case _:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def main() -> None:
    sys.stderr.write(f"server {os.getpid()} starts\n")
    sys.stderr.flush()
    time.sleep(float(os.environ.get("ODD_START_SECONDS", "0")))
    if os.environ.get("ODD_FAILS"):
        sys.exit("no such database")
    greeted = False
    waiting: list[str] = []
    for line in sys.stdin:
        message = json.loads(line)
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            text(waiting.pop(0), "the model said " + json.dumps(message.get("result"))) if waiting else None
        elif method == "initialize":
            greeted = True
            capabilities = {"tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True}}
            info = {"name": "odd", "version": str(os.getpid())}
            greeting = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
            reply(id, greeting | {"instructions": "Be odd."})
        elif method == "tools/list":
            reply(id, {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]})
        elif method == "tools/call" and not greeted and STATELESS not in (params.get("_meta") or {}):
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "not greeted"}})
        elif method == "tools/call":
            if params["name"] == "sample":
                waiting.append(id)
            call(id, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
        elif id is not None:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
        elif method == "notifications/odd":
            say(message)


if __name__ == "__main__":
    main()
