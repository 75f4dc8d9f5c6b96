"""When a draft model stops, and where it offers a second candidate, at today's prices."""

from __future__ import annotations

from speculation.cost import LivePrices

_AHEAD = 8  # tokens that the stopping rule looks ahead


class Stopping:
    """Go on while the next tokens bring more a second than the step so far.

    Looks a few tokens ahead, because the time of a forward is a staircase: a stair is worth climbing when the flat
    behind it is long enough. Plain decoding is the least that a token has to bring.
    """

    def __init__(self, prices: LivePrices, token_s: float, alpha: float) -> None:
        """`token_s`: seconds of a drafted token; `alpha`: the chance of the first one, which is drafted unasked."""
        self.beside = 0  # second candidates so far, which took a row, but no drafting
        self._forward_s = prices.forward_s
        self._token_s = token_s
        self._plain_s = prices.forward_s(1)
        self._expected = 1.0 + alpha
        self._before = alpha

    def __call__(self, drafted: int, together: float) -> bool:
        """Whether another token is worth drafting; `together`: the chance that it and the `drafted` before it hold."""
        rows = drafted + self.beside + 1
        price = self._price(rows, drafted)
        chance = min(0.99, together / self._before) if self._before > 0 else 0.0
        gain, ahead = 0.0, together
        for more in range(1, _AHEAD + 1):
            gain += ahead
            ahead *= chance
            if gain >= price * (self._forward_s(rows + more) - self._forward_s(rows) + more * self._token_s):
                self._expected += together
                self._before = together
                return True
        return False

    def widen(self, reach: float, drafted: int) -> bool:
        """Whether a second candidate of this reach is worth its row beside the last of `drafted` tokens."""
        rows = drafted + self.beside + 1
        if reach < self._price(rows, drafted) * (self._forward_s(rows + 1) - self._forward_s(rows)):
            return False
        self._expected += reach
        self.beside += 1
        return True

    def _price(self, rows: int, drafted: int) -> float:
        """Tokens that a second has to bring."""
        return max(self._expected / (self._forward_s(rows) + drafted * self._token_s), 1.0 / self._plain_s)
