"""Heads in files: they come back as they were, and broken ones give one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from specchat.heads.file import BadHead, load, save, write_arrays
from specchat.loading import EngineOptions, load_engines
from speculation.llama import EngineLog
from tests.gguf import tiny
from tests.specchat.heads.making import head_file, train


def test_a_head_comes_back_as_it_was_saved_up_to_half_precision(own: Path, model: Path) -> None:
    train(model)
    head, about = load(head_file(own))

    save(head, about)

    again, said = load(head_file(own))
    assert said == about
    assert np.array_equal(again.output, head.output)
    assert np.array_equal(again.ids, head.ids)
    assert again.accuracy == about.accuracy


def test_a_head_of_another_file_of_the_same_name_is_left_out_with_a_notice(own: Path, model: Path) -> None:
    train(model)
    tiny.write_attention(model, drift=0.05)

    engines = load_engines(model, EngineOptions(n_ctx=512, n_threads=1), EngineLog())

    assert not engines.heads
    assert "target.eagle.npz was trained for another file of target" in engines.notices
    engines.close()


@pytest.mark.parametrize(
    "fault", ["cut", "flipped", "room", "shape", "nan", "header", "objects", "missing", "scales", "accuracy"]
)
def test_a_broken_file_gives_one_line_and_never_a_head(fault: str, own: Path, model: Path) -> None:
    train(model)
    path = head_file(own)
    data = bytearray(path.read_bytes())
    if fault == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif fault == "room":  # a shape that asks for more memory than there is
        damaged, count = re.subn(rb"(\(\d+, 64)(\), \})( {10})", rb"\g<1>0000000000\2", bytes(data))
        assert count
        path.write_bytes(damaged)
    elif fault == "flipped":
        data[-200:-100] = bytes(100)
        path.write_bytes(data)
    else:
        with np.load(path) as found:
            arrays = {name: found[name].copy() for name in found.files}
        said = json.loads(arrays["about"].tobytes())
        if fault == "shape":
            arrays["0.skip"] = arrays["0.skip"][:-1]
        elif fault == "nan":
            arrays["output"][0, 0] = np.nan
        elif fault == "missing":
            del arrays["0.leave"]
        elif fault == "objects":
            arrays["ids"] = np.array([{}], dtype=object)
        else:
            said |= {
                "header": {"n_hidden": 10**9},
                "scales": {"feature_scale": -1.0},
                "accuracy": {"accuracy": [float("nan"), 0.1]},
            }[fault]
            arrays["about"] = np.frombuffer(json.dumps(said).encode(), dtype=np.uint8)
        if fault == "objects":
            np.savez(path, **arrays)
        else:
            write_arrays(path, arrays)

    with pytest.raises(BadHead) as caught:
        load(path)

    assert "\n" not in str(caught.value)
    assert "target.eagle.npz" in str(caught.value)
