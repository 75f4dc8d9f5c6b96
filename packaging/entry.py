"""Where a stand-alone build starts: one program that is the command line, or one of the processes beside it."""

from __future__ import annotations

import multiprocessing
import os
import sys

from specchat.workers import run


def restore_library_path() -> None:
    """What specchat starts, an editor or a formatter, must not load the libraries of this folder."""
    for name in ("LD_LIBRARY_PATH", "LIBPATH"):
        before = os.environ.pop(f"{name}_ORIG", None)  # where PyInstaller's loader keeps it
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


if __name__ == "__main__":
    multiprocessing.freeze_support()  # tqdm may start Python's own helper process, which is this program too
    restore_library_path()
    code = run(sys.argv[1:])
    if code is None:
        from specchat.cli import main

        code = main()
    sys.exit(code)
