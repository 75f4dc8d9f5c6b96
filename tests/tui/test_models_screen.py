"""The models screen, driven by its keys, over a store with an index of tiny wheels."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, DataTable, Static

from specchat.catalogue import Catalogue, Model, ModelFile, PackageSource
from specchat.downloads import DownloadError, Fetch, Store
from specchat.own_models import OwnModels
from specchat.recommended import memory_bytes
from specchat.tui.fetches import Fetches, State, in_short
from specchat.tui.screens.downloading import WINDOW_S, Follower, Progressed, Stopped, duration
from specchat.tui.screens.fetching import Fetching
from specchat.tui.screens.line import Line
from specchat.tui.screens.models import ModelChoice, ModelScreen
from specchat.tui.screens.question import Question
from tests.specchat.test_downloads import write_wheel

if TYPE_CHECKING:
    from specchat.shelf import Shelf

PARTS = [b"a" * 3000, b"b" * 3000, b"c" * 3000]
SMALL = [b"d" * 500]
FREE = 1_000_000_000


def model(name: str, parts: list[bytes], *, roles: tuple[str, ...], draft: str | None = None) -> Model:
    content = b"".join(parts)
    return Model(
        id=name,
        title=f"The {name}",
        roles=roles,
        draft=draft,
        architecture="llama",
        context=32768,
        licence="MIT",
        file=ModelFile(f"{name}-q8.gguf", "Q8_0", len(content), hashlib.sha256(content).hexdigest()),
        sources=(PackageSource(tuple(f"{name}-part{at}==1.0" for at in range(len(parts))), "*/data/*.bin"),),
    )


BIG = model("big", PARTS, roles=("target",), draft="small")
LITTLE = model("small", SMALL, roles=("draft", "target"))
ONLY = model("helper", SMALL, roles=("draft",))
HUGE = replace(model("huge", SMALL, roles=("target",)), file=replace(BIG.file, name="huge.gguf", size=5_000_000_000))
MODELS = (BIG, LITTLE, ONLY, HUGE)
CONTENT = {"big": PARTS, "small": SMALL, "helper": SMALL}


class Index:
    """A package index that counts what is fetched and stops where a test wants it to."""

    def __init__(self, stop_at: str = "") -> None:
        self.calls: list[str] = []
        self.stop_at = stop_at
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, requirement: str, folder: Path) -> Path:
        name = requirement.removesuffix("==1.0")
        self.calls.append(name)
        if name == self.stop_at:
            self.reached.set()
            assert self.go_on.wait(30)
        wanted, part = name.split("-part")
        return write_wheel(folder, name, CONTENT[wanted][int(part)])


class Host(App[None]):
    """Shows the screen and keeps what it hands back."""

    def __init__(
        self,
        folder: Path,
        fetch: Fetch,
        loaded: str | None = None,
        free_bytes: int | None = FREE,
        models: tuple[Model, ...] = MODELS,
    ) -> None:
        super().__init__()
        self.store = Store(folder, fetch=fetch)
        shelf = SimpleNamespace(catalogue=Catalogue(models, models[0].id, models[0].id), store=self.store)
        self.fetches = Fetches(self.store, OwnModels(folder))
        self.models = ModelScreen(cast("Shelf", shelf), self.fetches, loaded, free_bytes)
        self.answers: list[ModelChoice | None] = []

    def on_mount(self) -> None:
        """Open it at once."""
        self.push_screen(self.models, self.answers.append)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        table = self.models.query_one(DataTable)
        return [[str(cell).strip() for cell in table.get_row_at(at)] for at in range(table.row_count)]

    def said(self, name: str) -> str:
        """A text of the screen."""
        return str(self.models.query_one(f"#models-{name}", Static).content)

    @property
    def progress(self) -> str:
        """What the running fetch says of itself."""
        return str(self.models.query_one(Fetching).query_one(Static).content)

    @property
    def question(self) -> str:
        """What is being asked."""
        assert isinstance(self.screen, Question)
        asked = str(self.screen.query_one(Static).content)
        return "\n".join([asked, *(str(button.label) for button in self.screen.query(Button))])

    @property
    def fetching(self) -> bool:
        """Whether a fetch is shown."""
        return self.models.query_one(Fetching).has_class("-running")


def drive(
    host: Host, steps: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (120, 30)
) -> list[ModelChoice | None]:
    async def run() -> None:
        async with host.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())
    return host.answers


async def settle(pilot: Pilot[None]) -> None:
    """Until the queue is empty and what it said is shown."""
    assert isinstance(pilot.app, Host)
    assert await asyncio.to_thread(pilot.app.fetches.wait, 30)
    await pilot.pause()


async def reach(pilot: Pilot[None], event: threading.Event) -> None:
    """Until the thread is where the test wants it."""
    assert await asyncio.to_thread(event.wait, 30)
    await pilot.pause()


def put(folder: Path, *models: Model) -> None:
    """Have models there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in models:
        (folder / one.file.name).write_bytes(b"".join(CONTENT[one.id]))


