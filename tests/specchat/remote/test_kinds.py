"""Which server it is, and what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from specchat.remote.kinds import (
    Kind,
    ServerFacts,
    claims_of_llama_server,
    claims_of_sglang,
    read_models,
    takes_prediction,
)
from specchat.remote.wire import said_in, without_refused


def listed(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        (
            {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}},
            ServerFacts(Kind.LLAMA, "m", 4096),
        ),
        ({"id": "m", "owned_by": "vllm", "max_model_len": 2048}, ServerFacts(Kind.VLLM, "m", 2048)),
        ({"id": "m", "owned_by": "sglang", "max_model_len": 2048}, ServerFacts(Kind.SGLANG, "m", 2048)),
        ({"id": "m", "owned_by": "organization_owner"}, ServerFacts(Kind.LM_STUDIO, "m")),
        ({"id": "m", "owned_by": "system"}, ServerFacts(Kind.OTHER, "m")),
        ({"id": "m"}, ServerFacts(Kind.OTHER, "m")),
    ],
)
def test_a_server_is_known_by_its_list_of_models(entry: dict[str, Any], facts: ServerFacts) -> None:
    assert read_models(listed(entry), None) == facts


@pytest.mark.parametrize("wrong", [None, [], "x", {"data": None}, {"data": [1, {"id": 3}]}, {"data": {}}])
def test_a_list_that_cannot_be_read_says_nothing_against_a_model(wrong: object) -> None:
    assert read_models(wrong, "mine") == ServerFacts(Kind.OTHER, "mine")


def test_the_wanted_model_is_taken_also_by_an_alias_or_where_it_is_not_listed() -> None:
    found = listed(
        {"id": "a", "owned_by": "vllm", "max_model_len": 100},
        {"id": "b", "owned_by": "vllm", "max_model_len": 200, "aliases": ["big"]},
    )
    assert read_models(found, "b") == ServerFacts(Kind.VLLM, "b", 200)
    assert read_models(found, "big") == ServerFacts(Kind.VLLM, "big", 200)
    assert read_models(found, "other") == ServerFacts(Kind.VLLM, "other")


NONE_SAID = {"default_generation_settings": {"params": {"speculative.types": "none"}}}


@pytest.mark.parametrize(
    ("slots", "props", "claims"),
    [
        ([{"id": 0, "speculative": True}], NONE_SAID, True),  # as it was seen while n-grams were guessed
        ([{"id": 0, "speculative": False}, {"speculative": False}], None, False),
        (None, NONE_SAID, False),
        (None, {"default_generation_settings": {"params": {"speculative.types": "ngram-simple"}}}, True),
        (None, None, None),
        ({"error": "off"}, [1], None),
        ("text", {"default_generation_settings": 3}, None),
    ],
)
def test_the_slots_of_a_llama_server_are_believed_before_its_properties(
    slots: object, props: object, claims: bool | None
) -> None:
    assert claims_of_llama_server(slots, props) is claims


@pytest.mark.parametrize(
    ("info", "claims"),
    [
        ({"speculative_algorithm": "EAGLE3"}, True),
        ({"speculative_algorithm": None}, False),
        ({}, None),
        (None, None),
    ],
)
def test_sglang_says_with_which_algorithm_it_was_started(info: object, claims: bool | None) -> None:
    assert claims_of_sglang(info) is claims


def test_predictions_go_to_hosts_that_are_known_to_take_them() -> None:
    assert takes_prediction("https://api.openai.com/v1")
    assert not takes_prediction("https://api.openai.com.evil.example/v1")
    assert not takes_prediction("http://127.0.0.1:8080/v1")


def test_a_file_is_called_by_its_name_without_its_folders() -> None:
    assert ServerFacts(Kind.LLAMA, "/srv/models/big.Q4.gguf").title == "big.Q4"
    assert ServerFacts(Kind.LLAMA, "C:\\models\\big.gguf").title == "big"
    assert ServerFacts(Kind.VLLM, "owner/name").title == "owner/name"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"message": "no\n such  model"}}, "no such model"),
        ({"error": "plain"}, "plain"),
        ({"detail": [{"msg": "field required"}]}, '[{"msg": "field required"}]'),
        ({"message": "x" * 400}, "x" * 300 + "..."),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_words_of_a_refusal_are_one_line(answer: object, said: str) -> None:
    assert said_in(answer) == said


def test_only_fields_that_are_spare_are_given_up() -> None:
    body = {"model": "m", "temperature": 1.0, "stream_options": {}}
    assert without_refused(body, "temperature is not allowed") is None
    assert without_refused(body, "prediction is not allowed") is None
    assert without_refused(body, "stream_options is not allowed") == {"model": "m", "temperature": 1.0}
