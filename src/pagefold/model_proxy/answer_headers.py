"""The x-pagefold-* headers that tell a client what was done to its request."""

from pagefold.model_proxy.derivation import Derivation


def headers_of(derivation: Derivation, policy: str, *, sent_again: bool) -> list[tuple[bytes, bytes]]:
    """`policy` derived the request, if any did; `sent_again` after the provider refused reasoning in it."""
    told: list[tuple[bytes, bytes]] = []
    if policy:
        told.append((b"x-pagefold-policy", policy.encode()))
        told.append((b"x-pagefold-saved-tokens", b"%d" % derivation.saved_tokens))
    if derivation.reason:
        told.append((b"x-pagefold-fold", derivation.reason.encode("ascii", "replace")))
    if derivation.begun_anew:
        told.append((b"x-pagefold-begun-anew", derivation.begun_anew.encode("ascii", "replace")))
    if derivation.bare:
        told.append((b"x-pagefold-reasoning-dropped", b"%d" % derivation.bare))
    if sent_again:
        told.append((b"x-pagefold-sent-again", b"without reasoning that the provider refused"))
    return told