def test_each_model_has_a_row_with_size_role_draft_state_and_memory(tmp_path: Path) -> None:
    put(tmp_path, BIG)
    host = Host(tmp_path, Index(), loaded="big-q8")

    async def steps(pilot: Pilot[None]) -> None:
        assert host.rows == [
            ["*", "big", "Q8_0", "9 kB", "target", "small", "loaded", "yes, 0.4 of 1.0 GB"],
            ["", "small", "Q8_0", "500 B", "draft, target", "-", "-", "yes, 0.4 of 1.0 GB"],
            ["", "helper", "Q8_0", "500 B", "draft", "-", "-", "yes, 0.4 of 1.0 GB"],
            ["", "huge", "Q8_0", "5.0 GB", "target", "-", "-", "no, 6.4 of 1.0 GB"],
        ]
        assert host.said("memory") == "1.0 GB of memory free, loaded: big"

    drive(host, steps)


def test_memory_that_is_not_known_is_said_so(tmp_path: Path) -> None:
    host = Host(tmp_path, Index(), free_bytes=None)

    async def steps(pilot: Pilot[None]) -> None:
        assert host.rows[0][-1] == "? needs 0.4 GB"
        assert "not known" in host.said("memory")

    drive(host, steps)


def test_a_narrow_terminal_leaves_out_role_and_draft_and_a_resize_brings_them_back(tmp_path: Path) -> None:
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        assert host.rows[0] == ["", "big", "Q8_0", "9 kB", "-", "yes, 0.4 of 1.0 GB"]
        await pilot.press("down")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert host.rows[0][4:6] == ["target", "small"]
        assert "The small" in host.said("about")

    drive(host, steps, (80, 24))


def test_enter_chooses_the_marked_model_with_its_draft_where_both_are_here(tmp_path: Path) -> None:
    put(tmp_path, BIG, LITTLE)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("enter")

    assert drive(Host(tmp_path, Index()), steps) == [ModelChoice("big", "small")]


def test_a_draft_that_is_not_here_is_not_chosen(tmp_path: Path) -> None:
    put(tmp_path, BIG)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("enter")

    assert drive(Host(tmp_path, Index()), steps) == [ModelChoice("big", None)]


def test_t_chooses_the_marked_model_for_a_trial_where_it_is_here(tmp_path: Path) -> None:
    put(tmp_path, ONLY)
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("t")
        assert "big is not here yet: p fetches it" in host.said("news")
        await pilot.press("up", "t")

    assert drive(host, steps) == [ModelChoice("helper", None, is_trial=True)]


def test_the_loaded_model_is_marked_first(tmp_path: Path) -> None:
    put(tmp_path, BIG, LITTLE)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("enter")

    assert drive(Host(tmp_path, Index(), loaded="small"), steps) == [ModelChoice("small", None)]


def test_a_model_that_only_drafts_is_not_chosen(tmp_path: Path) -> None:
    put(tmp_path, ONLY)
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("up", "enter")
        assert "only drafts" in host.said("news")

    assert drive(host, steps) == []


