"""GPUs as ggml tells of them, and what llama.cpp's words about a load say of memory."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from speculation.devices import Device, back_ends_of, gpus_of
from speculation.engine_log import LogLines, back_end_in, mapped_bytes_in

CPU, GPU, SHARING, ACCELERATOR = range(4)


class Answer:
    """A C function of a library: an object that takes a restype and is called."""

    def __init__(self, answer: Any) -> None:
        self.restype: Any = None
        self._answer = answer

    def __call__(self, *arguments: Any) -> Any:
        return self._answer(*arguments)


class Library:
    """A ggml with some devices, whose handles are their numbers."""

    def __init__(self, *kinds: int) -> None:
        def memory(handle: Any, free: Any, total: Any) -> None:
            free._obj.value, total._obj.value = 1000 * handle.value, 2000 * handle.value

        self.ggml_backend_dev_count = Answer(lambda: len(kinds))
        self.ggml_backend_dev_get = Answer(lambda i: i.value + 1)
        self.ggml_backend_dev_type = Answer(lambda handle: kinds[handle.value - 1])
        self.ggml_backend_dev_name = Answer(lambda handle: b"dev%d" % handle.value)
        self.ggml_backend_dev_memory = Answer(memory)
        self.ggml_backend_reg_count = Answer(lambda: 2)
        self.ggml_backend_reg_get = Answer(lambda i: i.value + 1)
        self.ggml_backend_reg_name = Answer(lambda handle: [b"CPU", b"CUDA\xff"][handle.value - 1])


def test_gpus_are_listed_with_their_memory_and_processors_are_not() -> None:
    library = Library(CPU, GPU, ACCELERATOR, SHARING)

    assert gpus_of(library) == [Device("dev2", 2000, 4000), Device("dev4", 4000, 8000)]
    assert library.ggml_backend_dev_get.restype is ctypes.c_void_p  # or handles would lose their upper half


def test_a_build_that_hides_its_devices_has_none() -> None:
    assert gpus_of(object()) == []
    assert back_ends_of(object()) == []


def test_back_ends_are_named_as_ggml_names_them() -> None:
    library = Library(CPU)

    assert back_ends_of(library) == ["CPU", "CUDA\ufffd"]
    assert library.ggml_backend_reg_get.restype is ctypes.c_void_p


@pytest.mark.parametrize(
    ("lines", "placed"),
    [
        ([], "CPU"),
        (["llama_model_load: using device CUDA0 (NVIDIA X) - 9 MiB free"], "CPU"),  # and no layer was put there
        (
            [
                "llama_model_load: using device CUDA0 (NVIDIA X) - 9 MiB free",
                "llama_model_load: already using device CUDA1 (NVIDIA Y)",
                "load_tensors: offloaded 29/29 layers to GPU",
            ],
            "CUDA0 (NVIDIA X), 29/29 layers",
        ),
    ],
)
def test_the_back_end_is_where_layers_were_put(lines: list[str], placed: str) -> None:
    assert back_end_in(lines) == placed


def test_a_log_that_nobody_listens_to_keeps_its_lines() -> None:
    log = LogLines()

    log.take(2, b"one line\n")

    assert list(log.lines) == ["one line"]


@pytest.mark.parametrize(
    ("lines", "mib"),
    [
        (["load_tensors:   CPU_Mapped model buffer size =  1059.50 MiB"], 1059.5),
        (
            [
                "load_tensors:   CPU_Mapped model buffer size =  1059.50 MiB",
                "load_tensors:   CPU_REPACK model buffer size =   596.50 MiB",
            ],
            463,
        ),
        (["load_tensors:        CUDA0 model buffer size =  1059.50 MiB"], 0),
        (["load_tensors:   CPU_REPACK model buffer size =   596.50 MiB"], 0),
        ([], 0),
    ],
)
def test_what_stays_in_the_pages_of_the_file_is_told_from_what_was_copied(lines: list[str], mib: float) -> None:
    assert mapped_bytes_in(lines) == mib * 2**20


def test_the_log_makes_lines_of_pieces_and_keeps_the_first_error() -> None:
    heard: list[str] = []
    log = LogLines(heard.append)

    for level, text in [(2, b"one "), (2, b"line\nan"), (1, b"debug\n"), (4, b" error\n"), (4, b"later: error\n")]:
        log.take(level, text)

    assert list(log.lines) == heard == ["one line", "an error", "later: error"]
    assert log.reason() == "an error"
    log.clear()
    assert (list(log.lines), log.reason()) == ([], "no reason given")
