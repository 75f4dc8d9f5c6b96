"""Flags over variables over the project's file over the user's file over what is built in, for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.cli import parsed
from specchat.errors import UsageError
from specchat.settings import Settings
from specchat.settings.flags import FLAGS, flag_layer
from specchat.settings.keys import ANY, KEYS, Place, flattened, settings_from
from specchat.settings.layers import Layer, Origin, Source, resolved
from specchat.settings.reading import read_settings
from specchat.settings.taking import COMMANDS, take_settings
from specchat.settings.text import SettingsText, dotted, place_named, template
from specchat.settings.variables import SETTINGS, examined, unknown_variables, variable_layer, variables

USUAL = flattened(Settings())
OTHER: dict[Place, Any] = {  # an allowed value of every setting that is not the built-in one
    ("model",): "a.gguf",
    ("system",): "Be brief.",
    ("offline",): True,
    ("guess", "mode"): "lookup",
    ("guess", "draft"): "b.gguf",
    ("guess", "length"): 5,
    ("guess", "pause_below"): 0.5,
    ("guess", "sources"): ("file",),
    ("sampling", "temperature"): 0.1,
    ("sampling", "top_k"): 3,
    ("sampling", "top_p"): 0.5,
    ("sampling", "min_p"): 0.25,
    ("sampling", "repeat_penalty"): 1.5,
    ("sampling", "repeat_last_n"): -1,
    ("sampling", "seed"): 7,
    ("sampling", "max_tokens"): 9,
    ("sampling", "rule"): "block",
    ("sampling", "stop"): ("END", "a,b"),
    ("context", "size"): 4096,
    ("context", "threads"): 3,
    ("context", "policy"): "drop",
    ("context", "read_ahead"): False,
    ("context", "cache_type"): "q8_0",
    ("rewrite", "after"): "ruff check {}",
    ("rewrite", "after_fail"): "undo",
    ("rewrite", "backup_suffix"): ".orig",
    ("view", "theme"): "nord",
    ("view", "tint"): "off",
    ("view", "rendered"): False,
    ("view", "plain_marker"): False,
    ("view", "panel"): False,
    ("view", "fold_thinking"): False,
    ("view", "line_mode"): True,
    ("history", "enabled"): False,
    ("history", "keep_days"): 30,
}
layers = st.lists(
    st.builds(
        lambda source, places: Layer(source, {at: OTHER[at] for at in places}, {at: f"{source} {at}" for at in places}),
        st.sampled_from(list(Source)),
        st.sets(st.sampled_from(list(USUAL))),
    ),
    max_size=4,
)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_setting_has_another_value_in_these_tests() -> None:
    assert OTHER.keys() == USUAL.keys()
    assert all(OTHER[place] != USUAL[place] for place in OTHER)
    settings_from(OTHER)


# The order


@given(stack=layers)
def test_the_strongest_layer_that_has_a_setting_decides_it_and_is_named(stack: list[Layer]) -> None:
    found = resolved(stack)

    for place, value in flattened(found.settings).items():
        holders = [layer for layer in stack if place in layer.values]
        assert value == (holders[0].values[place] if holders else USUAL[place])
        expected = Origin(holders[0].source, holders[0].names[place]) if holders else Origin(Source.BUILT_IN)
        assert found.origin(place) == expected


@given(stack=layers, weakest=layers)
def test_layers_below_change_nothing_that_layers_above_decide(stack: list[Layer], weakest: list[Layer]) -> None:
    above = resolved(stack)
    both = resolved([*stack, *weakest])

    assert {place: both.origins[place] for place in above.origins} == above.origins


@given(levels=st.lists(st.booleans(), min_size=4, max_size=4))
def test_files_variables_and_flags_are_read_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, levels: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("project")
    flag, variable, project, user = levels
    environ = {"SPECCHAT_CONFIG": str(folder / "config.toml"), "SPECCHAT_STATE_DIR": str(folder)}
    if user:
        written(folder / "config.toml", "[sampling]\ntop_k = 4\n")
    if project:
        written(folder / ".specchat.toml", "[sampling]\ntop_k = 3\n")
    if variable:
        environ["SPECCHAT_SAMPLING_TOP_K"] = "2"

    found = read_settings({"top_k": 1} if flag else {}, environ, folder)

    first = levels.index(True) if any(levels) else 4
    assert found.settings.sampling.top_k == [1, 2, 3, 4, 40][first]
    assert found.resolved.origin(("sampling", "top_k")).source is list(Source)[first]
    assert found.stored.sampling.top_k == (4 if user else 40)  # flags are never remembered


def test_a_wrong_user_file_is_told_and_the_other_layers_hold(tmp_path: Path) -> None:
    path = written(tmp_path / "config.toml", "[guess]\nmode = 'fast'\n")
    environ = {"SPECCHAT_CONFIG": str(path), "SPECCHAT_SAMPLING_SEED": "3"}

    found = read_settings({}, environ, tmp_path)

    assert found.problem is not None
    assert found.problem.line == 2
    assert (found.settings.sampling.seed, found.settings.guess.mode) == (3, "auto")


# Flags


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_that_stands_for_a_setting_is_one_of_its_command(name: str) -> None:
    value = OTHER[FLAGS[name]]
    words = [] if value is True else [str(value[0] if isinstance(value, tuple) else value)]
    command = ["rewrite", "a", "b"] if FLAGS[name][0] == "rewrite" else []

    args = parsed([*command, f"--{name.replace('_', '-')}", *words])

    assert args.given[name] is not None


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("ctx", 15, '--ctx is 15; it must be "auto" or a whole number from 16'),
        ("threads", 513, "--threads is 513"),
        ("max_tokens", 0, "--max-tokens is 0"),
        ("guess_max", 64, "--guess-max is 64"),
        ("seed", -1, "--seed is -1"),
        ("temp", -0.5, "--temp is -0.5; it must be a number, 0 or more"),
        ("temp", float("nan"), "--temp is NaN"),
        ("top_p", 1.5, "--top-p is 1.5; it must be a number from 0 to 1"),
        ("model", "", '--model is ""; it must be "auto", or the name or file of a model'),
        ("stop", [""], '--stop is [""]; it must be a list of texts, none of them empty'),
    ],
)
def test_a_wrong_flag_is_named_with_what_is_allowed(flag: str, value: object, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        flag_layer({flag: value})

    assert str(caught.value).startswith(said)


def test_a_word_on_the_command_line_takes_a_number_of_the_file_back(tmp_path: Path) -> None:
    path = written(tmp_path / "config.toml", "[sampling]\nmax_tokens = 9\nseed = 3\n[context]\nsize = 64\n")
    args = parsed(["ask", "--max-tokens", "none", "--seed", "random", "--ctx", "auto", "x"])

    take_settings(args, {"SPECCHAT_CONFIG": str(path)}, tmp_path)

    assert (args.max_tokens, args.seed, args.ctx) == (None, None, None)


# Commands


@pytest.mark.parametrize(
    ("words", "takes"),
    [
        (["ask", "x"], {"sampling.temperature", "system", "model", "context.size"}),
        ([], {"sampling.temperature", "system", "model", "context.size"}),
        (["rewrite", "a", "b"], {"model", "context.size"}),
        (["bench"], {"model", "context.size"}),
    ],
)
def test_a_command_takes_the_settings_that_are_about_what_it_does(
    words: list[str], takes: set[str], tmp_path: Path
) -> None:
    text = "model = 'm'\nsystem = 's'\n[sampling]\ntemperature = 0.5\n[context]\nsize = 64\n"
    args = parsed(words)

    take_settings(args, {"SPECCHAT_CONFIG": str(written(tmp_path / "config.toml", text))}, tmp_path)

    assert args.temp == (0.5 if "sampling.temperature" in takes else 0.7)
    assert args.system == ("s" if "system" in takes else "")
    assert (args.model, args.ctx) == ("m", 64)
    assert flattened(args.chosen.settings)["sampling", "temperature"] == args.temp


def test_a_rewrite_takes_what_to_run_behind_it_from_the_file_in_every_mode(tmp_path: Path) -> None:
    path = written(tmp_path / "config.toml", "[rewrite]\nafter = 'ruff check {}'\n")
    for mode in ("--diff", "--write"):
        args = parsed(["rewrite", "a", "b", mode])
        take_settings(args, {"SPECCHAT_CONFIG": str(path)}, tmp_path)
        assert (args.after, args.given["after"]) == ("ruff check {}", None)


def test_commands_that_take_settings_exist() -> None:
    called = {parsed(words).call for words in ([], ["ask"], ["rewrite"], ["bench"], ["chats", "resume", "1"])}

    assert called == COMMANDS.keys()


# Variables


def test_every_setting_has_a_variable_that_sets_it() -> None:
    spelled = {"stop": '["END", "a,b"]', "sources": "file"}
    for name, place in SETTINGS.items():
        value = OTHER[place]
        raw = spelled.get(place[-1], str(value).lower() if isinstance(value, bool) else str(value))
        layer = variable_layer({name: raw})
        assert layer.values == {place: value}
        assert layer.names == {place: name}
    assert {place for place in KEYS if ANY not in place} == set(SETTINGS.values())


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        (
            "SPECCHAT_GUESS_MODE",
            "fast",
            'SPECCHAT_GUESS_MODE is "fast"; it must be '
            "auto, draft, lookup, recycling, eagle, eagle3, medusa, mtp or off",
        ),
        ("SPECCHAT_SAMPLING_TOP_K", "many", 'SPECCHAT_SAMPLING_TOP_K is "many"; it must be a whole number, 0 or more'),
        ("SPECCHAT_SAMPLING_TOP_P", "nan", "SPECCHAT_SAMPLING_TOP_P is NaN; it must be a number from 0 to 1"),
        ("SPECCHAT_VIEW_PANEL", "perhaps", 'SPECCHAT_VIEW_PANEL is "perhaps"; it must be true or false'),
        ("SPECCHAT_SAMPLING_STOP", "[1]", "SPECCHAT_SAMPLING_STOP is [1]; it must be a list of texts"),
        ("SPECCHAT_SAMPLING_STOP", "[", 'SPECCHAT_SAMPLING_STOP is "["; it must be a list of texts'),
        ("SPECCHAT_CONTEXT_SIZE", "none", 'SPECCHAT_CONTEXT_SIZE is "none"; it must be "auto" or a whole number'),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(name: str, raw: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        variable_layer({name: raw})

    assert str(caught.value).startswith(said)
    assert caught.value.exit_code == 2


def test_an_empty_variable_is_not_set() -> None:
    assert variable_layer(dict.fromkeys(SETTINGS, "")).values == {}


def test_no_history_is_a_variable_that_nothing_takes_back() -> None:
    layer, wrong = examined({"SPECCHAT_NO_HISTORY": "1", "SPECCHAT_HISTORY_ENABLED": "true"})

    assert layer.values == {("history", "enabled"): False}
    assert layer.names["history", "enabled"] == "SPECCHAT_NO_HISTORY"
    assert wrong == []


def test_a_variable_that_does_not_exist_is_told_with_the_one_that_was_meant() -> None:
    found = unknown_variables({"SPECCHAT_GUES_MODE": "off", "SPECCHAT_CONFIG": "x", "OTHER": "y"})

    assert found == [
        "SPECCHAT_GUES_MODE is not a variable of specchat and is ignored; did you mean SPECCHAT_GUESS_MODE?"
    ]


def test_every_variable_has_one_row_with_its_meaning() -> None:
    rows = variables()

    assert len({row.name for row in rows}) == len(rows)
    assert all(row.meaning and row.read_by for row in rows)


# Keys by name


@given(place=st.sampled_from(list(KEYS)))
def test_a_key_is_found_by_its_name(place: Place) -> None:
    place = tuple("a model 1.5" if name == ANY else name for name in place)

    assert place_named(dotted(place)) == place


@pytest.mark.parametrize("key", ["", "#", "guess", "gues.mode", "a = 1 #", "guess.mode = 1 #", "targets.*.draft", "["])
def test_a_key_that_does_not_exist_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="is not a setting"):
        place_named(key)


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError, match=r"did you mean guess\.mode\?"):
        place_named("guess.mod")


def test_the_file_that_is_written_first_names_every_key() -> None:
    live = "\n".join(line.removeprefix("# ") if " = " in line else line for line in template().splitlines())

    assert SettingsText.read(Path("x"), live).known.keys() == USUAL.keys()
