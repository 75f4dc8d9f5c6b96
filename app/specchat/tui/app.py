"""The app: what is on the screen, which key does what, and how screen and engine meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Footer, Static

from specchat.attachments import label
from specchat.console import printable, size
from specchat.history.keeper import Keeper
from specchat.live import Live
from specchat.settings import Settings
from specchat.tui.chat_actions import ChatActions
from specchat.tui.engine_thread import EngineThread
from specchat.tui.messages import Figures, Loaded, LoadProgress, ModelMissing, ModelReady, NotKept, Trouble
from specchat.tui.model_actions import ModelActions
from specchat.tui.notes import Look, remote_mark, title_line
from specchat.tui.rendering import theme_colours
from specchat.tui.rewriting import RewriteActions
from specchat.tui.start import Start
from specchat.tui.widgets.chat_view import ChatView
from specchat.tui.widgets.composer import Composer
from specchat.tui.widgets.panel import SpeculationPanel
from specchat.tui.widgets.settings_panel import SettingsPanel
from specchat.tui.widgets.status import Engine, Status
from specchat.tui.widgets.transcript import SHARE_ALONE, SHARE_BESIDE_ENGINE, Transcript
from specchat.tui.widgets.turn import View

if TYPE_CHECKING:
    from specchat.session import ReplySettings

OF_THE_CHAT = frozenset(
    ("settings", "panel", "guess", "tint", "models", "new_chat", "chats", "redo", "editor", "back", "rewrite", "undo")
)
WIDE = 96  # columns from which the figures stand beside the chat
WELCOME = """specchat: a private chat that guesses ahead and never changes the answer.

