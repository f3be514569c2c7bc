"""Writes a derived request into the client's own body: every byte that nothing has changed is as it came."""

from pagefold.log import Log
from pagefold.model_proxy.derivation import Derivation
from pagefold.model_proxy.marks import with_marks
from pagefold.model_proxy.recalling import offered
from pagefold.model_proxy.request_cache import ParsedRequest
from pagefold.wire.message import Message


def body_of(
    parsed: ParsedRequest, messages: Log[Message], derivation: Derivation, *, offers: bool, folds: bool
) -> bytes | None:
    """Returns the body of a request that was derived from these messages, or None where it is the client's. `offers`:
    with context tools; `folds`: by a policy that folds."""
    request, api = parsed.request, parsed.api
    own = messages.length == request.messages.length
    members = _without_clearing(parsed) if parsed.clears and folds else None
    if not derivation.changed and not offers and own and not members:
        return None
    derived = derivation.messages
    if derivation.moves:
        derived = api.spelled(with_marks(derivation, api.marks) if api.marks else derived)
    in_place = messages is request.messages and not derivation.moves
    return request.render(derived, offered(api) if offers else (), members, derivation.edited if in_place else None)


def _without_clearing(parsed: ParsedRequest) -> dict[str, str]:
    """The members to replace so that the provider clears no tool results: it would see another request than was priced,
    and lose its cached prefix. The client's other edits stay."""
    clearing = parsed.api.clearing
    return {clearing.key: clearing.without(parsed.request.member(clearing.key))} if clearing is not None else {}
