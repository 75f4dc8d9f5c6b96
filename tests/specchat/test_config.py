"""`specchat config`: what holds and why, what is wrong, and changes that leave the rest of the file alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from specchat.cli import main
from specchat.config.checking import problems
from specchat.settings.keys import ANY, KEYS
from specchat.settings.text import dotted, template


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to stand in, with a home and variables of its own."""
    for name in [name for name in os.environ if name.startswith("SPECCHAT_")]:
        monkeypatch.delenv(name)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(project)
    return project


def own(text: str) -> Path:
    path = Path(os.environ["SPECCHAT_CONFIG"])
    path.write_text(text)
    return path


def out_of(captured: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """What a command writes to standard output, a line each."""
    assert main(["config", *words]) == code
    return captured.readouterr().out.splitlines()


def said_by(captured: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert main(["config", *words]) == code
    return captured.readouterr().err


# Show and get


def test_show_prints_every_setting_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    own("[guess]\nmode = 'off'\n[targets.'a b']\nguess = 'draft'\n")

    lines = out_of(capsys, "show")

    assert {line.partition(" = ")[0] for line in lines} == {
        *(dotted(place) for place in KEYS if ANY not in place),
        'targets."a b".guess',
    }
    assert 'guess.mode = "off"' in lines
    assert 'sampling.seed = "random"' in lines
    assert lines == out_of(capsys)


def test_show_says_which_flag_variable_or_line_decides(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = own("\n[sampling]\ntop_k = 1\nseed = 4\n")
    (folder / ".specchat.toml").write_text("[sampling]\ntop_k = 2\n")
    monkeypatch.setenv("SPECCHAT_SAMPLING_TOP_P", "0.5")

    lines = {line.partition(" = ")[0]: line for line in out_of(capsys, "--origin")}

    assert lines["sampling.top_k"].endswith(f"# project: {folder / '.specchat.toml'}, line 2")
    assert lines["sampling.top_p"].endswith("# variable: SPECCHAT_SAMPLING_TOP_P")
    assert lines["sampling.seed"].endswith(f"# user: {user}, line 4")
    assert lines["sampling.min_p"].endswith("# built-in")


def test_show_as_json_has_the_documented_shape(capsys: pytest.CaptureFixture[str]) -> None:
    path = own("[sampling]\nstop = ['a']\n")

    found = json.loads("\n".join(out_of(capsys, "show", "--json")))

    assert (found["schema"], found["file"]) == ("specchat.config/1", str(path))
    assert found["settings"]["sampling.stop"] == {"value": ["a"], "source": "user", "where": f"{path}, line 2"}
    assert found["settings"]["model"] == {"value": "auto", "source": "built-in", "where": ""}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("guess.mode", "auto"),
        ("sampling.seed", "random"),
        ("view.panel", "true"),
        ("guess.sources", '["prompt", "reply", "turn", "file"]'),
        ('targets."a.b".draft', "x.gguf"),
        ('targets."a.b".guess', "null"),
    ],
)
def test_get_prints_one_value(capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    own("[targets.'a.b']\ndraft = 'x.gguf'\n")

    assert out_of(capsys, "get", key) == [value]


def test_get_of_a_key_that_does_not_exist_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean guess.mode?" in said_by(capsys, "get", "guess.mod", code=2)


def test_a_wrong_file_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    path = own("[guess]\nmode = 'fast'\n")

    for words in (["show"], ["get", "model"], ["set", "model", "x"]):
        said = said_by(capsys, *words, code=2)
        assert said.startswith(f"specchat: {path}, line 2: guess.mode")
        assert said.count("\n") == 1
    assert path.read_text() == "[guess]\nmode = 'fast'\n"


# Set and edit


def test_set_changes_one_key_and_keeps_comments(capsys: pytest.CaptureFixture[str]) -> None:
    path = own("# mine\n[view]\ntint = 'off'  # loud\nfuture = 1\n")

    assert out_of(capsys, "set", "view.tint", "token") == []

    assert path.read_text() == '# mine\n[view]\ntint = "token"  # loud\nfuture = 1\n'


@pytest.mark.parametrize(
    ("key", "raw", "line"),
    [
        ("sampling.temperature", "0", "temperature = 0.0"),
        ("sampling.max_tokens", "none", 'max_tokens = "none"'),
        ("view.panel", "off", "panel = false"),
        ("guess.sources", "file, turn", 'sources = ["file", "turn"]'),
        ("sampling.stop", '["a,b"]', 'stop = ["a,b"]'),
        ('targets."a.b".guess', "off", 'guess = "off"'),
    ],
)
def test_set_writes_what_a_file_would_say(capsys: pytest.CaptureFixture[str], key: str, raw: str, line: str) -> None:
    path = own("[sampling]\nmax_tokens = 5\n")

    out_of(capsys, "set", key, raw)

    assert line in path.read_text().splitlines()
    assert problems() == []


def test_set_refuses_a_wrong_value_and_says_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    path = own("")

    said = said_by(capsys, "set", "guess.mode", "fast", code=2)

    modes = "auto, draft, lookup, recycling, eagle, eagle3, medusa, mtp or off"
    assert said == f'specchat: guess.mode is "fast"; it must be {modes}\n'
    assert path.read_text() == ""


def test_set_says_when_something_stronger_decides_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCHAT_GUESS_MODE", "off")

    assert (
        said_by(capsys, "set", "guess.mode", "draft", code=0) == "note: SPECCHAT_GUESS_MODE decides guess.mode here\n"
    )


def test_path_names_the_file_that_need_not_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, "path") == [os.environ["SPECCHAT_CONFIG"]]
    assert not Path(os.environ["SPECCHAT_CONFIG"]).exists()


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """An editor that does what a line of Python says to the text of the file."""
    script = tmp_path / "my editor.py"
    script.write_text(f"import sys, pathlib\npath = pathlib.Path(sys.argv[1])\n{body}\n")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{script}'")


def test_edit_opens_a_new_file_that_has_every_key_and_says_what_is_wrong_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, "path.write_text(path.read_text() + '[extra]\\nx = 1\\n')")
    path = Path(os.environ["SPECCHAT_CONFIG"])

    said = said_by(capsys, "edit", code=1)

    assert path.read_text() == f"{template()}[extra]\nx = 1\n"
    assert "extra is not a setting" in said


