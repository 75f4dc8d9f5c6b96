"""The messages of a chat, the last ones first to be there: a long chat opens at once and grows upwards on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, thread_time
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message

from specchat.chat import Turn
from specchat.tui.widgets.turn import TurnView

AT_ONCE = 20  # messages that are laid out before the first frame, and more at each arrival at the top
DRAWS_PER_S = 12
SLOWEST_S = 0.5  # between two draws of a growing message
# Where the engine decodes on the same cores, a step waits as long as the screen computes.
SHARE_BESIDE_ENGINE, SHARE_ALONE = 0.035, 0.5  # of one core that drawing may take


class Transcript(VerticalScroll, can_focus=True):
    """All messages of the path. While it has the focus, one of them is current."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Next message", show=False),
        Binding("k,up", "move(-1)", "Previous message", show=False),
        Binding("pageup", "earlier", "Page up", show=False),
        Binding("g,home", "move_to(0)", "First", show=False),
        Binding("G,end", "move_to(-1)", "Last", show=False),
        *(Binding(key, f"on_message('{verb}')", text) for key, verb, text in (
            ("y", "copy", "Copy"), ("c", "copy_code", "Copy code"), ("s", "save_code", "Save code"),
            ("e", "edit", "Edit and resend"), ("r", "redo", "Redo"), ("d", "delete", "Delete"),
            ("left", "older", "Older version"), ("right", "newer", "Newer version"),
            ("x", "steps", "Steps"), ("p", "provenance", "Where from"), ("v", "check", "Check"),
            ("t", "unfold", "Thinking"), ("enter", "jump", "Jump"),
        )),
    ]  # fmt: skip

    @dataclass
    class Asked(Message):
        """A key that means something for the current message."""

        verb: str
        turn: int

    def __init__(self, make: Callable[[Turn], TurnView], *, id: str) -> None:
        super().__init__(id=id)
        self._make = make
        self._path: list[Turn] = []
        self._shown_from = 0  # index in the path of the first message that is laid out
        self._current = -1  # index in the path
        self._changing = asyncio.Lock()  # which messages are laid out
        self._growing: TurnView | None = None  # the only one that has to be looked at again and again
        self.share = SHARE_BESIDE_ENGINE
        self._drawn_at = self._used_s = 0.0  # of the last draw: when, and what this thread had computed by then

    def on_mount(self) -> None:
        self.set_interval(1 / DRAWS_PER_S, self._settle)
        self.anchor()

    async def show(self, path: Sequence[Turn]) -> None:
        """Another path: what it shares with the shown one stays, the rest is laid out anew."""
        async with self._changing:
            shared = 0
            while shared < min(len(path), len(self._path)) and path[shared] is self._path[shared]:
                shared += 1
            gone = [view for turn in self._path[shared:] if (view := self.view(turn.id)) is not None]
            if gone:
                await self.remove_children(gone)
            self._path = list(path)
            if shared <= self._shown_from:  # nothing stays that is laid out
                shared = self._shown_from = max(0, len(path) - AT_ONCE)
            if self._growing in gone:
                self._growing = None
            await self.mount_all([self._make(turn) for turn in path[shared:]])
        self._mark(len(path) - 1)
        self.anchor()

    def view(self, turn: int) -> TurnView | None:
        """The widget of a message, if it is laid out."""
        return next((view for view in self.views if view.turn == turn), None)

    def grow(self, turn: int) -> None:
        """A message that text will be appended to."""
        self._growing = self.view(turn)
        if self._growing is not None:
            self._growing.begin()

    @property
    def growing(self) -> TurnView | None:
        """The message that grows, or grew last."""
        return self._growing

    @property
    def views(self) -> list[TurnView]:
        return [child for child in self.children if isinstance(child, TurnView)]

    @property
    def current(self) -> Turn | None:
        """The message that keys act on."""
        return self._path[self._current] if 0 <= self._current < len(self._path) else None

    async def reveal(self, turn: int, place: int) -> None:
        """Scroll to a character of a message and mark its line."""
        index = next((i for i, other in enumerate(self._path) if other.id == turn), None)
        if index is None:
            return
        await self._lay_out_from(index)
        view = self.view(turn)
        if view is not None:
            self._mark(index)
            self.release_anchor()
            end = view.source.find("\n", place)
            self.highlight(view, (place, len(view.source) if end < 0 else end))
            self.call_after_refresh(self._scroll_to_place, view, place)

    def highlight(self, view: TurnView, piece: tuple[int, int]) -> None:
        """Mark characters of a message, and no others."""
        for other in self.views:
            wanted = piece if other is view else None
            if other.highlighted != wanted:
                other.highlighted = wanted
                other.update_notes()

    def _scroll_to_place(self, view: TurnView, place: int) -> None:
        self.scroll_to(y=max(0, view.virtual_region.y + view.line_of(place) - 3), animate=False)

    async def go_to(self, turn: Turn) -> None:
        """Make a message of the path the current one, and show it."""
        await self._go(self._path.index(turn))

    async def action_move(self, step: int) -> None:
        await self._go(self._current + step)

    async def action_move_to(self, index: int) -> None:
        await self._go(index if index >= 0 else len(self._path) - 1)

    def action_on_message(self, verb: str) -> None:
        turn = self.current
        if turn is not None:
            self.post_message(self.Asked(verb, turn.id))

    async def _go(self, index: int) -> None:
        if not self._path:
            return
        index = max(0, min(index, len(self._path) - 1))
        await self._lay_out_from(index)
        self._mark(index)
        view = self.view(self._path[index].id)
        if index == len(self._path) - 1:
            self.anchor()
        elif view is not None:
            self.release_anchor()
            self.call_after_refresh(self.scroll_to_widget, view, animate=False, top=True)

    async def _lay_out_from(self, index: int) -> None:
        """Lay out messages down from this one, and a few above it; what is on the screen stays where it is."""
        async with self._changing:
            if not 0 <= index < self._shown_from:
                return
            first, views = max(0, index - AT_ONCE // 2), self.views
            earlier, self._shown_from = self._path[first : self._shown_from], first
            above = self.scroll_y - views[0].virtual_region.y
            await self.mount_all([self._make(turn) for turn in earlier], before=0)
            self.call_after_refresh(self._keep_place, views[0], above)

    def _keep_place(self, view: TurnView, above: float) -> None:
        if not self.is_anchored or self._anchor_released:
            self.scroll_to(y=view.virtual_region.y + above, animate=False, immediate=True)

    def _mark(self, index: int) -> None:
        self._current = index
        for view in self.views:
            view.set_class(self.has_focus and self.current is not None and view.turn == self.current.id, "-current")

    def on_focus(self) -> None:
        self._mark(self._current)

    def on_blur(self) -> None:
        self._mark(self._current)

    async def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        await self._more_above()

    async def action_earlier(self) -> None:
        """A page up; at the top, earlier messages are laid out first."""
        self.release_anchor()
        await self._more_above()
        self.call_after_refresh(self.scroll_page_up, animate=False)

    async def _more_above(self) -> None:
        if self.scroll_y <= 2 and self._shown_from > 0:
            await self._lay_out_from(self._shown_from - 1)

    def _settle(self) -> None:
        now, used = monotonic(), thread_time()
        early = now - self._drawn_at < SLOWEST_S and used - self._used_s > self.share * (now - self._drawn_at)
        if self._growing is not None and not early and self._growing.settle():
            self._drawn_at, self._used_s = now, used
