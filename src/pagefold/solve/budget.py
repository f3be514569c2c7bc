"""How much a run may use: tokens and money. It is asked before every request, so at most one request goes beyond it."""

from dataclasses import dataclass

from pagefold.number_format import money, short


@dataclass(slots=True)
class SolveBudget:
    """0 stands for no limit. `used` and `spent` are what requests took so far, in tokens and in USD."""

    tokens: int = 0
    usd: float = 0.0
    used: int = 0
    spent: float = 0.0

    def count(self, tokens: int, usd: float) -> None:
        self.used += tokens
        self.spent += usd

    @property
    def is_used_up(self) -> bool:
        return bool(self.why_ended)

    @property
    def why_ended(self) -> str:
        """Why nothing more is sent, or ""."""
        if self.tokens and self.used >= self.tokens:
            return f"the budget of {short(self.tokens)} tokens is used up"
        if self.usd and self.spent >= self.usd:
            return f"the budget of {money(self.usd)} is used up"
        return ""
