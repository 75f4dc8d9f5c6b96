"""How models.toml is written: read, checked, and laid over with the user's own models.toml.

The user's file has the same tables and needs only `schema = 1` and what it adds. A [[model]], [[tokenizer]] or
[[licence]] with the id of a shipped one, or a [[pair]] of the same two models, changes the keys that it names and
leaves the others as they are; each key as a whole, so that [model.file], [[model.source]] and sampling are not mixed.
Other entries are added. The user's pairs are preferred to the shipped ones, [[recommended]] takes the place of the
shipped list, and so do default_target and default_draft. Nothing is checked less strictly than in the shipped file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from specchat.catalogue import (
    EVIDENCE,
    MODEL_ID,
    SHA256,
    TERMS,
    Catalogue,
    Licence,
    Model,
    Pair,
    Recommended,
    Tokenizer,
)
from specchat.catalogue_model import model_of
from specchat.folders import own_catalogue_path
from specchat.tables import CatalogueError, Table, suggestion

SCHEMA = 1
KEYS = "schema default_target default_draft recommended licence tokenizer model pair"
LICENCE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
WEB = re.compile(r"https://[!-~]+")

Pairing = tuple[str, str]  # the ids of target and draft


@dataclass(slots=True)
class _Entries:
    """The tables of a file, by what names them."""

    top: Table
    models: dict[str, Table] = field(default_factory=dict)
    tokenizers: dict[str, Table] = field(default_factory=dict)
    licences: dict[str, Table] = field(default_factory=dict)
    pairs: dict[Pairing, Table] = field(default_factory=dict)


def catalogue_path() -> Path:
    """The models.toml of an installed specchat, or of the source tree for an editable install."""
    installed = Path(__file__).with_name("models.toml")
    tree = Path(__file__).resolve().parents[2]
    if not installed.exists() and (tree / "pyproject.toml").exists():
        return tree / "models.toml"
    return installed


def user_catalogue_path(environ: Mapping[str, str]) -> Path | None:
    """The user's own: the file that SPECCHAT_CATALOGUE names, or models.toml beside the settings where there is one."""
    path = own_catalogue_path(environ)
    return path if environ.get("SPECCHAT_CATALOGUE") or path.exists() else None


def load_catalogue(path: Path, user: Path | None = None) -> Catalogue:
    """The checked catalogue of a file, with the user's laid over it. Raises CatalogueError."""
    shipped = _read(path)
    catalogue = _checked(shipped)
    return catalogue if user is None else _checked(_laid_over(shipped, _read(user)))


