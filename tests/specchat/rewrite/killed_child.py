"""Writes and takes back without end, until it is killed. Run as a program: FILE STORE."""

from __future__ import annotations

import sys
from pathlib import Path

from specchat.rewrite.source import read_source
from specchat.rewrite.undo import UndoStore

VERSIONS = [b"".join(b"%d of version %d\r\n" % (i, n) for i in range(2000 * (n + 1))) for n in range(3)]


def main(file: Path, store: UndoStore) -> None:
    print("ready", flush=True)
    while True:
        for version in VERSIONS:
            store.save(read_source(file), version)
        store.undo()


if __name__ == "__main__":
    main(Path(sys.argv[1]), UndoStore(Path(sys.argv[2])))
