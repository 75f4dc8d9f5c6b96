"""The process that loads a model file nobody vouches for, so that the app outlives one that breaks the engine.

trial.py starts it by this file's path. It reads one request from its standard input, a line of JSON, and writes lines
of JSON: how far loading is, at the end {"ok": true} or {"error": "..."}. It imports nothing of specchat.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

CONTEXT = 256  # tokens; enough to make a cache and to decode
SHOWN = 0.01  # of the whole, between two lines of progress
OUTPUT_BYTES = 1 << 20  # that this process may write into any file
SAMPLE = "Hello, world!\n    2 + 2 = 4; žluťoučký 日本 😀\0"


def main() -> None:
    """One request, one answer."""
    request = json.loads(sys.stdin.buffer.readline())
    _be_modest()
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    sys.path[:0] = request["search"]
    try:
        if "head" in request:
            try_out_head(Path(request["path"]), Path(request["target"]), request["head"])
        else:
            try_out(Path(request["path"]), with_next_layer=request.get("next_layer", False))
    except MemoryError:
        _write(error=f"cannot load {request['path']}: it takes more memory than there is")
    except Exception as error:  # whatever it is, the file is not loaded
        _write(error=str(error) or type(error).__name__)
    else:
        _write(ok=True)


def try_out(path: Path, *, with_next_layer: bool) -> None:
    """All that a chat does with a file, in small. Raises CannotLoad, or ends the process where the engine does."""
    from speculation.llama import EngineLog, LlamaModel, LlamaWeights, MultiTokenLayers
    from speculation.types import CannotLoad

    log = EngineLog()
    # Without a GPU: what a file can break is the same there, and its memory may be in use.
    weights = LlamaWeights(path, log, _Shown(), n_gpu_layers=0, with_next_layer=with_next_layer)
    _write(done=1.0)
    vocabulary = weights.vocabulary
    vocabulary.decode(vocabulary.encode(SAMPLE))
    _ = vocabulary.ends, vocabulary.controls, weights.chat_template
    model = LlamaModel(weights, log, n_ctx=CONTEXT, n_threads=1, n_batch=64)  # decodes two tokens and takes one back
    model.forward([0, 1, 1, 0], n_rows=2)
    if with_next_layer:
        with suppress(CannotLoad):  # then there is no such guesser
            layers = MultiTokenLayers(model, log, n_threads=1)  # which guesses a token
            layers.follows = True
            model.forward([1, 0], n_rows=1)
            layers.close()
    model.close()
    weights.close()


def try_out_head(path: Path, target_path: Path, facts: dict[str, Any]) -> None:
    """Load an EAGLE-3 head beside its target and guess a little, as a chat does."""
    import numpy as np

    from speculation.heads.eagle3 import HeadFacts
    from speculation.llama import Eagle3Layers, EngineLog, LlamaModel, LlamaWeights

    log = EngineLog()
    target_weights = LlamaWeights(target_path, log, _Shown(), n_gpu_layers=0)
    weights = LlamaWeights(path, log, n_gpu_layers=0)
    _ = weights.vocabulary.controls
    target = LlamaModel(target_weights, log, n_ctx=CONTEXT, n_threads=1, n_batch=64)
    given = HeadFacts(**{**facts, "layers": tuple(facts["layers"])})
    head = Eagle3Layers(weights, given, target, log, n_threads=1)  # which guesses a token or two
    head.follows = True
    target.forward([0, 1, 1, 0], n_rows=2)
    head.read(0, np.array([1, 1, 0], dtype=np.int32))
    head.after(min(head.n_vocab, target.n_vocab) - 1)
    _write(done=1.0)
    head.close()
    target.close()
    weights.close()
    target_weights.close()


class _Shown:
    """How far loading is, told seldom."""

    def __init__(self) -> None:
        self._last = -1.0

    def __call__(self, done: float) -> bool:
        if done - self._last >= SHOWN:
            self._last = done
            _write(done=done)
        return True


def _be_modest() -> None:
    """No core dump, no output without an end, and the first to go when memory is short."""
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def _write(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _end_with_the_asker() -> None:
    while os.read(0, 100):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
