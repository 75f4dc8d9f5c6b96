"""How far and how wide a draft grows that is written a token at a time, at today's prices."""

from __future__ import annotations

from collections.abc import Sequence

from speculation.cost import LivePrices

_AHEAD = 8  # tokens that are looked ahead


class Stopping:
    """Go on while the next tokens bring more a second than the step so far, and no less than it is expected to.

    Looks a few tokens ahead, because the time of a forward is a staircase: a stair is worth climbing when the flat
    behind it is long enough. Plain decoding is the least that a token has to bring.
    """

    def __init__(self, prices: LivePrices, token_s: float, alpha: float, speed: float = 0.0) -> None:
        """`token_s`: seconds of a drafted token; `alpha`: the chance of one of which nothing is known yet.

        `speed`: tokens that a second of this step will bring by all that is known. What is proposed early is not taken
        back, so it has to be worth what the whole step will be.
        """
        self.drafted = 1.0  # what was drafted, in tokens: the first is drafted unasked, and several at once cost less
        self.alone: int | None = None  # tokens in a row that were drafted, where copies may stand behind them
        self._forward_s = prices.forward_s
        self._token_s = token_s
        self._alpha = alpha
        self._least = max(speed, 1.0 / prices.forward_s(1))
        self._rows = 1
        self._expected = 1.0

    def rows(self, reaches: Sequence[float]) -> int:
        """The number of candidates that brings most, with what would follow the first of them; at first one or more."""
        offered = [(reach, True) for reach in reaches]
        follow = [(reaches[0] * self._alpha**more, False) for more in range(1, _AHEAD)]
        price, before = self._price(), self._forward_s(self._rows)
        most, n = 0.0, int(self._rows == 1)
        for nodes in (offered, sorted(offered + follow, key=lambda node: -node[0])):
            gain, known = 0.0, 0
            for more, (reach, is_offered) in enumerate(nodes, 1):
                gain += reach
                known += is_offered
                drafting = (more - known) * self._token_s
                net = gain - price * (self._forward_s(self._rows + more) - before + drafting)
                if net > most:
                    most, n = net, known
        self._rows += n
        self._expected += sum(reaches[:n])
        return n

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        """All nodes behind which a token brings more than its row and its share, if together they pay for drafting."""
        price, before = self._price(), self._forward_s(self._rows)
        row = price * (self._forward_s(self._rows + _AHEAD) - before) / _AHEAD
        further = [reach * self._alpha - row - price * self._token_s * beside for reach in reaches[1:]]
        paying = [gain for gain in further if gain > 0.0]
        gain = most = 0.0
        for more in range(1, _AHEAD + 1):
            gain += reaches[0] * self._alpha**more
            most = max(most, gain - price * (self._forward_s(self._rows + more) - before + (more - 1) * self._token_s))
        if most + sum(paying) <= price * self._token_s:
            return 0
        self.drafted += 1.0 + beside * len(paying)
        return 1 + len(paying)

    def lengthen(self, reaches: Sequence[float], drafted: int) -> int:
        """The number of tokens of a chain that brings most behind `drafted` ones, where each costs its row alone."""
        price, before = self._price(), self._forward_s(self._rows)
        gain = most = 0.0
        n = 0
        for more, reach in enumerate(reaches, 1):
            gain += reach
            net = gain - price * (self._forward_s(self._rows + more) - before)
            if net > most:
                most, n = net, more
        if n:
            self.alone = drafted
            self._rows += n
        return n

    def _price(self) -> float:
        """Tokens that a second has to bring."""
        return max(self._expected / (self._forward_s(self._rows) + self.drafted * self._token_s), self._least)