def test_escape_closes_without_a_choice(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("escape")

    assert drive(Host(tmp_path, Index()), steps) == [None]


def test_a_fetch_is_asked_for_with_size_and_folder_and_nothing_comes_before_the_answer(tmp_path: Path) -> None:
    index = Index()
    host = Host(tmp_path / "models", index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("enter")  # of a model that is not here
        for part in ("The big, 9 kB", "The small, 500 B", str(tmp_path / "models"), "Fetch both, 10 kB", "Only the"):
            assert part in host.question
        await pilot.press("escape")
        await settle(pilot)

    assert drive(host, steps) == []
    assert index.calls == []
    assert not (tmp_path / "models").exists()


def test_a_model_that_does_not_fit_is_offered_with_a_warning(tmp_path: Path) -> None:
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "down", "p")
        assert "It does not fit: about 6.4 GB of memory, 5.4 GB more than is free" in host.question
        await pilot.press("right", "enter")

    drive(host, steps)


def test_a_fetched_pair_is_here_and_can_be_chosen(tmp_path: Path) -> None:
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await settle(pilot)
        assert [row[6] for row in host.rows] == ["here", "here", "-", "-"]
        assert not host.fetching
        assert "is here" in host.said("news")
        await pilot.press("enter")

    assert drive(host, steps) == [ModelChoice("big", "small")]
    assert (tmp_path / BIG.file.name).read_bytes() == b"".join(PARTS)


def test_only_the_first_of_a_pair_is_fetched_when_that_is_the_answer(tmp_path: Path) -> None:
    index = Index()

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "right", "enter")
        await settle(pilot)

    drive(Host(tmp_path, index), steps)

    assert {call.split("-")[0] for call in index.calls} == {"big"}


def test_the_progress_is_shown_and_the_screen_answers_keys_meanwhile(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await reach(pilot, index.reached)
        assert host.progress == "big: 3 kB of 9 kB, 33 %, part 2 of 3\nwaiting: small"
        await pilot.press("down")
        assert "The small" in host.said("about")
        await pilot.press("p")
        assert "small is being fetched" in host.said("news")
        index.go_on.set()
        await settle(pilot)

    drive(host, steps)


def test_models_are_fetched_one_after_the_other_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "right", "enter")
        await reach(pilot, index.reached)
        await pilot.press("down", "down", "p", "enter")
        await pilot.press("up", "p", "enter")
        await pilot.pause()
        assert [row[6] for row in host.rows] == ["33 %", "waiting", "waiting", "-"]
        assert host.progress.splitlines()[1] == "waiting: helper, small"
        index.go_on.set()
        await settle(pilot)
        assert [row[6] for row in host.rows] == ["here", "here", "here", "-"]
        assert not host.fetching

    drive(host, steps)
    assert index.calls == ["big-part0", "big-part1", "big-part2", "helper-part0", "small-part0"]


