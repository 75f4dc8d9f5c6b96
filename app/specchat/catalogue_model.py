"""One [[model]] of models.toml, checked key by key."""

from __future__ import annotations

import re

from specchat.catalogue import (
    CHECKED,
    COMMIT,
    FILE_NAME,
    MEMORY,
    REPOSITORY,
    ROLES,
    SHA256,
    SPLIT_NAME,
    FilePart,
    HubSource,
    Model,
    ModelFile,
    PackageSource,
    Sampling,
)
from specchat.tables import Table

SOURCE_KINDS = ("package-index", "hub")
KEYS = """id title roles architecture memory tokenizer parameters context kv_bytes_per_token licence sampling checked
checked_on note file source"""
# Anything looser would let the catalogue hand options to pip, or let a file change under its checksum.
EXACT_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*")
DAY = re.compile(r"\d{4}-\d\d(-\d\d)?")
MOST_TEMPERATURE = 2.0


def model_of(table: Table) -> Model:
    """The model, without its draft, which the pairs tell. Raises CatalogueError."""
    table.check_known(KEYS)
    file = _file(table.table("file"))
    sources = tuple(_source(source) for source in table.tables("source"))
    if file.split and any(isinstance(source, PackageSource) for source in sources):
        raise table.error("source", "a package-index source makes one file, and this model is split")
    pinned = tuple(source for source in sources if isinstance(source, PackageSource) or source.revision)
    unpinned = [source for source in sources if isinstance(source, HubSource) and not source.revision]
    return Model(
        id=table.text("id"),
        title=table.text("title"),
        roles=table.texts("roles", form=re.compile("|".join(ROLES)), want=" or ".join(ROLES)),
        draft=None,
        architecture=table.text("architecture"),
        context=table.count("context"),
        licence=table.text("licence"),
        file=file,
        sources=pinned,
        unpinned=unpinned[0] if unpinned else None,
        tokenizer=table.text("tokenizer") if table.has("tokenizer") else "",
        memory=table.one_of("memory", MEMORY) if table.has("memory") else "",
        parameters=table.count("parameters") if table.has("parameters") else 0,
        kv_bytes_per_token=table.count("kv_bytes_per_token") if table.has("kv_bytes_per_token") else 0,
        sampling=_sampling(table.table("sampling")) if table.has("sampling") else Sampling(),
        checked=table.one_of("checked", CHECKED) if table.has("checked") else "",
        checked_on=table.text("checked_on", form=DAY, want="a day or a month, such as 2026-11-30")
        if table.has("checked_on")
        else "",
        note=table.text("note") if table.has("note") else "",
    )


def _sampling(table: Table) -> Sampling:
    table.check_known("temperature top_k top_p min_p")
    return Sampling(
        temperature=table.number("temperature", most=MOST_TEMPERATURE) if table.has("temperature") else None,
        top_k=table.count("top_k") if table.has("top_k") else None,
        top_p=table.number("top_p", most=1) if table.has("top_p") else None,
        min_p=table.number("min_p", most=1) if table.has("min_p") else None,
    )


def _file(table: Table) -> ModelFile:
    quantization = table.text("quantization")
    if not table.has("part"):
        table.check_known("name quantization size sha256")
        whole = _part(table)
        return ModelFile(whole.name, quantization, whole.size, whole.sha256)
    table.check_known("quantization part")
    parts = []
    for inner in table.tables("part"):
        inner.check_known("name size sha256")
        parts.append(_part(inner))
    # llama.cpp finds the other parts by the name of the first.
    numbered = [SPLIT_NAME.fullmatch(part.name) for part in parts]
    wanted = [(number, len(parts)) for number in range(1, len(parts) + 1)]
    found = [(int(match["number"]), int(match["count"])) for match in numbered if match]
    if found != wanted or len({match["stem"] for match in numbered if match}) != 1:
        raise table.error("part", f"must be named NAME-00001-of-{len(parts):05}.gguf and so on, in order")
    return ModelFile(parts[0].name, quantization, sum(part.size for part in parts), "", tuple(parts))


def _part(table: Table) -> FilePart:
    name = table.text("name", form=FILE_NAME, want="a plain file name ending in .gguf, without a folder")
    if ".." in name:
        raise table.error("name", f"{name!r} must not hold '..'")
    sha256 = table.text("sha256", form=SHA256, want="64 lower-case hexadecimal digits")
    return FilePart(name, table.count("size"), sha256)


def _source(table: Table) -> PackageSource | HubSource:
    kind = table.text("kind")
    if kind == "package-index":
        table.check_known("kind packages member")
        packages = table.texts("packages", form=EXACT_REQUIREMENT, want='exact, such as "name==1.0"')
        return PackageSource(packages, table.text("member"))
    if kind == "hub":
        table.check_known("kind repo revision file")
        repo = table.text("repo", form=REPOSITORY, want="owner/name")
        # Without one it is only where the file is known to be: nothing is fetched by a branch.
        pinned = table.has("revision")
        revision = table.text("revision", form=COMMIT, want="a commit of 40 hexadecimal digits") if pinned else ""
        return HubSource(repo, revision, table.text("file"))
    raise table.error("kind", f"must be {' or '.join(SOURCE_KINDS)}, not {kind!r}")
