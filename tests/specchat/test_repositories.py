"""Which files of a repository a name of the hub means."""

from __future__ import annotations

import pytest

from specchat.errors import UsageError
from specchat.hub import HubFile, Repository
from specchat.repositories import Ambiguous, Spec, Variant, choose, is_spec, parse_spec, quantization, variants

SUM = "a" * 64


def repository(*names: str) -> Repository:
    files = tuple(HubFile(name, 100 + number, SUM) for number, name in enumerate(names))
    return Repository("owner/name", "b" * 40, "mit", files)


def chosen(choice: str | None, *names: str) -> Variant:
    return choose(Spec("owner/name", None, choice), repository(*names))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hf:owner/name", Spec("owner/name", None, None)),
        ("hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", Spec("Qwen/Qwen2.5-7B-Instruct-GGUF", None, "Q4_K_M")),
        ("hf:o/n@main:a/b.gguf", Spec("o/n", "main", "a/b.gguf")),
        ("hf:o/n@refs/pr/3", Spec("o/n", "refs/pr/3", None)),
    ],
)
def test_a_name_of_the_hub_has_a_repository_a_revision_and_a_choice(text: str, spec: Spec) -> None:
    assert is_spec(text)
    assert parse_spec(text) == spec


@pytest.mark.parametrize("text", ["hf:", "hf:name", "hf:o/n:", "hf:../x", "hf:o/n/m", "hf:o/n@", "hf:o /n", "hf:-o/n"])
def test_what_is_no_name_of_the_hub_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="the form is hf:owner/name:QUANTIZATION"):
        parse_spec(text)


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m", "Q4_K_M"),
        ("SmolLM2-135M-Instruct.Q4_1", "Q4_1"),
        ("gemma-4-12b-it-UD-Q4_K_XL", "UD-Q4_K_XL"),
        ("gpt-oss-20b-MXFP4", "MXFP4"),
        ("model-IQ4_XS", "IQ4_XS"),
        ("qwen2.5-1.5b-instruct-fp16", "FP16"),
        ("Qwen3-0.6B-BF16", "BF16"),
        ("tiny-TQ1_0", "TQ1_0"),
        ("plain", "plain"),
    ],
)
def test_the_quantization_is_read_from_a_files_name(stem: str, expected: str) -> None:
    assert quantization(stem) == expected


def test_the_models_of_a_repository_are_its_gguf_files_and_whole_sets_of_parts() -> None:
    files = repository(
        "README.md",
        "m-q8_0.gguf",
        "m-q4_0.gguf",
        "mmproj-m-f16.gguf",
        "Q6_K/m-Q6_K-00002-of-00002.gguf",
        "Q6_K/m-Q6_K-00001-of-00002.gguf",
        "m-q5_0-00001-of-00002.gguf",
        ".hidden.gguf",
        "../up-q2_k.gguf",
    ).files

    found = variants((*files, HubFile("unsummed-q3_k.gguf", 5, "")))

    assert {(each.quantization, tuple(file.name for file in each.files)) for each in found} == {
        ("Q8_0", ("m-q8_0.gguf",)),
        ("Q4_0", ("m-q4_0.gguf",)),
        ("Q6_K", ("Q6_K/m-Q6_K-00001-of-00002.gguf", "Q6_K/m-Q6_K-00002-of-00002.gguf")),
    }
    assert [each.size for each in found] == sorted(each.size for each in found)


@pytest.mark.parametrize("choice", ["Q4_K_M", "q4_k_m", "m-q4_k_m", "m-q4_k_m.gguf", "M-Q4_K_M.GGUF"])
def test_a_quantization_or_a_file_name_chooses(choice: str) -> None:
    assert chosen(choice, "m-q4_k_m.gguf", "m-q8_0.gguf").name == "m-q4_k_m.gguf"


def test_the_only_model_needs_no_choice() -> None:
    assert chosen(None, "m-q4_k_m.gguf", "README.md").name == "m-q4_k_m.gguf"


def test_a_dynamic_quantization_is_meant_by_its_bare_name_where_that_is_free() -> None:
    assert chosen("Q4_K_XL", "m-UD-Q4_K_XL.gguf", "m-Q8_0.gguf").quantization == "UD-Q4_K_XL"
    assert chosen("Q8_0", "m-UD-Q8_0.gguf", "m-Q8_0.gguf").quantization == "Q8_0"


def test_several_models_without_a_choice_are_ambiguous_and_listed() -> None:
    with pytest.raises(Ambiguous, match="it holds 2 models; name one, for example hf:owner/name:Q4_K_M") as caught:
        chosen(None, "m-q4_k_m.gguf", "m-q8_0.gguf")

    assert [each.name for each in caught.value.variants] == ["m-q4_k_m.gguf", "m-q8_0.gguf"]
    assert caught.value.exit_code == 2


def test_two_files_of_one_quantization_are_told_apart_by_their_names() -> None:
    with pytest.raises(Ambiguous, match=r"q8_0 fits 2 models; name one, for example hf:owner/name:a-q8_0\.gguf"):
        chosen("q8_0", "a-q8_0.gguf", "MTP/b-q8_0.gguf", "a-q4_0.gguf")

    assert chosen("MTP/b-q8_0", "a-q8_0.gguf", "MTP/b-q8_0.gguf").name == "MTP/b-q8_0.gguf"


def test_a_quantization_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UsageError, match="owner/name has no Q2_K; it has Q4_K_M, Q8_0"):
        chosen("Q2_K", "m-q4_k_m.gguf", "m-q8_0.gguf")


def test_a_repository_without_models_says_where_to_look() -> None:
    with pytest.raises(UsageError, match="holds no GGUF model; look for a repository whose name ends in GGUF"):
        chosen(None, "model.safetensors", "README.md")
