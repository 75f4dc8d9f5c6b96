"""A project's own settings: found nearby, read with care, and without trust unable to lead out of their folder."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from specchat.settings.project import NAME, find_project, read_project, wants_trust
from specchat.settings.reading import Chosen, read_settings, trust_in
from specchat.settings.text import SettingsError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a repository."""
    folder = tmp_path / "home" / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def put(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(text)
    return folder / NAME


def environ_of(folder: Path) -> dict[str, str]:
    above = folder.parent
    return {"SPECCHAT_CONFIG": str(above / "config.toml"), "SPECCHAT_STATE_DIR": str(above / "state")}


def read_in(folder: Path) -> Chosen:
    return read_settings({}, environ_of(folder), folder)


def trusted(folder: Path) -> None:
    trust_in(environ_of(folder)).add(read_project(folder / NAME))


# Where it is looked for


def test_the_nearest_file_up_to_the_root_of_the_repository_holds(project: Path) -> None:
    inside = project / "a" / "b"
    inside.mkdir(parents=True)
    put(project.parent, "")
    home = project.parent.parent
    assert find_project(inside, home) is None

    at_root = put(project, "")
    assert find_project(inside, home) == at_root

    nearer = put(project / "a", "")
    assert find_project(inside, home) == nearer


def test_without_a_repository_the_folders_below_the_home_folder_are_looked_at(tmp_path: Path) -> None:
    home = tmp_path / "home"
    inside = home / "notes" / "deep"
    inside.mkdir(parents=True)
    put(home, "")
    assert find_project(inside, home) is None
    assert find_project(home, home) is None

    assert find_project(inside, home) is None
    found = put(home / "notes", "")
    assert find_project(inside, home) == found


def test_a_repository_of_the_home_folder_itself_makes_it_no_project(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".git").mkdir(parents=True)
    (home / "notes").mkdir()
    put(home, "")

    assert find_project(home / "notes", home) is None


def test_outside_of_home_and_repository_only_the_folder_itself_counts(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    put(shared, "")

    assert find_project(shared / "mine", tmp_path / "home") is None
    assert find_project(shared, tmp_path / "home") == shared / NAME


# What it may say without trust


def test_it_changes_how_a_chat_is_written(project: Path) -> None:
    put(project, 'system = "Be brief."\n[sampling]\ntemperature = 0\n[context]\npolicy = "drop"\n')

    found = read_in(project)

    assert (found.settings.system, found.settings.sampling.temperature) == ("Be brief.", 0)
    assert found.settings.context.policy == "drop"
    assert found.notices == ()


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("offline = false", "offline", "belongs into your own settings file"),
        ("[history]\nenabled = true", "history.enabled", "belongs into your own settings file"),
        ("[view]\npanel = false", "view.panel", "belongs into your own settings file"),
        ("[context]\nthreads = 512", "context.threads", "belongs into your own settings file"),
        ("[endpoints.x]\nurl = 'http://h'", "endpoints", "belongs into your own settings file"),
        ("[targets.m]\nguess = 'off'", "targets.m.guess", "belongs into your own settings file"),
        ("[rewrite]\nafter = 'touch x'", "rewrite.after", "runs a command"),
        ("model = 'hf:evil/model:Q4_K_M'", "model", "fetches a model"),
        ("model = '../x.gguf'", "model", "leads out of the folder"),
        ("model = '/x.gguf'", "model", "leads out of the folder"),
        ("model = '~/x.gguf'", "model", "leads out of the folder"),
        ("model = 'link/x.gguf'", "model", "leads out of the folder"),
        ("[guess]\ndraft = 'a/../../x.gguf'", "guess.draft", "leads out of the folder"),
        (
            "[sampling]\nrule = 'typical'",
            "sampling.rule",
            "text does not follow the model, and the file is not trusted",
        ),
        ("[guess]\nmode = 'fast'", "guess.mode", 'is "fast"; it must be'),
        ("[guess]\nmoed = 'off'", "guess.moed", "is not a setting and is ignored; did you mean guess.mode?"),
    ],
)
def test_what_it_asks_in_vain_is_one_line_that_names_file_line_key_and_reason(
    project: Path, text: str, key: str, why: str
) -> None:
    (project / "link").symlink_to(project.parent)
    path = put(project, text)

    found = read_in(project)

    assert found.settings == read_in(project.parent / "elsewhere").settings  # as it is without the file
    (line,) = found.notices
    assert line.startswith(f"{path}, line {len(text.splitlines())}: {key} ") or "endpoints" in text
    assert why in line


def test_several_things_asked_in_vain_are_one_line_too(project: Path) -> None:
    put(project, "offline = false\nmodel = '/x.gguf'\n[view]\npanel = false\ntint = 'off'\nrendered = false\n")

    (line,) = read_in(project).notices

    assert "offline, model, view.panel, view.tint, ..." in line
    assert "specchat config check" in line


def test_a_file_beside_it_is_named_from_its_own_folder_on(project: Path) -> None:
    put(project, "model = 'models/x.gguf'\n[guess]\ndraft = 'small.gguf'\n")
    (project / "deep").mkdir()

    found = read_settings({}, environ_of(project), project / "deep")

    assert found.settings.model == str(project / "models" / "x.gguf")
    assert found.settings.guess.draft == str(project / "small.gguf")


