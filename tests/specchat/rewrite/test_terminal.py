"""`specchat rewrite` and `specchat undo` as a person has them: on a terminal, with Ctrl-C, and with others at work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.specchat.rewrite.shell import TEXT, rows
from tests.specchat.rewrite.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals, pipes with names, signals")

CTRL_C = "\x03"
QUESTION = "]? "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(TEXT)
    return tmp_path / "work"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": ":".join([str(Path(__file__).parents[3]), *sys.path]),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SPECCHAT_STATE_DIR": str(tmp_path / "state"),
        "SPECCHAT_CONFIG": str(tmp_path / "config.toml"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TERM": "xterm",
        "NO_COLOR": "1",
    }


def run(folder: Path, env: dict[str, str], *words: str) -> tuple[int, str]:
    """A run without a terminal: its exit code and what it says."""
    command = [sys.executable, "-m", "tests.specchat.rewrite.program", *words]
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


class Held:
    """A run that waits in the middle of its writing."""

    def __init__(self, tmp_path: Path, env: dict[str, str]) -> None:
        self._pipe = tmp_path / "hold"
        os.mkfifo(self._pipe)
        os.mkfifo(f"{self._pipe}.go")
        self.env = {**env, "SPECCHAT_TEST_HOLD": str(self._pipe)}

    def wait(self) -> None:
        """Until it has come there."""
        self._pipe.read_text()

    def release(self) -> None:
        """Let it go on."""
        Path(f"{self._pipe}.go").write_text("")


@pytest.fixture
def held(tmp_path: Path, env: dict[str, str]) -> Held:
    return Held(tmp_path, env)


@pytest.mark.parametrize("columns", [20, 1, 200])
def test_a_review_on_a_terminal_of_any_width_asks_and_writes(folder: Path, env: dict[str, str], columns: int) -> None:
    with Terminal(folder, env, "rewrite", "a.txt", "do it", "--format", "side", columns=columns) as terminal:
        terminal.until(QUESTION)
        terminal.type("y\n")
        terminal.until(QUESTION)
        terminal.type("n\n")
        assert terminal.end() == 0

    assert (folder / "a.txt").read_text() == TEXT.replace("line 20 of", "row 20 of")
    assert "Traceback" not in terminal.screen


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_at_a_question_writes_nothing_and_the_changes_are_asked_about_again(
    folder: Path, env: dict[str, str], asked: signal.Signals
) -> None:
    with Terminal(folder, env, "rewrite", "a.txt", "do it", "--keep", "numbers", "--force") as terminal:
        terminal.until(QUESTION)
        terminal.type("y\n")
        terminal.until(QUESTION)
        terminal.process.send_signal(asked)
        assert terminal.end() == 130
    assert "a.txt: interrupted; nothing was written; `specchat rewrite a.txt --continue` goes on" in terminal.screen
    assert (folder / "a.txt").read_text() == TEXT

    with Terminal(folder, env, "rewrite", "a.txt", "--continue") as terminal:
        terminal.until(QUESTION)
        terminal.type("a\n")
        assert terminal.end() == 0
    assert (folder / "a.txt").read_text() == rows(TEXT)


def test_ctrl_c_while_the_model_writes_is_130_and_can_be_gone_on_from(
    folder: Path, env: dict[str, str], held: Held
) -> None:
    with Terminal(folder, held.env, "rewrite", "a.txt", "do it", "-w") as terminal:
        held.wait()
        terminal.type(CTRL_C)
        terminal.until("^C")  # the terminal has seen it
        held.release()
        assert terminal.end() == 130
    assert "--continue` goes on" in terminal.screen
    assert (folder / "a.txt").read_text() == TEXT

    assert run(folder, env, "rewrite", "a.txt", "--continue", "-w")[0] == 0
    assert (folder / "a.txt").read_text() == rows(TEXT)


def test_ctrl_c_where_it_may_go_on_keeps_what_there_is(folder: Path, env: dict[str, str]) -> None:
    with Terminal(folder, env, "--max-tokens", "1500", "rewrite", "a.txt", "do it") as terminal:
        terminal.until("go on with it? [y/N] ")
        terminal.type(CTRL_C)
        assert terminal.end() == 130

    assert "`specchat rewrite a.txt --continue` goes on" in terminal.screen
    assert run(folder, env, "rewrite", "a.txt", "--continue", "-w")[0] == 0
    assert (folder / "a.txt").read_text() == rows(TEXT)


def test_ctrl_c_at_the_command_behind_a_write_says_that_it_was_written(folder: Path, env: dict[str, str]) -> None:
    sleeper = "sh -c 'echo behind it; read x < /dev/tty' {}"
    with Terminal(folder, env, "rewrite", "a.txt", "do it", "-w", "--after", sleeper) as terminal:
        terminal.until("behind it")
        terminal.type(CTRL_C)
        assert terminal.end() == 130

    assert "a.txt: written, but sh was interrupted; `specchat undo" in terminal.screen
    assert (folder / "a.txt").read_text() == rows(TEXT)


def test_ctrl_c_where_the_change_may_be_taken_back_says_that_it_stays(folder: Path, env: dict[str, str]) -> None:
    with Terminal(folder, env, "rewrite", "a.txt", "do it", "-w", "--after", "false") as terminal:
        terminal.until("false ended with 1; take the change back? [y/N] ")
        terminal.type(CTRL_C)
        assert terminal.end() == 130

    assert "a.txt: written, but false ended with 1; `specchat undo" in terminal.screen
    assert (folder / "a.txt").read_text() == rows(TEXT)


@pytest.mark.parametrize(("keys", "after"), [("y\n", TEXT), ("n\n", rows(TEXT)), ("\x04", rows(TEXT))])
def test_a_failing_command_behind_a_write_asks_whether_the_change_stays(
    folder: Path, env: dict[str, str], keys: str, after: str
) -> None:
    with Terminal(folder, env, "rewrite", "a.txt", "do it", "-w", "--after", "false") as terminal:
        terminal.until("take the change back? [y/N] ")
        terminal.type(keys)
        terminal.end()

    assert (folder / "a.txt").read_text() == after


@pytest.mark.parametrize("keys", ["y\n", "n\n", CTRL_C])
def test_a_merge_is_offered_where_the_file_changed_since(folder: Path, env: dict[str, str], keys: str) -> None:
    run(folder, env, "rewrite", "a.txt", "do it", "-w")
    changed = rows(TEXT).replace("line 55 of", "my line 55 of")
    (folder / "a.txt").write_text(changed)

    with Terminal(folder, env, "undo") as terminal:
        shown = terminal.until("write the merge? [y/N] ")
        terminal.type(keys)
        code = terminal.end()

    assert "-row 20 of" in shown
    assert "+line 20 of" in shown
    merged = TEXT.replace("line 55 of", "my line 55 of")
    assert (code, (folder / "a.txt").read_text()) == {
        "y\n": (0, merged),
        "n\n": (7, changed),
        CTRL_C: (130, changed),
    }[keys]


def test_a_merge_with_a_conflict_writes_its_marks_where_that_is_agreed_to(folder: Path, env: dict[str, str]) -> None:
    run(folder, env, "rewrite", "a.txt", "do it", "-w")
    (folder / "a.txt").write_text(rows(TEXT).replace("row 20 of", "my row 20 of"))

    with Terminal(folder, env, "undo", "a.txt") as terminal:
        terminal.until("1 conflicts marked in it? [y/N] ")
        terminal.type("y\n")
        assert terminal.end() == 0

    assert "<<<<<<< the file now\nmy row 20 of" in (folder / "a.txt").read_text()


def gone(path: Path) -> None:
    path.unlink()


def changed(path: Path) -> None:
    path.write_text("something else\n")


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_a_link(path: Path) -> None:
    path.rename(path.with_name("b.txt"))
    path.symlink_to("b.txt")


def read_only(path: Path) -> None:
    path.chmod(0o444)


def folder_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.mkdir()
    path.write_text(TEXT)


@pytest.mark.parametrize(
    ("happens", "code"),
    [(gone, 7), (changed, 7), (replaced_by_a_folder, 7), (replaced_by_a_link, 7), (read_only, 5), (folder_moved, 7)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_happens_to_a_file_meanwhile_is_one_line_and_nothing_is_written(
    folder: Path, held: Held, happens: Callable[[Path], None], code: int
) -> None:
    path = folder / "a.txt"
    command = [sys.executable, "-m", "tests.specchat.rewrite.program", "rewrite", str(path), "do it", "-w"]
    with subprocess.Popen(command, cwd="/", env=held.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        held.wait()
        happens(path)
        before = {each: each.read_bytes() for each in folder.parent.glob("*/*.txt") if each.is_file()}
        held.release()
        assert process.stderr is not None
        said = process.stderr.read().decode()

    assert process.returncode == code
    assert "a.txt" in said.splitlines()[0]
    assert len(said.splitlines()) == 1
    assert {each: each.read_bytes() for each in folder.parent.glob("*/*.txt") if each.is_file()} == before
    assert not list(folder.parent.glob("*/.specchat-*"))


def test_of_two_rewrites_of_one_file_the_second_to_end_writes_nothing(
    folder: Path, env: dict[str, str], held: Held
) -> None:
    command = [sys.executable, "-m", "tests.specchat.rewrite.program", "rewrite", "a.txt", "do it", "-w"]
    with subprocess.Popen(command, cwd=folder, env=held.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as slow:
        held.wait()
        assert run(folder, env, "rewrite", "a.txt", "do it", "-w")[0] == 0
        held.release()
        assert slow.stderr is not None
        said = slow.stderr.read().decode()

    assert slow.returncode == 7
    assert "a.txt changed since it was read; nothing was written" in said
    assert (folder / "a.txt").read_text() == rows(TEXT)


def test_a_rewrite_that_the_disk_refuses_is_not_written_anew(folder: Path, held: Held, env: dict[str, str]) -> None:
    path = folder / "a.txt"
    command = [sys.executable, "-m", "tests.specchat.rewrite.program", "rewrite", "a.txt", "do it", "-w"]
    with subprocess.Popen(
        command, cwd=folder, env=held.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        held.wait()
        path.chmod(0o444)
        held.release()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == 5
    assert "`specchat rewrite a.txt --continue` goes on" in said

    path.chmod(0o644)
    code, said = run(folder, {**env, "SPECCHAT_TEST_HOLD": "/nowhere"}, "rewrite", "a.txt", "--continue", "-w")

    assert code == 0  # the model, which would have failed to wait, wrote nothing
    assert path.read_text() == rows(TEXT)


def test_a_full_disk_is_one_line_and_leaves_the_old_file(folder: Path, env: dict[str, str]) -> None:
    import resource

    limit = len(TEXT) + 5  # bytes of a file; the new one is longer
    command = [sys.executable, "-m", "tests.specchat.rewrite.program", "rewrite", "a.txt", "do it", "-w"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )

    assert done.returncode == 5
    assert done.stderr.decode().splitlines()[0].count("File too large; nothing was written") == 1
    assert (folder / "a.txt").read_text() == TEXT
    assert os.listdir(folder) == ["a.txt"]


@pytest.mark.parametrize(
    ("after", "code", "said"),
    [
        ("nowhere-to-be-found {}", 8, "nowhere-to-be-found cannot run: No such file or directory"),
        ("test -f {}", 0, "written"),
        ("grep -q 'row 20 of the file' {}", 0, "written"),
        ('sh -c \'test "$1" = "$0"; exit 3\' {} {}', 8, "sh ended with 3"),
        ("/", 8, "/ cannot run: Permission denied"),
    ],
)
def test_a_command_behind_a_write_gets_any_name_as_one_word(
    folder: Path, env: dict[str, str], after: str, code: int, said: str
) -> None:
    name = 'it\'s "two" $words; *.txt'
    (folder / name).write_text(TEXT)

    found, told = run(folder, env, "rewrite", name, "do it", "-w", "--after", after)

    assert found == code
    assert said in told
    assert (folder / name).read_text() == rows(TEXT)
