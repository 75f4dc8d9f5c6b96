"""What stands in each tab of the settings panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.live import Live
from specchat.machine import decoding_threads
from specchat.settings import SOURCES
from specchat.settings.keys import CACHE_TYPES, FAILURES
from specchat.tui.widgets.numbers import number, one_line, percent, step_cost, times
from specchat.tui.widgets.panel import by_guesser
from specchat.tui.widgets.settings_drafts import DraftField
from specchat.tui.widgets.settings_fields import (
    ListField,
    NumberField,
    PerhapsField,
    PickField,
    TextField,
    TickField,
    TicksField,
)
from specchat.tui.widgets.settings_priced import PricedField
from specchat.tui.widgets.settings_texts import LineField, TextsField

_LATER = "take effect when the model is loaded next"
_GUESSERS: dict[object, str] = {
    "auto": "whatever pays, at every step",
    "draft": "a small model writes ahead",
    "lookup": "copies from what stands above",
    "off": "plain decoding",
    "recycling": "what the model thought of before",
    "eagle": "a trained head, token by token",
    "eagle3": "a head from a file of its own",
    "medusa": "trained heads, three at once",
    "mtp": "a layer in the model's own file",
}
_CACHES: dict[object, str] = {"f16": "two bytes a number", "q8_0": "about half the memory"}
_REWRITES = "rewriting on the command line"
_FAILED: dict[object, str] = {
    "ask": "ask, where somebody can answer",
    "keep": "keep what was written",
    "undo": "take it back",
}
_RULES: dict[object, str] = {
    "coupled": "same seed, same text",
    "rejection": "token by token",
    "block": "the draft as a whole",
    "typical": "not exactly the model's text",
}
_POLICIES: dict[object, str] = {
    "ask": "ask what to leave out",
    "drop": "leave out the oldest turns",
    "stop": "take no more questions",
}
_TINTS: dict[object, str] = {
    "off": "who guessed is not shown",
    "gutter": "the guessed share of each line",
    "token": "every token, in the raw view",
}


def speculation(drafts: DraftField) -> Iterator[Widget]:
    """Who guesses, and what that was worth."""
    yield PickField("guess.mode", "Guesser", {mode: str(mode) for mode in _GUESSERS}, _GUESSERS)
    yield drafts
    yield PerhapsField("guess.length", "Length", "auto", 4)
    yield NumberField("guess.pause_below", "Pause <", "x plain speed; 0: never")
    yield TicksField("guess.sources", "Lookup", {source: source for source in SOURCES})
    table = Static(id="settings-measured", markup=False)
    table.border_title = " measured on this chat "
    yield table


def sampling() -> Iterator[Widget]:
    """How the next token is drawn."""
    yield PricedField("sampling.temperature", "Temperature", "0: always the best")
    yield NumberField("sampling.top_k", "Top-k", "0: all")
    yield NumberField("sampling.top_p", "Top-p", "1: all")
    yield NumberField("sampling.min_p", "Min-p", "0: all")
    yield NumberField("sampling.repeat_penalty", "Repeat", "penalty; 1: off")
    yield NumberField("sampling.repeat_last_n", "  over last", "tokens; -1: all")
    yield PerhapsField("sampling.seed", "Seed", "random", 1)
    yield PerhapsField("sampling.max_tokens", "Max tokens", "none", 512)
    yield PickField("sampling.rule", "Rule", {rule: str(rule) for rule in _RULES}, _RULES)
    yield TextsField("sampling.stop", "Stop before", "a text a line; \\n is a new line in it")


def context() -> Iterator[Widget]:
    """What a model is loaded with, and what it is told."""
    yield PerhapsField("context.size", "Size", "auto", 8192)
    yield PerhapsField("context.threads", "Threads", "auto", decoding_threads())
    yield PickField("context.cache_type", "Cache", {kind: kind for kind in CACHE_TYPES}, _CACHES)
    yield Static(_LATER, classes="note", markup=False)
    yield Static(id="settings-in-use", markup=False)
    yield PickField("context.policy", "When full", {policy: str(policy) for policy in _POLICIES}, _POLICIES)
    yield TickField("context.read_ahead", "Reading", "ahead, while you type")
    yield TickField("history.enabled", "Chats", "kept, from the next one on")
    yield NumberField("history.keep_days", "  for", "days; 0: for ever")
    yield TextField("system", "System prompt", "all is read anew with the next message")
    yield TickField("offline", "Offline", "fetch nothing, whoever asks")
    yield Static(_REWRITES, classes="note", markup=False)
    yield LineField("rewrite.after", "Then run", "a command, like ruff check {}")
    yield PickField("rewrite.after_fail", "  failing", {what: what for what in FAILURES}, _FAILED)
    yield LineField("rewrite.backup_suffix", "Backup", "how its name ends, like .orig")


def view(themes: Iterable[str]) -> Iterator[Widget]:
    """What the screen shows."""
    yield ListField("view.theme", "Theme", {name: Text(one_line(name)) for name in ("auto", *sorted(themes))})
    yield PickField("view.tint", "Tint", {tint: str(tint) for tint in _TINTS}, _TINTS)
    yield PickField("view.rendered", "Replies", {True: "rendered", False: "raw"})
    yield TickField("view.plain_marker", "Show", "plain marker")
    yield TickField("view.panel", "", "panel of figures")
    yield TickField("view.fold_thinking", "Thinking", "folded")
    yield TickField("view.line_mode", "Next start", "in line mode, no screen")


def in_use(live: Live | None) -> Content:
    """How much of the context the chat takes."""
    used = "-" if live is None else f"{live.context_tokens:,} of {live.n_ctx:,} tokens"
    return Content.assemble(("In use      ", "dim"), used)


def measured(live: Live | None) -> Content:
    """The guessers side by side."""
    lines = [Content.styled(f"{'/step':>16}{'accepted':>9}{'cost':>5}{'tok/s':>7}{'x est':>6}", "dim")]
    plain_step_s = None if live is None else live.plain_step_s
    for name, totals in by_guesser(live):
        used = live is not None and live.guesser == name
        label = f"{'>' if used else ' '} {one_line(name)[:7]:<8}"
        figures = (
            f"{number(totals.tokens_per_step, 6)}{percent(totals.alpha, 9)}"
            f"{number(step_cost(totals, plain_step_s), 5)}{number(totals.tokens_per_s, 7, '.1f')}"
            f"{times(totals.speed_up(plain_step_s), 6)}"
        )
        lines.append(Content.assemble((label, "bold" if used else ""), figures))
    return Content("\n").join(lines)
