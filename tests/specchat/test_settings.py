"""The settings file: read strictly, written without harm to what somebody else wrote in it."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.exactness import INEXACT_RULES
from specchat.session import Guess, ReplySettings
from specchat.settings import (
    MODES,
    RULES,
    SOURCES,
    TINTS,
    ContextSettings,
    GuessSettings,
    RewriteSettings,
    SamplingSettings,
    Settings,
    SettingsError,
    SettingsFile,
    TargetSettings,
    ViewSettings,
    settings_path,
    template,
    to_sampling_config,
)
from specchat.settings.keys import FAILURES
from speculation.accept import RULE_NAMES, rule_named
from speculation.sampling import SamplingConfig

COMMENTED = [line for line in template().splitlines() if re.match(r"# \w+ = ", line)]

names = st.text(min_size=1).filter(lambda text: bool(text.strip()))
shares = st.floats(0, 1)
commands = names.filter(lambda name: name != "none")
targets = st.builds(TargetSettings, st.none() | st.sampled_from(MODES), st.none() | names)
settings = st.builds(
    Settings,
    model=st.none() | names.filter(lambda name: name != "auto"),
    system=st.text(),
    offline=st.booleans(),
    guess=st.builds(
        GuessSettings,
        mode=st.sampled_from(MODES),
        draft=names,
        length=st.none() | st.integers(1, 63),
        pause_below=st.floats(0, 2),
        sources=st.lists(st.sampled_from(SOURCES), unique=True).map(tuple),
    ),
    sampling=st.builds(
        SamplingSettings,
        temperature=st.floats(0, allow_infinity=False) | st.integers(0, 10**9),
        top_k=st.integers(0),
        top_p=shares,
        min_p=shares,
        repeat_penalty=st.floats(0, exclude_min=True, allow_infinity=False),
        repeat_last_n=st.integers(-1),
        seed=st.none() | st.integers(0, 2**64 - 1),
        max_tokens=st.none() | st.integers(1, 2**31),
        stop=st.lists(st.text(min_size=1), max_size=2).map(tuple),
        rule=st.sampled_from(RULES),
    ),
    context=st.builds(ContextSettings, st.none() | st.integers(16, 2**24), st.none() | st.integers(1, 512)),
    rewrite=st.builds(RewriteSettings, st.none() | commands, st.sampled_from(FAILURES)),
    view=st.builds(
        ViewSettings, names, st.sampled_from(TINTS), st.booleans(), st.booleans(), st.booleans(), st.booleans()
    ),
    targets=st.dictionaries(st.text(), targets, max_size=3),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "specchat" / "config.toml"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


def with_temperature(value: float, base: Settings | None = None) -> Settings:
    base = base or Settings()
    return replace(base, sampling=replace(base.sampling, temperature=value))


def with_tint(tint: str, base: Settings | None = None) -> Settings:
    base = base or Settings()
    return replace(base, view=replace(base.view, tint=tint))


# Values


@given(chosen=settings, before=settings)
def test_what_was_saved_is_what_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, chosen: Settings, before: Settings
) -> None:
    path = tmp_path_factory.mktemp("settings") / "config.toml"
    file = SettingsFile(path)

    file.save(before)
    file.save(chosen)

    reread = SettingsFile(path)
    assert reread.load() == chosen
    assert reread.warnings == []


@given(chosen=settings)
def test_every_valid_sampling_setting_is_one_for_the_engine(chosen: Settings) -> None:
    config = to_sampling_config(chosen.sampling)

    assert config.temperature == chosen.sampling.temperature
    assert config.repeat_last_n == chosen.sampling.repeat_last_n


def test_the_defaults_are_those_of_the_engine_and_the_session() -> None:
    assert to_sampling_config(SamplingSettings()) == SamplingConfig()
    assert set(MODES) == {guess.value for guess in Guess}
    assert RULES == RULE_NAMES
    assert set(INEXACT_RULES) == {rule for rule in RULES if not rule_named(rule, 0).is_exact}
    assert SamplingSettings().rule == ReplySettings().rule not in INEXACT_RULES


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: GuessSettings(mode="fast"),
            'mode is "fast"; it must be auto, draft, lookup, recycling, eagle, eagle3, medusa, mtp or off',
        ),
        (lambda: SamplingSettings(temperature=-0.1), "temperature is -0.1; it must be a number, 0 or more"),
        (lambda: SamplingSettings(temperature=float("inf")), "temperature is Infinity; it must be a number, 0 or more"),
        (lambda: SamplingSettings(temperature=True), "temperature is true; it must be a number, 0 or more"),
        (lambda: SamplingSettings(top_k=True), "top_k is true; it must be a whole number, 0 or more"),
        (lambda: SamplingSettings(repeat_penalty=0), "repeat_penalty is 0; it must be a number above 0"),
        (lambda: Settings(model=" "), 'model is " "; it must be "auto", or the name or file of a model'),
        (lambda: Settings(model="auto"), 'model is "auto"; it must be'),  # None means that
        (lambda: Settings(system="\udcff"), 'system is "\udcff"; it must be text'),
        (lambda: Settings(targets={"\udcff": TargetSettings()}), "targets has the name '\\udcff'"),
    ],
)
def test_a_value_that_no_file_may_hold_cannot_be_made(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        make()


def test_a_choice_is_remembered_for_its_target_alone() -> None:
    chosen = Settings().remembering("qwen", TargetSettings("draft", "small.gguf"))

    assert chosen.target("qwen") == TargetSettings("draft", "small.gguf")
    assert chosen.target("llama") == TargetSettings()
    assert chosen.remembering("qwen", TargetSettings()) == Settings()


# Reading


def test_a_missing_file_means_the_defaults_and_stays_missing(path: Path) -> None:
    assert SettingsFile(path).load() == Settings()
    assert not path.parent.exists()


def test_whole_numbers_serve_where_fractions_are_allowed(path: Path) -> None:
    assert SettingsFile(written(path, "[sampling]\ntemperature = 1\n")).load() == with_temperature(1.0)


@pytest.mark.parametrize("text", ["\ufeff[view]\ntint = 'off'\n", "[view]\r\ntint = 'off'\r\n"])
def test_a_file_of_a_windows_editor_is_read(path: Path, text: str) -> None:
    assert SettingsFile(written(path, text)).load() == with_tint("off")


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        (
            "[guess]\n\nmode = 'fast'\n",
            3,
            "guess.mode",
            'is "fast"; it must be auto, draft, lookup, recycling, eagle, eagle3, medusa, mtp or off',
        ),
        (
            "guess.mode = 1",
            1,
            "guess.mode",
            "is 1; it must be auto, draft, lookup, recycling, eagle, eagle3, medusa, mtp or off",
        ),
        ("guess = 3", 1, "guess", "is 3; it must be a table, [guess]"),
        ("[[view]]\ntint = 'off'", 1, "view", 'is [{"tint": "off"}]; it must be a table, [view]'),
        ("[model]\nname = 'x'", 1, "model", 'is {"name": "x"}; it must be "auto", or the name or file of a model'),
        ("[view]\npanel = 1", 2, "view.panel", "is 1; it must be true or false"),
        ("[sampling]\ntemperature = nan", 2, "sampling.temperature", "is NaN; it must be a number, 0 or more"),
        ("[sampling]\nseed = 'x'\ntop_k = 1", 2, "sampling.seed", f'is "x"; it must be "random" or {2**64 - 1}'),
        (
            'system = """\nmode = 1\n[guess]\n"""\n[guess]\nsources = [\n"file",\n"web"]\n',
            6,
            "guess.sources",
            'is ["file", "web"]; it must be a list of prompt, reply, turn, file, each at most once',
        ),
        ("[targets.'a b']\n\ndraft = ''\n", 3, 'targets."a b".draft', 'is ""; it must be "auto", "none", or the name'),
        ("[targets]\nqwen = 1\n", 2, "targets.qwen", "is 1; it must be a table, [targets.qwen]"),
        ("[guess]\nmode = \n", 2, "", "not valid TOML: Invalid value (at line 2, column 8)"),
        ("a = 1\na = 2\n", 2, "", "not valid TOML: Cannot overwrite a value"),
        ("a = 1" + "0" * 5000, None, "", "not valid TOML: Exceeds the limit"),
        ("a = " + "[" * 5000, None, "", "not valid TOML: "),
    ],
)
def test_an_error_names_file_line_key_and_what_is_allowed(
    path: Path, text: str, line: int | None, key: str, problem: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        SettingsFile(written(path, text)).load()

    error = caught.value
    assert (error.path, error.line, error.key, error.exit_code) == (path, line, key, 2)
    for part in problem.split(" or 1844"):  # the lower end of the span stands between
        assert part in error.problem
    assert str(error).startswith(f"{path}, line {line}: {key}" if line else f"{path}: ")


def test_a_file_that_is_no_text_is_an_error(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"# caf\xe9\n")

    with pytest.raises(SettingsError, match=r"is not UTF-8 text \(byte 5\)"):
        SettingsFile(path).load()


def test_a_folder_instead_of_a_file_is_an_error_and_not_a_missing_file(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(SettingsError, match="cannot be read"):
        SettingsFile(path).load()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[guess]\nmod = 'off'", "line 2: guess.mod is not a setting and is ignored; did you mean guess.mode?"),
        ("seed = 1", "line 1: seed is not a setting and is ignored; did you mean sampling.seed?"),
        ("\n[sampler]\ntop_k = 1", "line 2: sampler is not a setting and is ignored; did you mean sampling?"),
        ("[view]\ntop_p = 1", "line 2: view.top_p is not a setting and is ignored; did you mean sampling.top_p?"),
        (
            "[targets.q]\ndarft = 'x'",
            "line 2: targets.q.darft is not a setting and is ignored; did you mean targets.q.draft?",
        ),
        ("xyzzy = 1", "line 1: xyzzy is not a setting and is ignored"),
    ],
)
def test_an_unknown_key_is_a_warning_with_a_suggestion(path: Path, text: str, warning: str) -> None:
    file = SettingsFile(written(path, text))

    assert file.load() == Settings()
    assert file.warnings == [f"{path}, {warning}"]


def test_warnings_are_those_of_the_last_load(path: Path) -> None:
    file = SettingsFile(written(path, "xyzzy = 1"))
    file.load()
    written(path, "")

    file.load()

    assert file.warnings == []


# The fresh file


def test_the_fresh_file_changes_nothing(path: Path) -> None:
    SettingsFile(path).save(Settings())

    file = SettingsFile(path)
    assert path.read_text() == template()
    assert file.load() == Settings()
    assert file.warnings == []


def test_the_fresh_file_has_every_key_with_an_explanation() -> None:
    assert len(COMMENTED) == 3 + 5 + 10 + 5 + 3 + 7 + 2
    for line in COMMENTED:
        assert re.search(r"  # \w.{9}", line), line
        assert len(line) <= 120


@pytest.mark.parametrize("line", COMMENTED)
def test_each_commented_key_alone_may_be_made_live_and_shows_its_default(path: Path, line: str) -> None:
    live = template().replace(line, line.removeprefix("# "))
    file = SettingsFile(written(path, live))

    assert live != template()
    assert file.load() == Settings()
    assert file.warnings == []
    assert tomllib.loads(live) != tomllib.loads(template())


def test_a_change_is_made_where_the_fresh_file_explains_the_key(path: Path) -> None:
    SettingsFile(path).save(with_temperature(0.2))

    lines = path.read_text().splitlines()
    at = lines.index("[sampling]") + 1
    assert re.fullmatch(r"temperature = 0\.2 +# 0: always the best token", lines[at])
    assert len(lines) == len(template().splitlines())


def test_folder_and_file_are_for_their_owner_alone(path: Path) -> None:
    SettingsFile(path).save(Settings())

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Changing a file


BY_HAND = """\
# mine
model = 'qwen'   # the big one

