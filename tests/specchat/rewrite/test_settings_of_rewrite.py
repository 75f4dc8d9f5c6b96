"""What a rewrite takes from settings: the user's command behind a write, and none of a project that nobody trusts."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.cli import main
from specchat.settings.project import NAME
from tests.specchat.rewrite.shell import TEXT, Shell, put

AFTER = "[rewrite]\nafter = 'cp {} seen'\n"


def own(text: str) -> None:
    folder = Path.cwd().parent / "config"
    folder.mkdir()
    (folder / "config.toml").write_text(text)


def test_the_command_of_the_user_s_settings_runs_behind_a_write(shell: Shell) -> None:
    own(AFTER + "backup_suffix = '.orig'\n")
    path = put("a.txt")

    assert shell("rewrite", "a.txt", "do it", "-w").code == 0

    assert Path("seen").read_bytes() == path.read_bytes() != TEXT.encode()
    assert Path("a.txt.orig").read_bytes() == TEXT.encode()


@pytest.mark.parametrize("flag", ["--diff", "--check", "--stdout"])
def test_settings_about_writing_stand_in_no_other_mode_s_way(shell: Shell, flag: str) -> None:
    own(AFTER + "after_fail = 'undo'\nbackup_suffix = '.orig'\n")
    put("a.txt")

    assert shell("rewrite", "a.txt", "do it", flag).code in (0, 1)

    assert not Path("seen").exists()
    assert Path("a.txt").read_text() == TEXT


def test_a_flag_wins_over_the_command_of_the_settings(shell: Shell) -> None:
    own(AFTER)
    put("a.txt")

    assert shell("rewrite", "a.txt", "do it", "-w", "--after", "cp {} flagged").code == 0

    assert Path("flagged").exists()
    assert not Path("seen").exists()


def test_the_command_of_a_project_runs_when_the_file_is_trusted_and_not_before(shell: Shell) -> None:
    Path(NAME).write_text(AFTER)
    put("a.txt")

    refused = shell("rewrite", "a.txt", "do it", "-w")
    assert refused.code == 0
    assert refused.err.count("rewrite.after is not used, because it runs a command") == 1
    assert not Path("seen").exists()

    assert main(["config", "trust"]) == 0
    put("a.txt")
    shell("rewrite", "a.txt", "do it", "-w")
    assert Path("seen").exists()
