"""What the app does by name: the actions behind slash commands, keys and the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SystemCommand
from textual.screen import Screen

from specchat.errors import Refusal
from specchat.reply import OWN
from specchat.settings import MODES, TINTS, GuessSettings, Settings, SettingsFile
from specchat.tui.commands import COMMANDS, find_command
from specchat.tui.engine_thread import EngineThread
from specchat.tui.hearing import NO_STEPS
from specchat.tui.messages import ONLY_HERE, Loaded
from specchat.tui.outside import edited, free_name, to_system_clipboard
from specchat.tui.screens.help import HelpScreen
from specchat.tui.screens.steps import StepsScreen
from specchat.tui.start import carried
from specchat.tui.widgets.chat_view import ChatView
from specchat.tui.widgets.composer import Composer

if TYPE_CHECKING:
    from specchat.session import Reply


@dataclass(frozen=True, slots=True)
class _GuessChoice:
    """A guesser that somebody chose, and what there was before."""

    mode: str
    before: Settings
    stored: Settings
    general: GuessSettings


class Actions(App[None]):
    """Actions on chat, settings and the world outside; the app itself puts the screen together."""

    settings: Settings
    loaded: Loaded | None
    engine: EngineThread
    folder: Path
    tell: Callable[..., None]
    take: Callable[[Settings], None]
    _chat: ChatView
    _file: SettingsFile
    _stored: Settings  # as the file has them
    _general: GuessSettings  # for a model for which nothing was chosen
    _guess_choice: _GuessChoice | None = None  # the last one by hand

    @property
    def chat_view(self) -> ChatView:
        return self._chat

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def change(self, settings: Settings) -> None:
        """Take up changed settings, keep what was changed in the file, and tell the engine."""
        before, self.settings = self.settings, settings
        here = self.loaded is not None and not self.loaded.is_remote
        if self.loaded is not None and self.loaded.is_remote and settings.guess != before.guess:
            self.tell("kept for models that run here: a server decides itself who guesses", "warning")
        if here and self.loaded is not None and settings.guess != before.guess:
            remembered = replace(settings.target(self.loaded.name), guess=settings.guess.mode)
            if settings.guess.draft != before.guess.draft:  # else it may be that of another model
                remembered = replace(remembered, draft=settings.guess.draft)
            self.settings = settings = settings.remembering(self.loaded.name, remembered)
        if settings.guess.mode != before.guess.mode:
            self._guess_choice = _GuessChoice(settings.guess.mode, before, self._stored, self._general)
        self._general = carried(before.guess, settings.guess, self._general)
        self._stored = carried(before, settings, self._stored)
        self._keep_settings()
        self.take(settings)
        if here and settings.guess.draft != before.guess.draft and settings.guess.draft != "auto":
            self.engine.load_draft(settings.guess.draft)
        if settings.system != before.system:
            self.chat_view.chat.system = settings.system
            self.chat_view.post_message(ChatView.Changed())

    def guess_as_before(self, mode: str) -> None:
        """The guesser that was chosen cannot be had: neither is it kept, or the next start would want it."""
        choice, self._guess_choice = self._guess_choice, None
        failed = self.settings.guess.mode
        self.settings = replace(self.settings, guess=replace(self.settings.guess, mode=mode))
        if choice is not None and choice.mode == failed:
            self.settings = replace(self.settings, targets=choice.before.targets)
            self._general = replace(self._general, mode=choice.general.mode)
            guess = replace(self._stored.guess, mode=choice.stored.guess.mode)
            self._stored = replace(self._stored, guess=guess, targets=choice.stored.targets)
            self._keep_settings()

    def _keep_settings(self) -> None:
        try:
            self._file.save(self._stored)
        except (Refusal, OSError) as error:
            self.tell(f"not saved: {error}", "warning")

    async def run_command(self, text: str) -> bool:
        """Do a slash command; False leaves it in the prompt."""
        name, _, rest = text[1:].partition(" ")
        command = find_command(name.strip())
        if command is None:
            self.tell(f"no command /{name}; F1 lists them", "warning")
            return False
        action = getattr(self, f"action_{command.action}")
        result = action(rest.strip()) if command.hint else action()
        if isawaitable(result):
            await result
        return True

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Everything that a slash command does without an argument, by name."""
        for command in COMMANDS:
            action = f"{command.action}"
            key = f" ({command.key})" if command.key else ""
            yield SystemCommand(f"{command.name}{key}", command.text, lambda action=action: self.run_action(action))

    def action_guess(self, name: str = "") -> None:
        """Let another guesser guess: the next one, or the one that is named."""
        if self.is_elsewhere("who guesses is chosen"):
            return
        mode = self.settings.guess.mode
        chosen = name or MODES[(MODES.index(mode) + 1) % len(MODES)]
        if not name and chosen == "draft" and (self.loaded is None or self.loaded.draft is None):
            chosen = "lookup"  # going round loads no model; /guess draft and the settings do
        while not name and chosen in OWN and (self.loaded is None or chosen not in self.loaded.own):
            chosen = MODES[MODES.index(chosen) + 1]
        if chosen not in MODES:
            self.tell(f"guess is {mode}; it may be {', '.join(MODES)}", "warning")
            return
        self.change(replace(self.settings, guess=replace(self.settings.guess, mode=chosen)))
        self.tell(f"guess {chosen}")

    def action_draft(self, name: str = "") -> None:
        """Load a draft model beside the target, or drop it."""
        if self.is_elsewhere("a draft model is loaded"):
            return
        draft, before = name or "auto", self.settings.guess.draft
        self.change(replace(self.settings, guess=replace(self.settings.guess, draft=draft)))
        if self.loaded is None or draft in ("auto", before):  # else the change has loaded it
            self.engine.load_draft(draft)

    def action_panel(self) -> None:
        """Show or hide the figures."""
        self.change(replace(self.settings, view=replace(self.settings.view, panel=not self.settings.view.panel)))

    def action_tint(self, name: str = "") -> None:
        """Mark what was guessed: off, per line, per token."""
        view = self.settings.view
        chosen = name or TINTS[(TINTS.index(view.tint) + 1) % len(TINTS)]
        if chosen not in TINTS:
            self.tell(f"tint is {view.tint}; it may be {', '.join(TINTS)}", "warning")
            return
        self.change(replace(self.settings, view=replace(view, tint=chosen)))
        if self.loaded is not None and self.loaded.is_remote:
            self.tell(f"tint {chosen}, of replies written here: a server does not tell what it guessed")

    def action_raw(self) -> None:
        """Show Markdown as it was written, or rendered."""
        view = self.settings.view
        self.change(replace(self.settings, view=replace(view, rendered=not view.rendered)))

    def action_attach(self, path: str = "") -> None:
        """Attach a file."""
        self.composer.attach_file(path)

    def action_detach(self) -> None:
        """Drop the attachments of the next message."""
        self.composer.detach()

    async def action_redo(self) -> None:
        """Write the last reply anew."""
        if not self.is_busy():
            await self.chat_view.redo()

    async def action_go_on(self) -> None:
        """Go on with the last reply."""
        if not self.is_busy():
            await self.chat_view.go_on()

    def action_check(self) -> None:
        """Write the last reply again without guesses and compare."""
        if not self.is_busy() and not self.is_elsewhere("a reply is checked"):
            self.chat_view.check()

    def action_steps(self) -> None:
        """List the steps of the last reply."""
        turn = self.chat_view.last_reply
        if turn is None or turn.reply is None:
            self.tell("no reply has been written yet")
        else:
            self.show_steps(turn.reply)

    def action_copy_reply(self) -> None:
        """Copy the last reply."""
        turn = self.chat_view.last_reply
        if turn is None:
            self.tell("no reply has been written yet")
        else:
            self.copy_text(turn.text, "reply")

    def action_system(self, text: str = "") -> None:
        """Set the system prompt of this chat."""
        self.chat_view.chat.system = text
        self.chat_view.post_message(ChatView.Changed())
        self.tell("the system prompt is set; the next question reads the chat anew" if text else "no system prompt")

    def action_seed(self, text: str = "") -> None:
        """Set the seed of the next replies."""
        try:
            sampling = replace(self.settings.sampling, seed=None if text in ("", "random") else int(text))
        except ValueError:
            self.tell("a seed is a whole number from 0 on, below 2**64, or random", "warning")
            return
        self.change(replace(self.settings, sampling=sampling))

    def action_temperature(self, text: str = "") -> None:
        """Set the temperature of the next replies."""
        try:
            sampling = replace(self.settings.sampling, temperature=float(text))
        except ValueError:
            self.tell("a temperature is a number from 0 on", "warning")
            return
        self.change(replace(self.settings, sampling=sampling))

    def action_theme(self, name: str = "") -> None:
        """Choose the colours."""
        if not name:
            self.action_change_theme()
        elif name in self.available_themes:
            self.change(replace(self.settings, view=replace(self.settings.view, theme=name)))
        else:
            self.tell(f"no theme {name}; there are {', '.join(sorted(self.available_themes))}", "warning")

    def action_show_help(self) -> None:
        """Open the page of keys, commands and figures, or close it."""
        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        elif not any(isinstance(screen, HelpScreen) for screen in self.screen_stack):
            self.push_screen(HelpScreen())

    def action_editor(self) -> None:
        """Write the message in $VISUAL or $EDITOR."""
        text = edited(self, self.composer.prompt.text)
        if text is not None:
            self.composer.prompt.put(text)

    def is_busy(self) -> bool:
        if self.chat_view.busy is not None:
            self.tell("a reply is being written: Esc stops it", "warning")
        return self.chat_view.busy is not None

    def is_elsewhere(self, what: str) -> bool:
        """Whether a server answers now, which cannot do this; then that is said."""
        is_remote = self.loaded is not None and self.loaded.is_remote
        if is_remote:
            self.tell(f"{what} {ONLY_HERE}", "warning")
        return is_remote

    def copy_text(self, text: str, what: str) -> None:
        text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair would stop both
        self.copy_to_clipboard(text)
        to_system_clipboard(text)
        self.tell(f"{what} copied, {len(text)} characters")

    async def save_block(self, language: str, text: str) -> None:
        path = free_name(self.folder, language)
        try:
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            self.tell(f"cannot write {path}: {error.strerror or error}", "error")
        else:
            self.tell(f"saved as {path.name} in the working folder")

    def show_steps(self, reply: Reply) -> None:
        if reply.server is not None:
            self.tell(NO_STEPS)
        else:
            self.push_screen(StepsScreen(reply, self.engine.piece))
