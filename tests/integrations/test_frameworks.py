"""The examples of docs/integrations.md, with the real frameworks, in a tool loop past the window."""

import importlib
import subprocess
import sys
from typing import Any

import pytest

from tests.integrations.kit import CLAUDE, GPT, LAST, TASK, WINDOW, Judged, needs, provider, read_part

KEY = "sk-scripted"


def langchain_anthropic(url: str) -> Any:
    from langchain_anthropic import ChatAnthropic

    thinking = {"type": "adaptive"}
    return ChatAnthropic(model=CLAUDE, base_url=url, api_key=KEY, max_tokens=500, max_retries=0, thinking=thinking)


def langchain_openai(url: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=GPT, base_url=f"{url}/v1", api_key=KEY, max_retries=0)


def pydantic_anthropic(url: str) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
    settings = {"anthropic_thinking": {"type": "adaptive"}, "max_tokens": 500}
    return AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client), settings=settings)


def pydantic_openai(url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(GPT, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))


def agents_responses(url: str) -> Any:
    from agents import OpenAIResponsesModel
    from openai import AsyncOpenAI

    return OpenAIResponsesModel(GPT, AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0))


def agents_chat(url: str) -> Any:
    from agents import OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    return OpenAIChatCompletionsModel(GPT, AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0))


CASES = [
    pytest.param("langchain_agent", langchain_anthropic, marks=needs("langchain", "langchain_anthropic")),
    pytest.param("langchain_agent", langchain_openai, marks=needs("langchain", "langchain_openai")),
    pytest.param("langgraph_agent", langchain_anthropic, marks=needs("langgraph", "langchain_anthropic")),
    pytest.param("langgraph_agent", langchain_openai, marks=needs("langgraph", "langchain_openai")),
    pytest.param("pydantic_ai_agent", pydantic_anthropic, marks=needs("pydantic_ai", "anthropic")),
    pytest.param("pydantic_ai_agent", pydantic_openai, marks=needs("pydantic_ai", "openai")),
    pytest.param("openai_agents_agent", agents_responses, marks=needs("agents")),
    pytest.param("openai_agents_agent", agents_chat, marks=needs("agents")),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("example", "model"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_loop_past_the_window_ends_as_scripted(example: str, model: Any) -> None:
    run = importlib.import_module(f"examples.{example}").run
    with provider() as judged:
        assert run(model(judged.url), TASK, read_part, WINDOW) == LAST
    judged.ended_well()
    assert offers_recall(judged)


def offers_recall(judged: Judged) -> bool:
    return all("context_recall" in str(body.get("tools")) for body in judged.bodies)


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("langchain", "langchain"),
        ("pydantic_ai", "pydantic-ai-slim"),
        ("openai_agents", "openai-agents"),
        ("litellm", "litellm"),
        ("claude_agent_sdk", "claude-agent-sdk"),
    ],
)
def test_without_the_framework_one_sentence_says_so(module: str, package: str) -> None:
    """In a Python without any packages but pagefold's own folder."""
    blocked = "langchain", "langchain_core", "pydantic_ai", "agents", "litellm", "claude_agent_sdk"
    program = f"""
import sys
sys.modules.update(dict.fromkeys({blocked!r}))
try:
    import pagefold.integrations.{module}
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError pagefold.integrations: ")
    assert done.stdout.endswith(f"is not installed here: pip install {package}\n")
