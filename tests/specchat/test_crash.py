"""What is written down of a crash: where in the code, never what was said."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from specchat.crash import KEPT, report, reports, threads_watched, write
from specchat.folders import crash_folder
from specchat.settings.text import SettingsText

NOW = datetime(2026, 11, 30, 8, 0)
SECRET = "what I told my doctor"


def raised(depth: int = 0) -> Exception:
    """An error that comes from our code, whose variables and message hold words of the user."""
    secret = SECRET
    try:
        SettingsText.read(Path(f"/home/{secret}"), f"model = '''{secret}")
    except Exception as error:
        return error
    raise AssertionError(depth)


def told(error: BaseException) -> str:
    return "\n".join(report(error, "ask", NOW))


def test_a_report_names_versions_the_kind_of_error_and_the_places_in_the_code() -> None:
    text = told(raised())

    assert "specchat  0.1.0" in text
    assert "llama-cpp-python " in text
    assert "command   ask" in text
    assert "specchat.settings.text.SettingsError" in text
    assert "  specchat/settings/text.py:" in text
    assert "  python/tomllib/" in text  # of what it came from


def test_no_message_no_variable_and_no_file_of_the_user_is_in_it() -> None:
    text = told(raised())

    assert SECRET not in text
    assert str(Path(__file__).parent) not in text
    assert os.path.expanduser("~") not in text


def test_code_that_is_neither_ours_nor_a_librarys_is_not_named() -> None:
    try:
        exec(compile("def told_by_the_user():\n    1 / 0\ntold_by_the_user()", SECRET, "exec"), {})
    except ZeroDivisionError as error:
        text = told(error)

    assert "(other code)" in text
    assert "told_by_the_user" not in text
    assert SECRET not in text


def test_errors_that_led_to_it_are_told_once_each_also_in_a_ring() -> None:
    first, second = ValueError(SECRET), KeyError(SECRET)
    first.__cause__, second.__cause__ = second, first

    text = told(ExceptionGroup(SECRET, [first, OSError(errno.ENOSPC, SECRET)]))

    assert text.count("ValueError") == 1
    assert "because of: KeyError" in text
    assert f"one of them: OSError (errno {errno.ENOSPC})" in text
    assert SECRET not in text


def test_a_recursion_without_an_end_makes_no_endless_report() -> None:
    def deeper() -> None:
        deeper()

    with pytest.raises(RecursionError) as caught:
        deeper()

    assert len(told(caught.value).splitlines()) < 300


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_report_is_the_users_alone(tmp_path: Path) -> None:
    path = write(ValueError(), "chat", NOW, tmp_path / "crashes")

    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_oldest_reports_go(tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        write(ValueError(), "chat", NOW + timedelta(seconds=number), tmp_path)

    kept = reports(tmp_path)
    assert len(kept) == KEPT
    assert "080003" in kept[0].name


def test_where_no_report_can_be_written_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert write(ValueError(), "chat", NOW, tmp_path / "file" / "crashes") is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_ends_a_thread_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path))

    def breaks() -> None:
        raise ValueError(SECRET)

    with threads_watched("chat"):
        thread = threading.Thread(target=breaks)
        thread.start()
        thread.join()

    (path,) = reports()
    assert SECRET not in path.read_text()


def crash_of(env: dict[str, str], script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_command_that_breaks_is_one_line_that_names_the_report_and_exit_1(tmp_path: Path) -> None:
    env = {"SPECCHAT_STATE_DIR": str(tmp_path)}
    script = f"""
import sys, specchat.listing
def broken(args):
    secret = {SECRET!r}
    raise RuntimeError(secret)
specchat.listing.list_models = broken
from specchat.cli import main
sys.exit(main(["models", "list"]))
"""

    result = crash_of(env, script)

    (path,) = reports(crash_folder(env))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert f"a fault of specchat itself (RuntimeError); a report without any of your text is {path}" in result.stderr
    assert SECRET not in result.stderr + path.read_text()


def test_an_app_that_breaks_shows_no_variables_and_leaves_a_report(tmp_path: Path) -> None:
    env = {
        "SPECCHAT_STATE_DIR": str(tmp_path),
        "SPECCHAT_DATA_DIR": str(tmp_path),
        "SPECCHAT_CONFIG": str(tmp_path / "c"),
    }
    script = f"""
import sys
from argparse import Namespace
from specchat.tui.app import SpecchatApp
from specchat.tui.engine_thread import EngineThread
EngineThread.load = lambda self, wanted: None
def broken(self):
    secret = {SECRET!r}
    raise RuntimeError(secret)
SpecchatApp.on_mount = broken
run = SpecchatApp.run
SpecchatApp.run = lambda self: run(self, headless=True)
import specchat.cli as cli
sys.stdin.isatty = sys.stdout.isatty = lambda: True
sys.exit(cli.main([]))
"""

    result = crash_of(env, script)

    (path,) = reports(crash_folder(env))
    assert result.returncode == 1
    assert str(path) in result.stderr
    assert "RuntimeError" in path.read_text()
    assert SECRET not in result.stderr + result.stdout + path.read_text()


def test_a_stand_alone_build_names_the_places_in_its_code_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[str, ZeroDivisionError] = {}
    for name in ("specchat/cli.py", "numpy/core.py", f"/home/{SECRET}/mine.py", f"<{SECRET}>"):
        try:
            exec(compile("1 / 0", name, "exec"))
        except ZeroDivisionError as caught:
            places[name] = caught
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    for name, error in places.items():
        assert (f"  {name}:1 <module>" in told(error).splitlines()) == (SECRET not in name)
        assert SECRET not in told(error)
