"""What models.toml ships: every entry can be used as it is written, and what could not be checked is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.catalogue import EVIDENCE, Catalogue, HubSource, Model, PackageSource
from specchat.catalogue_file import load_catalogue
from specchat.gguf_names import ARCHITECTURES, HYBRID
from specchat.recommended import GIB, memory_bytes
from speculation.vocabulary import MAX_SIZE_DIFFERENCE

SHIPPED = load_catalogue(Path(__file__).parents[2] / "models.toml")
MODELS = [pytest.param(model, id=model.id) for model in SHIPPED.models]
HEADS = ("gemma4-assistant",)


@pytest.fixture
def catalogue() -> Catalogue:
    return SHIPPED


def test_there_are_48_models_in_47_pairs_and_newcomers_start_with_the_measured_one(catalogue: Catalogue) -> None:
    assert (len(catalogue.models), len(catalogue.pairs)) == (48, 47)
    measured = [pair for pair in catalogue.pairs if pair.evidence == "measured"]
    assert [(pair.target, pair.draft) for pair in measured] == [(catalogue.default_target, catalogue.default_draft)]
    assert catalogue.find(catalogue.default_target).draft == catalogue.default_draft


@pytest.mark.parametrize("model", MODELS)
def test_a_shipped_model_is_described_in_full(catalogue: Catalogue, model: Model) -> None:
    assert model.architecture in {*ARCHITECTURES, *HEADS}
    assert model.memory
    assert model.tokenizer
    assert model.parameters
    assert model.checked_on
    assert catalogue.licence(model) is not None
    # A weight takes 3 to 10 bits in the quantizations that are shipped, and the embedding may be stored twice.
    assert 3 / 8 < model.file.size / model.parameters < 13 / 8
    assert (model.memory == "shared") == model.is_head == (model.architecture in HEADS)
    assert (model.memory == "hybrid") == (model.architecture in HYBRID)


@pytest.mark.parametrize("model", MODELS)
def test_a_shipped_model_names_exact_bytes_of_one_commit_or_says_that_it_does_not(model: Model) -> None:
    hubs = [source for source in model.sources if isinstance(source, HubSource)]

    assert len(hubs) + (model.unpinned is not None) == 1
    assert all(hub.file.endswith(model.file.name) for hub in hubs)
    assert bool(model.why_not_fetched) == (model.is_head or model.unpinned is not None)


def test_only_what_was_here_is_marked_as_checked(catalogue: Catalogue) -> None:
    indexed = [m.id for m in catalogue.models if any(isinstance(each, PackageSource) for each in m.sources)]

    assert [model.id for model in catalogue.models if model.checked == "bytes"] == indexed
    assert {model.checked for model in catalogue.models} == {"bytes", "found"}
    assert [model.id for model in catalogue.models if model.unpinned] == ["qwen3.6-27b"]


def test_a_pair_has_one_tokenizer_whose_sizes_are_near_and_its_draft_is_the_smaller(catalogue: Catalogue) -> None:
    for pair in catalogue.pairs:
        target, draft = catalogue.find(pair.target), catalogue.find(pair.draft)
        assert "target" in target.roles, pair
        assert {"draft", "head"} & set(draft.roles), pair
        assert target.tokenizer == draft.tokenizer, pair
        assert draft.file.size < target.file.size, pair
    for tokenizer in catalogue.tokenizers:
        assert max(tokenizer.sizes) - min(tokenizer.sizes) <= MAX_SIZE_DIFFERENCE


def test_of_each_target_the_pair_with_the_best_evidence_comes_first(catalogue: Catalogue) -> None:
    for model in catalogue.models:
        ranks = [EVIDENCE.index(pair.evidence) for pair in catalogue.pairs if pair.target == model.id]
        assert ranks == sorted(ranks), model.id


def test_every_draft_drafts_and_every_tokenizer_and_licence_is_used(catalogue: Catalogue) -> None:
    drafts = {pair.draft for pair in catalogue.pairs}

    assert {model.id for model in catalogue.models if "target" not in model.roles} <= drafts
    assert {each.id for each in catalogue.tokenizers} == {model.tokenizer for model in catalogue.models}
    assert {each.id for each in catalogue.licences} == {model.licence for model in catalogue.models}


def test_non_commercial_licences_are_marked(catalogue: Catalogue) -> None:
    marked = [model.id for model in catalogue.models if "forbids commercial use" in catalogue.warning(model)]

    assert marked == ["qwen2.5-coder-3b"]
    assert "has conditions" in catalogue.warning(catalogue.find("gemma3-4b"))
    assert catalogue.warning(catalogue.find("qwen3-4b")) == ""


def test_what_is_recommended_is_free_can_be_fetched_fits_and_is_measured_best_first(catalogue: Catalogue) -> None:
    assert [entry.memory_gib for entry in catalogue.recommended] == sorted(
        (entry.memory_gib for entry in catalogue.recommended), reverse=True
    )
    for entry in catalogue.recommended:
        pair = [catalogue.find(name) for name in (entry.target, entry.draft)]
        assert pair[0].draft == entry.draft
        assert not any(model.why_not_fetched or catalogue.warning(model) for model in pair)
        # Other programs need memory as well.
        assert sum(map(memory_bytes, pair)) < 0.65 * max(entry.memory_gib, 4) * GIB
    assert catalogue.recommended[-1].target == catalogue.default_target


def test_no_draft_is_recommended_whose_cache_cannot_drop_what_was_rejected(catalogue: Catalogue) -> None:
    paired = {pair.target for pair in catalogue.pairs if not catalogue.find(pair.draft).can_draft}

    assert {"qwen3.5-4b", "qwen3.5-9b"} <= paired
    assert all(model.draft is None or catalogue.find(model.draft).can_draft for model in catalogue.models)
    assert catalogue.find("qwen3.5-4b").draft is None