def _read(path: Path) -> _Entries:
    try:
        text = path.read_bytes().decode()
        values = tomllib.loads(text)
    except OSError as error:
        raise CatalogueError(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(path, f"is not UTF-8 text (byte {error.start})") from error
    except (ValueError, RecursionError) as error:  # its message ends in "(at line 3, column 7)"
        raise CatalogueError(path, f"is not valid TOML: {error}") from error
    top = Table(path, "", values, text)
    # Before anything else: every other complaint about a newer file would mislead.
    if (schema := top.count("schema")) != SCHEMA:
        raise top.error("schema", f"is {schema}, and this specchat reads {SCHEMA}; update specchat")
    top.check_known(KEYS)
    entries = _Entries(top)
    _collect(top, "model", MODEL_ID, "lower-case letters, digits, dots and dashes", entries.models)
    _collect(top, "tokenizer", MODEL_ID, "lower-case letters, digits, dots and dashes", entries.tokenizers)
    _collect(top, "licence", LICENCE_ID, "an SPDX identifier", entries.licences)
    for table in top.tables("pair") if top.has("pair") else []:
        names = table.text("target"), table.text("draft")
        table = table.named(" with ".join(names), "pair")
        if names in entries.pairs:
            raise table.error("draft", "the pair stands there twice")
        entries.pairs[names] = table
    return entries


def _collect(top: Table, kind: str, form: re.Pattern[str], want: str, found: dict[str, Table]) -> None:
    for table in top.tables(kind) if top.has(kind) else []:
        name = table.text("id", form=form, want=want)
        if name in found:
            raise table.error("id", f'"{name}" is used by more than one {kind}')
        found[name] = table.named(name, kind)


def _laid_over(shipped: _Entries, user: _Entries) -> _Entries:
    def over(below: dict[str, Table], above: dict[str, Table]) -> dict[str, Table]:
        changed = {name: table.over(below[name]) if name in below else table for name, table in above.items()}
        return {**below, **changed}

    first = {names: t.over(shipped.pairs[names]) if names in shipped.pairs else t for names, t in user.pairs.items()}
    return _Entries(
        user.top.over(shipped.top),
        over(shipped.models, user.models),
        over(shipped.tokenizers, user.tokenizers),
        over(shipped.licences, user.licences),
        {**first, **{names: table for names, table in shipped.pairs.items() if names not in first}},
    )


def _checked(entries: _Entries) -> Catalogue:
    top = entries.top
    if not entries.models:
        raise top.error("model", "is missing")
    models = {name: model_of(table) for name, table in entries.models.items()}
    tokenizers = tuple(_tokenizer(table) for table in entries.tokenizers.values())
    _check_files(models, entries.models)
    for name, model in models.items():
        if model.tokenizer and model.tokenizer not in entries.tokenizers:
            near = suggestion(model.tokenizer, entries.tokenizers)
            raise entries.models[name].error("tokenizer", f'there is no tokenizer "{model.tokenizer}"{near}')
    pairs = tuple(_pair(table, models) for table in entries.pairs.values())
    drafts = {pair.target: pair.draft for pair in reversed(pairs) if models[pair.draft].can_draft}
    return Catalogue(
        models=tuple(replace(model, draft=drafts.get(name)) for name, model in models.items()),
        default_target=_role(top, "default_target", models, "target").id,
        default_draft=_role(top, "default_draft", models, "draft").id,
        pairs=pairs,
        tokenizers=tokenizers,
        licences=tuple(_licence(table) for table in entries.licences.values()),
        recommended=tuple(
            _recommended(table, models) for table in (top.tables("recommended") if top.has("recommended") else [])
        ),
    )


def _tokenizer(table: Table) -> Tokenizer:
    table.check_known("id kind sizes tokens_sha256 note")
    known = table.has("tokens_sha256")
    return Tokenizer(
        id=table.text("id"),
        kind=table.text("kind"),
        sizes=table.counts("sizes"),
        tokens_sha256=table.text("tokens_sha256", form=SHA256, want="64 hexadecimal digits") if known else "",
        note=table.text("note") if table.has("note") else "",
    )


def _licence(table: Table) -> Licence:
    table.check_known("id title terms url hub")
    url = table.text("url", form=WEB, want="an address that begins with https://")
    names = table.texts("hub") if table.has("hub") else ()
    return Licence(table.text("id"), table.text("title"), table.one_of("terms", TERMS), url, names)


def _pair(table: Table, models: Mapping[str, Model]) -> Pair:
    table.check_known("target draft evidence note")
    target, draft = _role(table, "target", models, "target"), _role(table, "draft", models, "draft", "head")
    if target is draft:
        raise table.error("draft", "a model cannot draft for itself")
    if target.tokenizer and draft.tokenizer and target.tokenizer != draft.tokenizer:
        problem = f"has the tokenizer {draft.tokenizer}, and its target {target.tokenizer}; they must be the same"
        raise table.error("draft", problem)
    note = table.text("note") if table.has("note") else ""
    return Pair(target.id, draft.id, table.one_of("evidence", EVIDENCE), note)


def _recommended(table: Table, models: Mapping[str, Model]) -> Recommended:
    table.check_known("memory_gib target draft")
    target, draft = _role(table, "target", models, "target"), _role(table, "draft", models, "draft")
    return Recommended(table.count("memory_gib", least=0), target.id, draft.id)


def _role(table: Table, key: str, models: Mapping[str, Model], *roles: str) -> Model:
    wanted = table.text(key)
    if wanted not in models:
        raise table.error(key, f'there is no model "{wanted}"{suggestion(wanted, models)}')
    if not set(roles) & set(models[wanted].roles):
        raise table.error(key, f'model "{wanted}" does not have the role {roles[0]}')
    return models[wanted]


def _check_files(models: Mapping[str, Model], tables: Mapping[str, Table]) -> None:
    # Regardless of case, because the files share a folder and not every file system tells cases apart.
    owners: dict[str, str] = {}
    for model in models.values():
        for part in model.file.parts:
            owner = owners.setdefault(part.name.lower(), model.id)
            if owner != model.id or [each.name for each in model.file.parts].count(part.name) > 1:
                raise tables[model.id].error("file", f'the name "{part.name}" is used by "{owner}" as well')
