"""What `specchat stats` costs on a store of 200,000 messages."""

from __future__ import annotations

import random
import sqlite3
import time
from pathlib import Path

import pytest

from specchat.history.rows import insert_chat
from specchat.history.store import Store
from specchat.statistics.command import as_json
from specchat.statistics.reading import read_figures
from tests.bench.test_bench_history import CHATS, MESSAGES, chat_of, steps

pytestmark = pytest.mark.bench

STEPS = 100  # of a reply


def test_figures_of_a_store_that_grew_for_years(tmp_path: Path) -> None:
    chance = random.Random(7)
    written = steps(chance, STEPS)

    def fill(connection: sqlite3.Connection) -> None:
        for number in range(CHATS):
            insert_chat(connection, chat_of(chance, MESSAGES, 60, written, 1e9 + number))

    with Store.open(tmp_path / "chats" / "chats.db") as store:
        store.write(fill, is_synced=False)
        started = time.perf_counter()
        replies = list(read_figures(store))
        read_s = time.perf_counter() - started
        started = time.perf_counter()
        found = as_json(replies, 0.0)
        counted_s = time.perf_counter() - started
    assert found["total"]["replies"] == CHATS * MESSAGES // 2
    print(
        f"\n{CHATS * MESSAGES} messages, {STEPS} steps a reply: read in {read_s:.1f} s, added up in {counted_s:.1f} s"
    )
