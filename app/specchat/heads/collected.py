"""What was collected and learned so far, in a folder for each model: a run that was stopped goes on from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specchat.console import printable
from specchat.errors import Refusal, UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import mark_as_cache
from specchat.heads.file import DAMAGED, read_arrays, write_arrays
from specchat.heads.places import Source, discard, texts_of
from specchat.heads.writing import Written
from specchat.rewrite.disk import private_folder
from speculation.heads.examples import Examples, Hidden
from speculation.heads.fitting import Learner
from speculation.types import Tokens

_BATCH = 4096  # positions of a file
_TEXTS, _NUMBERED = "text-*.npz", len("text-")


class Gone(Refusal):
    """What was collected was deleted meanwhile."""

    exit_code = ExitCode.MODEL


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The texts of one file, one behind the other."""

    tokens: Tokens  # (n,)
    hidden: Hidden  # (n, n_hidden)
    lengths: Tokens  # of the texts

    def __post_init__(self) -> None:
        """Raises ValueError for arrays that do not belong together."""
        if self.hidden.ndim != 2 or not len(self.tokens) == len(self.hidden) == self.lengths.sum():
            raise ValueError("arrays of different lengths")


class Collected:
    """Texts of a model, and how far a head has learned from them. Only one may work on them, see `alone_with`."""

    def __init__(self, model: str, source: Source, weights: str) -> None:
        """Begins with what is there of these weights; damaged files are dropped.

        Raises BadName, OSError, and UsageError where something is there of other weights under the same name.
        """
        self.model, self.source, self.weights = model, source, weights
        self.folder = texts_of(model, source)
        self._waiting: list[Written] = []
        with private_folder(self.folder.parent), private_folder(self.folder):
            mark_as_cache(self.folder)
        said = self.folder / "weights.json"
        try:
            same = json.loads(said.read_text("utf-8")) == weights
        except (OSError, ValueError):
            same = False
        if not same:
            if any(self.folder.glob("*.npz")):
                raise UsageError(
                    f"what was collected for {printable(model)} is of another file of that name: "
                    f"`specchat heads rm --texts {printable(model)}` deletes it"
                )
            said.write_text(json.dumps(weights), "utf-8")
        self.positions = sum(len(each.tokens) for each in self._stored())
        self.rounds = max((int(path.stem[_NUMBERED:]) for path in self.folder.glob(_TEXTS)), default=0)  # seed new text

    def add(self, texts: Sequence[Written]) -> None:
        """Take up texts; they are on the disk once there are enough of them. Raises Gone, OSError."""
        self._waiting += texts
        self.positions += sum(len(text.tokens) for text in texts)
        if sum(len(text.tokens) for text in self._waiting) >= _BATCH:
            self.keep()

    def keep(self) -> None:
        """Put on the disk what is not there yet. Raises Gone, OSError."""
        if not self._waiting:
            return
        arrays = {
            "tokens": np.concatenate([text.tokens for text in self._waiting]),
            "hidden": np.concatenate([text.hidden for text in self._waiting]),
            "lengths": np.array([len(text.tokens) for text in self._waiting], dtype=np.int32),
        }
        self._write(self.folder / f"text-{self.rounds + 1:05}.npz", arrays)
        self._waiting = []
        self.rounds += 1

    def texts(self) -> set[bytes]:
        """The tokens of each text that is on the disk, as bytes."""
        found: set[bytes] = set()
        for each in self._stored():
            found |= {text.tobytes() for text in np.split(each.tokens, np.cumsum(each.lengths)[:-1])}
        return found

    def examples(self) -> Examples:
        """All of it that is on the disk."""
        found = list(self._stored())
        if not found:
            return Examples(np.empty(0, np.int32), np.empty((0, 1), np.float16), np.empty(0, np.int32))
        lengths = np.concatenate([each.lengths for each in found])
        return Examples(
            np.concatenate([each.tokens for each in found]),
            np.concatenate([each.hidden for each in found]),
            np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        )

    def note(self, kind: str, plan: str, learner: Learner) -> None:
        """Keep how far a head has learned. Raises Gone, OSError."""
        arrays = {"plan": np.frombuffer(plan.encode(), dtype=np.uint8), "step": np.array(learner.step)}
        self._write(self._learned(kind), arrays | learner.state())

    def take_up(self, kind: str, plan: str, learner: Learner) -> bool:
        """Go on from what was noted for the same plan; False where there is nothing, or nothing sound."""
        try:
            found = read_arrays(self._learned(kind))
            if found["plan"].tobytes().decode() != plan:
                return False
            learner.load(found, int(found["step"]))
            return True
        except DAMAGED:
            self.forget_learned(kind)
            return False

    def forget_learned(self, kind: str) -> None:
        """Begin to learn anew the next time."""
        with suppress(OSError):
            self._learned(kind).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete all of it. Raises OSError."""
        discard(self.folder)

    def _learned(self, kind: str) -> Path:
        return self.folder / f"learned-{kind}.npz"

    def _stored(self) -> Iterator[_Stored]:
        for path in sorted(self.folder.glob(_TEXTS)):
            try:
                found = read_arrays(path)
                stored = _Stored(found["tokens"], found["hidden"], found["lengths"])
            except DAMAGED:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            else:
                yield stored

    def _write(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        try:
            write_arrays(path, arrays)
        except FileNotFoundError as error:
            raise Gone(
                f"what was collected for {printable(self.model)} was deleted meanwhile, as it is with any chat: "
                "nothing is learned; begin again"
            ) from error
