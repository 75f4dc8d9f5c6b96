"""What was collected and learned so far, in a folder for each model: a run that was stopped goes on from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from specchat.folders import mark_as_cache, texts_folder
from specchat.heads.file import write_arrays
from specchat.heads.writing import Written
from specchat.rewrite.disk import private_folder
from speculation.heads.examples import Examples
from speculation.heads.fitting import Learner

_BATCH = 4096  # positions of a file


class Collected:
    """Texts of a model, and how far a head has learned from them."""

    def __init__(self, name: str, weights: str) -> None:
        """Begins with what is there of these weights under this name. Raises OSError."""
        self.folder = texts_folder() / name
        self._waiting: list[Written] = []
        with private_folder(self.folder):
            mark_as_cache(self.folder)
        said = self.folder / "weights.json"
        try:
            same = json.loads(said.read_text("utf-8")) == weights
        except (OSError, ValueError):
            same = False
        if not same:
            for path in self._files():
                path.unlink(missing_ok=True)
            said.write_text(json.dumps(weights), "utf-8")
        self.positions = 0
        self.rounds = 0  # files, which seed what comes next
        for path in sorted(self.folder.glob("text-*.npz")):
            try:
                with np.load(path, allow_pickle=False) as found:
                    self.positions += len(found["tokens"])
                self.rounds += 1
            except (OSError, ValueError, KeyError):
                path.unlink(missing_ok=True)

    def add(self, texts: Sequence[Written]) -> None:
        """Take up texts; they are on the disk once there are enough of them. Raises OSError."""
        self._waiting += texts
        self.positions += sum(len(text.tokens) for text in texts)
        if sum(len(text.tokens) for text in self._waiting) >= _BATCH:
            self.keep()

    def keep(self) -> None:
        """Put on the disk what is not there yet. Raises OSError."""
        if not self._waiting:
            return
        number = 1 + max((int(path.stem[5:]) for path in self.folder.glob("text-*.npz")), default=0)
        arrays = {
            "tokens": np.concatenate([text.tokens for text in self._waiting]),
            "hidden": np.concatenate([text.hidden for text in self._waiting]),
            "lengths": np.array([len(text.tokens) for text in self._waiting], dtype=np.int32),
        }
        write_arrays(self.folder / f"text-{number:05}.npz", arrays)
        self._waiting = []
        self.rounds += 1

    def texts(self) -> set[bytes]:
        """The tokens of each text that is on the disk, as bytes. Raises OSError, ValueError."""
        found: set[bytes] = set()
        for path in self.folder.glob("text-*.npz"):
            with np.load(path, allow_pickle=False) as arrays:
                ends = np.cumsum(arrays["lengths"])[:-1]
                found |= {text.tobytes() for text in np.split(arrays["tokens"], ends)}
        return found

    def examples(self) -> Examples:
        """All of it that is on the disk. Raises OSError, ValueError."""
        tokens, hidden, lengths = [], [], []
        for path in sorted(self.folder.glob("text-*.npz")):
            with np.load(path, allow_pickle=False) as found:
                tokens.append(found["tokens"])
                hidden.append(found["hidden"])
                lengths.append(found["lengths"])
        of = np.concatenate(lengths)
        return Examples(
            np.concatenate(tokens), np.concatenate(hidden), np.repeat(np.arange(len(of), dtype=np.int32), of)
        )

    def note(self, kind: str, plan: str, learner: Learner) -> None:
        """Keep how far a head has learned. Raises OSError."""
        arrays = {"plan": np.frombuffer(plan.encode(), dtype=np.uint8), "step": np.array(learner.step)}
        write_arrays(self.folder / f"learned-{kind}.npz", arrays | learner.state())

    def take_up(self, kind: str, plan: str, learner: Learner) -> bool:
        """Go on from what was noted for the same plan; False where there is nothing."""
        try:
            with np.load(self.folder / f"learned-{kind}.npz", allow_pickle=False) as found:
                if found["plan"].tobytes().decode() != plan:
                    return False
                learner.load({name: found[name] for name in found.files}, int(found["step"]))
                return True
        except (OSError, ValueError, KeyError):
            return False

    def forget_learned(self, kind: str) -> None:
        """Begin to learn anew."""
        with suppress(OSError):
            (self.folder / f"learned-{kind}.npz").unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete all of it. Raises OSError."""
        shutil.rmtree(self.folder)

    def _files(self) -> list[Path]:
        return [*self.folder.glob("text-*.npz"), *self.folder.glob("learned-*.npz")]
