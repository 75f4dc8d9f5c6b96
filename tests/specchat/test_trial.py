"""A file nobody vouches for is loaded in a process of its own first; whatever it does to that, this process goes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFValueType
from gguf.gguf_writer import GGUFValue

from specchat import trial
from specchat.catalogue import LINKED, Model, ModelFile
from specchat.downloads import Store
from specchat.headers import BrokenFile, HeaderError, UnsupportedFile
from specchat.kept import Kept
from specchat.trial import Limits, tried, try_out, vouched_for
from speculation.llama import ENGINE_VERSION
from speculation.types import CannotLoad, Interrupted
from tests.gguf import tiny
from tests.specchat.test_headers import BROKEN, LLAMA, TEXT, array, gguf, tensor

WITHIN = Limits(silence_s=60, memory_bytes=300_000_000)
TOKENS = tiny.VOCABULARY.tokens
U32, F32 = GGUFValueType.UINT32, GGUFValueType.FLOAT32


def go_on(done: float) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Crafted:
    """A tiny model whose header is sound to the eye, with one thing changed."""

    key: str = ""
    value: Any = None  # None: the key is left out
    kind: GGUFValueType = U32
    missing: str = ""  # a tensor that is left out
    tokens: tuple[str, ...] = TOKENS

    def write(self, path: Path) -> Path:
        vocabulary = replace(tiny.VOCABULARY, tokens=self.tokens, types=tiny.VOCABULARY.types[: len(self.tokens)])
        file = tiny._File(path, "llama", vocabulary, seed=0)
        file.n_vocab = len(TOKENS)
        file.attention_heads()
        file.writer.add_rope_dimension_count(tiny.D // tiny.HEADS)
        keys = file.writer.kv_data[0]
        if self.key:
            keys.pop(self.key, None)
        if self.value is not None:
            keys[self.key] = GGUFValue(self.value, self.kind)
        file.embeddings()
        for layer in range(tiny.LAYERS):
            file.attention(f"blk.{layer}")
            file.feed_forward(f"blk.{layer}")
        file.writer.tensors[0].pop(self.missing, None)
        return file.close()


CRASH = r"x.gguf makes the engine crash \(SIG\w+.*\); it was tried in a process of its own and is not loaded"
CRAFTED: dict[str, tuple[Crafted, str]] = {
    "two tokens of one text": (Crafted(tokens=(TOKENS[1], *TOKENS[1:])), CRASH),
    "a tokenizer of another kind": (Crafted("tokenizer.ggml.model", "llama", GGUFValueType.STRING), CRASH),
    "no layers": (Crafted("llama.block_count", 0), CRASH),
    "experts without a choice": (Crafted("llama.expert_count", 8), CRASH),
    "a norm that is no number": (Crafted("llama.attention.layer_norm_rms_epsilon", float("nan"), F32), CRASH),
    "a tokenizer that asks for all memory": (
        Crafted("tokenizer.ggml.model", "rwkv", GGUFValueType.STRING), "x.gguf makes the engine take more than 300 MB"),
    "fewer tokens than embeddings": (Crafted(tokens=TOKENS[:-20]), "'token_embd.weight' has wrong shape"),
    "seven heads": (Crafted("llama.attention.head_count", 7), "invalid n_rot: 32, expected 9"),
    "more heads than can be": (Crafted("llama.attention.head_count", 2**31), "invalid n_rot"),
    "a width that does not divide": (Crafted("llama.embedding_length", 63), "invalid n_rot"),
    "a layer too many": (Crafted("llama.block_count", 3), "tensor 'blk.2.attn_norm.weight' not found"),
    "a tensor too few": (Crafted(missing="blk.1.ffn_up.weight"), "'blk.1.ffn_up.weight' not found"),
    "an unknown tokenizer": (Crafted("tokenizer.ggml.model", "x", GGUFValueType.STRING), "unknown tokenizer: 'x'"),
    "a context beyond counting": (Crafted("llama.context_length", 2**32 - 1), "no context of 4294967295 tokens"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_attention(tmp_path_factory.mktemp("trial") / "sound.gguf")


@pytest.fixture
def passes(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "trials.json")


def worker(folder: Path, program: str) -> Path:
    """A program in the place of the one that loads models."""
    path = folder / "worker.py"
    path.write_text(f"import sys, os, json, time\nsys.stdin.buffer.readline()\n{program}\n")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="memory of a child is looked at on Linux only")
@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_with_a_reason_and_this_process_goes_on(tmp_path: Path, name: str) -> None:
    crafted, said = CRAFTED[name]
    path = crafted.write(tmp_path / "x.gguf")

    with pytest.raises(CannotLoad, match=said) as caught:
        try_out(path, WITHIN, go_on)

    assert "\n" not in str(caught.value)


def test_fifty_broken_files_are_refused_before_any_process_is_started_for_them(
    tmp_path: Path, passes: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "WORKER", tmp_path / "there is none")
    path = tmp_path / "x.gguf"

    for content, said in BROKEN.values():
        path.write_bytes(content)
        with pytest.raises(BrokenFile, match=re.escape(said)):
            tried(path, passes, go_on)

    assert len(BROKEN) + len(CRAFTED) >= 50
    assert passes.all() == {}


def test_an_unknown_architecture_is_told_from_damage(tmp_path: Path, passes: Kept) -> None:
    path = tiny.write_unknown_architecture(tmp_path / "x.gguf")

    with pytest.raises(UnsupportedFile, match='is sound, but its architecture "tiny-unknown" is unknown'):
        tried(path, passes, go_on)


def test_an_empty_vocabulary_is_refused(tmp_path: Path, passes: Kept) -> None:
    path = tmp_path / "x.gguf"
    empty = array("tokenizer.ggml.tokens", TEXT, 0, b"")
    path.write_bytes(gguf(LLAMA, empty, tensors=(tensor("token_embd.weight", 8),), data=bytes(32)))

    with pytest.raises((HeaderError, CannotLoad)):
        tried(path, passes, go_on)


def test_a_sound_file_is_tried_once(sound: Path, passes: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def heard(done: float) -> bool:
        seen.append(done)
        return True

    assert tried(sound, passes, heard) == sound
    assert seen == sorted(seen)
    monkeypatch.setattr(trial, "try_out", lambda *_: pytest.fail("tried again"))

    assert tried(sound, passes, go_on) == sound


@pytest.mark.parametrize("change", ["time", "content", "engine", "record"])
def test_it_is_tried_again_where_the_file_or_the_engine_is_another(
    sound: Path, tmp_path: Path, passes: Kept, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(sound.read_bytes())
    tried(path, passes, go_on)
    if change == "time":
        os.utime(path, ns=(1, 1))
    elif change == "content":
        Crafted("llama.block_count", 0).write(path)
    elif change == "engine":
        monkeypatch.setattr(trial, "ENGINE_VERSION", "another")
    else:
        passes.put(str(path), {"engine": ENGINE_VERSION, "files": [[str(path), "many"]]})
    again: list[Path] = []
    monkeypatch.setattr(trial, "try_out", lambda path, *_: again.append(path))

    tried(path, passes, go_on)

    assert again == [path]


def test_a_file_that_goes_away_while_it_is_tried_is_refused_and_not_remembered(
    sound: Path, tmp_path: Path, passes: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(sound.read_bytes())
    monkeypatch.setattr(trial, "try_out", lambda *_: path.unlink())
    with pytest.raises(CannotLoad, match=rf"cannot use {re.escape(str(path))}: No such file or directory"):
        tried(path, passes, go_on)
    assert passes.get(str(path)) is None


def test_a_file_that_failed_is_not_remembered_as_sound(tmp_path: Path, passes: Kept) -> None:
    path = Crafted("llama.block_count", 0).write(tmp_path / "x.gguf")

    for _ in range(2):
        with pytest.raises(CannotLoad, match=CRASH):
            tried(path, passes, go_on)


FATES: dict[str, tuple[str, str]] = {
    "hangs": ("time.sleep(600)", "keeps the engine busy without an end (nothing came of it for 0 s)"),
    "hangs in the middle": ("print('{\"done\": 0.5}', flush=True); time.sleep(600)", "without an end"),
    "is killed": ("os.kill(os.getpid(), 9)", "the system ended the trial of x.gguf, most likely for lack of memory"),
    "is interrupted in its memory": ("os.kill(os.getpid(), 11)", "makes the engine crash (SIGSEGV)"),
    "leaves": ("sys.exit(0)", "ends the process that loads it"),
    "fails": ("sys.exit(7)", "makes the engine crash (7)"),
    "says nonsense": ("print('[]\\nnull\\n{', flush=True)", "ends the process that loads it"),
    "gives a reason": ("print(json.dumps({'error': 'no reason'}))", "no reason"),
    "claims less than success": ("print('{\"ok\": 1}')", "ends the process that loads it"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_the_child_is_said_in_one_line(tmp_path: Path, fate: str) -> None:
    program, said = FATES[fate]

    with pytest.raises(CannotLoad, match=re.escape(said)) as caught:
        try_out(tmp_path / "x.gguf", Limits(0.4, 10**9), go_on, worker(tmp_path, program))

    assert "\n" not in str(caught.value)


def test_a_trial_is_stopped_when_nobody_wants_it_any_more(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match=r"loading x.gguf was stopped"):
        try_out(tmp_path / "x.gguf", WITHIN, lambda done: False, worker(tmp_path, "time.sleep(600)"))


def test_the_child_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    busy = tmp_path / "busy.py"
    busy.write_text(
        "import importlib.util, sys, time\n"
        f"spec = importlib.util.spec_from_file_location('trial_worker', {str(trial.WORKER)!r})\n"
        "worker = importlib.util.module_from_spec(spec); spec.loader.exec_module(worker)\n"
        "worker.try_out = lambda path, **_: time.sleep(600)\nworker.main()\n"
    )
    child = subprocess.Popen([sys.executable, busy], stdin=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(b'{"path": "x", "search": []}\n')

    child.stdin.close()

    assert child.wait(60) == 1


def model(origin: str = "", place: Path | None = None) -> Model:
    file = ModelFile("x.gguf", "Q8_0", 1, "a" * 64)
    return Model("x", "X", ("target",), None, "llama", 1, "MIT", file, (), origin=origin, place=place)


def test_only_files_of_the_catalogue_in_the_folder_of_models_are_vouched_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    here, elsewhere = tmp_path / "x.gguf", tmp_path / "sub" / "x.gguf"

    assert vouched_for(here, [model()], store)
    assert not vouched_for(elsewhere, [model()], store)
    assert not vouched_for(elsewhere, [model(LINKED, elsewhere)], store)
    assert not vouched_for(elsewhere, [model("hf:owner/name:Q8_0", elsewhere)], store)


def command(tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "SPECCHAT_DATA_DIR": str(tmp_path)}
    environ["PYTHONPATH"] = os.pathsep.join(str(Path(path).absolute()) for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-m", "specchat", *args],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ, timeout=100, check=False,
    )  # fmt: skip


def test_the_command_line_refuses_a_crafted_target_and_a_crafted_draft(sound: Path, tmp_path: Path) -> None:
    bad = Crafted(tokens=(TOKENS[1], *TOKENS[1:])).write(tmp_path / "x.gguf")
    few = ["--max-tokens", "3", "-t", "1", "-c", "256"]

    as_target = command(tmp_path, "ask", "hello", "-m", str(bad), *few)
    as_draft = command(tmp_path, "ask", "hello", "-m", str(sound), "-d", str(bad), *few)

    for result in (as_target, as_draft):
        assert (result.returncode, result.stdout) == (4, "")
        assert re.fullmatch(f"specchat: {CRASH}\n", result.stderr), result.stderr
    assert command(tmp_path, "ask", "hello", "-m", str(sound), *few).returncode == 0
