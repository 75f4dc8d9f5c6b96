"""Model files for the tests that need real ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from specchat.catalogue_file import catalogue_path, load_catalogue
from speculation.llama import EngineLog, LlamaModel, LlamaWeights

THREADS = 2
GEMMA = "gemma-3-270m-q4_k_m.gguf"  # a base model with a sliding window, for tests only: tests/gguf/fetch.py

# A shared machine stalls now and then, and a landing must not depend on the examples of the day.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("coverage", deadline=None, derandomize=True, max_examples=10)  # whoever counts lines
settings.load_profile("ci" if os.environ.get("CI") else "default")
# Whoever runs the tests in the background, as with nohup, has these ignored, and every command that tests start would
# ignore them too.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
os.environ.setdefault("SPECCHAT_LOG", "off")  # what tests run is none of the log of whoever runs them


def model_file(name: str) -> Path:
    """A catalogued model in the tests' cache. `make test` puts it there; in CI its absence is a failure."""
    return cached_file(load_catalogue(catalogue_path()).find(name).file.name)


def cached_file(name: str) -> Path:
    """A model file in the tests' cache, by its name."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specchat-test-models"
    path = Path(os.environ.get("SPECCHAT_TEST_MODELS") or cache) / name
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not in the test cache; `make test` fetches it")
        pytest.skip(f"{name} is not in the test cache; `make test` fetches it")
    return path


@pytest.fixture(scope="session")
def log() -> EngineLog:
    return EngineLog()


@pytest.fixture(scope="session")
def smollm(log: EngineLog) -> Iterator[LlamaModel]:
    """SmolLM2-135M-Instruct."""
    yield from loaded("smollm2-135m", log)


@pytest.fixture(scope="session")
def qwen(log: EngineLog) -> Iterator[LlamaModel]:
    """Qwen2.5-Coder-1.5B-Instruct, the target of the starter pair."""
    yield from loaded("qwen2.5-coder-1.5b", log)


@pytest.fixture(scope="session")
def qwen_draft(log: EngineLog) -> Iterator[LlamaModel]:
    """Qwen2.5-Coder-0.5B-Instruct, its draft."""
    yield from loaded("qwen2.5-coder-0.5b", log)


def loaded(name: str, log: EngineLog) -> Iterator[LlamaModel]:
    """A model with a cache of 4096 tokens, closed afterwards."""
    weights = LlamaWeights(model_file(name), log)
    model = LlamaModel(weights, log, n_ctx=4096, n_threads=THREADS)
    yield model
    model.close()
    weights.close()


@pytest.fixture(scope="session", autouse=True)
def no_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests call do not read the settings of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECCHAT_CONFIG", str(tmp_path_factory.mktemp("settings") / "config.toml"))
        yield