def test_edit_opens_a_file_that_is_wrong_so_that_it_can_be_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own("[guess")
    editor(tmp_path, monkeypatch, "path.write_text('[guess]')")

    assert said_by(capsys, "edit", code=0) == ""
    assert path.read_text() == "[guess]"


@pytest.mark.parametrize(
    ("name", "said"), [("no-such-editor", "no editor no-such-editor"), ("'", "no editor '"), ("false", "false ended")]
)
def test_an_editor_that_fails_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", name)

    assert said_by(capsys, "edit", code=1).startswith(f"specchat: {said}")


# Check


def test_check_finds_nothing_in_a_fresh_file_and_in_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, "check") == []
    own(template())
    assert out_of(capsys, "check") == []


def test_check_lists_all_that_is_wrong_everywhere(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own("[guess]\nmode = 'fast'\nmoed = 1\n[sampling]\ntop_k = -1\n[endpoints.x]\nurl = 'ftp://h'\n")
    (folder / ".specchat.toml").write_text("[rewrite]\nafter = 'x'\n")
    monkeypatch.setenv("SPECCHAT_VIEW_TINT", "loud")
    monkeypatch.setenv("SPECCHAT_CONFG", "x")

    lines = out_of(capsys, "check", code=1)

    starts = [
        f"{path}, line 2: guess.mode is",
        f"{path}, line 5: sampling.top_k is",
        f"{path}, line 3: guess.moed is not a setting and is ignored; did you mean guess.mode?",
        f"{path}, line 7: ",
        f"{folder / '.specchat.toml'}, line 2: rewrite.after is not used",
        "SPECCHAT_VIEW_TINT is",
        "SPECCHAT_CONFG is not a variable of specchat and is ignored; did you mean SPECCHAT_CONFIG?",
    ]
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)


def test_check_of_what_is_no_toml_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    own("[guess\n")

    (line,) = out_of(capsys, "check", code=1)

    assert "not valid TOML" in line


def test_a_file_of_hostile_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    own("#" * (1 << 20) + "\n")

    assert "is larger than 1 MiB" in out_of(capsys, "check", code=1)[0]


# Trust


def test_trust_says_what_is_allowed_now_and_remove_takes_it_back(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / ".specchat.toml"
    path.write_text("[rewrite]\nafter = 'touch\\u001b[2J'\n")

    said = said_by(capsys, "trust", code=0)
    assert said.splitlines()[0] == f"{path} is trusted as it is now"
    assert "rewrite.after" in said
    assert "\x1b" not in said
    assert out_of(capsys, "get", "rewrite.after")[0].startswith("touch")

    assert "no longer" in said_by(capsys, "trust", str(folder), "--remove", code=0)
    assert out_of(capsys, "get", "rewrite.after") == ["none"]
    assert "was not trusted" in said_by(capsys, "trust", "--remove", code=0)


def test_trust_without_a_file_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no .specchat.toml holds in this folder" in said_by(capsys, "trust", code=3)


def test_trust_of_what_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert said_by(capsys, "trust", "nowhere", code=3) == f"specchat: {folder / 'nowhere'} is not there\n"
    (folder / ".specchat.toml").mkdir()
    assert said_by(capsys, "trust", code=2) == f"specchat: {folder / '.specchat.toml'}: is not a file\n"


def test_a_table_is_no_setting_and_says_what_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by(capsys, "get", "guess", code=2)

    assert said == 'specchat: "guess" is not a setting but a table; name a setting in it, such as guess.mode\n'


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_in_the_place_of_the_file_is_refused_and_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(os.environ["SPECCHAT_CONFIG"])

    assert out_of(capsys, "check", code=1) == [f"{os.environ['SPECCHAT_CONFIG']}: is a pipe, not a file"]
    assert "is a pipe" in said_by(capsys, "set", "guess.mode", "off", code=2)


@pytest.mark.skipif(sys.platform == "win32", reason="folders in use stay")
def test_a_folder_that_is_gone_belongs_to_no_project(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    folder.rmdir()

    assert out_of(capsys, "get", "guess.mode") == ["auto"]
    assert out_of(capsys, "check") == []
