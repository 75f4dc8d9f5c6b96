"""A rewrite by the real model changes what it was asked to change."""

from __future__ import annotations

import pytest

from specchat.conversation import prompt_format
from specchat.loading import EngineOptions, Engines
from specchat.rewrite.generate import Outcome, Rewriting
from specchat.rewrite.source import source_of
from specchat.session import ChatSession, ReplySettings
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel

pytestmark = [pytest.mark.gguf, pytest.mark.pair]

SHELF = b'''\
"""Shelves and what stands on them."""

# ----------------------------------------------------------------
MARGIN = 0.5


def free_length(boxes, length):
    """How much of a shelf of that length is still free."""
    used = sum(box.size + MARGIN for box in boxes)
    if used > length:
        raise ValueError(f"{used} do not fit on {length}")
    return length - used


def tallest(boxes):
    """The tallest box, or None for an empty shelf."""
    return max(boxes, key=lambda box: box.height, default=None)


class Shelf:
    def __init__(self, boxes):
        self.boxes   =   list(boxes)\t# kept as it is

    def remove(self, name):
        for box in self.boxes:
            if box.name == name:
                self.boxes.remove(box)
                return box
        raise KeyError(name)
'''


def test_only_lines_with_the_name_change_when_a_parameter_is_renamed(qwen: LlamaModel, log: EngineLog) -> None:
    qwen.rewind(0)
    chat_format = prompt_format(qwen.weights.chat_template, qwen.weights.vocabulary, {})
    cost = CostTable({1: 1.0, 2: 1.2, 8: 1.8, 64: 6.0})
    session = ChatSession(Engines(qwen, EngineOptions(), log, chat_format, cost, 0.0), ReplySettings())
    source = source_of(SHELF.replace(b"\n", b"\r\n"), "shelf.py")
    instruction = "Rename the parameter `length` of the function `free_length` to `extent`."

    *_, outcome = Rewriting(session, source, instruction).run()

    assert isinstance(outcome, Outcome)
    assert outcome.complete
    assert outcome.findings == ()
    assert outcome.data is not None
    old, new = (data.split(b"\r\n") for data in (source.data, outcome.data))
    changed = [(n, before, after) for n, (before, after) in enumerate(zip(old, new, strict=True), 1) if before != after]
    assert changed
    for _, before, after in changed:
        assert b"length" in before
        assert before.replace(b"length", b"extent").replace(b"free_extent", b"free_length") == after.replace(
            b"free_extent", b"free_length"
        )
    # This model hardly prefers to rename the function too, and then says how hardly.
    if b"def free_extent" in outcome.data:
        assert any(flag.line == 7 for flag in outcome.flags)
    tokens_per_step = outcome.totals.tokens_per_step
    assert tokens_per_step is not None
    assert tokens_per_step > 3
