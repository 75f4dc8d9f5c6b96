"""Which settings there are, what they may be and what they are unless somebody chose. No file, no screen."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from specchat.modes import MODES
from specchat.settings.allowed import (
    Checked,
    InProject,
    absent_or,
    is_text,
    key,
    number,
    one_of,
    some_of,
    switch,
    text,
    text_or_empty,
    texts,
    whole,
)

Place = tuple[str, ...]  # of a key in the tables of the file: ("guess", "mode"), ("targets", NAME, "draft")

SOURCES = ("prompt", "reply", "turn", "file")
TINTS = ("off", "gutter", "token")
RULES = ("coupled", "rejection", "block", "typical")
POLICIES = ("ask", "drop", "stop")
CACHE_TYPES = ("f16", "q8_0")
FAILURES = ("ask", "keep", "undo")
SHARE = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
DRAFT = text('"auto", "none", or the name or file of a model')


@dataclass(frozen=True, slots=True)
class GuessSettings(Checked):
    """Who guesses, and when not."""

    mode: str = key("auto", one_of(MODES), f"{', '.join(MODES[:-1])} or {MODES[-1]}", InProject.YES)
    draft: str = key("auto", DRAFT, "draft model: auto, none, or a name or file", InProject.YES)
    length: int | None = key(
        None, whole(1, 63, none="auto"), "tokens a guesser chosen by hand drafts: auto, or 1 to 63", InProject.YES
    )
    pause_below: float = key(
        0.95,
        number("a number from 0 to 2", lambda value: 0 <= value <= 2),
        "speed over plain under which guessing pauses; 0: never",
        InProject.YES,
    )
    sources: tuple[str, ...] = key(
        SOURCES,
        some_of(SOURCES),
        "what lookups copy from: this prompt, this reply, earlier turns, files",
        InProject.YES,
    )


@dataclass(frozen=True, slots=True)
class SamplingSettings(Checked):
    """How the next token is drawn; the values are those of speculation.sampling."""

    temperature: float = key(
        0.7, number("a number, 0 or more", lambda value: value >= 0), "0: always the best token", InProject.YES
    )
    top_k: int = key(40, whole(0), "draw from so many tokens; 0: from all", InProject.YES)
    top_p: float = key(0.95, SHARE, "draw from tokens that together have this probability; 1: from all", InProject.YES)
    min_p: float = key(0.05, SHARE, "draw from tokens this probable, relative to the best; 0: from all", InProject.YES)
    repeat_penalty: float = key(
        1.0,
        number("a number above 0", lambda value: value > 0),
        "above 1: recent tokens less likely",
        InProject.YES,
    )
    repeat_last_n: int = key(64, whole(-1), "tokens that the penalty looks back over; 0: off, -1: all", InProject.YES)
    seed: int | None = key(
        None, whole(0, 2**64 - 1, none="random"), "random, or a number: the same reply each time", InProject.YES
    )
    max_tokens: int | None = key(
        None, whole(1, 2**31, none="none"), "longest reply; none: till the context is full", InProject.YES
    )
    rule: str = key(
        "coupled",
        one_of(RULES),
        "how guesses are verified: coupled, rejection or block, all exact; or typical, which is not",
        InProject.YES,
    )
    stop: tuple[str, ...] = key((), texts(), "a reply ends before any of these texts", InProject.YES)


@dataclass(frozen=True, slots=True)
class ContextSettings(Checked):
    """What a model is loaded with, which holds from the next load, and what happens when that is full."""

    size: int | None = key(None, whole(16, 2**24, none="auto"), "tokens: auto, or a number", InProject.YES)
    threads: int | None = key(None, whole(1, 512, none="auto"), "processor threads: auto, or a number")
    policy: str = key(
        "ask", one_of(POLICIES), "when a chat outgrows it: ask, drop (the oldest turns) or stop", InProject.YES
    )
    read_ahead: bool = key(True, switch(), "read ahead while the question is typed; an idle draft model reads replies")
    cache_type: str = key(
        "f16", one_of(CACHE_TYPES), "numbers of the cache: f16, or q8_0 in half the memory", InProject.YES
    )


@dataclass(frozen=True, slots=True)
class RewriteSettings(Checked):
    """What happens around a rewrite of files on the command line."""

    after: str | None = key(
        None, text('"none" or a command', none="none"), "run behind each write, like ruff check {}", InProject.TRUSTED
    )
    after_fail: str = key("ask", one_of(FAILURES), "when that fails: ask (where it can), keep or undo", InProject.YES)
    backup_suffix: str | None = key(
        None, text('"none" or an ending of a name, like ".orig"', none="none"), "a copy of the old file beside it"
    )


@dataclass(frozen=True, slots=True)
class ViewSettings(Checked):
    """What the screen shows."""

    theme: str = key("auto", text('"auto" or the name of a theme'), "colours: auto, or the name of a theme")
    tint: str = key("gutter", one_of(TINTS), "what was guessed: off, gutter (the share of each line) or token")
    rendered: bool = key(True, switch(), "Markdown rendered; false: as it was written")
    plain_marker: bool = key(True, switch(), "mark where plain decoding would be by now")
    panel: bool = key(True, switch(), "figures of the guessing beside the chat")
    fold_thinking: bool = key(True, switch(), "fold what a model thinks before it replies")
    line_mode: bool = key(False, switch(), "chat in line mode, without a full screen")


@dataclass(frozen=True, slots=True)
class HistorySettings(Checked):
    """Which chats are written down, and for how long."""

    enabled: bool = key(True, switch(), "keep chats on this computer; false: every chat is private")
    keep_days: int = key(0, whole(0, 100_000), "delete chats this many days after their last word; 0: never")


@dataclass(frozen=True, slots=True)
class TargetSettings(Checked):
    """What was chosen for one target model; None where nothing was, so that the general setting holds."""

    guess: str | None = key(None, absent_or(one_of(MODES)), "")
    draft: str | None = key(None, absent_or(DRAFT), "")


@dataclass(frozen=True, slots=True)
class Settings(Checked):
    """All settings; the defaults are those of an empty file. Every part raises ValueError for a wrong value."""

    model: str | None = key(
        None,
        text('"auto", or the name or file of a model', none="auto"),
        "model to chat with: auto, or a name or file",
        InProject.YES,
    )
    system: str = key("", text_or_empty(), "system prompt of new chats", InProject.YES)
    offline: bool = key(False, switch(), "fetch nothing, whoever asks")
    guess: GuessSettings = field(default_factory=GuessSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    rewrite: RewriteSettings = field(default_factory=RewriteSettings)
    view: ViewSettings = field(default_factory=ViewSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    targets: Mapping[str, TargetSettings] = field(default_factory=dict)  # by name; only those with a choice are kept

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if wrong := [name for name in self.targets if not is_text(name)]:
            raise ValueError(f"targets has the name {wrong[0]!r}; it must be text that a file can hold")
        chosen = {name: target for name, target in self.targets.items() if target != TargetSettings()}
        object.__setattr__(self, "targets", chosen)

    def target(self, name: str) -> TargetSettings:
        """What was chosen for a target model."""
        return self.targets.get(name, TargetSettings())

    def chosen_for(self, name: str, decided: Container[str] = ()) -> Settings:
        """The settings with what was chosen for a target model, but for keys that something stronger has decided."""
        target, guess = self.target(name), self.guess
        if target.guess is not None and "guess.mode" not in decided:
            guess = replace(guess, mode=target.guess)
        if target.draft is not None and "guess.draft" not in decided:
            guess = replace(guess, draft=target.draft)
        return replace(self, guess=guess)

    def remembering(self, name: str, target: TargetSettings) -> Settings:
        """The settings with another choice for one target model."""
        return replace(self, targets={**self.targets, name: target})


SECTIONS = {
    "guess": GuessSettings,
    "sampling": SamplingSettings,
    "context": ContextSettings,
    "rewrite": RewriteSettings,
    "view": ViewSettings,
    "history": HistorySettings,
}
ANY = "*"  # in a place: whichever target
OTHER_TABLES = frozenset({("endpoints",)})  # of the user's file; other modules say what may be in them
KEYS: Mapping[Place, Field[Any]] = {
    **{(each.name,): each for each in fields(Settings) if each.metadata},
    **{(section, each.name): each for section, kind in SECTIONS.items() for each in fields(kind)},
    **{("targets", ANY, each.name): each for each in fields(TargetSettings)},
}


def kind_of(place: Place) -> Place:
    """Where `KEYS` describes a place."""
    return (place[0], ANY, *place[2:]) if place[0] == "targets" and len(place) > 1 else place


def flattened(settings: Settings) -> dict[Place, Any]:
    """Every setting by its place; of the targets only what was chosen."""
    values: dict[Place, Any] = {}
    for place in KEYS:
        if ANY not in place:
            owner = settings if len(place) == 1 else getattr(settings, place[0])
            values[place] = getattr(owner, place[-1])
    for name, target in settings.targets.items():
        chosen = {"guess": target.guess, "draft": target.draft}
        values |= {("targets", name, each): value for each, value in chosen.items() if value is not None}
    return values


def settings_from(values: Mapping[Place, Any]) -> Settings:
    """The settings that have these values and are else as they were made. Raises ValueError."""
    parts: dict[Place, dict[str, Any]] = {}
    for place, value in values.items():
        parts.setdefault(place[:-1], {})[place[-1]] = value
    sections = {name: section(**parts.get((name,), {})) for name, section in SECTIONS.items()}
    targets = {place[1]: TargetSettings(**part) for place, part in parts.items() if place[:1] == ("targets",)}
    return Settings(**parts.get((), {}), **sections, targets=targets)
