"""Processes that write, export and migrate until they are killed. Run as a program: FOLDER SEED.

They are forks of this one, which has loaded everything already, so that three hundred of them take seconds. After
each kill the store is opened and compared with what the process had reported as finished. A line for each kind says
how many were killed and how far they had come; anything else is a fault.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.history.command import _write
from specchat.history.export import exported
from specchat.history.importing import read_chats
from specchat.history.recorder import Recorder
from specchat.history.restore import to_chat
from specchat.history.schema import MIGRATIONS, migrate, version_of
from specchat.history.store import Store
from tests.specchat.history.making import ABOUT, finish, said, step

KILLS = {"writing": 120, "exporting": 90, "migrating": 90}
LATEST_S = {"writing": 0.1, "exporting": 0.1, "migrating": 0.05}  # the latest moment of a kill
FROM_START = 0.2  # share of kills whose moment counts from the start, others from when the store is open
LATER = (
    *MIGRATIONS,
    ("ALTER TABLE chats ADD COLUMN colour TEXT", "UPDATE chats SET colour = 'of ' || title"),
    *(
        (
            f"CREATE TABLE copied_{n} AS SELECT row, text || '{n}' AS text FROM turns",
            f"CREATE INDEX copies_{n} ON copied_{n} (text)",
            "UPDATE turns SET text = text || '.'",
        )
        for n in range(8)
    ),
)
CHATS, MESSAGES = 12, 8  # of a store that is exported or migrated
FLUSH_S = 30.0
READY = "ready"

Report = Callable[[object], None]


def write(path: Path, report: Report, chance: random.Random) -> None:
    """Chat without end; every message and every step is reported once it is said to be kept."""
    recorder = Recorder(path, lambda text: report({"trouble": text}))
    kept = recorder.keep(Chat())
    with Store.open(path) as store:
        if (chats := store.chats(limit=1)) and chance.random() < 0.7:
            record = store.load(chats[0].id)
            kept = recorder.keep(to_chat(record), record)
    recorder.flush(FLUSH_S)
    report(READY)
    while True:
        question = kept.chat.add(Role.USER, f"question {chance.random()}")
        kept.save()
        recorder.flush(FLUSH_S)
        report([kept.id, question.id, question.text, True])
        turn = kept.chat.add(Role.ASSISTANT, "")
        writing = kept.begin_reply(turn, ABOUT)
        pieces = [f"word {chance.random()} " for _ in range(chance.randrange(1, 9))]
        for number, piece in enumerate(pieces):
            writing.step(piece, step(number, number))
            recorder.flush(FLUSH_S)
            report([kept.id, turn.id, "".join(pieces[: number + 1]), False])
        last = f"end {chance.random()}"
        turn.text = "".join(pieces)
        finish(writing, turn, last)
        recorder.flush(FLUSH_S)
        report([kept.id, turn.id, turn.text, True])


def export(path: Path, report: Report, chance: random.Random) -> None:
    """Export, import and delete without end."""
    report(READY)
    for number in range(1_000_000):
        with Store.open(path) as store:
            record = store.load(1)
            file = path.parent / f"out-{chance.randrange(3)}.json"
            _write(file, exported(record, "json").encode())
            report({"exported": file.name})
            copy = store.put(said(*(f"copy {number}" for _ in range(MESSAGES))))
            store.delete([copy])


def bring_up_to_date(path: Path, report: Report, _: random.Random) -> None:
    """Take every step to the latest version, and wait."""
    report(READY)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for count in range(1, len(LATER) + 1):
            migrate(connection, LATER[:count])
            report({"version": count})
    signal.pause()


def kill_one(
    work: Callable[[Path, Report, random.Random], None], path: Path, chance: random.Random, latest_s: float
) -> list[object]:
    """Let a child work and kill it; what it had reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(path, lambda value: _tell(writing, value), chance)
        except BaseException as error:
            _tell(writing, {"trouble": repr(error)})
        os._exit(1)
    os.close(writing)
    reports = b""
    if chance.random() > FROM_START:
        assert select.select([reading], [], [], FLUSH_S)[0], "the child does not begin"
    latest = time.monotonic() + chance.uniform(0, latest_s)
    while (left := latest - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            reports += os.read(reading, 1 << 16)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself: {reports!r}"
    while block := os.read(reading, 1 << 16):
        reports += block
    os.close(reading)
    lines = reports.split(b"\n")[:-1]  # the kill may have cut the last one short
    found = [value for line in lines if (value := json.loads(line)) != READY]
    assert not any(isinstance(each, dict) and "trouble" in each for each in found), found
    return found


def check(path: Path, finished: dict[tuple[int, int], tuple[str, bool]]) -> None:
    """The store is whole and holds all that was reported."""
    with Store.open(path) as store:
        assert store.notices == [], store.notices
        chats = {chat.id: store.load(chat.id) for chat in store.chats()}
    for (chat_id, turn_id), (text, is_whole) in finished.items():
        [turn] = [turn for turn in chats[chat_id].turns if turn.id == turn_id]
        assert turn.text == text if is_whole else turn.text.startswith(text), (turn, text)
        assert turn.is_finished or not is_whole
    integrity(path)


def integrity(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def writing(folder: Path, chance: random.Random) -> int:
    """Kill writers; a new store now and then."""
    finished: dict[tuple[int, int], tuple[str, bool]] = {}
    count = 0
    for number in range(KILLS["writing"]):
        if number % 20 == 0:
            finished = {}
        path = folder / f"store-{number // 20}" / "chats.db"
        for each in kill_one(write, path, chance, LATEST_S["writing"]):
            assert isinstance(each, list)
            chat_id, turn_id, text, is_whole = each
            finished[chat_id, turn_id] = (text, is_whole)
            count += 1
        check(path, finished)
    return count


def exporting(folder: Path, chance: random.Random) -> int:
    """Kill exporters: a file is whole or not there."""
    path = _filled(folder)
    with Store.open(path) as store:
        before = store.load(1)
    count = 0
    for _ in range(KILLS["exporting"]):
        count += len(kill_one(export, path, chance, LATEST_S["exporting"]))
        check(path, {})
        for file in path.parent.glob("out-*.json"):
            assert list(read_chats(file)) == [_as_exported(before)]
    return count


def migrating(folder: Path, chance: random.Random) -> int:
    """Kill migrations of a store of the first version; each version is whole."""
    path = _filled(folder)
    count = 0
    for number in range(KILLS["migrating"]):
        copy = folder / f"copy-{number}.db"
        shutil.copy(path, copy)
        reported = kill_one(bring_up_to_date, copy, chance, LATEST_S["migrating"])
        integrity(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            version = version_of(connection)
            assert version >= max([1, *(each["version"] for each in reported if isinstance(each, dict))])
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'copied_%'").fetchone()[0]
            assert tables == max(0, version - len(MIGRATIONS) - 1)
            migrate(connection, LATER)
            texts = [text for (text,) in connection.execute("SELECT text FROM turns")]
        assert len(texts) == CHATS * MESSAGES
        assert all(text.endswith("x" + "." * 8) for text in texts)
        integrity(copy)
        copy.unlink()
        count += len(reported)
    return count


def _filled(folder: Path) -> Path:
    path = folder / "chats" / "chats.db"
    with Store.open(path) as store:
        for number in range(CHATS):
            store.put(said(*(f"message {n} of {number} {'lorem ' * 200}x" for n in range(MESSAGES))))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _as_exported(record: object) -> object:
    from dataclasses import replace

    return replace(record, id=0)  # type: ignore[type-var]


def _tell(handle: int, value: object) -> None:
    os.write(handle, json.dumps(value).encode() + b"\n")


def main(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    for name, work in (("writing", writing), ("exporting", exporting), ("migrating", migrating)):
        print(name, KILLS[name], work(folder / name, chance), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
