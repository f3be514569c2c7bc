"""What generateContent refuses: roles, empty parts, the places of calls and responses, and missing signatures.

Texts are those of the API as far as they are known; `RULES` in `refusal` says where a rule is documented.
"""

from collections.abc import Sequence

from pagefold.provider.gemini_content import InputContent
from pagefold.provider.models import GeminiModel
from pagefold.provider.refusal import Refusal

INVALID = "INVALID_ARGUMENT"
_ROLES = ("user", "model", "function")
_PLEASE = "Please ensure that "


def refusal(rule: str, message: str) -> Refusal:
    return Refusal(rule, message, kind=INVALID)


def broken_content_rule(contents: Sequence[InputContent], names: Sequence[str], model: GeminiModel) -> Refusal | None:
    """The first rule that contents break. `names` are those of the functions that are declared."""
    if not contents:
        return refusal("gemini_request", "* GenerateContentRequest.contents: contents is not specified")
    if twice := next((name for name in names if names.count(name) > 1), None):
        return refusal("gemini_tool_twice", f"Duplicate function declaration found: {twice}")
    for index, content in enumerate(contents):
        if content.role not in _ROLES:
            return refusal("gemini_role", "Please use a valid role: user, model.")
        if content.broken:
            return refusal("gemini_request", f"* GenerateContentRequest.contents[{index}]: {content.broken}")
        if content.forged:
            return refusal("gemini_signature_changed", "Corrupted thought signature.")
    return _places(contents) or (_signatures(contents) if model.signs else None)


def _places(contents: Sequence[InputContent]) -> Refusal | None:
    before: InputContent | None = None
    for content in contents:
        if content.calls and (before is None or before.role == "model"):
            message = "function call turn comes immediately after a user turn or after a function response turn."
            return refusal("gemini_call_place", _PLEASE + message)
        called = before.calls if before is not None else ()
        if content.responses and not called:
            message = "function response turn comes immediately after a function call turn."
            return refusal("gemini_response_place", _PLEASE + message)
        if called and len(content.responses) != len(called):
            message = "the number of function response parts is equal to the number of function call parts of the "
            return refusal("gemini_response_count", _PLEASE + message + "function call turn.")
        if called and (mismatch := _answered(content, called_names(before), called_ids(before))):
            return refusal("gemini_response_id", mismatch)
        before = content
    if before is not None and before.calls:
        message = "the number of function response parts is equal to the number of function call parts of the "
        return refusal("gemini_response_count", _PLEASE + message + "function call turn.")
    return None


def called_names(content: InputContent | None) -> list[str]:
    return sorted(call.name for call in content.calls) if content is not None else []


def called_ids(content: InputContent | None) -> set[str]:
    return {call.id for call in content.calls if call.id} if content is not None else set()


def _answered(content: InputContent, names: Sequence[str], ids: set[str]) -> str:
    """Why responses do not answer calls of these names and ids; "" where they do."""
    if sorted(response.name for response in content.responses) != names:
        return "Function response name does not match any function call name."
    strange = [response.id for response in content.responses if response.id and response.id not in ids]
    return f"Function response id {strange[0]} does not match any function call id." if strange else ""


def _signatures(contents: Sequence[InputContent]) -> Refusal | None:
    """In the current turn, behind the user's last words, the first call of every step has to be signed."""
    spoken = [at for at, content in enumerate(contents) if content.role == "user" and not content.responses]
    for index in range((spoken[-1] if spoken else -1) + 1, len(contents)):
        calls = contents[index].calls
        if calls and not calls[0].signature:
            message = "Function call is missing a thought_signature in functionCall parts. This is required for tools "
            message += "to work correctly, and missing thought_signature may lead to degraded model performance. "
            named = f"Additional data, function call `default_api:{calls[0].name}` , position {index + 1}."
            return refusal("gemini_signature", message + named)
    return None
