"""Model files: what is read from them, how a bad one is refused, and what is left when they are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gguf import GGUFWriter

from speculation.engine_log import back_end_in
from speculation.llama import EngineLog, LlamaModel, LlamaWeights, Vocabulary
from speculation.types import CannotLoad, Interrupted, SpeculationError
from tests.gguf import tiny

MEMORY = Path("/proc/self/statm")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_attention(tmp_path_factory.mktemp("models") / "good.gguf")


@pytest.fixture(scope="module")
def weights(good: Path) -> Iterator[LlamaWeights]:
    loaded = LlamaWeights(good, EngineLog())
    yield loaded
    loaded.close()


def refusal(path: Path) -> str:
    with pytest.raises(CannotLoad) as refused:
        LlamaWeights(path, EngineLog())
    return str(refused.value)


# Refusals


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def almost_empty(path: Path) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_name("unknown failed to load: invalid")  # a name must not pass for a reason
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def without_vocabulary(path: Path) -> Path:
    file = tiny._File(path, "llama", tiny.VOCABULARY, seed=0)
    for key in [key for key in file.writer.kv_data[0] if key.startswith("tokenizer.")]:
        del file.writer.kv_data[0][key]
    file.writer.add_tokenizer_model("none")
    file.writer.add_vocab_size(file.n_vocab)
    return with_weights(file)


def add_on(path: Path, kind: str) -> Path:
    file = tiny._File(path, "llama", tiny.VOCABULARY, seed=0)
    file.writer.add_type(kind)
    return with_weights(file)


def with_weights(file: tiny._File) -> Path:
    file.attention_heads()
    file.writer.add_rope_dimension_count(tiny.D // tiny.HEADS)
    file.embeddings()
    for layer in range(tiny.LAYERS):
        file.attention(f"blk.{layer}")
        file.feed_forward(f"blk.{layer}")
    return file.close()


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda path: path, "No such file"),
    "directory": (lambda path: path.parent, "director"),
    "empty": (lambda path: written(path, b""), "not a GGUF file (it begins with b'')"),
    "three bytes": (lambda path: written(path, b"GGU"), "not a GGUF file (it begins with b'GGU')"),
    "web page": (
        lambda path: written(path, b"<!DOCTYPE html>\n<html>"),
        "not a GGUF file (it begins with b'<!DO')",
    ),
    "newer format": (
        lambda path: written(path, b"GGUF" + bytes([9, 0, 0, 0]) + bytes(100)),
        ": this GGUF file is version 9 but this software only supports up to version 3",
    ),
    "header cut": (
        lambda path: tiny.truncate(tiny.write_attention(path), 1000),
        ": failed to read key-value pairs",
    ),
    "weights cut": (
        lambda path: tiny.truncate(tiny.write_attention(path), 300_000),
        "data is not within the file bounds, model is corrupted or incomplete",
    ),
    "unknown architecture": (tiny.write_unknown_architecture, ": unknown model architecture: 'tiny-unknown'"),
    "missing key": (
        almost_empty,
        ": error loading model hyperparameters: key not found in model: llama.context_length",
    ),
    "no vocabulary": (without_vocabulary, "holds no vocabulary"),
    "adapter": (lambda path: add_on(path, "adapter"), "holds no model that writes text"),
    "projector": (lambda path: add_on(path, "mmproj"), "holds no model that writes text"),
}


@pytest.mark.parametrize(("make", "told"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_refused_in_one_line_with_its_path_and_the_reason(
    good: Path, tmp_path: Path, make: Callable[[Path], Path], told: str
) -> None:
    path = make(tmp_path / "bad.gguf")

    reason = refusal(path)

    assert str(path) in reason
    assert told in reason.replace(str(path), "")
    assert "\n" not in reason
    LlamaWeights(good, EngineLog()).close()  # a refusal leaves nothing behind that keeps a sound file out


def test_a_file_cut_anywhere_is_refused_with_a_reason(good: Path, tmp_path: Path) -> None:
    content = good.read_bytes()
    places = [
        *range(0, 64, 3),
        *range(64, 10_000, 613),
        *range(10_000, len(content), 40_009),
        len(content) - 1,
    ]

    for place in places:
        reason = refusal(written(tmp_path / "cut.gguf", content[:place]))

        assert "cut.gguf: " in reason
        assert "no reason" not in reason
        assert "\n" not in reason


# Loading


def test_a_file_tells_what_it_is(weights: LlamaWeights, tmp_path: Path) -> None:
    bare = LlamaWeights(tiny.write_attention(tmp_path / "bare.gguf", chat_template=None), EngineLog())

    assert (weights.name, weights.n_ctx_train) == ("good", tiny.CONTEXT_LENGTH)
    assert weights.metadata("general.architecture") == "llama"
    assert weights.metadata("general.nothing") is None
    assert (weights.chat_template, bare.chat_template) == (tiny.CHATML, None)
    bare.close()


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "Модели" / "模型\u3000x"
    folder.mkdir(parents=True)

    loaded = LlamaWeights(tiny.write_attention(folder / "a ü.gguf"), EngineLog())

    assert loaded.name == "a ü"
    loaded.close()


def test_a_context_is_no_longer_than_the_model_was_trained_for(weights: LlamaWeights) -> None:
    model = LlamaModel(weights, EngineLog(), n_ctx=100_000, n_threads=1)

    assert model.n_ctx == tiny.CONTEXT_LENGTH
    model.close()


def test_loading_reports_its_progress_and_can_be_stopped(good: Path) -> None:
    seen: list[float] = []

    def keep_on(done: float) -> bool:
        seen.append(done)
        return True

    LlamaWeights(good, EngineLog(), keep_on).close()

    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    with pytest.raises(Interrupted, match=r"good\.gguf"):
        LlamaWeights(good, EngineLog(), lambda done: False)


def test_an_error_while_reporting_progress_is_not_swallowed(good: Path) -> None:
    def progress(done: float) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LlamaWeights(good, EngineLog(), progress)


def test_the_engine_prints_nothing_and_the_log_has_it_all(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []
    log = EngineLog(heard.append)

    loaded = LlamaWeights(good, log)
    LlamaModel(loaded, log, n_ctx=256, n_threads=1).close()
    loaded.close()
    with pytest.raises(CannotLoad):
        LlamaWeights(tiny.truncate(good, 100_000), log)

    assert capfd.readouterr() == ("", "")
    assert any("tiny-llama" in line for line in heard)
    assert any("n_ctx" in line for line in heard)
    assert any("file bounds" in line for line in heard)
    assert not any("\n" in line for line in heard)


def test_a_reason_is_that_of_the_last_failure(good: Path, tmp_path: Path) -> None:
    log = EngineLog()
    with pytest.raises(CannotLoad):
        LlamaWeights(tiny.write_unknown_architecture(tmp_path / "unknown.gguf"), log)
    loaded = LlamaWeights(good, log)
    model = LlamaModel(loaded, log, n_ctx=256, n_threads=1)
    for token in (777_777, 888_888):
        with pytest.raises(SpeculationError, match=str(token)):
            model.forward([token], n_rows=1)
    model.close()
    loaded.close()


# Closing


@pytest.mark.skipif(not MEMORY.exists(), reason="needs /proc")
def test_closing_gives_the_memory_back(good: Path) -> None:
    def resident_bytes() -> int:
        return int(MEMORY.read_text().split()[1]) * 4096

    def load_and_close() -> None:
        loaded = LlamaWeights(good, log)
        LlamaModel(loaded, log, n_ctx=2048, n_threads=1).close()
        loaded.close()

    log = EngineLog()
    load_and_close()
    before = resident_bytes()
    for _ in range(20):
        load_and_close()

    assert resident_bytes() - before < 10_000_000


USES: dict[str, Callable[[LlamaModel], object]] = {
    "forward": lambda model: model.forward([1], n_rows=1),
    "forward without rows": lambda model: model.forward([1] * 600, n_rows=0),
    "rewind to nothing": lambda model: model.rewind(0),
    "rewind": lambda model: model.rewind(1),
    "rewind to the end": lambda model: model.rewind(2),
}


@pytest.mark.parametrize("weights_too", [False, True])
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_closed_model_raises_and_does_not_crash(
    good: Path, use: Callable[[LlamaModel], object], weights_too: bool
) -> None:
    loaded = LlamaWeights(good, EngineLog())
    model = LlamaModel(loaded, EngineLog(), n_ctx=1024, n_threads=1)
    model.forward([1, 2], n_rows=1)
    model.close()
    if weights_too:
        loaded.close()

    with pytest.raises(SpeculationError, match="good"):
        use(model)

    model.close()
    loaded.close()


@pytest.mark.parametrize("use", [lambda v: v.encode("a"), lambda v: v.piece(9), lambda v: v.text(9), lambda v: v.ends])
def test_the_vocabulary_of_closed_weights_raises_and_does_not_crash(
    good: Path, use: Callable[[Vocabulary], object]
) -> None:
    loaded = LlamaWeights(good, EngineLog())
    loaded.close()

    with pytest.raises(SpeculationError, match="unloaded"):
        use(loaded.vocabulary)


@pytest.mark.parametrize("token", [-1, 10**6])
def test_an_id_outside_the_vocabulary_raises_and_does_not_abort(weights: LlamaWeights, token: int) -> None:
    for use in (weights.vocabulary.piece, weights.vocabulary.text):
        with pytest.raises(ValueError, match=f"token {token}"):
            use(token)


CUDA = [
    "llama_prepare_model_devices: skipping device CUDA1 (A) with id 1 - already using device CUDA0 (A)",
    "llama_prepare_model_devices: using device CUDA0 (NVIDIA GeForce RTX 3090) (0000:01:00.0) - 23500 MiB free",
    "load_tensors: offloading 28 repeating layers to GPU",
    "load_tensors: offloaded 29/29 layers to GPU",
]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (CUDA, "CUDA0 (NVIDIA GeForce RTX 3090), 29/29 layers"),
        (["llama_prepare_model_devices: using device Metal (Apple M4) (unknown id) - 9000 MiB free", CUDA[3]],
         "Metal (Apple M4), 29/29 layers"),
        (["load_tensors:   CPU_Mapped model buffer size =  1059.89 MiB"], "CPU"),
    ],
)  # fmt: skip
def test_the_back_end_is_read_from_what_the_engine_says(lines: list[str], said: str) -> None:
    assert back_end_in(lines) == said


def test_this_machine_names_a_back_end(weights: LlamaWeights) -> None:
    assert weights.back_end
