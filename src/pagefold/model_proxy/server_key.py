"""Says which requests get the provider's key that a shared server holds.

Files, batches, stored answers and tuned models belong to a key at its provider, so they belong to all teams together:
whoever may list them with the server's key reads what others have put there. And what is not read is not charged. So
the key goes with requests to a model that are read, and with few others that cost little and show nothing of anybody.
Where a path can be understood in two ways, it does not go.
"""

import re

from pagefold.wire.api_paths import asked_at

_VERSION = r"/(?:v1|v1beta|v1alpha|openai/v1|api/v1|anthropic/v1)"
_POSTS = re.compile(
    rf"{_VERSION}/(?:messages/count_tokens|responses/input_tokens|embeddings)"
    rf"|{_VERSION}/models/[^/:]+:(?:countTokens|embedContent|batchEmbedContents)"
    r"|/openai/deployments/[^/]+/embeddings"
)
_GETS = re.compile(rf"{_VERSION}/models(?:/[^/:]+)?|/openai/models")
# No sign that a server could read as the end of a name, and none that stands for another but those in names of models:
# `:` and `@`, and the `/` of a resource at AWS.
_NAME = r"(?!\.{1,2}(?:/|\Z))(?:[\w.:@+~=,-]|%3[Aa]|%40)+"
_CLEAR = re.compile(rf"(?:/{_NAME})+|/model/arn(?:[\w.:-]|%3[Aa]|%2[Ff](?!\.))+/[\w-]+", re.ASCII)


def goes_with(method: str, path: str) -> bool:
    """Whether the server's key goes with a request of this method to this path, which is given without its query."""
    if _CLEAR.fullmatch(path) is None:
        return False
    if method == "POST":
        return asked_at(path) is not None or _POSTS.fullmatch(path) is not None
    return method == "GET" and _GETS.fullmatch(path) is not None
