"""What the app knows of a rewrite that is being asked for: its price, and whether there is one to go on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from specchat.attachments import label
from specchat.folders import unfinished_folder
from specchat.tui.redoing import RedoActions
from specchat.tui.rewrite_messages import ForecastMade
from specchat.tui.rewrite_plans import ForecastJob
from specchat.tui.screens.rewrite_ask import RewriteAsk

if TYPE_CHECKING:  # loading it takes longer than the first frame may
    from specchat.rewrite.unfinished import UnfinishedStore


class PriceActions(RedoActions):
    """Lets the engine's thread find out, and tells the screen that asks."""

    _price: ForecastJob | None = None

    @property
    def unfinished(self) -> UnfinishedStore:
        """Rewrites that were cut off, here or on the command line."""
        from specchat.rewrite.unfinished import UnfinishedStore

        return UnfinishedStore(unfinished_folder())

    def drop_price(self) -> None:
        """Nobody waits for it any more."""
        if self._price is not None:
            self._price.drop()
            self._price = None

    @on(RewriteAsk.PriceWanted)
    def _ask_price(self, message: RewriteAsk.PriceWanted) -> None:
        self.drop_price()
        self._price = ForecastJob(message.wanted, self.unfinished)
        self.engine.rewrite(self._price)

    @on(ForecastMade)
    def _tell_price(self, message: ForecastMade) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RewriteAsk):
                text = "\n".join(label(line) for line in message.text.split("\n"))
                screen.tell_price(message.targets, text, message.unfinished, is_problem=message.is_problem)
