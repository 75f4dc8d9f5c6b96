"""A small network with a slope: a linear skip, and beside it blocks of SwiGLU on a narrow stream.

Rows of x go in, features of the target come out. The skip alone can be solved in closed form; the narrow stream learns
what is left. No attention: the features that go in have attended to the text already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Matrix = NDArray[np.float32]  # (rows, columns)
Weights = Mapping[str, Matrix]

BLOCKS = 2
_EXPANSION = 2  # of a block's inner width over the stream's
_FEW = 16  # rows, which a guess has; a batch of training has more
_SMALL_MATRIX = 8192  # numbers; with few rows OpenBLAS multiplies up to 9,216 in one thread, twice as fast as einsum
_SMALL = 1e-6  # added to a mean square before its root


@dataclass(frozen=True, slots=True, eq=False)
class _Norm:
    """Rows divided by their root mean square, and one over that."""

    y: Matrix
    by: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """What a block's slope needs."""

    norm: _Norm
    gate: Matrix
    up: Matrix
    open: Matrix  # the logistic function of the gate


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What a forward leaves for its slope."""

    x: Matrix
    blocks: tuple[_Block, ...]
    last: _Norm


def shapes(n_in: int, width: int, n_features: int) -> dict[str, tuple[int, int]]:
    """The matrices of a network and their shapes."""
    found = {"skip": (n_in, n_features), "enter": (n_in, width)}
    for i in range(BLOCKS):
        inner = _EXPANSION * width
        found |= {f"gate{i}": (width, inner), f"up{i}": (width, inner), f"down{i}": (inner, width)}
    return found | {"leave": (width, n_features)}


def fresh(n_in: int, width: int, n_features: int, rng: Generator) -> dict[str, Matrix]:
    """A network that has learned nothing: its skip gives zeros and its stream next to nothing."""
    gain = {"skip": 0.0, "leave": 0.02} | {f"down{i}": 0.3 for i in range(BLOCKS)}
    return {
        name: (rng.normal(size=shape) * (gain.get(name, 1.0) / shape[0] ** 0.5)).astype(np.float32)
        for name, shape in shapes(n_in, width, n_features).items()
    }


def product(rows: Matrix, weights: Matrix) -> Matrix:
    """rows (n, k) times weights (k, d).

    Few rows are multiplied in this thread: those of a numpy with a BLAS of its own wait for cores that the engine's
    threads still turn on, and the engine's next step then waits for them.
    """
    if len(rows) > _FEW or weights.size <= _SMALL_MATRIX:
        return rows @ weights
    found: Matrix = np.einsum("nk,kd->nd", rows, weights)
    return found


def forward(weights: Weights, x: Matrix) -> tuple[Matrix, Trace]:
    """The features (n, n_features) that come out for x (n, n_in)."""
    stream = product(x, weights["enter"])
    blocks = []
    for i in range(BLOCKS):
        norm = _normed(stream)
        gate, up = product(norm.y, weights[f"gate{i}"]), product(norm.y, weights[f"up{i}"])
        opened: Matrix = np.float32(1.0) / (np.float32(1.0) + np.exp(-gate))
        inner: Matrix = gate * opened * up
        stream = stream + product(inner, weights[f"down{i}"])
        blocks.append(_Block(norm, gate, up, opened))
    last = _normed(stream)
    features = product(x, weights["skip"]) + product(last.y, weights["leave"])
    return features, Trace(x, tuple(blocks), last)


def backward(weights: Weights, trace: Trace, slope: Matrix) -> dict[str, Matrix]:
    """The slopes of all weights, where `slope` (n, n_features) is that of the features."""
    found = {"skip": trace.x.T @ slope, "leave": trace.last.y.T @ slope}
    stream = _through_norm(slope @ weights["leave"].T, trace.last)
    for i, block in reversed(list(enumerate(trace.blocks))):
        passed = block.gate * block.open
        found[f"down{i}"] = (passed * block.up).T @ stream
        inner = stream @ weights[f"down{i}"].T
        up = inner * passed
        gate = inner * block.up * block.open * (1.0 + block.gate * (1.0 - block.open))
        found[f"gate{i}"] = block.norm.y.T @ gate
        found[f"up{i}"] = block.norm.y.T @ up
        inward: Matrix = np.add(gate @ weights[f"gate{i}"].T, up @ weights[f"up{i}"].T)
        stream = np.add(stream, _through_norm(inward, block.norm))
    found["enter"] = trace.x.T @ stream
    return found


def _normed(rows: Matrix) -> _Norm:
    squares = np.einsum("nd,nd->n", rows, rows)[:, None] / rows.shape[1]
    by = 1.0 / np.sqrt(squares + _SMALL)
    return _Norm(rows * by, by)


def _through_norm(slope: Matrix, norm: _Norm) -> Matrix:
    through: Matrix = norm.by * (slope - norm.y * (slope * norm.y).mean(axis=1, keepdims=True))
    return through
