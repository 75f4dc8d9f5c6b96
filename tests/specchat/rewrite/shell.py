"""The command line in a folder of its own, on a scripted model."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specchat import cli
from specchat.rewrite import inputs, saving
from specchat.rewrite.source import joined
from tests.specchat.rewrite.scripted import ScriptedModel, edited, session_on

LINES = [f"line {i} of the file says something of its own" for i in range(60)]
TEXT = joined(LINES)


def rows(text: str) -> str:
    """An edit far from another, neither of them doubtful."""
    return text.replace("line 20 of the file", "row 20 of the file").replace("line 40 of", "inserted\nline 40 of")


@dataclass
class Done:
    """What a command left."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Calls the command line in a folder of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> None:
        self.model = ScriptedModel(edited(rows))
        self.loaded = 0
        self._monkeypatch = monkeypatch
        self._captured = captured

    def open_session(self, args: Any) -> Any:
        self.loaded += 1
        return session_on(self.model, max_tokens=args.max_tokens)

    def __call__(self, *args: str, stdin: bytes = b"", terminal: bool = False) -> Done:
        piped = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        with self._monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", piped)
            if terminal:
                for module in (inputs, saving):
                    patched.setattr(module, "can_ask", lambda: True)
                patched.setattr(sys.stdout, "isatty", lambda: True)
            code = cli.main(args)
        out, err = self._captured.readouterr()
        return Done(code, out, err.decode())


def without_styles(out: bytes) -> str:
    """What a terminal shows: bold, underline and reverse are all that is used without colour."""
    return re.sub(r"\x1b\[[01247;]*m", "", out.decode())


def put(name: str, text: str | bytes = TEXT) -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
