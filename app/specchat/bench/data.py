"""Prompts from benchmark files: Spec-Bench's and EditEval's formats, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from specchat.bench.workloads import Workload
from specchat.errors import InputRefused

# MT-bench's categories count as one group, as its authors report them.
_MT_BENCH = {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}


def read_data(path: Path, count: int | None) -> list[Workload]:
    """A workload for each group of a file, at most `count` prompts of each. Raises InputRefused with file and line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputRefused(f"cannot read {path}: {error}") from error
    groups: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            group, prompt = _prompt(json.loads(line))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InputRefused(
                f"{path}, line {number}: neither Spec-Bench's nor EditEval's format ({error})"
            ) from error
        groups.setdefault(group, []).append(prompt)
    if not groups:
        raise InputRefused(f"{path} holds no prompt")
    return [Workload(name, tuple(prompts[:count])) for name, prompts in groups.items()]


def _prompt(entry: Mapping[str, object]) -> tuple[str, str]:
    """Group and first question of an entry."""
    if "turns" in entry:
        category, turns = str(entry["category"]), entry["turns"]
        if not isinstance(turns, list) or not isinstance(turns[0], str):
            raise TypeError("turns is no list of texts")
        return ("mt_bench" if category in _MT_BENCH else category), turns[0]
    if "instruction" in entry:
        return "edit_eval", f"{entry['instruction']}\n\n{entry['input']}"
    raise KeyError("no turns and no instruction")
