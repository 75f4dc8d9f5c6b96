"""EAGLE-3 heads in files of their own, on tiny random ones: what they read, whom they guess for, and who is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from specchat.catalogue_file import catalogue_path, load_catalogue
from specchat.cli import main
from specchat.exit_codes import ExitCode
from specchat.gguf_names import ARCHITECTURES, NOT_FOR_CHAT
from specchat.headers import UnsupportedFile, check_usable, read_header
from specchat.loading import EngineOptions, Engines, UnfitDraft, load_engines
from specchat.pairing import Side, Verdict, Vocabularies, judge
from specchat.session import ChatSession, Guess, Reply, ReplySettings, Wrote
from speculation.accept import rule_named
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser
from speculation.guessers.eagle3 import Eagle3
from speculation.heads.eagle3 import SHOWS_LAYER_INPUTS
from speculation.llama import Eagle3Layers, EngineLog, LlamaModel, LlamaWeights, eagle3
from speculation.sampling import GREEDY
from speculation.testing import BushyGuesser
from speculation.types import CannotLoad, Logits, Tokens
from tests.gguf import tiny
from tests.gguf.rows import Make, assert_same, some_tokens
from tests.gguf.test_llama_engine import assert_same_text, plain_text, tokens_of

N_VOCAB = len(tiny.VOCABULARY.tokens)
QUESTION = "one two three one two three one two"
MakeHead = Callable[..., Eagle3Layers]


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[MakeHead]:
    """Makes heads for a target; they follow it."""
    made: list[Eagle3Layers] = []

    def new(target: LlamaModel, **shape: object) -> Eagle3Layers:
        path = tiny.write_eagle3(tmp_path / f"head-{len(made)}.gguf", **shape)  # type: ignore[arg-type]
        facts = read_header(path).head
        assert facts is not None
        head = Eagle3Layers(LlamaWeights(path, EngineLog()), facts, target, EngineLog(), n_threads=1)
        made.append(head)
        head.follows = True
        return head

    yield new
    for each in made:
        each.close()
        each.weights.close()


def tokens_from(n: int, seed: int = 0) -> Tokens:
    return np.array(some_tokens(n, seed), dtype=np.int32)


# -- What it reads -------------------------------------------------------------------------------------------------


def test_features_are_made_of_what_the_layers_were_given_through_chains_trees_and_rewinds(
    make: Make, beside: MakeHead, tmp_path: Path
) -> None:
    model, text = make("attention", n_batch=64), some_tokens(150)
    head = beside(model, target_layers=(0, 0, 0))  # whose input is known: the embeddings
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(head.weights.path).tensors}
    embeddings = {t.name: t.data for t in gguf.GGUFReader(model.weights.path).tensors}["token_embd.weight"]

    def expected(tokens: list[int]) -> Logits:
        features: Logits = np.tile(embeddings[tokens], 3) @ tensors["fc.weight"].T
        return features

    model.forward(text, n_rows=0)  # in several batches
    model.rewind(100)
    model.forward_tree(7, [1, 2, 3, 4, 5, 6], [-1, -1, 0, 1, 3, -1])
    model.keep([1, 3, 4])
    model.forward([9, 8, 7], n_rows=3)

    whole = [*text[:100], 7, 2, 4, 5, 9, 8, 7]
    assert head.known == range(len(whole))
    np.testing.assert_allclose(head._trail.rows(head.known), expected(whole), atol=2e-2)
    head.follows = False
    model.rewind(50)
    model.forward(text[:20], n_rows=0)
    head.follows = True
    assert len(head.known) == 0
    model.forward([3, 4], n_rows=1)
    assert head.known == range(70, 72)
    np.testing.assert_allclose(head._trail.rows(head.known), expected([3, 4]), atol=2e-2)


@pytest.mark.parametrize("own_tables", [False, True])
def test_a_row_is_the_same_whether_the_text_was_read_at_once_or_with_drafts_and_rewinds_in_between(
    make: Make, beside: MakeHead, own_tables: bool
) -> None:
    model, text = make("attention"), tokens_from(200)
    model.forward(text, n_rows=0)
    once, often = (beside(model, own_tables=own_tables) for _ in range(2))
    model.rewind(0)
    model.forward(text, n_rows=0)

    expected = once.read(0, text[1:]).copy()
    for start, stop in ((0, 3), (3, 80), (80, 81), (81, 199)):
        found = often.read(start, text[start + 1 : stop + 1]).copy()
        for token in (5, 6):
            often.after(token)
        often.rewind(stop)

    assert_same(found, expected)
    assert np.abs(once.after(5) - expected).max() > 0.1


def test_of_a_reduced_vocabulary_only_its_tokens_are_guessed(make: Make, beside: MakeHead) -> None:
    model = make("attention")
    head = beside(model, guessed=range(50, 150, 2))

    model.forward(some_tokens(20), n_rows=0)

    assert head.ids.tolist() == list(range(50, 150, 2))
    assert head.read(0, tokens_from(20)[1:]).shape == (50,)


# -- What it guesses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["coupled", "rejection", "block"])
@pytest.mark.parametrize("kind", ["attention", "hybrid", "delta"])
def test_the_text_is_the_plain_one_whoever_guesses_in_between(
    kind: str, rule: str, make: Make, beside: MakeHead
) -> None:
    target, prompt = make(kind), some_tokens(90)
    head = beside(target, guessed=range(200))
    guessers: dict[str, Guesser] = {"eagle3": Eagle3(head, GREEDY), "bushy": BushyGuesser(N_VOCAB)}
    engine = Engine(target, guessers, Fixed("eagle3", 4), rule_named(rule, 0), GREEDY)
    plans = [("eagle3", 4), ("eagle3", 1), ("bushy", 6), ("plain", 0), ("eagle3", 7)]

    steps = []
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass
    for i, step in enumerate(engine.steps(limit=60, ends=EndTokens())):
        steps.append(step)
        engine.controller = Fixed(*plans[i % len(plans)])

    assert_same_text(tokens_of(steps), plain_text(make(kind), prompt, 60))
    mine = [step for step in steps if step.guesser == "eagle3"]
    assert len(mine) >= len(steps) // 2
    assert max(step.drafted for step in mine) >= 4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("eagle3")
    return {
        "target": tiny.write_attention(folder / "target.gguf"),
        "window": tiny.write_sliding_window(folder / "window.gguf"),
        "recurrent": tiny.write_recurrent(folder / "recurrent.gguf"),
        "longer": tiny.write_attention(folder / "longer.gguf", padding=3),
        "other": tiny.write_attention(folder / "other.gguf", replace_token=(99, "odd one")),
        "draft": tiny.write_attention(folder / "draft.gguf", drift=0.05),
        "head": tiny.write_eagle3(folder / "head.gguf"),
        "small": tiny.write_eagle3(folder / "small.gguf", guessed=range(100)),
        "wide": tiny.write_eagle3(folder / "wide.gguf", target_width=128),
        "deep": tiny.write_eagle3(folder / "deep.gguf", target_layers=(0, 1, 2)),
        "two": tiny.write_eagle3(folder / "two.gguf", target_layers=(0, 1)),
        "tall": tiny.write_eagle3(folder / "tall.gguf", own_layers=2),
        "beyond": tiny.write_eagle3(folder / "beyond.gguf", guessed=[1, 2, 10_000]),
    }


@pytest.fixture
def engines(files: dict[str, Path]) -> Iterator[Engines]:
    loaded = load_engines(files["target"], EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    yield loaded
    loaded.close()


def session_on(engines: Engines) -> ChatSession:
    return ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=60))


def answer(session: ChatSession, *modes: Guess) -> Reply:
    """A reply in which these modes take turns, five events each."""
    session.guess = modes[0]
    for i, _ in enumerate(session.reply(QUESTION)):
        session.guess = modes[i // 5 % len(modes)]
    assert session.last_reply is not None
    return session.last_reply


def test_a_session_guesses_with_a_head_that_was_given_as_a_draft_model_and_the_text_stays(
    engines: Engines, files: dict[str, Path]
) -> None:
    plain = answer(session_on(engines), Guess.OFF)
    engines.load_draft(files["head"])

    guessed = answer(session_on(engines), Guess.EAGLE3)
    mixed = answer(session_on(engines), Guess.EAGLE3, Guess.LOOKUP, Guess.OFF, Guess.AUTO, Guess.EAGLE3)

    assert engines.draft is None
    assert (engines.draft_name, engines.own) == ("head", (Guess.EAGLE3,))
    assert plain.text == guessed.text == mixed.text
    assert {step.guesser for step in guessed.steps} <= {"plain", "eagle3"}
    assert sum(step.drafted for step in guessed.steps if step.guesser == "eagle3") > 20


def test_later_turns_and_a_shortened_chat_stay_the_same(engines: Engines, files: dict[str, Path]) -> None:
    texts = []
    for guess in (Guess.OFF, Guess.EAGLE3):
        if guess is Guess.EAGLE3:
            engines.load_draft(files["head"])
        session = session_on(engines)
        session.guess = guess
        for question in ("hello world", "and again", "once more"):
            list(session.reply(question))
        session.messages = session.messages[:2]
        list(session.reply("something else"))
        texts.append([message.text for message in session.messages])

    assert texts[0] == texts[1]


def test_what_the_target_reads_is_followed_only_while_the_head_may_guess(
    engines: Engines, files: dict[str, Path]
) -> None:
    engines.load_draft(files["head"])
    session = session_on(engines)
    assert engines.eagle3 is not None

    followed = {}
    for guess in (Guess.AUTO, Guess.LOOKUP, Guess.EAGLE3, Guess.OFF):
        session.guess = guess
        followed[guess] = engines.eagle3.follows

    assert followed == {Guess.AUTO: True, Guess.LOOKUP: False, Guess.EAGLE3: True, Guess.OFF: False}


def test_auto_has_a_price_for_it_and_loses_it_with_the_head(engines: Engines, files: dict[str, Path]) -> None:
    session = session_on(engines)
    considered: list[set[str]] = []
    for has_head in (False, True, False):
        if has_head:
            engines.load_draft(files["head"])
        else:
            engines.drop_draft()
        session.guess = Guess.AUTO
        names: set[str] = set()
        for event in session.reply(QUESTION):
            if isinstance(event, Wrote):
                names |= {priced.guesser for priced in session.plan.considered}
        considered.append(names)

    assert ["eagle3" in names for names in considered] == [False, True, False]


def test_draft_means_the_head_that_was_given_in_place_of_one_and_either_takes_the_others_place(
    engines: Engines, files: dict[str, Path]
) -> None:
    session = session_on(engines)
    with pytest.raises(ValueError, match="no EAGLE-3 head is loaded for target: give its file"):
        session.guess = Guess.EAGLE3

    engines.load_draft(files["small"])
    session.guess = Guess.DRAFT
    assert session.guess is Guess.EAGLE3
    engines.load_draft(files["head"])
    session.guess = Guess.EAGLE3
    assert engines.draft_name == "head"
    engines.load_draft(files["draft"])
    session.guess = Guess.DRAFT

    assert session.guess is Guess.DRAFT
    assert engines.eagle3 is None
    assert engines.own == ()
    list(session.reply(QUESTION))


# -- Who is refused ------------------------------------------------------------------------------------------------

REFUSED = [
    ("window", "head", "the engine does not show what the layers of a gemma3 model are given"),
    ("target", "wide", "its target has a width of 128 numbers, this one of 64"),
    ("target", "deep", "it reads layer 2, and the target has layers 0 to 1"),
    ("target", "two", "it reads 2 layers of its target"),
    ("target", "tall", "it has 2 layers of its own"),
    ("longer", "head", f"it guesses any of {N_VOCAB} tokens, and the target has {N_VOCAB + 3}"),
    ("other", "small", "token 99 is"),
    ("recurrent", "head", "recurrent cannot take tokens back, so nothing can guess for it"),
]


@pytest.mark.parametrize(("target", "head", "reason"), REFUSED)
def test_a_pair_that_does_not_fit_is_refused_before_the_engine_is_asked(
    target: str, head: str, reason: str, files: dict[str, Path]
) -> None:
    engines = load_engines(files[target], EngineOptions(n_ctx=256, n_threads=1), EngineLog())

    with pytest.raises(UnfitDraft, match=reason):
        engines.load_draft(files[head])

    assert engines.draft_name is None
    assert isinstance(answer(session_on(engines), Guess.AUTO), Reply)  # the target goes on
    engines.close()


@pytest.mark.parametrize("lacks", ["layer_input_calls", "next_state_calls"])
def test_an_engine_without_the_calls_refuses_in_one_line(
    lacks: str, engines: Engines, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eagle3, lacks, lambda: None)

    with pytest.raises(CannotLoad, match="cannot use head: the installed engine has no calls for EAGLE-3 heads"):
        engines.load_draft(files["head"])


def test_the_list_of_pairs_says_the_same_from_the_headers(files: dict[str, Path]) -> None:
    catalogue = load_catalogue(catalogue_path())

    def verdict(target: str, head: str) -> Verdict:
        # Made smaller: all of these files are tiny, and a draft has to be smaller than its target.
        sides = [Side(name, header=read_header(files[name])) for name in (target, head)]
        assert sides[1].header is not None
        sides[1] = replace(sides[1], header=replace(sides[1].header, size=1))
        return judge(sides[0], sides[1], catalogue, Vocabularies())

    assert verdict("target", "head").usable
    for target, head, reason in REFUSED[:7]:
        assert verdict(target, head).usable is False
        assert reason in verdict(target, head).reason


def test_architectures_whose_layers_are_shown_are_known_to_the_engine() -> None:
    assert SHOWS_LAYER_INPUTS <= ARCHITECTURES - NOT_FOR_CHAT


def test_a_head_is_no_model_and_says_what_it_is(files: dict[str, Path]) -> None:
    with pytest.raises(UnsupportedFile, match="is an EAGLE-3 head: give it with --draft to the model"):
        check_usable(read_header(files["head"]))


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, where in {"DATA_DIR": "data", "CACHE_DIR": "cache", "STATE_DIR": "state", "CONFIG": "own.toml"}.items():
        monkeypatch.setenv(f"SPECCHAT_{name}", str(tmp_path / where))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))


def ask(target: Path, head: Path, *more: str) -> int:
    beside = ["-m", str(target), "--draft", str(head)]
    return main(["ask", *beside, "-t", "1", "-c", "256", "--max-tokens", "24", "--temp", "0", *more, "hello world"])


@pytest.mark.usefixtures("own_folders")
def test_ask_guesses_with_a_head_after_a_trial_beside_its_target(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(files["target"], files["head"], "--guess", "eagle3", "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["draft"] == "head"
    assert ask(files["target"], files["head"], "--guess", "off", "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == said["text"]


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize(
    ("target", "head", "reason"),
    [
        ("target", "deep", "deep cannot guess for target: it reads layer 2, and the target has layers 0 to 1"),
        ("target", "beyond", "beyond.gguf makes the engine crash"),
        ("head", "head", "is an EAGLE-3 head: give it with --draft to the model that it was made for"),
    ],
)
def test_ask_refuses_with_one_line_and_the_exit_code_of_a_model(
    target: str, head: str, reason: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(files[target], files[head]) == ExitCode.MODEL

    said = [line for line in capsys.readouterr().err.splitlines() if reason in line]
    assert len(said) == 1
    assert said[0].startswith("specchat: ")


@pytest.mark.usefixtures("own_folders")
def test_a_process_that_is_given_a_head_for_a_target_that_shows_nothing_ends_well(files: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "specchat", "ask", "-m", str(files["window"]), "--draft", str(files["head"])]

    ended = subprocess.run([*command, "-t", "1", "hello"], capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == ExitCode.MODEL
    assert "head cannot guess for window: the engine does not show what the layers of a gemma3" in ended.stderr


SHOW = """
import sys
from pathlib import Path
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.llama.extension import layer_input_calls
weights = LlamaWeights(Path(sys.argv[1]), EngineLog())
model = LlamaModel(weights, EngineLog(), n_ctx=64, n_threads=1)
layer_input_calls()[0](model.handle, 1, True)
model.forward([1, 2, 3], n_rows=1)
"""


@pytest.mark.parametrize(("kind", "ends_well"), [("target", True), ("window", False), ("recurrent", False)])
def test_the_engine_itself_ends_the_process_where_a_target_is_refused(
    kind: str, ends_well: bool, files: dict[str, Path]
) -> None:
    quiet = {**os.environ, "GGML_NO_BACKTRACE": "1"}  # or a debugger would be started over the crash
    command = [sys.executable, "-c", SHOW, str(files[kind])]
    ended = subprocess.run(command, capture_output=True, timeout=120, check=False, env=quiet)

    assert (ended.returncode == 0) is ends_well


@pytest.mark.usefixtures("own_folders")
def test_a_head_can_be_linked_and_is_offered_as_a_draft_alone(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "add", str(files["head"]), "--alias", "my-head"]) == 0
    capsys.readouterr()

    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    models = listed["models"] if isinstance(listed, dict) else listed
    (mine,) = [model for model in models if model["id"] == "my-head"]
    assert mine["roles"] == ["draft"]