[view]           # as I like it
panel = false
tint = "off"
future = [1, 2]  # of a newer specchat

[new]
nothing = nan
[sampling]
temperature = 1
"""
CHANGED = BY_HAND.replace('tint = "off"', 'tint = "token"')
FORMS = [
    "",
    BY_HAND,
    BY_HAND.replace("\n", "\r\n"),
    template(),
    "model = 'x'",
    "guess = {mode = 'off'} # inline\n[view]\n",
    "guess.mode = 'off'\nview.panel = true\n",
    "[guess]\n[new]\n[guess.deep]\nx = 1\n[view.a]\n[view.b]\n",
    "[targets]\n[targets.a]\nguess = 'off'\ndeep.x = 1\n",
    "[targets.a]\nguess = 'off'\n[view]\n[targets.b]\nguess = 'off'\n[view.deep]\n",
    'system = """\n# tint = "gutter"\n"""\n[[new]]\n[[new]]\n',
]


def test_saving_keeps_comments_order_and_unknown_keys(path: Path) -> None:
    file = SettingsFile(written(path, BY_HAND))

    file.save(with_tint("token", file.load()))

    assert path.read_text() == CHANGED


def test_saving_what_the_file_says_does_not_touch_it(path: Path) -> None:
    file = SettingsFile(written(path, BY_HAND))
    loaded = file.load()
    os.utime(path, (0, 0))

    file.save(loaded)

    assert path.stat().st_mtime == 0