def test_names_of_the_catalogue_are_free(project: Path) -> None:
    put(project, "model = 'smollm2-135m'\n[guess]\ndraft = 'none'\n")

    found = read_in(project)

    assert (found.settings.model, found.settings.guess.draft, found.notices) == ("smollm2-135m", "none", ())


# Trust


def test_a_trusted_file_may_run_commands_and_name_models_anywhere(project: Path) -> None:
    put(project, "model = 'hf:a/b:Q4_K_M'\n[guess]\ndraft = '../x.gguf'\n[rewrite]\nafter = 'ruff check {}'\n")
    trusted(project)

    found = read_in(project)

    assert (found.settings.model, found.settings.rewrite.after) == ("hf:a/b:Q4_K_M", "ruff check {}")
    assert Path(os.path.realpath(found.settings.guess.draft)) == project.parent / "x.gguf"
    assert found.notices == ()


def test_rules_that_are_exact_need_no_trust_and_the_other_one_does(project: Path) -> None:
    put(project, "[sampling]\nrule = 'block'\n")
    assert read_in(project).settings.sampling.rule == "block"

    path = put(project, "[sampling]\nrule = 'typical'\n")
    assert wants_trust(read_project(path)) == ["sampling.rule = 'typical'"]
    assert read_in(project).settings.sampling.rule == "coupled"

    trusted(project)
    assert read_in(project).settings.sampling.rule == "typical"


def test_trust_never_reaches_endpoints_history_and_the_switch_of_the_network(project: Path) -> None:
    put(project, "offline = false\n[history]\nenabled = true\n[endpoints.x]\nurl = 'http://h'\n")
    trusted(project)

    (line,) = read_in(project).notices

    assert all(key in line for key in ("offline", "history.enabled", "endpoints"))


def test_trust_ends_when_the_file_changes_and_comes_back_with_the_old_one(project: Path) -> None:
    text = "[rewrite]\nafter = 'ruff check {}'\n"
    put(project, text)
    trusted(project)
    assert read_in(project).settings.rewrite.after == "ruff check {}"

    put(project, text.replace("check", "chekc"))
    assert read_in(project).settings.rewrite.after is None

    put(project, text)
    assert read_in(project).settings.rewrite.after == "ruff check {}"


def test_the_same_file_elsewhere_is_not_trusted(project: Path) -> None:
    put(project, "[rewrite]\nafter = 'x'\n")
    trusted(project)
    other = project.parent / "other"
    put(other, "[rewrite]\nafter = 'x'\n")

    assert read_settings({}, environ_of(project), other).settings.rewrite.after is None


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_the_list_of_what_is_trusted_is_for_its_owner_alone(project: Path) -> None:
    put(project, "")
    trusted(project)

    path = trust_in(environ_of(project)).path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("text", ["", "[", "[]", '{"x": 1}', "[" * 100_000, "\x00"])
def test_a_list_of_trust_that_is_damaged_trusts_nothing(project: Path, text: str) -> None:
    path = put(project, "[rewrite]\nafter = 'x'\n")
    trusted(project)
    trust_in(environ_of(project)).path.write_text(text)

    assert not trust_in(environ_of(project)).has(read_project(path))


def test_what_trust_would_allow_is_told_and_nothing_else(project: Path) -> None:
    path = put(project, "system = 's'\nmodel = '/x.gguf'\n[rewrite]\nafter = 'x'\n[view]\npanel = true\n")

    assert wants_trust(read_project(path)) == ["model = '/x.gguf'", "rewrite.after = 'x'"]


# Files that are none


def test_a_file_of_hostile_size_is_one_line(project: Path) -> None:
    path = put(project, "#" * (65 << 10))

    assert read_in(project).notices == (f"{path}: is larger than 64 KiB; it is ignored",)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
def test_a_link_a_folder_and_a_pipe_are_one_line(project: Path) -> None:
    secret = project.parent / "secret"
    secret.write_text("system = 'x'")
    path = project / NAME
    path.symlink_to(secret)
    assert read_in(project).notices == (f"{path}: is a link; it is ignored",)
    assert read_in(project).settings.system == ""

    path.unlink()
    path.mkdir()
    assert read_in(project).notices == (f"{path}: is not a file; it is ignored",)

    path.rmdir()
    os.mkfifo(path)
    assert read_in(project).notices == (f"{path}: is not a file; it is ignored",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "is not UTF-8 text (byte 0)"),
        (b"[guess\n", "not valid TOML"),
        (b"a = " + b"[" * 5000, "not valid TOML"),
        (b"a = 1" + b"0" * 5000, "not valid TOML"),
    ],
)
def test_what_is_no_settings_file_is_one_line_and_the_user_s_own_holds(project: Path, data: bytes, said: str) -> None:
    put(project, "")
    (project / NAME).write_bytes(data)
    (project.parent / "config.toml").write_text("system = 'mine'\n")

    found = read_in(project)

    (line,) = found.notices
    assert said in line
    assert "\n" not in line
    assert found.settings.system == "mine"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners")
def test_a_file_of_another_user_is_not_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(project, "system = 'x'")
    os.chown(path, 12345, -1) if os.getuid() == 0 else monkeypatch.setattr(os, "getuid", lambda: 12345)

    with pytest.raises(SettingsError, match="belongs to another user"):
        read_project(path)
