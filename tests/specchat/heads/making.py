"""Trainings of a tiny model, and where what they leave stands."""

from __future__ import annotations

from pathlib import Path

from specchat.cli import main
from specchat.heads.places import Source


def train(model: Path, *more: str) -> int:
    return main(["heads", "train", str(model), "--positions", "1000", "--epochs", "1", "-t", "1", *more])


def texts(own: Path, source: Source = Source.WRITTEN) -> Path:
    return own / "cache" / "heads" / "target" / source


def head_file(own: Path, kind: str = "eagle") -> Path:
    return own / "data" / "heads" / f"target.{kind}.npz"
