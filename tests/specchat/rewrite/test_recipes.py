"""Recipes: places are filled once, by what was given; broken ones are told and hide no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.errors import UsageError
from specchat.folders import recipes_folder
from specchat.rewrite.checks import Kept, Rails
from specchat.rewrite.recipes import Recipe, Variable, find_recipe, load_recipes, values_of
from specchat.tables import CatalogueError

LETTER = Recipe("letter", "", "Write to {name} in a {tone} tone.", (Variable("name", None), Variable("tone", "warm")))


def put(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.toml").write_text(text)


def test_every_built_in_recipe_can_be_filled_and_leaves_no_place_open(tmp_path: Path) -> None:
    recipes = load_recipes(pytest.fail, tmp_path)

    assert {"proofread", "translate", "docstrings", "simplify", "rename", "british"} <= {each.name for each in recipes}
    for recipe in recipes:
        filled = recipe.filled({each.name: "X" for each in recipe.variables if each.default is None})
        assert "{" not in filled
        assert "\n" not in filled
        assert recipe.description


@given(st.text(min_size=1), st.text(min_size=1))
def test_values_are_put_in_as_they_are(name: str, tone: str) -> None:
    """A value that looks like a place is not filled again."""
    assert LETTER.filled({"name": name, "tone": tone}) == f"Write to {name} in a {tone} tone."


def test_a_default_stands_in_for_what_is_not_given() -> None:
    assert LETTER.filled({"name": "{tone}"}) == "Write to {tone} in a warm tone."


def test_what_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(UsageError, match="recipe letter needs -p name="):
        LETTER.filled({})
    with pytest.raises(UsageError, match='no variable tome; did you mean "tone"'):
        LETTER.filled({"name": "x", "tome": "y"})
    with pytest.raises(UsageError, match="it has name, tone"):
        LETTER.filled({"name": "x", "qqq": "y"})


def test_braces_that_hold_no_name_stand_for_themselves(tmp_path: Path) -> None:
    put(tmp_path, "mine", "instruction = 'sort {} and { a } and {A} by {key}'\n")

    assert find_recipe("mine", tmp_path).filled({"key": "date"}) == "sort {} and { a } and {A} by date"


def test_an_own_recipe_wins_over_one_that_came_with_the_program(tmp_path: Path) -> None:
    put(tmp_path, "proofread", "description = 'mine'\ninstruction = 'do {what}'\n[variables]\nwhat = 'that'\n")

    assert find_recipe("proofread", tmp_path).filled() == "do that"
    assert [each.description for each in load_recipes(pytest.fail, tmp_path) if each.name == "proofread"] == ["mine"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("instruction = 'x'\ninstructions = 'y'\n", 'unknown key; did you mean "instruction"'),
        ("description = 'x'\n", "instruction: is missing"),
        ("instruction = 1\n", "line 1: instruction: must be a text"),
        ("instruction = 'x'\n[variables]\ntone = 'warm'\n", "{tone} stands nowhere"),
        ("instruction = '{tone}'\n[variables]\ntone = 3\n", "line 3: variables.tone"),
        ("instruction = 'x'\nkeep = ['hats']\n", "line 2: keep"),
        ("instruction = 'x'\nmax_change = 101\n", "line 2: max_change"),
        ("instruction = 'x'\nafter = 'rm {}'\n", "unknown key"),
        ("instruction = \n", "line 1"),
        ("instruction = '" + "x" * 70_000 + "'", "longer than"),
    ],
)
def test_a_broken_file_is_told_with_its_place_and_hides_no_other(tmp_path: Path, text: str, problem: str) -> None:
    put(tmp_path, "mine", text)
    told: list[str] = []

    recipes = load_recipes(told.append, tmp_path)

    assert "proofread" in {each.name for each in recipes}
    assert len(told) == 1
    assert problem in told[0]
    assert "mine.toml" in told[0]
    with pytest.raises(CatalogueError):
        find_recipe("mine", tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "sub/mine", "..", "", "mine.toml", "\x1b[31m", "a\0b"])
def test_a_name_is_never_part_of_a_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    put(tmp_path, "secret", "instruction = 'x'\n")
    put(folder, "mine", "instruction = 'x'\n")

    with pytest.raises(UsageError, match="no recipe is named") as refused:
        find_recipe(name, folder)

    assert "\x1b" not in str(refused.value)


def test_a_slip_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='did you mean "proofread"'):
        find_recipe("profread", tmp_path)


def test_own_recipes_are_beside_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "here.toml"))

    assert recipes_folder() == tmp_path / "recipes"


def test_guard_rails_add_up_and_the_users_limit_wins() -> None:
    recipe = Recipe("x", "", "y", keep=frozenset((Kept.URLS,)), max_change=5)

    assert recipe.guard(Rails(keep=frozenset((Kept.NUMBERS,)))) == Rails(5, frozenset((Kept.URLS, Kept.NUMBERS)))
    assert recipe.guard(Rails(max_change=50)).max_change == 50


def test_values_are_name_and_value() -> None:
    assert values_of(["a=b=c", "x= y "]) == {"a": "b=c", "x": " y "}
    for word in ("a", "=b", "a=", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            values_of([word])
