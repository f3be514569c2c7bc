"""LiteLLM: a callback that derives what is sent to a model, in the SDK, the Router and LiteLLM's own proxy.

    litellm.callbacks = [PagefoldCallback()]          # acompletion, Router
    litellm_settings: {callbacks: my_module.pagefold} # the proxy, with `pagefold = PagefoldCallback()` in my_module.py

LiteLLM calls it on asynchronous calls only. A gateway cannot answer the model's recalls, so by default nothing is
folded: results are said shorter without loss. `policy="economic"` folds; give it a `store`, and the model the tools of
`pagefold mcp` on that store. Without Python in the gateway: `POST /v1/compress` of `pagefold serve`.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from pagefold.derive.policy import Policy
from pagefold.integrations.histories import Histories, missing
from pagefold.pages.store import Store

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise missing("LiteLLM", "litellm") from error

_SPELLED = {"messages": ("messages", "completion", "acompletion", "anthropic_messages"), "input": ("aresponses",)}


class PagefoldCallback(CustomLogger):  # type: ignore[misc]
    """`window` is how many tokens fit; without it, what is known of the model. `policy` and `store` are those of
    `pagefold.Deriver`."""

    def __init__(
        self, *, window: int = 0, policy: str | Policy = "lossless", store: Store | str | Path | None = None
    ) -> None:
        super().__init__()
        self.histories: Histories[Any] = Histories(
            dict, lambda _, value: dict(value), _written, window=window, policy=policy, store=store
        )

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Called once for each request, when its model is known."""
        name = str(getattr(call_type, "value", call_type) or "")
        key = next((key for key, names in _SPELLED.items() if name in names), "")
        if not key or not isinstance(kwargs.get(key), list):
            return None
        before = [str(kwargs.get("system") or kwargs.get("instructions") or ""), json.dumps(kwargs.get("tools") or [])]
        model = str(kwargs.get("model") or "").rpartition("/")[2]
        derived = await asyncio.to_thread(self.histories.derive, kwargs[key], model=model, before=before)
        return {**kwargs, key: derived}


def _written(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
