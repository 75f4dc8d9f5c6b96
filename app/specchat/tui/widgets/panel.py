"""The side panel: who guesses, what the guesses are worth, who wrote the reply."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Digits, Static

from specchat.live import Live, sparkline
from specchat.provenance import Author
from specchat.tui.widgets.numbers import bar, duration, number, one_line, percent, step_cost, times
from speculation.stats import Totals
from speculation.types import PLAIN

CELLS = 26  # what is left of the 30 columns beside border, padding and scrollbar
GUESSERS = (PLAIN, "draft", "lookup")  # always listed, so that no line moves when one begins to guess
_MUTED = "dim"  # "auto" colours, as $text-muted is in most themes, are those of a whole widget
_AUTHORS = {  # in the order of the list; each with its colour
    Author.MODEL: "$foreground 60%",
    Author.DRAFT: "$text-primary",
    Author.PROMPT: "$text-secondary",
    Author.REPLY: "$text-secondary",
    Author.TURN: "$text-secondary",
    Author.FILE: "$text-accent",
}


def by_guesser(live: Live | None) -> list[tuple[str, Totals]]:
    """What each guesser did, plain decoding first; empty totals for one that did nothing."""
    did: Mapping[str, Totals] = {} if live is None else live.by_guesser
    others = sorted(name for name in did if name not in GUESSERS)
    return [(name, did.get(name) or Totals()) for name in (*GUESSERS, *others)]


def who_guesses(live: Live) -> str:
    """The guesser in use, and who chose it: auto > draft."""
    chosen, used = one_line(live.guess), one_line(live.guesser)
    return chosen if used in ("", chosen) or (chosen, used) == ("off", PLAIN) else f"{chosen} > {used}"


class SpeculationPanel(VerticalScroll):
    """The figures of the running reply, at the right side of the chat."""

    DEFAULT_CSS = """
    SpeculationPanel {
        width: 30;
        height: 1fr;
        border-left: vkey $foreground 15%;
        padding: 0 0 0 1;
        background: $surface;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;

        &:focus { border-left: vkey $accent; }
        & > * { height: auto; width: 1fr; margin-right: 1; }
        .section {
            border-top: solid $foreground 20%;
            border-title-color: $text-muted;
            border-title-background: $surface;
        }
        #figure-heading { color: $text-muted; height: 1; }
        #figure-guesser { text-style: bold; color: $text-accent; }
        #figure-guesser { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        #figure-reason { color: $text-muted; height: 4; }
        #figure-rate { height: 3; }
        #figure-rate Digits { width: 13; color: $text-accent; text-style: bold; }
        #figure-beside { width: 1fr; height: 3; text-align: right; }
        #figure-recent { color: $text-accent; height: 1; }
        #figure-explanation { color: $text-warning; }
        &.-empty .figures, &.-server .figures { display: none; }
        #figure-server { display: none; }
        &.-server #figure-server { display: block; }

        &:ansi {
            background: ansi_default;
            border-left: vkey $border-blurred;
            #figure-heading, #figure-reason { text-style: dim; }
            .section { border-top: solid $border-blurred; border-title-background: ansi_default; }
        }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._live: Live | None = None
        self._server: tuple[str, tuple[tuple[str, str], ...]] | None = None  # its host and what it reports
        self._drawn: dict[str, str | Content] = {}  # what each part shows

    def compose(self) -> ComposeResult:
        yield Static(_apart("Speculation", "F3 hides"), id="figure-heading", markup=False)
        yield Static("no reply yet", id="figure-guesser", markup=False)
        yield Static(id="figure-reason", markup=False, classes="figures")
        with Horizontal(id="figure-rate", classes="figures"):
            yield Digits(number(None, 5))
            yield Static(id="figure-beside", markup=False)
        yield Static(id="figure-recent", markup=False, classes="figures")
        yield Static(id="figure-rates", markup=False, classes="figures")
        for name, title in (("guessers", "by guesser"), ("authors", "who wrote it"), ("saved", "time saved")):
            section = Static(id=f"figure-{name}", markup=False, classes="section figures")
            section.border_title = f" {title} "
            yield section
        yield Static(id="figure-explanation", markup=False, classes="figures")
        yield Static(id="figure-server", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def show(self, live: Live) -> None:
        """Draw these figures."""
        self._live, self._server = live, None
        self._redraw()

    def show_server(self, host: str, rows: Sequence[tuple[str, str]]) -> None:
        """Draw what a server reports; no rows: nothing yet."""
        self._live, self._server = None, (host, tuple(rows))
        self._redraw()

    def show_none(self) -> None:
        """Nothing is known yet."""
        self._live = self._server = None
        self._redraw()

    def _redraw(self) -> None:
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        live = self._live
        self.set_class(live is None, "-empty")
        self.set_class(self._server is not None, "-server")
        if live is None:
            self._drawn.clear()
            self._draw_server()
            return
        contents: dict[str, str | Content] = {
            "guesser": who_guesses(live),
            "reason": _reason(live),
            "beside": _beside(live),
            "recent": one_line(sparkline(live.recent, CELLS)).rjust(CELLS),
            "rates": _rates(live),
            "guessers": _guessers(live),
            "authors": _authors(live.who),
            "saved": _right("this reply", f"{duration(live.saved_s)} est"),
            "explanation": one_line(live.explanation),
        }
        for name, content in contents.items():
            before = self._drawn.get(name)
            if content != before:  # arranging the panel anew is dear, and most parts keep their number of lines
                self._drawn[name] = content
                lines = str(content).count("\n")
                moved = before is None or name == "explanation" or lines != str(before).count("\n")
                self.query_one(f"#figure-{name}", Static).update(content, layout=moved)
        per_step = number(live.totals.tokens_per_step, 5)
        if per_step != self.query_one(Digits).value:
            self.query_one(Digits).update(per_step)

    def _draw_server(self) -> None:
        if self._server is None:
            self.query_one("#figure-guesser", Static).update("no reply yet")
            return
        host, rows = self._server
        self.query_one("#figure-guesser", Static).update(f"at {one_line(host)}")
        said = [_right(name, value) for name, value in rows] or [Content.styled("no reply yet", _MUTED)]
        self.query_one("#figure-server", Static).update(Content("\n").join(said))


def _apart(left: str, right: str) -> str:
    return left + right.rjust(CELLS - len(left))


def _right(name: str, value: str) -> Content:
    """A line with its name at the left, muted, and its value at the right."""
    return Content.assemble((name, _MUTED), value.rjust(CELLS - len(name)))


def _reason(live: Live) -> Content:
    reason, paused = one_line(live.reason), one_line(live.paused)
    told = reason if paused in reason else f"{paused}, {reason}"
    return Content.styled(told, "$text-warning") if paused else Content(told)


def _beside(live: Live) -> Content:
    speed_up = live.speed_up
    gain = "not enough yet" if speed_up is None else f"{times(speed_up, 0)} est"
    return Content("\n").join(
        [
            Content.styled("tokens/step", _MUTED),
            Content.styled(gain, _MUTED if speed_up is None else "bold"),
            Content.styled(f"{live.totals.steps:,} steps", _MUTED),
        ]
    )


def _rates(live: Live) -> Content:
    totals = live.totals
    figures = {
        "accepted": f"{totals.accepted}/{totals.examined} {percent(totals.alpha, 6)}",
        "speed": f"{number(totals.tokens_per_s, 8, '.1f')} tok/s",
        "step cost": f"{number(step_cost(totals, live.plain_step_s), 5)} plain",
    }
    return Content("\n").join([_right(name, value) for name, value in figures.items()])


def _guessers(live: Live) -> Content:
    lines = [Content.styled(f"{'accepted':>15}{'/step':>6}{'cost':>5}", _MUTED)]
    for name, totals in by_guesser(live):
        name = one_line(name)[:7]
        cost = number(step_cost(totals, live.plain_step_s), 5)
        figures = f"{percent(totals.alpha, 8)}{number(totals.tokens_per_step, 6)}{cost}"
        lines.append(Content.assemble((name.ljust(7), "bold" if name == live.guesser else ""), figures))
    return Content("\n").join(lines)


def _authors(who: Mapping[Author, int]) -> Content:
    emitted = sum(who.values())
    lines = []
    for author, colour in _AUTHORS.items():
        share = who.get(author, 0) / emitted if emitted else math.nan
        lines.append(Content.assemble(f"{author.value:<7}", (bar(share, CELLS - 7 - 6), colour), percent(share, 6)))
    return Content("\n").join(lines)