def test_one_that_waits_is_taken_out_and_the_others_go_on(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")  # with its draft
        await reach(pilot, index.reached)
        await pilot.press("down", "x")
        await pilot.pause()
        assert "stopped" in host.said("news")
        assert [row[6] for row in host.rows[:2]] == ["33 %", "-"]
        index.go_on.set()
        await settle(pilot)
        assert [row[6] for row in host.rows[:2]] == ["here", "-"]

    drive(host, steps)


def test_all_fetches_are_stopped_by_one_key(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await reach(pilot, index.reached)
        await pilot.press("X")
        index.go_on.set()
        await settle(pilot)
        assert [row[6] for row in host.rows[:2]] == ["part", "-"]
        assert not host.fetching

    drive(host, steps)
    assert index.calls == ["big-part0", "big-part1"]


def test_a_fetch_that_fails_lets_the_next_begin_and_its_reason_is_kept(tmp_path: Path) -> None:
    def index(requirement: str, folder: Path) -> Path:
        if requirement.startswith("big"):
            raise DownloadError("the index is closed")
        return write_wheel(folder, requirement.removesuffix("==1.0"), SMALL[0])

    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await settle(pilot)
        states = {row[1]: row[6] for row in host.rows}
        assert (states["big"], states["small"]) == ("failed", "here")
        assert "the index is closed; p tries again" in host.said("about")

    drive(host, steps)


def test_a_stopped_fetch_keeps_what_has_arrived_and_the_next_one_goes_on_from_there(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "right", "enter")
        await reach(pilot, index.reached)
        await pilot.press("x")
        index.go_on.set()
        await settle(pilot)
        assert not host.fetching
        assert "stopped" in host.said("news")
        assert host.rows[0][6] == "part"
        assert (tmp_path / f"{BIG.file.name}.part").stat().st_size >= 3000
        index.calls.clear()
        index.stop_at = ""
        await pilot.press("p", "right", "enter")
        await settle(pilot)

    drive(host, steps)

    assert index.calls == ["big-part1", "big-part2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [BIG.file.name]


def test_a_fetch_that_fails_says_why_in_words_that_are_not_markup(tmp_path: Path) -> None:
    def broken(requirement: str, folder: Path) -> Path:
        raise DownloadError("the index said [bold] \x1b[31m[/] no")

    host = Host(tmp_path, broken)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await settle(pilot)
        assert host.said("news").endswith(": the index said [bold] \u241b[31m[/] no")
        assert not host.fetching
        assert "\x1b" not in host.export_screenshot()

    drive(host, steps)


def test_a_fault_in_the_thread_is_shown_and_ends_the_fetch(tmp_path: Path) -> None:
    def broken(requirement: str, folder: Path) -> Path:
        raise ZeroDivisionError("oh")

    host = Host(tmp_path, broken)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await settle(pilot)
        assert "ZeroDivisionError" in host.said("news")
        assert not host.fetching

    drive(host, steps)


@pytest.mark.parametrize("key", ["escape", "enter"])
def test_leaving_asks_nothing_and_the_fetch_goes_on(tmp_path: Path, key: str) -> None:
    put(tmp_path, LITTLE)
    index = Index(stop_at="big-part1")
    host = Host(tmp_path, index)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("p", "enter")
        await reach(pilot, index.reached)
        await pilot.press("up", key)
        await pilot.pause()
        assert not isinstance(host.screen, ModelScreen)
        index.go_on.set()
        await settle(pilot)

    answer = ModelChoice("small", None) if key == "enter" else None
    assert drive(host, steps) == [answer]
    assert (tmp_path / BIG.file.name).read_bytes() == b"".join(PARTS)


def test_closing_the_queue_stops_it_and_keeps_the_part(tmp_path: Path) -> None:
    index = Index(stop_at="big-part1")
    fetches = Fetches(Store(tmp_path, fetch=index), OwnModels(tmp_path))
    heard: list[State] = []
    fetches.listen(lambda fetch: heard.append(fetch.state))
    fetches.add([BIG, LITTLE])
    assert index.reached.wait(30)
    threading.Timer(0.1, index.go_on.set).start()

    assert fetches.close()

    assert index.calls == ["big-part0", "big-part1"]
    assert [heard[0], *heard[-2:]] == [State.WAITING, State.STOPPED, State.STOPPED]
    assert (tmp_path / f"{BIG.file.name}.part").stat().st_size >= 3000


def test_a_model_that_is_asked_for_twice_is_fetched_once_and_one_that_failed_again(tmp_path: Path) -> None:
    index = Index(stop_at="small-part0")
    fetches = Fetches(Store(tmp_path, fetch=index), OwnModels(tmp_path))
    fetches.add([LITTLE])
    fetches.add([LITTLE])
    index.go_on.set()
    assert fetches.wait(30)
    assert index.calls == ["small-part0"]

    fetches.add([replace(HUGE, sources=())])  # no source has it
    assert fetches.wait(30)
    (little, huge) = fetches.all()
    assert (little.state, huge.state) == (State.DONE, State.FAILED)
    assert in_short(fetches.all()) == ""
    fetches.tidy()
    assert fetches.all() == []


def test_a_filter_shows_the_models_that_hold_all_its_words_and_escape_drops_it(tmp_path: Path) -> None:
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"DRAFT sm")
        await pilot.pause()
        assert [row[1] for row in host.rows] == ["small"]
        await pilot.press("enter", "down")
        assert "The small" in host.said("about")
        await pilot.press("escape")
        await pilot.pause()
        assert len(host.rows) == len(MODELS)
        assert host.answers == []

    drive(host, steps)


def test_a_filter_that_leaves_nothing_and_the_keys_of_models_do_no_harm(tmp_path: Path) -> None:
    host = Host(tmp_path, Index())

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"zzz", "enter", "p", "x", "enter", "down")
        assert host.rows == []
        assert host.said("about") == ""

    drive(host, steps)


def test_hostile_titles_and_paths_are_shown_as_they_are(tmp_path: Path) -> None:
    hostile = replace(BIG, title="[bold]\x1b]0;x\x07[/]", licence="[red", draft=None)
    host = Host(tmp_path / "[dir", Index(), loaded="/x/[/]\nmy\udce9.gguf", models=(hostile,))

    async def steps(pilot: Pilot[None]) -> None:
        assert "[bold]\u241b]0;x\u2407[/]" in host.said("about")
        assert "/x/[/]\u240amy\ufffd.gguf" in host.said("memory")
        await pilot.press("slash")
        host.models.query_one(Line).value = "\x1b["
        await pilot.press("escape", "p")
        assert "[dir" in host.question
        assert "\x1b" not in host.export_screenshot()

    drive(host, steps)


@pytest.mark.parametrize("size", [(20, 5), (5, 2), (1, 1)])
def test_it_works_where_there_is_hardly_room(tmp_path: Path, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(60, 10)
        await pilot.resize_terminal(*size)
        await pilot.press("slash", "b", "enter", "p", "enter")
        await settle(pilot)
        await pilot.press("enter")

    assert drive(Host(tmp_path, Index()), steps, size) == [ModelChoice("big", "small")]


def test_memory_is_asked_for_beyond_the_file() -> None:
    assert memory_bytes(HUGE) == 6_400_000_000


class Scripted:
    """A follower with a clock of its own, and what it reported."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.wanted = True
        self.reports: list[Progressed] = []
        self.follower = Follower(self.reports.append, lambda: self.wanted, lambda: self.now_s)

    def after(self, seconds: float, more_bytes: int) -> Progressed:
        """Some bytes later."""
        self.now_s += seconds
        self.follower.advance(more_bytes)
        return self.reports[-1]


def test_a_rate_counts_what_came_since_the_fetch_began_and_not_what_was_there() -> None:
    script = Scripted()
    script.follower.start(10_000_000)
    script.follower.advance(4_000_000)  # from an earlier pull
    script.follower.note("part 2 of 3")

    early = script.after(0.5, 1_000_000)
    later = script.after(1.5, 1_000_000)

    assert early.per_s is None
    assert later.per_s == pytest.approx(1_000_000)
    assert later.left_s == pytest.approx(4.0)
    assert str(later) == "6.0 MB of 10.0 MB, 60 %, 1.0 MB/s, 4 s left, part 2 of 3"


def test_a_fetch_without_new_bytes_is_called_stalled() -> None:
    script = Scripted()
    script.follower.start(10_000_000)
    script.follower.note("part 1 of 3")
    script.after(2, 1_000_000)
    script.after(2, 0)

    stalled = script.after(WINDOW_S, 0)

    assert stalled.per_s == 0
    assert "stalled" in str(stalled)


def test_reports_are_few_however_fast_the_bytes_come_and_the_last_one_is_never_lost() -> None:
    script = Scripted()
    script.follower.start(1000)
    script.follower.note("part 1 of 1")

    for _ in range(1000):
        script.after(0.001, 1)

    assert len(script.reports) < 20
    assert script.reports[-1].done_bytes == 1000


@pytest.mark.parametrize("call", [lambda f: f.start(9), lambda f: f.advance(0), lambda f: f.note("checking")])
def test_every_sign_of_life_stops_a_fetch_that_nobody_wants(call: Callable[[Follower], None]) -> None:
    script = Scripted()
    script.wanted = False

    with pytest.raises(Stopped):
        call(script.follower)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0 s"), (59.4, "59 s"), (85, "1 min 25 s"), (3599.9, "1 h 00 min"), (7500, "2 h 05 min")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said
