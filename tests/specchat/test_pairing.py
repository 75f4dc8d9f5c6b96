"""Which models can draft for a target: from headers alone, in the engine's own words, with what it would be worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from specchat.catalogue import Catalogue, Model, ModelFile, Tokenizer
from specchat.cli import main
from specchat.gguf_vocabulary import vocabulary_facts
from specchat.headers import read_header
from specchat.kept import Kept, draft_price_key, price_key
from specchat.own_models import linked
from specchat.pair_command import Row, rows_of
from specchat.pairing import Gain, Side, Verdict, Vocabularies, gain, judge
from specchat.shelf import Shelf
from speculation.accept import rule_named
from speculation.context import Context
from speculation.cost import CostTable
from speculation.guessers.draft_model import DraftModel
from speculation.llama import EngineLog, LlamaWeights
from speculation.sampling import GREEDY
from speculation.testing import HistoryModel
from speculation.types import Logits, Tokens
from speculation.vocabulary import VocabularyFacts, why_incompatible
from tests.conftest import GEMMA, cached_file, model_file
from tests.gguf import tiny

Write = Callable[[Path], Path]
NOTHING = Catalogue((), "", "")


def edited(text: str, token: int = 300) -> Write:
    return lambda path: tiny.write_attention(path, replace_token=(token, text))


DRAFTS: dict[str, Write] = {
    "same": lambda path: tiny.write_attention(path, seed=4),
    "padded": lambda path: tiny.write_attention(path, padding=128),
    "padded too far": lambda path: tiny.write_attention(path, padding=129),
    "one token edited": edited("edited"),
    "a text with a NUL": edited("cut\0off"),
    "a token without a text": edited(""),
    "an early token edited": edited("early", token=4),
    "gemma3": tiny.write_sliding_window,
    "qwen35": tiny.write_delta,
    "begins with a token": lambda path: written(path, add_bos_token=True),
    "ends with a token": lambda path: written(path, add_eos_token=True),
    "begins by its way of cutting": lambda path: written(path, pre="llama-bpe"),
    "pieces of sentences": lambda path: written(path, model="llama"),
}


def written(path: Path, pre: str = "qwen2", model: str = "gpt2", **flags: bool) -> Path:
    """An attention model with the tokenizer described in another way."""
    file = tiny._File(path, "llama", tiny.VOCABULARY, seed=0)
    file.writer.kv_data[0].pop("tokenizer.ggml.add_bos_token")
    for key, value in {"pre": pre, "model": model}.items():
        del file.writer.kv_data[0][f"tokenizer.ggml.{key}"]
        file.writer.add_string(f"tokenizer.ggml.{key}", value)
    if model == "llama":
        file.writer.add_token_scores([0.0] * len(tiny.VOCABULARY.tokens))
    for key, flag in flags.items():
        file.writer.add_bool(f"tokenizer.ggml.{key}", flag)
    file.attention_heads()
    file.writer.add_rope_dimension_count(tiny.D // tiny.HEADS)
    file.embeddings()
    for layer in range(tiny.LAYERS):
        file.attention(f"blk.{layer}")
        file.feed_forward(f"blk.{layer}")
    return file.close()


def from_header(path: Path, name: str) -> VocabularyFacts:
    tokenizer = read_header(path).tokenizer
    assert tokenizer is not None
    return vocabulary_facts(name, path, tokenizer)


def assert_header_and_engine_agree(target: Path, draft: Path) -> str | None:
    """Both see the same vocabularies, and so give the same reason, which is returned."""
    said, seen = [], []
    for path in (target, draft):
        weights = LlamaWeights(path, EngineLog())
        loaded, read = weights.vocabulary.facts(path.stem), from_header(path, path.stem)
        assert (read.kind, read.n_tokens, read.bos, read.eos) == (loaded.kind, loaded.n_tokens, loaded.bos, loaded.eos)
        texts = [loaded.text(token) for token in range(loaded.n_tokens)]
        assert [read.text(token) for token in range(read.n_tokens)] == texts
        said.append(
            VocabularyFacts(loaded.name, loaded.kind, loaded.n_tokens, loaded.bos, loaded.eos, texts.__getitem__)
        )
        seen.append(read)
        weights.close()
    reason = why_incompatible(said[0], said[1])
    assert why_incompatible(seen[0], seen[1]) == reason
    return reason


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_header_tells_of_a_vocabulary_what_the_engine_tells(draft: str, tmp_path: Path) -> None:
    target = tiny.write_attention(tmp_path / "target.gguf")

    assert_header_and_engine_agree(target, DRAFTS[draft](tmp_path / "draft.gguf"))


def side(path: Path) -> Side:
    return Side(path.stem, header=read_header(path))


def verdict(target: Path, draft: Path) -> Verdict:
    return judge(side(target), side(draft), NOTHING, Vocabularies())


def larger(path: Path) -> Path:
    """A target that every draft of these tests is smaller than."""
    return tiny.write_attention(path, padding=100, chat_template="{# " + "x" * 300_000 + " #}")


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        ("same", ""),
        ("an early token edited", ""),
        ("gemma3", ""),
        ("one token edited", f"token 300 is 'edited' in it and {tiny.VOCABULARY.tokens[300]!r} in the target"),
        ("qwen35", "draft cannot draft: its cache cannot drop any number of tokens"),
        (
            "begins with a token",
            f"it adds token {tiny.VOCABULARY.bos} at the begin of a text, the target adds no token",
        ),
        ("ends with a token", f"it adds token {tiny.VOCABULARY.eos} at the end of a text, the target adds no token"),
        ("pieces of sentences", "its tokenizer is SPM, the target's is BPE"),
    ],
)
def test_a_draft_fits_or_the_first_reason_is_given(draft: str, reason: str, tmp_path: Path) -> None:
    found = verdict(larger(tmp_path / "target.gguf"), DRAFTS[draft](tmp_path / "draft.gguf"))

    assert found.usable is not bool(reason)
    assert reason in found.reason


def test_too_many_more_tokens_are_no_padding(tmp_path: Path) -> None:
    target = tiny.write_attention(tmp_path / "target.gguf", padding=300)
    draft = tiny.write_attention(tmp_path / "draft.gguf", padding=100)

    assert "at most 128 apart is padding" in verdict(target, draft).reason
    assert verdict(target, tiny.write_attention(tmp_path / "draft.gguf", padding=172)).usable


@pytest.mark.parametrize(("write", "usable"), [(tiny.write_recurrent, False), (tiny.write_delta, True)])
def test_a_target_that_cannot_go_back_has_no_drafts(write: Write, usable: bool, tmp_path: Path) -> None:
    target = side(write(tmp_path / "target.gguf"))
    smaller = side(tiny.write_attention(tmp_path / "draft.gguf"))
    found = judge(target, smaller, NOTHING, Vocabularies())

    assert usable or "target cannot take tokens back out of its cache" in found.reason
    assert ("cannot take" in found.reason) is not usable


def test_a_draft_that_is_no_smaller_is_of_no_use(tmp_path: Path) -> None:
    small, large = tiny.write_attention(tmp_path / "small.gguf"), larger(tmp_path / "large.gguf")

    assert verdict(small, large) == Verdict(False, "it is no smaller than the target")
    assert verdict(small, small) == Verdict(False, "it is the target itself")


def listed(name: str, tokenizer: str = "", memory: str = "") -> Model:
    file = ModelFile(f"{name}.gguf", "Q4_0", 100, "a" * 64)
    return Model(name, name, ("draft",), None, "llama", 2048, "MIT", file, (), tokenizer=tokenizer, memory=memory)


def test_of_what_is_not_here_the_catalogue_is_believed_and_that_is_said(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "target.gguf")
    target = side(path)
    assert target.header is not None
    assert target.header.tokenizer is not None
    known = Catalogue((), "", "", tokenizers=(Tokenizer("tiny", "BPE", (5,), target.header.tokenizer.sha256),))

    def of(model: Model) -> Verdict:
        return judge(target, Side(model.id, model), known, Vocabularies())

    assert of(listed("same", "tiny")) == Verdict(
        None, "not here: the catalogue says that both have the tokenizer tiny (not verified)"
    )
    assert of(listed("other", "gemma3")) == Verdict(
        False, "not here: the catalogue says that its tokenizer is gemma3, the target's is tiny"
    )
    assert of(listed("new")) == Verdict(None, "not here, and the catalogue does not know the tokenizer of new")
    assert "cannot draft" in of(listed("hybrid", "tiny", "hybrid")).reason


def test_texts_of_a_vocabulary_are_read_once(tmp_path: Path) -> None:
    vocabularies = Vocabularies()
    for name in ("a", "b"):
        path = tiny.write_attention(tmp_path / f"{name}.gguf", seed=len(vocabularies.known))
        facts = vocabularies.facts(name, path, read_header(path))
        assert facts is not None
        assert facts.text(3)
        path.unlink()  # so the second can only have it from the first

    assert len(vocabularies.known) == 1


def test_a_gain_weighs_what_is_won_against_measured_prices() -> None:
    flat = CostTable({1: 1.0, 64: 1.0})  # rows cost nothing, so only the draft's own time counts

    free = gain(flat, 0.0, alpha=0.5)
    assert free.draft_tokens == 16
    assert free.speed_up == pytest.approx(free.tokens_per_step) == pytest.approx(2.0, abs=1e-4)
    dear = gain(flat, 0.5, alpha=0.7)  # one guess: 1.7 tokens for 1.5 steps; two: 2.19 for 2
    assert dear.draft_tokens == 1
    assert (dear.tokens_per_step, dear.speed_up) == pytest.approx((1.7, 1.7 / 1.5))
    assert gain(CostTable({1: 1.0, 2: 2.0, 64: 64.0}), 0.5) == Gain(0, 1.0, 1.0)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Three files of the user's own, whose prices are known for one."""
    monkeypatch.setenv("SPECCHAT_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shelf = Shelf()
    for name, write in {"good": DRAFTS["same"], "wrong": edited("edited"), "fast": edited("early", 4)}.items():
        shelf.own.put(linked(write(tmp_path / f"{name}.gguf"), name, ()))
    shelf.own.put(linked(larger(tmp_path / "large.gguf"), "large", ()))
    return Shelf()


def own(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.draft.model is not None and row.draft.model.is_linked]


def test_the_best_comes_first_and_the_rest_says_why(shelf: Shelf, tmp_path: Path) -> None:
    prices = Kept(tmp_path / "prices.json")
    prices.put(price_key("large", 7, "CPU", 2, "engine 1"), {"1": 1.0, "2": 1.1, "8": 1.5})
    prices.put(draft_price_key(price_key("fast", 7, "CPU", 2, "engine 1")), {"1": 0.1})
    prices.put(draft_price_key(price_key("good", 7, "CPU", 2, "engine 2")), {"1": 0.1})  # of another engine
    model = shelf.catalogue.find("large")

    rows = own(rows_of(shelf, Side("large", model, read_header(shelf.store.path(model))), prices, 2, "engine 1"))

    assert [row.draft.name for row in rows] == ["fast", "good", "wrong", "large"]
    assert rows[0].gain is not None
    assert rows[0].gain.speed_up > 1.5
    assert rows[1].gain is None
    assert [row.verdict.usable for row in rows] == [True, True, False, False]
    assert rows[2].verdict.reason.startswith("wrong cannot draft for large: token 300 is 'edited'")


def test_the_command_lists_every_draft_with_its_reason(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pair", "large"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}

    assert "fits" in lines["good"]
    assert lines["good"].endswith("not measured yet: load both once")
    assert "no" in lines["wrong"].split()
    assert lines["wrong"].endswith(f"token 300 is 'edited' in it and {tiny.VOCABULARY.tokens[300]!r} in the target")
    assert {"qwen2.5-coder-0.5b", "large"} < set(lines)
    main(["models", "pair", "large", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["alpha_assumed"]) == ("large", 0.7)
    assert {row["id"]: row["usable"] for row in found["drafts"]}["good"] is True


def test_a_target_that_nobody_knows_is_refused(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pair", "larg"]) == 4
    assert "large" in capsys.readouterr().err


class LovesPadding(HistoryModel):
    """A draft whose best token is always beyond the target's vocabulary."""

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        rows = super().forward(tokens, n_rows=n_rows)
        rows[:, 200:] += 100.0
        return rows


@pytest.mark.parametrize("rule", ["coupled", "rejection", "block"])
def test_ids_beyond_the_smaller_vocabulary_are_never_proposed(rule: str) -> None:
    draft = DraftModel(LovesPadding(328, seed=1), GREEDY, n_target_vocab=200)
    context = Context()
    context.extend(np.array([1, 2, 3], dtype=np.int32))

    proposed = draft.propose(context, 12, rule_named(rule, 0))

    assert len(proposed.tokens) == 12
    assert max(proposed.tokens) < 200


def test_a_target_with_padding_of_its_own_is_not_drafted_for_beyond_it() -> None:
    draft = DraftModel(HistoryModel(200, seed=1), GREEDY, n_target_vocab=328)
    context = Context()
    context.extend(np.array([1, 300, 3], dtype=np.int32))  # a token that the draft does not have

    assert draft.propose(context, 4, rule_named("coupled", 0)).tokens == ()


@pytest.mark.gguf
@pytest.mark.pair
def test_real_files_fit_or_do_not_for_the_reason_that_the_engine_gives() -> None:
    target = model_file("qwen2.5-coder-1.5b")
    drafts = [model_file("qwen2.5-coder-0.5b"), model_file("smollm2-135m"), cached_file(GEMMA)]

    reasons = [assert_header_and_engine_agree(target, draft) for draft in drafts]

    assert reasons[0] is None
    assert "it has 49152 tokens, the target 151936; at most 128 apart is padding" in str(reasons[1])
    assert "its tokenizer is SPM, the target's is BPE" in str(reasons[2])
    assert [judge(side(target), side(draft), NOTHING, Vocabularies()).usable for draft in drafts] == [
        True,
        False,
        False,
    ]