def test_a_default_is_not_written_unless_the_file_has_the_key(path: Path) -> None:
    file = SettingsFile(written(path, "[view]\ntint = 'off' # loud\n"))

    file.save(Settings())

    assert path.read_text() == '[view]\ntint = "gutter" # loud\n'


def test_a_commented_default_that_somebody_else_wrote_stays_a_comment(path: Path) -> None:
    text = '# tint = "gutter"\n# tint = "loud"\n[view]\n# tint = "gutter" below\n'
    file = SettingsFile(written(path, text))

    file.save(with_tint("token"))

    assert path.read_text() == text + 'tint = "token"\n'


@given(chosen=settings, text=st.sampled_from(FORMS))
def test_any_form_of_toml_can_be_changed_and_keeps_what_is_unknown(
    tmp_path_factory: pytest.TempPathFactory, chosen: Settings, text: str
) -> None:
    path = written(tmp_path_factory.mktemp("settings") / "config.toml", text)
    file = SettingsFile(path)
    file.load()
    ignored = [re.sub(r"line \d+", "", warning) for warning in file.warnings]

    file.save(chosen)

    assert file.load() == chosen
    assert [re.sub(r"line \d+", "", warning) for warning in file.warnings] == ignored


@pytest.mark.parametrize(
    "harm", ["", 'tint = "token"\n', BY_HAND, "[view", CHANGED[:-16], CHANGED.replace("future = [1, 2]", "")]
)
def test_a_change_that_would_harm_the_rest_is_refused(path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tomlkit.dumps", lambda _: harm)  # as a fault of the library would
    file = SettingsFile(written(path, BY_HAND))

    with pytest.raises(SettingsError, match=r"view\.tint cannot be saved without harm to the rest; change it by hand"):
        file.save(with_tint("token", file.load()))

    assert path.read_text() == BY_HAND


def test_a_choice_for_a_target_is_one_table_at_the_end(path: Path) -> None:
    SettingsFile(path).save(Settings().remembering("qwen 2", TargetSettings("off")))

    assert path.read_text() == template() + '\n[targets."qwen 2"]\nguess = "off"\n'


def test_forgetting_a_choice_takes_its_keys_out_and_leaves_the_rest(path: Path) -> None:
    text = "[targets.a]\nguess = 'off'\nlater = 1\n[targets.b]\ndraft = 'x'\n"
    file = SettingsFile(written(path, text))

    file.save(file.load().remembering("a", TargetSettings()))

    assert path.read_text() == text.replace("guess = 'off'\n", "")


@pytest.mark.parametrize("system", ["a\r\nb", "a\rb\n", '\n"""\\\n"', "\x1b[2J\n\x00\x7f\u2028"])
def test_a_system_prompt_of_any_characters_survives(path: Path, system: str) -> None:
    SettingsFile(path).save(Settings(system=system))
    SettingsFile(path).save(with_tint("token", Settings(system=system)))

    assert SettingsFile(path).load().system == system
    assert not set(path.read_text()) & set("\x1b\x00\x7f")


def test_a_system_prompt_of_several_lines_is_written_as_several_lines(path: Path) -> None:
    SettingsFile(path).save(Settings(system="Be brief.\nBe kind.\n"))

    assert "Be brief.\nBe kind.\n" in path.read_text()


def test_line_ends_of_windows_stay(path: Path) -> None:
    file = SettingsFile(written(path, BY_HAND.replace("\n", "\r\n")))

    file.save(with_tint("token", file.load()))

    assert path.read_bytes().decode() == CHANGED.replace("\n", "\r\n")


# Others who write the same file


def test_what_was_edited_by_hand_meanwhile_survives(path: Path) -> None:
    file = SettingsFile(path)
    file.save(with_temperature(0.2))
    by_hand = path.read_text().replace("temperature = 0.2", "temperature = 1.5  # warmer")
    written(path, by_hand.replace("# top_k = 40", "top_k = 7"))

    file.save(with_tint("token", with_temperature(0.2)))

    loaded = SettingsFile(path).load()
    assert (loaded.sampling.temperature, loaded.sampling.top_k, loaded.view.tint) == (1.5, 7, "token")
    assert "# warmer" in path.read_text()


def test_a_key_that_was_taken_out_meanwhile_does_not_come_back_as_a_default(path: Path) -> None:
    file = SettingsFile(written(path, "[view]\ntint = 'off'\n"))
    file.load()
    written(path, "[view]\n")

    file.save(Settings())

    assert path.read_text() == "[view]\n"


def test_a_file_that_vanished_meanwhile_is_written_whole(path: Path) -> None:
    file = SettingsFile(path)
    file.save(with_temperature(0.2))
    path.unlink()

    file.save(with_tint("token", with_temperature(0.2)))

    assert SettingsFile(path).load() == with_tint("token", with_temperature(0.2))


@pytest.mark.parametrize("text", ["[view\n", "[view]\ntint = 'loud'\n", "[view]\ntint = 'off'\ntint = 'off'\n"])
def test_a_corrupt_file_is_never_overwritten(path: Path, text: str) -> None:
    file = SettingsFile(written(path, text))
    with pytest.raises(SettingsError):
        file.load()

    with pytest.raises(SettingsError):
        file.save(with_temperature(0.2))

    assert path.read_text() == text
    assert os.listdir(path.parent) == [path.name]


def test_a_corrupt_file_that_is_repaired_by_hand_keeps_what_it_says(path: Path) -> None:
    file = SettingsFile(written(path, "[view]\npanel = fales\n"))
    with pytest.raises(SettingsError):
        file.load()
    written(path, "[view]\npanel = false\n")

    file.save(with_temperature(0.2))  # by a program that went on with the defaults

    loaded = SettingsFile(path).load()
    assert (loaded.view.panel, loaded.sampling.temperature) == (False, 0.2)


SAVER = """
import sys
from dataclasses import replace
from pathlib import Path
from specchat.settings import Settings, SettingsFile, TargetSettings
file = SettingsFile(Path(sys.argv[1]))
for number in range(25):
    longer = replace(file.load(), system="x" * 40 * number)
    file.save(longer.remembering(sys.argv[2], TargetSettings("off", str(number))))
"""


def test_two_processes_that_save_at_once_leave_a_whole_file(path: Path) -> None:
    savers = [subprocess.Popen([sys.executable, "-c", SAVER, str(path), name]) for name in ("a", "b")]

    while any(saver.poll() is None for saver in savers):
        SettingsFile(path).load()  # raises for a file that is half written

    assert [saver.returncode for saver in savers] == [0, 0]
    assert set(SettingsFile(path).load().targets) & {"a", "b"}
    assert os.listdir(path.parent) == [path.name]


# The disk


def test_a_link_stays_a_link_and_its_target_is_written(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "specchat.toml"
    path.parent.mkdir()
    path.symlink_to(Path("..") / "dotfiles" / "specchat.toml")  # to nothing yet

    SettingsFile(path).save(Settings())
    SettingsFile(path).save(with_tint("token"))

    assert path.is_symlink()
    assert SettingsFile(real).load() == with_tint("token")
    assert os.listdir(real.parent) == [real.name]


def test_a_full_disk_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = SettingsFile(written(path, BY_HAND))
    loaded = file.load()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SettingsError, match="cannot be written: No space left on device"):
            file.save(with_tint("token", loaded))
    assert path.read_text() == BY_HAND
    assert os.listdir(path.parent) == [path.name]

    file.save(with_tint("token", loaded))  # which must still know that this is a change

    assert SettingsFile(path).load().view.tint == "token"


def test_a_read_only_file_is_respected(path: Path) -> None:
    written(path, BY_HAND).chmod(0o444)

    with pytest.raises(SettingsError, match="is read-only"):
        SettingsFile(path).save(with_tint("token"))

    assert path.read_text() == BY_HAND


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("config.toml")

        with pytest.raises(SettingsError, match="is not a file"):
            SettingsFile(Path("config.toml")).save(Settings())

    assert stat.S_ISSOCK(Path("config.toml").stat().st_mode)


def test_the_empty_device_reads_as_no_settings() -> None:
    assert SettingsFile(Path(os.devnull)).load() == Settings()


def test_specchat_config_names_the_file(tmp_path: Path) -> None:
    assert settings_path({"SPECCHAT_CONFIG": str(tmp_path / "my.toml")}) == tmp_path / "my.toml"
    assert settings_path({"SPECCHAT_CONFIG": "~/my.toml"}) == Path.home() / "my.toml"
    assert settings_path({"SPECCHAT_CONFIG": ""}).name == "config.toml"
    assert settings_path({}).parent.name == "specchat"


def test_reading_settings_loads_neither_the_engine_nor_what_only_writing_needs(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from specchat.settings import SettingsFile; "
        "SettingsFile(Path(sys.argv[1])).load(); print(*sys.modules)"
    )

    run = subprocess.run(
        [sys.executable, "-c", program, str(written(path, BY_HAND))], capture_output=True, text=True, check=True
    )

    assert not {"numpy", "tomlkit", "textual", "llama_cpp"} & {name.split(".")[0] for name in run.stdout.split()}
