"""The settings panel, driven by its keys in a small app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, RadioSet, Select, Static, TabbedContent, TextArea

from specchat.settings import (
    MODES,
    RULES,
    SOURCES,
    TINTS,
    ContextSettings,
    GuessSettings,
    SamplingSettings,
    Settings,
    ViewSettings,
)
from specchat.settings.keys import KEYS
from specchat.tui.widgets.settings_controls import Allows, Pick, Picks, Tick
from specchat.tui.widgets.settings_fields import Field
from specchat.tui.widgets.settings_panel import DraftChoice, SettingsPanel
from tests.tui.test_panel import LIVE, NOTHING

CHOICES = (
    DraftChoice("small", "Small 0.5B Q8_0", True, "same vocabulary (151,936), +0.6 GB"),
    DraftChoice("other", "Other 1B Q4_K_M", False, "token 5 differs"),
)
OTHER = Settings(
    system="be brief",
    guess=GuessSettings("lookup", "small", 8, 0.9, ("file", "prompt")),
    sampling=SamplingSettings(0.123456789, 0, 1.0, 0.0, 1.1, -1, 2**64 - 1, 99, "block"),
    context=ContextSettings(4096, 3),
    view=ViewSettings("nord", "token", False, False, False, False),
)
HOSTILE = ["[bold", "[@click=app.quit]x[/]", "a\x1b]0;title\x07b"]


class Host(App[None]):
    CSS = "Screen { overflow: hidden; } #chat { width: 1fr; }"

    def __init__(self, settings: Settings, choices: tuple[DraftChoice, ...] = CHOICES) -> None:
        super().__init__()
        self.animation_level = "none"
        self.panel = SettingsPanel(settings, choices)
        self.posted: list[Settings] = []
        self.closed = 0

    def compose(self) -> ComposeResult:
        with Horizontal(id="middle"):
            yield Static("chat", id="chat")

    @on(SettingsPanel.Changed)
    def note(self, message: SettingsPanel.Changed) -> None:
        self.posted.append(message.settings)

    @on(SettingsPanel.Closed)
    def note_closed(self) -> None:
        self.closed += 1

    @property
    def last(self) -> Settings:
        return self.posted[-1]

    def field(self, key: str) -> Field:
        return next(field for field in self.panel.query(Field) if field.key == key)

    def complaint(self, key: str) -> str:
        """The red line of a field; empty when it is not shown."""
        shown = self.field(key).query_one(".complaint", Static)
        return str(shown.content) if shown.display else ""

    def hint(self, key: str) -> str:
        return str(self.field(key).query_one(".hint", Static).content)

    def screen_text(self) -> str:
        """What stands on the screen, a line each."""
        width, height = self.size
        strips = self.screen._compositor.render_strips(self.size)
        return "\n".join(strip.crop(0, width).text for strip in strips[:height])


def driven(
    drive: Callable[[Host, Pilot[None]], Awaitable[None]],
    settings: Settings | None = None,
    choices: tuple[DraftChoice, ...] = CHOICES,
    size: tuple[int, int] = (100, 30),
) -> Host:
    """Open the panel as the app does, drive it, and return the app to look at."""
    host = Host(settings or Settings(), choices)

    async def run() -> None:
        async with host.run_test(size=size) as pilot:
            await host.query_one("#middle").mount(host.panel)
            host.panel.focus()
            await pilot.pause()
            await drive(host, pilot)
            await pilot.pause()

    asyncio.run(run())
    return host


async def nothing(host: Host, pilot: Pilot[None]) -> None:
    """Only open it."""


async def to_tab(pilot: Pilot[None], name: str) -> None:
    """Go to a tab by its key."""
    await pilot.press(*["ctrl+pagedown"] * ["speculation", "sampling", "context", "view"].index(name))
    await pilot.pause()


async def every_tab(pilot: Pilot[None]) -> None:
    """Open each tab once, which is when it gets its fields."""
    await pilot.press(*["ctrl+pagedown"] * 4)
    await pilot.pause()


async def retype(host: Host, pilot: Pilot[None], key: str, text: str) -> None:
    """Replace what stands in a number field."""
    host.field(key).query_one(Input).focus()
    await pilot.press("ctrl+u", "ctrl+k", *text)
    await pilot.pause()


@pytest.mark.parametrize("settings", [Settings(), OTHER], ids=["defaults", "others"])
def test_opening_posts_nothing_and_every_field_reads_as_the_settings_say(settings: Settings) -> None:
    read: dict[str, object] = {}

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await every_tab(pilot)
        read.update({field.key: field.read() for field in host.panel.query(Field)})

    host = driven(drive, settings)

    assert host.posted == []
    assert read["guess.sources"] == tuple(source for source in SOURCES if source in settings.guess.sources)
    expected = {key: settings if "." not in key else getattr(settings, key.split(".")[0]) for key in read}
    for key in read.keys() - {"guess.sources"}:
        assert read[key] == getattr(expected[key], key.rpartition(".")[2]), key


def test_every_key_of_the_settings_has_a_field() -> None:
    keys: set[str] = set()

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await every_tab(pilot)
        keys.update(field.key for field in host.panel.query(Field))

    driven(drive)

    known = {".".join(place) for place in KEYS if place[0] != "targets"}
    assert keys == known - {"model"}  # which Ctrl+L chooses


def test_every_word_of_a_setting_can_be_picked() -> None:
    words: dict[str, list[object]] = {}

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await every_tab(pilot)
        for key in ("guess.mode", "sampling.rule", "view.tint"):
            words[key] = [pick.stands_for for pick in host.field(key).query(Pick)]

    driven(drive)

    assert sorted(map(str, words.pop("guess.mode"))) == sorted(MODES)
    assert words == {"sampling.rule": list(RULES), "view.tint": list(TINTS)}


def test_the_panel_opens_on_the_guesser_and_space_picks_another() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        assert host.focused is host.field("guess.mode").query_one(Picks)
        await pilot.press("right", "right", "space")
        await pilot.pause()
        assert host.hint("guess.mode") == "copies from what stands above"

    assert driven(drive).posted == [replace(Settings(), guess=GuessSettings(mode="lookup"))]


def test_tab_visits_every_control_of_the_first_tab_in_order_and_fixed_numbers_only_when_chosen() -> None:
    visited: list[str] = []

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        for _ in range(8):
            assert host.focused is not None
            visited.append(next(node.key for node in host.focused.ancestors if isinstance(node, Field)))
            await pilot.press("tab")

    driven(drive)

    assert visited == ["guess.mode", "guess.draft", "guess.length", "guess.pause_below", *["guess.sources"] * 4]


def test_a_number_is_posted_at_each_valid_key_and_a_bad_one_gets_a_red_line() -> None:
    complaints: list[str] = []

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "sampling")
        await retype(host, pilot, "sampling.top_p", "0.5")
        complaints.append(host.complaint("sampling.top_p"))
        await retype(host, pilot, "sampling.top_p", "5")
        complaints.append(host.complaint("sampling.top_p"))
        await retype(host, pilot, "sampling.top_p", "0.25")
        complaints.append(host.complaint("sampling.top_p"))

    host = driven(drive)

    assert [settings.sampling.top_p for settings in host.posted] == [0.0, 0.5, 0.0, 0.2, 0.25]
    assert complaints == ["", "! must be a number from 0 to 1", ""]


@pytest.mark.parametrize("text", ["-1", "[bold", ""])
def test_a_number_that_is_not_allowed_is_not_posted(text: str) -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        host.field("guess.pause_below").query_one(Input).value = text
        await pilot.pause()
        assert host.complaint("guess.pause_below") == "! must be a number from 0 to 2"

    assert driven(drive).posted == []


@pytest.mark.parametrize(
    ("key", "allowed", "refused"),
    [
        ("sampling.temperature", ["0", "1.5"], ["-1", "nan", "inf", "1e999", "[bold", "", "1,5"]),
        ("sampling.top_k", ["0", "40"], ["1.5", "-1", "x"]),
        ("sampling.min_p", ["0", "1"], ["1.01", "-0.01"]),
        ("sampling.repeat_penalty", ["0.1", "1"], ["0"]),
        ("sampling.repeat_last_n", ["-1", "0"], ["-2"]),
        ("sampling.seed", [str(2**64 - 1)], [str(2**64), "-1", "9" * 5000]),
    ],
)
def test_a_number_field_takes_what_the_settings_take(key: str, allowed: list[str], refused: list[str]) -> None:
    allows = Allows(key)

    assert [text for text in allowed if not allows.validate(text).is_valid] == []
    assert [text for text in refused if allows.validate(text).is_valid] == []


@pytest.mark.parametrize(
    ("key", "usual", "typed", "too_many"),
    [
        ("guess.length", 4, 63, 64),
        ("sampling.seed", 1, 2**64 - 1, 2**64),
        ("sampling.max_tokens", 512, 2**31, 2**31 + 1),
        ("context.size", 8192, 16384, 2**24 + 1),
        ("context.threads", None, 512, 513),
    ],
)
def test_a_number_may_be_left_to_a_word_or_fixed(key: str, usual: int | None, typed: int, too_many: int) -> None:
    section, name = key.split(".")
    seen: list[object] = []

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await every_tab(pilot)
        field = host.field(key)
        line, picks = field.query_one(Input), field.query_one(Picks)
        assert line.disabled
        host.panel.query_one(TabbedContent).active = field.query_ancestor("TabPane").id or ""
        await pilot.pause()
        picks.focus()
        await pilot.press("right", "space")
        await pilot.pause()
        assert not line.disabled
        seen.append(getattr(getattr(host.last, section), name))
        for value in (typed, too_many):
            line.value = str(value)
            await pilot.pause()
            seen.append(getattr(getattr(host.last, section), name))
        assert host.complaint(key)
        await pilot.press("left", "space")
        await pilot.pause()
        seen.append(getattr(getattr(host.last, section), name))
        assert host.complaint(key) == ""

    driven(drive)

    first, *rest = seen
    assert first == usual if usual is not None else isinstance(first, int)
    assert rest == [typed, typed, None]


def test_ticks_add_and_remove_sources_in_the_order_of_the_settings() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        ticks = list(host.field("guess.sources").query(Tick))
        for tick in (ticks[0], ticks[2], ticks[0]):
            tick.focus()
            await pilot.press("space")

    host = driven(drive)

    without = [("reply", "turn", "file"), ("reply", "file"), ("prompt", "reply", "file")]
    assert [settings.guess.sources for settings in host.posted] == without


def test_a_tick_and_a_pick_tell_their_state_by_shape() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        text = host.screen_text()
        assert "● auto    ○ draft" in text
        assert "○ off     ○ recycling" in text
        assert "■ prompt  ■ reply  □ turn  ■ file" in text

    driven(drive, replace(Settings(), guess=GuessSettings(sources=("prompt", "reply", "file"))))


def test_a_draft_that_fits_can_be_chosen_and_says_why_it_does() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("tab", "enter", "down", "down", "enter")
        await pilot.pause()
        assert host.hint("guess.draft").startswith("ok: same vocabulary (151,936), +0.6 GB")

    assert [settings.guess.draft for settings in driven(drive).posted] == ["small"]


def test_a_draft_that_does_not_fit_is_greyed_and_refused_with_its_reason() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        assert "no: Other 1B Q4_K_M, token 5 differs" in host.hint("guess.draft")
        await pilot.press("tab", "enter", "up")
        options = host.panel.query_one("#settings-guess-draft OptionList", OptionList)
        greyed = options.get_option_at_index(3).prompt
        assert str(greyed).splitlines() == ["Other 1B Q4_K_M", "  no: token 5 differs"]
        assert getattr(greyed, "style", None) == "dim"
        options.highlighted = 3
        await pilot.press("enter")
        await pilot.pause()
        assert host.complaint("guess.draft") == "! Other 1B Q4_K_M: token 5 differs"
        assert host.field("guess.draft").read() == "auto"

    assert driven(drive).posted == []


def test_many_drafts_that_do_not_fit_are_counted_below_and_told_in_the_list() -> None:
    many = tuple(DraftChoice(f"m{at}", f"Model {at}", False, f"reason {at}") for at in range(9))

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        assert host.hint("guess.draft") == "9 do not fit; the list says why"
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert "no: reason 3" in host.screen_text()

    driven(drive, choices=many)


def test_an_explicit_draft_that_is_unknown_or_unfit_stays_chosen() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        assert host.field("guess.draft").read() == "/models/mine.gguf"
        host.panel.take(replace(Settings(), guess=GuessSettings(draft="other")))
        await pilot.pause()
        assert host.field("guess.draft").read() == "other"
        assert host.hint("guess.draft") == "no: token 5 differs"
        host.panel.suggest([])
        await pilot.pause()
        assert host.field("guess.draft").read() == "other"

    assert driven(drive, replace(Settings(), guess=GuessSettings(draft="/models/mine.gguf"))).posted == []


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_of_drafts_are_shown_literally_and_cannot_steer_the_terminal(hostile: str) -> None:
    shown = hostile.replace("\x1b", "␛").replace("\x07", "␇")
    choices = (DraftChoice(hostile, hostile, True, hostile), DraftChoice("no", f"x{hostile}", False, hostile))
    texts: list[str] = []

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("tab", "enter")
        await pilot.pause()
        texts.append(host.screen_text())
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        texts.append(host.screen_text())
        await pilot.press("enter", "down", "enter")
        await pilot.pause()
        texts.append(host.complaint("guess.draft"))

    host = driven(drive, choices=choices)

    assert [settings.guess.draft for settings in host.posted] == [hostile]
    assert all("\x1b" not in text for text in texts)
    assert f"no: {shown}" in texts[0]
    assert f"ok: {shown}" in texts[1]
    assert texts[2] == f"! x{shown}: {shown}"


def test_taking_settings_shows_them_and_posts_nothing() -> None:
    read: dict[str, object] = {}

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        host.panel.take(OTHER)
        host.panel.take(Settings())
        host.panel.take(OTHER)
        await every_tab(pilot)
        host.panel.take(Settings())
        host.panel.take(OTHER)
        await pilot.pause()
        read.update({field.key: field.read() for field in host.panel.query(Field)})

    host = driven(drive)

    assert host.posted == []
    assert read["sampling.temperature"] == 0.123456789
    assert read["sampling.seed"] == 2**64 - 1
    assert read["guess.mode"] == "lookup"
    assert read["view.rendered"] is False
    assert read["system"] == "be brief"


def test_settings_taken_before_the_panel_is_mounted_are_the_ones_it_opens_with() -> None:
    host = Host(Settings())
    host.panel.take(OTHER)

    async def run() -> None:
        async with host.run_test() as pilot:
            await host.mount(host.panel)
            await pilot.pause()
            assert host.field("guess.mode").read() == "lookup"

    asyncio.run(run())
    assert host.posted == []


def test_a_number_keeps_the_form_in_which_it_is_being_typed_when_the_app_hands_it_back() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "sampling")
        await retype(host, pilot, "sampling.top_p", "0.50")
        host.panel.take(host.last)
        await pilot.pause()
        assert host.field("sampling.top_p").query_one(Input).value == "0.50"

    driven(drive)


def test_a_change_after_settings_were_taken_is_a_change_of_those() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        host.panel.take(OTHER)
        await pilot.press("right", "space")
        await pilot.pause()

    assert driven(drive).posted == [replace(OTHER, guess=replace(OTHER.guess, mode="off"))]


def test_the_system_prompt_is_typed_over_several_lines() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "context")
        host.field("system").query_one(TextArea).focus()
        await pilot.press("a", "enter", "b")

    assert driven(drive).last.system == "a\nb"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_system_prompt_is_kept_exactly_and_shown_without_steering_the_terminal(hostile: str) -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "context")
        assert "\x1b" not in host.field("system").query_one(TextArea).text
        assert host.field("system").read() == hostile

    assert driven(drive, replace(Settings(), system=hostile)).posted == []


def test_pasted_escape_sequences_become_marks_and_pasted_lines_stay_lines() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "context")
        host.field("system").query_one(TextArea).focus()
        host.post_message(Paste("a\x1b[31m\rb\r\nc"))
        await pilot.pause()

    assert driven(drive).last.system == "a␛[31m\nb\nc"


def test_an_escape_sequence_pasted_into_a_number_becomes_a_mark() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        line = host.field("guess.pause_below").query_one(Input)
        line.focus()
        host.post_message(Paste("\x1b[31m"))
        await pilot.pause()
        assert line.value == "␛[31m"

    assert driven(drive).posted == []


def test_view_settings_are_changed_by_keys() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "view")
        assert host.focused is host.panel.query_one("#settings-view-theme Select", Select)
        await pilot.press("enter", *"nord", "enter")
        await pilot.press("tab", "right", "space")
        await pilot.press("tab", "right", "space")
        for _ in range(3):
            await pilot.press("tab", "space")

    host = driven(drive)

    assert host.last.view == ViewSettings("nord", "token", False, False, False, False)
    assert len(host.posted) == 6


def test_all_themes_of_textual_can_be_chosen() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "view")
        options = host.panel.query_one("#settings-view-theme OptionList", OptionList)
        names = [str(option.prompt) for option in options.options]
        assert names == ["auto", *sorted(host.available_themes)]

    driven(drive)


def test_escape_closes_an_open_list_first_and_then_the_panel() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("tab", "enter", "escape")
        await pilot.pause()
        assert host.closed == 0
        await pilot.press("escape")
        await pilot.pause()
        assert host.closed == 1

    driven(drive)


def test_keys_go_round_the_tabs_both_ways() -> None:
    seen: list[str] = []

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        for key in ["ctrl+pagedown"] * 4 + ["ctrl+pageup"]:
            await pilot.press(key)
            await pilot.pause()
            seen.append(host.panel.query_one(TabbedContent).active.removeprefix("settings-"))

    driven(drive)

    assert seen == ["sampling", "context", "view", "speculation", "view"]


def test_the_measured_table_shows_each_guesser_and_marks_the_present_one() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        measured = host.panel.query_one("#settings-measured", Static)
        assert [line.split()[1:] for line in str(measured.content).splitlines()[1:]] == [["-"] * 5] * 3
        empty = [len(line) for line in str(measured.content).splitlines()]
        await every_tab(pilot)
        host.panel.show(LIVE)
        await pilot.pause()
        plain, draft, lookup = str(measured.content).splitlines()[1:]
        assert plain.split() == ["plain", "1.00", "-", "1.00", "40.0", "x1.0"]
        assert draft.split() == [">", "draft", "3.05", "68", "%", "1.79", "68.1", "x1.7"]
        assert lookup.split() == ["lookup", *["-"] * 5]
        assert [len(line) for line in str(measured.content).splitlines()] == empty
        assert "5,214 of 16,384 tokens" in str(host.panel.query_one("#settings-in-use", Static).content)

    driven(drive)


def test_a_guesser_with_31_steps_has_no_speed_up_in_the_table() -> None:
    few = replace(LIVE.by_guesser["draft"], steps=31)

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        host.panel.show(replace(NOTHING, by_guesser={"draft": few}, plain_step_s=0.025))
        await pilot.pause()
        draft = str(host.panel.query_one("#settings-measured", Static).content).splitlines()[2]
        assert draft.split()[-1] == "-"

    driven(drive)


@pytest.mark.parametrize(("columns", "width"), [(80, 46), (79, 79), (20, 20)])
def test_the_panel_takes_46_columns_and_all_of_a_narrow_screen(columns: int, width: int) -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        assert host.panel.region.width == width
        assert host.panel.region.right == columns

    driven(drive, size=(columns, 24))


def test_a_resized_screen_changes_the_width_while_the_panel_is_open() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        for columns, width in ((60, 60), (100, 46), (20, 20)):
            await pilot.resize_terminal(columns, 5 if columns == 20 else 24)
            await pilot.pause()
            assert host.panel.region.width == width

    driven(drive)


@pytest.mark.parametrize("name", ["speculation", "sampling", "context", "view"])
def test_no_control_of_a_tab_is_cut_off_in_46_columns_and_each_can_be_scrolled_to_in_20_rows(name: str) -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, name)
        pane = host.panel.query_one(f"#settings-{name}")
        controls = [control for control in pane.query("Pick, Tick, Input, Select, TextArea") if control.display]
        assert controls
        for control in controls:
            (control if control.focusable else control.query_ancestor(Field)).scroll_visible(animate=False)
            await pilot.pause()
            visible = pane.region.intersection(control.region)
            assert visible == control.region, control

    driven(drive, size=(80, 20))


@pytest.mark.parametrize("size", [(20, 5), (1, 1)])
def test_a_screen_too_small_for_anything_is_survived(size: tuple[int, int]) -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        host.panel.show(LIVE)
        for _ in range(4):
            await pilot.press("tab", "ctrl+pagedown")

    assert driven(drive, size=size).posted == []


def test_every_theme_draws_the_panel() -> None:
    async def drive(host: Host, pilot: Pilot[None]) -> None:
        for theme in host.available_themes:
            host.theme = theme
            await pilot.pause()
            assert "● auto" in host.screen_text()

    driven(drive)


def test_texts_that_end_a_reply_are_a_line_each_and_may_hold_line_feeds_and_backslashes() -> None:
    stop = ("\n\nUser:", "C:\\new", "END")

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "sampling")
        area = host.field("sampling.stop").query_one(TextArea)
        assert area.text.split("\n") == [r"\n\nUser:", r"C:\\new", "END"]
        area.text += "\nSTOP"
        await pilot.pause()

    host = driven(drive, replace(Settings(), sampling=replace(Settings().sampling, stop=stop)))
    assert host.last.sampling.stop == (*stop, "STOP")


@pytest.mark.parametrize("key", ["rewrite.after", "rewrite.backup_suffix"])
def test_a_line_that_is_emptied_is_no_setting_and_the_word_none_means_the_same(key: str) -> None:
    name = key.partition(".")[2]
    settings = replace(Settings(), rewrite=replace(Settings().rewrite, **{name: "old thing"}))

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "context")
        line = host.field(key).query_one(Input)
        for text in ("", "new", "none", "  \x1b[31m.orig "):
            line.value = text
            await pilot.pause()

    host = driven(drive, settings)
    assert [getattr(each.rewrite, name) for each in host.posted][:3] == [None, "new", None]
    assert "\x1b" not in str(getattr(host.last.rewrite, name))


@pytest.mark.parametrize("key", ["context.cache_type", "rewrite.after_fail"])
def test_every_word_of_the_new_picks_is_posted(key: str) -> None:
    section, name = key.split(".")

    async def drive(host: Host, pilot: Pilot[None]) -> None:
        await to_tab(pilot, "context")
        host.field(key).query_one(RadioSet).focus()
        await pilot.press("right", "space")
        await pilot.pause()

    host = driven(drive)
    assert getattr(getattr(host.last, section), name) != getattr(getattr(Settings(), section), name)