Type a question and press Enter.  @ attaches a file, / lists the commands, F1 explains keys and figures.
"""


class SpecchatApp(ChatActions, RewriteActions, ModelActions):
    """The full-screen chat."""

    TITLE = "specchat"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 # Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-lower"), (9, "-low"), (15, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "show_help", "Help", id="help", priority=True),
        Binding("f2", "settings", "Settings", id="settings", priority=True),
        Binding("f3", "panel", "Figures", id="view.panel", priority=True),
        Binding("f4", "rewrite", "Rewrite", id="rewrite", priority=True),
        Binding("ctrl+g", "guess", "Guesser", id="guesser.next", priority=True),
        Binding("ctrl+t", "tint", "Tint", id="view.tint", priority=True),
        Binding("ctrl+l", "models", "Model", id="models", priority=True),
        Binding("ctrl+n", "new_chat", "New", id="chat.new", priority=True),
        Binding("ctrl+s", "chats", "Chats", id="chat.list", priority=True),
        Binding("ctrl+r", "redo", "Redo", id="reply.redo", priority=True),
        Binding("ctrl+o", "editor", "Editor", id="prompt.editor", priority=True, show=False),
        Binding("escape", "back", "Stop", id="stop", show=False),
        Binding("ctrl+q", "quit", "Quit", id="quit", priority=True, show=False),
    ]

    def __init__(
        self,
        start: Start,
        engine: Callable[[Callable[[object], object], Callable[[], ReplySettings]], EngineThread] = EngineThread,
        now: Callable[[], datetime] = datetime.now,
        folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.settings = start.settings
        self.loaded: Loaded | None = None
        self.engine = engine(self._post, self._reply_settings)
        self._start = start
        self._file = start.file
        self._stored = start.stored
        self._general = start.settings.guess
        self.folder = folder or Path.cwd()
        self._chats = []
        self.keeper = Keeper(start.history, lambda text: self.post_message(NotKept(text)))
        self._asked_to_leave = False
        self._written = []
        self.fetches = None
        self._chat = ChatView(self._look(), lambda: self.engine, now, self.keeper, self.about, id="chat")
        self._status = Status(id="status")
        self._panel = SpeculationPanel(id="figures")
        self._settings_panel: SettingsPanel | None = None
        self._live: Live | None = None  # the last figures, for panels that are opened later
        self._copied: tuple[int, int] | None = None  # message and number of the block of code that was copied last

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="middle"):
            yield self._chat
            yield self._panel
        yield Composer(self.folder, lambda text: self.engine.count(text), id="composer")
        yield self._status
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        theme = self.settings.view.theme
        if theme in self.available_themes:
            self.theme = theme
        self.theme_changed_signal.subscribe(self, lambda _: self._redraw())
        self.chat_view.chat.system = self.settings.system
        self.chat_view.sources, self.chat_view.policy = self.settings.guess.sources, self.settings.context.policy
        self.chat_view.welcome(WELCOME)
        self.begin_chats()
        self.composer.focus_prompt()
        self._show_panel()
        self._redraw()
        if self._start.trouble:
            self.tell(self._start.trouble, "warning")
        self.engine.start()
        self._say_loading(self._start.wanted)
        self.engine.load(self._start.wanted)
        self.call_after_refresh(self.tidy_undo)

    def tell(self, text: str, severity: str = "information") -> None:
        """One line for the user that goes away by itself."""
        level = severity if severity in ("information", "warning", "error") else "information"
        self.notify(printable(text), severity=level, markup=False, timeout=8)  # type: ignore[arg-type]

    @property
    def fault(self) -> Exception | None:
        """The error that ended the app, which nobody caught."""
        return self._exception

    def _fatal_error(self) -> None:
        """Leave without Textual's own report, which shows the values of variables, and so what was said."""
        self.bell()
        self._close_messages_no_wait()

    # The engine.

    def _post(self, message: object) -> object:
        """Called by the engine's thread. Messages go in at the chat and bubble up to here."""
        return self._chat.post_message(message) if self.is_running else None  # type: ignore[arg-type]

    def _reply_settings(self) -> ReplySettings:
        """Called by the engine's thread: settings of replies, which need the engine's classes."""
        from specchat.opening import reply_settings_of

        return reply_settings_of(self.settings)

    @on(LoadProgress)
    def _loading(self, message: LoadProgress) -> None:
        done = f"{message.done:.0%}" if message.done < 1 else "timing its steps, once for this machine"
        if message.note:
            done = f"{message.note}, {message.done:.0%}"
        self._status.say(f"loading {message.name}: {done}  Esc stops")

    @on(ModelReady)
    def _model_ready(self, message: ModelReady) -> None:
        before, loaded = self.loaded, message.loaded
        self.loaded = loaded
        if loaded.is_remote or (before is not None and before.is_remote):
            self._live = None
            self.begin_figures(loaded)
        on_cores = loaded.back_end == "CPU"
        self.chat_view.transcript.share = SHARE_BESIDE_ENGINE if on_cores else SHARE_ALONE
        self._status.say(
            "ready" if loaded.is_remote else f"{self.settings.guess.mode}  ready, loaded in {loaded.load_s:.1f} s"
        )
        self._show_engine()
        self._redraw()
        for notice in loaded.notices:
            self.tell(notice, "warning")
        if not loaded.is_remote:
            self._take_chosen(loaded.name)

    def _take_chosen(self, target: str) -> None:
        """What was chosen for a model, now that it is loaded."""
        before = self.settings.guess
        chosen = replace(self.settings, guess=self._general).chosen_for(target, self._start.decided())
        if chosen.guess.draft not in ("auto", before.draft):  # first, or a guesser that needs one would load another
            self.engine.load_draft(chosen.guess.draft)
        if chosen.guess != before:
            self.take(chosen)

    @on(ModelMissing)
    def _missing(self, message: ModelMissing) -> None:
        self._status.say(f"{message.name} is not here yet: Ctrl+L fetches it")
        draft = f" and its draft {message.draft}" if message.draft else ""
        self.chat_view.welcome(
            f"{WELCOME}\n{message.name}{draft} ({size(message.size_bytes)}) must be fetched first. "
            "Nothing is fetched until you press p in the list of models."
        )
        self.action_models()

    @on(Trouble)
    def _trouble(self, message: Trouble) -> None:
        self.tell(message.text, "error")
        if message.guess:
            self.guess_as_before(message.guess)
        if message.fatal_to:
            self.loaded = None
            self._redraw()
        is_remote = self.loaded is not None and self.loaded.is_remote
        ready = "ready" if is_remote else f"{self.settings.guess.mode}  ready"
        self._status.say("no model is loaded: Ctrl+L chooses one" if self.loaded is None else ready)
        if self._settings_panel is not None:
            self._settings_panel.take(self.settings)

    @on(Figures)
    def _figures(self, message: Figures) -> None:
        self._live = message.live
        self._status.show(message.live)
        if self._panel.display:
            self._panel.show(message.live)
        if self._settings_panel is not None:
            self._settings_panel.show(message.live)
        self._show_engine(message.live.memory_bytes)

    def _show_engine(self, memory_bytes: int | None = None) -> None:
        loaded = self.loaded
        if loaded is not None:
            idle = label(loaded.draft) if loaded.draft and self.settings.guess.mode in ("lookup", "off") else None
            self._status.show_engine(Engine(loaded.back_end, memory_bytes, idle))

    # Sending.

    @on(Composer.Submitted)
    async def _submitted(self, message: Composer.Submitted) -> None:
        composer = self.composer
        text = message.text
        if text.startswith("/") and not text.startswith("//"):
            if not await self.run_command(text):
                composer.give_back(text, ())
        elif self.chat_view.busy is not None:
            composer.give_back(text, ())
            self.tell("a reply is being written: Esc stops it", "warning")
        else:
            composer.sent(text)
            await self.chat_view.send(text.removeprefix("/") if text.startswith("//") else text, message.attachments)

    @on(ChatView.Told)
    @on(Composer.Told)
    def _told(self, message: ChatView.Told | Composer.Told) -> None:
        self.tell(message.text, message.severity)

    @on(ChatView.TakenBack)
    def _taken_back(self, message: ChatView.TakenBack) -> None:
        self.composer.give_back(message.text, message.attachments)

    @on(ChatView.Edit)
    def _edit(self, message: ChatView.Edit) -> None:
        self.composer.give_back(message.turn.text, message.turn.attachments)
        self.tell("Enter sends it as another version; Esc leaves it as it was")

    @on(ChatView.AlwaysDrop)
    def _always_drop(self) -> None:
        self.change(replace(self.settings, context=replace(self.settings.context, policy="drop")))

    @on(ChatView.Changed)
    def _chat_changed(self) -> None:
        self._redraw_title()

    @on(Transcript.Asked)
    async def _asked(self, message: Transcript.Asked) -> None:
        """What the chat itself does not do with a message."""
        view = self.chat_view.transcript.view(message.turn)
        if view is None:  # deleted by the key before
            return
        turn, blocks = self.chat_view.chat.turn(message.turn), view.code_blocks()
        if message.verb == "copy":
            self.copy_text(turn.text, "message")
        elif message.verb in ("copy_code", "save_code") and not blocks:
            self.tell("this message has no block of code")
        elif message.verb == "copy_code":
            before = self._copied[1] if self._copied is not None and self._copied[0] == turn.id else -1
            self._copied = turn.id, (before + 1) % len(blocks)
            self.copy_text(blocks[self._copied[1]][1], f"block {self._copied[1] + 1} of {len(blocks)}")
        elif message.verb == "save_code":
            await self.save_block(*blocks[0])
        elif message.verb == "steps" and turn.reply is not None:
            self.show_steps(turn.reply)

    # Chats and models.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The chat's keys do nothing while another screen lies over it."""
        return len(self.screen_stack) == 1 or action not in OF_THE_CHAT

    async def action_settings(self) -> None:
        """Open or close the settings beside the chat."""
        if self._settings_panel is not None:
            panel, self._settings_panel = self._settings_panel, None
            await panel.remove()
            self._show_panel()
            self.composer.focus_prompt()
            return
        from specchat.tui.drafts import draft_choices

        self._settings_panel = SettingsPanel(self.settings, draft_choices(self.loaded), self._start.decided())
        self._show_panel()
        await self.query_one("#middle").mount(self._settings_panel)
        self.tell_price(self._settings_panel)
        if self._live is not None:
            self._settings_panel.show(self._live)
        self._settings_panel.focus()

    @on(SettingsPanel.Closed)
    async def _settings_closed(self) -> None:
        if self._settings_panel is not None:  # else F2 was faster
            await self.action_settings()

    @on(SettingsPanel.Changed)
    def _changed(self, message: SettingsPanel.Changed) -> None:
        self.change(message.settings)

    async def action_back(self) -> None:
        """Stop the reply; else close the settings; else back to the prompt."""
        if self.stop_trying():
            return
        if self.chat_view.stop() or self.loaded is None or self.engine.is_connecting:
            self.engine.stop()
        elif self._settings_panel is not None:
            await self.action_settings()
        elif self.chat_view.editing is not None:
            self.chat_view.editing = None
            self.composer.clear()
        else:
            self.composer.focus_prompt()

    def action_help_quit(self) -> None:
        """Ctrl+C without a selection: stop; twice when idle: leave."""
        if self.chat_view.stop():
            return
        if self._asked_to_leave:
            self.exit()
            return
        self._asked_to_leave = True
        self.tell("Ctrl+C again leaves")
        self.set_timer(2, self._stay)

    def _stay(self) -> None:
        self._asked_to_leave = False

    async def action_quit(self) -> None:
        """Leave at once, whatever is being loaded or written."""
        self.engine.stop()
        self.exit()

    # Settings and looks.

    def take(self, settings: Settings) -> None:
        self.settings = settings
        self.engine.choose(settings.guess.mode)
        self.engine.refresh()
        self.chat_view.sources, self.chat_view.policy = settings.guess.sources, settings.context.policy
        if self._settings_panel is not None:
            self._settings_panel.take(settings)
        if settings.view.theme in self.available_themes and settings.view.theme != self.theme:
            self.theme = settings.view.theme
        self._show_panel()
        self._show_engine()
        self._redraw()

    def _look(self) -> Look:
        view = self.settings.view
        shown = View(view.rendered, view.tint, view.fold_thinking, view.plain_marker)
        return Look(shown, theme_colours(self), "model" if self.loaded is None else self.loaded.signed)

    def _redraw(self) -> None:
        self.chat_view.look(self._look())
        self._redraw_title()

    def _redraw_title(self) -> None:
        loaded = self.loaded
        models = "" if loaded is None else label(f"{loaded.title}{f' + {loaded.draft}' if loaded.draft else ''}")
        title = label(self.chat_view.chat.title or "new chat")
        kept = self.keeper.keeps(self.chat_view.chat) or self.keeper.path is None
        mark = remote_mark(None if loaded is None else loaded.endpoint, self.size.width)
        self.screen_stack[0].set_class(bool(mark), "-remote")
        line = title_line(title, models, self.size.width - 2, kept=kept, mark=mark)
        self.query_one("#title", Static).update(line)

    def _show_panel(self) -> None:
        self._panel.display = self.settings.view.panel and self.size.width >= WIDE and self._settings_panel is None

    def on_resize(self) -> None:
        """The figures leave a narrow screen first."""
        self._show_panel()
        self._redraw_title()
