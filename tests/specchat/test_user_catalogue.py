"""The user's own models.toml, laid over the shipped one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.catalogue import Catalogue, CatalogueError, PackageSource, Pair, Sampling
from specchat.catalogue_file import load_catalogue, user_catalogue_path
from tests.specchat.test_catalogue import OTHER, VALID, line_of_first


def laid_over(tmp_path: Path, user: str) -> Catalogue:
    (tmp_path / "shipped.toml").write_text(VALID)
    (tmp_path / "user.toml").write_text(user)
    return load_catalogue(tmp_path / "shipped.toml", tmp_path / "user.toml")


@pytest.fixture
def shipped(tmp_path: Path) -> Catalogue:
    (tmp_path / "shipped.toml").write_text(VALID)
    return load_catalogue(tmp_path / "shipped.toml")


@pytest.mark.parametrize("user", ["schema = 1\n", VALID])
def test_a_file_that_adds_nothing_changes_nothing(tmp_path: Path, shipped: Catalogue, user: str) -> None:
    assert laid_over(tmp_path, user) == shipped


def test_a_model_of_the_same_id_changes_the_keys_that_it_names_and_no_others(
    tmp_path: Path, shipped: Catalogue
) -> None:
    changed = laid_over(tmp_path, 'schema = 1\n[[model]]\nid = "big"\ntitle = "Mine"\nsampling = { top_k = 3 }\n')

    big = replace(shipped.find("big"), title="Mine", sampling=Sampling(top_k=3))
    assert changed == replace(shipped, models=(big, shipped.find("small")))


def test_other_models_are_added_behind_and_can_be_paired_with_shipped_ones(tmp_path: Path) -> None:
    pair = '[[pair]]\ntarget = "big"\ndraft = "other"\nevidence = "inferred"\n'

    catalogue = laid_over(tmp_path, f"schema = 1\n{OTHER}{pair}")

    assert [model.id for model in catalogue.models] == ["big", "small", "other"]
    assert catalogue.pairs == (Pair("big", "other", "inferred"), Pair("big", "small", "measured", "A figure"))
    assert catalogue.find("big").draft == "other"


def test_a_pair_of_the_same_models_changes_the_keys_that_it_names(tmp_path: Path) -> None:
    pair = '[[pair]]\ntarget = "big"\ndraft = "small"\nnote = "mine"\n'

    assert laid_over(tmp_path, f"schema = 1\n{pair}").pairs == (Pair("big", "small", "measured", "mine"),)


def test_defaults_recommendations_licences_and_tokenizers_can_be_changed(tmp_path: Path) -> None:
    catalogue = laid_over(
        tmp_path,
        'schema = 1\ndefault_target = "small"\nrecommended = [{ memory_gib = 1, target = "big", draft = "small" }]\n'
        '[[licence]]\nid = "MIT"\nterms = "non-commercial"\n'
        '[[licence]]\nid = "Apache-2.0"\ntitle = "Apache"\nterms = "open"\nurl = "https://apache.org/"\n'
        '[[tokenizer]]\nid = "words"\nsizes = [5]\n',
    )

    assert (catalogue.default_target, catalogue.default_draft) == ("small", "small")
    assert [each.memory_gib for each in catalogue.recommended] == [1]
    assert [(each.id, each.title, each.terms) for each in catalogue.licences] == [
        ("MIT", "MIT License", "non-commercial"),
        ("Apache-2.0", "Apache", "open"),
    ]
    assert [(each.kind, each.sizes) for each in catalogue.tokenizers] == [("BPE", (5,))]


def test_sources_are_changed_as_a_whole(tmp_path: Path) -> None:
    source = '[[model]]\nid = "big"\n[[model.source]]\nkind = "package-index"\npackages = ["mine==3.0"]\nmember = "*"\n'

    assert laid_over(tmp_path, f"schema = 1\n{source}").find("big").sources == (PackageSource(("mine==3.0",), "*"),)


@pytest.mark.parametrize(
    ("user", "line", "said"),
    [
        ('schema = 1\n[[model]]\nid = "big"\ncontext = "long"\n', 4, 'model "big" context: must be a whole number'),
        ('schema = 1\n[[model]]\nid = "big"\n\nfiles = 3\n', 5, 'model "big" files: unknown key'),
        ('schema = 1\n\n[[model]]\nid = "mine"\n', 3, 'model "mine" file: is missing'),
        ('schema = 1\n[[model]]\nid = "big"\n[model.file]\nname = "x.gguf"\n', 4, "quantization: is missing"),
        ('schema = 1\ndefault_draft = "bigg"\n', 2, 'default_draft: there is no model "bigg"; did you mean "big"?'),
        ('schema = 1\n[[pair]]\ntarget = "big"\ndraft = "no"\nevidence = "inferred"\n', 4, 'there is no model "no"'),
        ('schema = 1\n[[pair]]\ntarget = "big"\ndraft = "small"\nevidence = "so"\n', 5, "must be measured or reported"),
        ("schema = 1\nmodels = 3\n", 2, 'models: unknown key; did you mean "model"?'),
        ("schema = 1\nmodel = 3\n", 2, "model: must be one or more tables, [[model]]"),
        ("schema = 7\n", 1, "schema: is 7, and this specchat reads 1; update specchat"),
    ],
)
def test_a_complaint_names_the_users_file_its_line_and_the_key(tmp_path: Path, user: str, line: int, said: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        laid_over(tmp_path, user)

    assert str(caught.value).startswith(f"{tmp_path / 'user.toml'}, line {line}: ")
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"small==2.0"', '"small>=2.0"'),
        ('"small==2.0"', '"--index-url=http://elsewhere"'),
        ('"small==2.0"', '"small @ https://elsewhere/x.whl"'),
        ("small.gguf", "../small.gguf"),
        ("c" * 64, ""),
        ('"package-index"', '"web"'),
    ],
)
def test_what_the_user_writes_is_checked_like_what_is_shipped(tmp_path: Path, old: str, new: str) -> None:
    entry = VALID[VALID.index('[[model]]\nid = "small"') : VALID.index("[[pair]]")]
    user = f"schema = 1\n{entry}".replace(old, new, 1)

    with pytest.raises(CatalogueError, match=re.escape(str(tmp_path / "user.toml"))) as caught:
        laid_over(tmp_path, user)

    changed = old if new == "" else new
    assert caught.value.line == line_of_first(user, changed if changed in user else 'sha256 = ""')


def test_a_name_of_a_file_that_a_shipped_model_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r'user\.toml, line .*: model "other" file: the name "BIG\.gguf"'):
        laid_over(tmp_path, f"schema = 1\n{OTHER}".replace("other.gguf", "BIG.gguf"))


def test_a_broken_shipped_file_is_named_and_not_the_users(tmp_path: Path) -> None:
    (tmp_path / "shipped.toml").write_text("schema = 1\n")
    (tmp_path / "user.toml").write_text(VALID)

    with pytest.raises(CatalogueError, match=r"shipped\.toml: model: is missing"):
        load_catalogue(tmp_path / "shipped.toml", tmp_path / "user.toml")


def test_the_users_file_lies_beside_the_settings_or_where_a_variable_says(tmp_path: Path) -> None:
    environ = {"SPECCHAT_CONFIG": str(tmp_path / "config.toml")}
    assert user_catalogue_path(environ) is None

    (tmp_path / "models.toml").touch()
    assert user_catalogue_path(environ) == tmp_path / "models.toml"
    assert user_catalogue_path({**environ, "SPECCHAT_CATALOGUE": "/x/y.toml"}) == Path("/x/y.toml")


def test_a_file_that_a_variable_names_and_that_is_not_there_is_told(tmp_path: Path, shipped: Catalogue) -> None:
    with pytest.raises(CatalogueError, match=r"absent\.toml: cannot be read"):
        load_catalogue(tmp_path / "shipped.toml", tmp_path / "absent.toml")
