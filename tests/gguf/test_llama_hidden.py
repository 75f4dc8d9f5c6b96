"""Hidden states beside rows of logits: they are what the logits are made from, and cost prompts nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specchat.heads.matrices import Matrices
from speculation.heads.network import Matrix
from speculation.llama import EngineLog, LlamaWeights, ParallelTexts, Part
from speculation.types import EngineFailure, ShowsHidden
from tests.gguf import tiny
from tests.gguf.rows import Make

PROMPT = [3, 14, 15, 92, 65, 35]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """The output matrix of the tiny model."""
    matrices = Matrices(tiny.write_attention(tmp_path_factory.mktemp("hidden") / "attention.gguf"))
    return matrices.output(np.arange(200, dtype=np.int32))


@pytest.mark.parametrize("kind", ["attention", "window", "recurrent", "hybrid"])
def test_a_step_shows_a_state_for_each_row_and_a_prompt_none(kind: str, make: Make) -> None:
    model = make(kind)
    assert isinstance(model, ShowsHidden)
    model.keeps_hidden = True

    model.forward(PROMPT, n_rows=0)
    assert model.hidden_rows().shape == (0, model.n_hidden)
    model.forward(PROMPT, n_rows=1)
    assert model.hidden_rows().shape == (0, model.n_hidden)
    model.forward(PROMPT[:3], n_rows=3)

    rows = model.hidden_rows()
    assert rows.shape == (3, model.n_hidden)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() > 0


def test_logits_are_the_states_times_the_output_matrix_in_chains_and_trees(make: Make, output: Matrix) -> None:
    model = make("attention")
    model.keeps_hidden = True
    model.forward(PROMPT, n_rows=0)

    chain = model.forward([7, 8, 9], n_rows=3).copy()
    assert np.allclose(model.hidden_rows() @ output.T, chain[:, : len(output)], atol=2e-3)
    tree = model.forward_tree(5, [6, 7, 8], [-1, -1, 1]).copy()
    assert np.allclose(model.hidden_rows() @ output.T, tree[:, : len(output)], atol=2e-3)


def test_rows_are_the_same_whether_states_are_kept_or_not(make: Make) -> None:
    found = []
    for keeps in (False, True):
        model = make("attention")
        model.keeps_hidden = keeps
        model.forward(PROMPT, n_rows=0)
        found.append(model.forward([7, 8, 9], n_rows=3).copy())
        assert len(model.hidden_rows()) == (3 if keeps else 0)

    assert np.array_equal(found[0], found[1])


def test_texts_beside_each_other_are_read_as_each_would_be_alone(tmp_path: Path, make: Make) -> None:
    weights = LlamaWeights(tiny.write_attention(tmp_path / "one.gguf"), EngineLog())
    texts = ParallelTexts(weights, EngineLog(), n_texts=3, n_ctx=32, n_threads=1, n_batch=16)
    given = {0: [3, 14, 15, 92], 1: [65, 35], 2: [89, 79, 32]}

    texts.read([Part(text, 0, tokens[:1]) for text, tokens in given.items()])
    found = texts.read([Part(text, 1, tokens[1:]) for text, tokens in given.items()])

    for (hidden, row), tokens in zip(found, given.values(), strict=True):
        alone = make("attention")
        alone.keeps_hidden = True
        rows = alone.forward(tokens, n_rows=len(tokens)).copy()
        assert np.allclose(row, rows[-1], atol=2e-3)
        assert np.allclose(hidden, alone.hidden_rows()[1:], atol=2e-3)
    texts.forget(1)
    assert np.allclose(texts.read([Part(1, 0, [3])])[0].hidden, texts.read([Part(1, 1, [3])])[0].hidden, atol=9)
    with pytest.raises(EngineFailure):
        texts.read([Part(0, 0, [1])])  # which stands there already
    whole = texts.read([Part(2, 3, [38, 46])])[0].row.copy()
    assert texts.keep(2, 2) == 2
    assert np.allclose(texts.read([Part(2, 2, [32, 38, 46])])[0].row, whole, atol=2e-3)
    texts.close()
    weights.close()
