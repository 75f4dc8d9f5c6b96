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
        try_out(Path(request["path"]))
    except MemoryError:
        _write(error=f"cannot load {request['path']}: it takes more memory than there is")
    except Exception as error:  # whatever it is, the file is not loaded
        _write(error=str(error) or type(error).__name__)
    else:
        _write(ok=True)


def try_out(path: Path) -> None:
    """All that a chat does with a file, in small. Raises CannotLoad, or ends the process where the engine does."""
    from speculation.llama import EngineLog, LlamaModel, LlamaWeights

    shown = -1.0

    def progress(done: float) -> bool:
        nonlocal shown
        if done - shown >= SHOWN:
            shown = done
            _write(done=done)
        return True

    log = EngineLog()
    # Without a GPU: what a file can break is the same there, and its memory may be in use.
    weights = LlamaWeights(path, log, progress, n_gpu_layers=0)
    _write(done=1.0)
    vocabulary = weights.vocabulary
    vocabulary.decode(vocabulary.encode(SAMPLE))
    _ = vocabulary.ends, vocabulary.controls, weights.chat_template
    model = LlamaModel(weights, log, n_ctx=CONTEXT, n_threads=1, n_batch=64)  # decodes two tokens and takes one back
    model.forward([0, 1, 1, 0], n_rows=2)
    model.close()
    weights.close()


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
