"""Switching models gives memory back: weights, caches and batches, in the library and in what the app builds on it."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from specchat.loading import EngineOptions, load_engines
from specchat.machine import memory_in_use
from specchat.session import ChatSession, Guess, ReplySettings
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.sampling import GREEDY
from tests.conftest import THREADS, model_file
from tests.gguf import tiny

CYCLES = 10
SLACK = 0.05


def in_use() -> int:
    """Bytes that this process holds, once what was freed is back with the system."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps freed pages otherwise
    if trim is not None:
        trim(0)
    held = memory_in_use()
    if held is None:
        pytest.skip("this system does not say what a process holds")
    return held


def assert_nothing_is_kept(cycle: Callable[[], None]) -> None:
    """The tenth unload leaves what the first left, and it was a switch of something that takes memory."""
    cycle()  # allocators, kernels and caches of the libraries settle in the first
    after_first = in_use()
    for _ in range(CYCLES - 1):
        cycle()
    assert in_use() <= after_first * (1 + SLACK)


def library_cycle(target: Path, draft: Path, n_ctx: int) -> Callable[[], None]:
    def cycle() -> None:
        log = EngineLog()
        for path in (target, draft):
            weights = LlamaWeights(path, log)
            model = LlamaModel(weights, log, n_ctx=n_ctx, n_threads=THREADS)
            model.forward([1, 2, 3, 4], n_rows=4)
            weights.vocabulary.encode("Some words, and some more.")
            model.close()
            weights.close()

    return cycle


def app_cycle(target: Path, draft: Path | None, n_ctx: int) -> Callable[[], None]:
    def cycle() -> None:
        engines = load_engines(target, EngineOptions(n_ctx=n_ctx, n_threads=THREADS), EngineLog())
        session = ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=8))
        list(session.reply("Say it: hello, hello, hello."))
        for _ in range(2):
            if draft is not None:
                engines.load_draft(draft)
                session.guess = Guess.DRAFT
                list(session.reply("Once more."))
                session.guess = Guess.AUTO
                engines.drop_draft()
                session.guess = Guess.AUTO
        engines.close()

    return cycle


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return tiny.write_attention(folder / "target.gguf"), tiny.write_attention(folder / "draft.gguf", drift=0.05)


def test_the_library_gives_back_what_ten_tiny_models_took(files: tuple[Path, Path]) -> None:
    assert_nothing_is_kept(library_cycle(*files, n_ctx=2048))


def test_the_app_gives_back_what_ten_tiny_pairs_took(files: tuple[Path, Path]) -> None:
    assert_nothing_is_kept(app_cycle(*files, n_ctx=2048))


def test_hybrids_give_back_their_states(tmp_path: Path) -> None:
    paths = tiny.write_hybrid(tmp_path / "hybrid.gguf"), tiny.write_delta(tmp_path / "delta.gguf")

    assert_nothing_is_kept(library_cycle(*paths, n_ctx=2048))


def test_nothing_of_a_model_outlives_its_unloading(files: tuple[Path, Path]) -> None:
    target, draft = files
    engines = load_engines(target, EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    session = ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=4))
    engines.load_draft(draft)
    session.guess = Guess.DRAFT
    list(session.reply("Hello."))
    assert engines.draft is not None
    kept = [weakref.ref(thing) for thing in (engines.draft, engines.draft.weights)]

    session.guess = Guess.AUTO
    engines.drop_draft()
    session.guess = Guess.AUTO  # which takes the draft out of the session
    gc.collect()

    assert [each() for each in kept] == [None, None]
    engines.close()


def test_a_draft_that_is_refused_leaves_nothing_behind(files: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tiny.write_attention(tmp_path / "wrong.gguf", replace_token=(300, "edited"))
    engines = load_engines(files[0], EngineOptions(n_ctx=2048, n_threads=1), EngineLog())

    def cycle() -> None:
        for path in (wrong, tiny.write_delta(tmp_path / "delta.gguf")):
            with pytest.raises(Exception, match="cannot draft"):
                engines.load_draft(path)

    assert_nothing_is_kept(cycle)
    assert engines.draft is None
    engines.close()


@pytest.mark.gguf
def test_the_library_gives_back_what_ten_real_models_took() -> None:
    small = model_file("smollm2-135m")

    assert_nothing_is_kept(library_cycle(small, small, n_ctx=2048))


@pytest.mark.gguf
@pytest.mark.pair
def test_the_app_gives_back_what_switching_between_real_pairs_took() -> None:
    qwen, small = model_file("qwen2.5-coder-0.5b"), model_file("smollm2-135m")
    switch = [app_cycle(qwen, qwen, n_ctx=1024), app_cycle(small, small, n_ctx=1024)]
    turn = iter(range(CYCLES))

    def cycle() -> None:
        switch[next(turn) % 2]()

    switch[1]()  # both have been here once
    assert_nothing_is_kept(cycle)
