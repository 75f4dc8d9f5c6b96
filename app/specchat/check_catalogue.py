"""`specchat models check-catalogue`: what the catalogue says of files on the model hub, and what the hub says."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from specchat.catalogue import Catalogue, HubSource, Model
from specchat.console import printable, say
from specchat.hub import HubError, Repository, repository
from specchat.shelf import Shelf

WRONG, NETWORK = 1, 9
GONE = ("no-repository", "no-revision", "no-file", "disabled")
UNREACHABLE = ("offline", "network", "not-the-hub", "rate-limited")  # it would be the same with the next repository

Look = Callable[[str, str | None], Repository]  # (name, commit or None for the present one); raises HubError


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of comparing a model."""

    id: str
    verdict: str  # right, unpinned, wrong, gone, gated, or unchecked where it cannot be told
    detail: str
    repo: str
    revision: str  # the one in the catalogue, or the present one where that has none


def check_catalogue(args: Namespace) -> int:
    """A line a model. Returns 1 when one is wrong or gone, 9 when the hub could not be asked."""
    catalogue = Shelf().catalogue
    named = [catalogue.find(name) for name in args.names]
    models = named or [model for model in catalogue.models if not model.origin]
    found = []
    for finding in findings(catalogue, models, lambda name, revision: repository(name, revision, lambda: None)):
        found.append(finding)
        if not args.json:
            words = "cannot be checked" if finding.verdict == "unchecked" else finding.verdict
            print(printable(f"{finding.id}: {words}{finding.detail and f': {finding.detail}'}"), flush=True)
    if args.json:
        json.dump([asdict(finding) for finding in found], sys.stdout, indent=2)
        print()
    counts = {
        verdict: sum(each.verdict == verdict for each in found) for verdict in dict.fromkeys(f.verdict for f in found)
    }
    say(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if counts.get("wrong") or counts.get("gone"):
        return WRONG
    return NETWORK if counts.get("unchecked") else 0


def findings(catalogue: Catalogue, models: Iterable[Model], look: Look) -> Iterator[Finding]:
    """What the hub says of each model. Models of one repository are looked up together."""
    answers: dict[tuple[str, str], Repository | HubError] = {}
    unreachable = False
    for model in models:
        source = next((each for each in model.sources if isinstance(each, HubSource)), model.unpinned)
        if source is None:
            yield Finding(model.id, "unchecked", "it is on no hub, as far as the catalogue knows", "", "")
            continue
        asked = source.repo, source.revision
        if asked not in answers and unreachable:
            yield Finding(model.id, "unchecked", "not asked any more", *asked)
            continue
        if asked not in answers:
            try:
                answers[asked] = look(source.repo, source.revision or None)
            except HubError as error:
                answers[asked] = error
                unreachable = error.kind in UNREACHABLE
        answer = answers[asked]
        if isinstance(answer, HubError):
            yield Finding(model.id, _verdict(answer), str(answer), *asked)
        else:
            yield _compared(catalogue, model, source, answer)


def _verdict(error: HubError) -> str:
    if error.kind in GONE:
        return "gone"
    return "gated" if error.kind == "gated" else "unchecked"


def _compared(catalogue: Catalogue, model: Model, source: HubSource, found: Repository) -> Finding:
    def finding(verdict: str, detail: str) -> Finding:
        return Finding(model.id, verdict, detail, source.repo, source.revision or found.commit)

    there = {file.name: file for file in found.files}
    problems = []
    for part in model.file.parts:
        # The parts of a split model lie beside its first.
        path = PurePosixPath(source.file)
        name = str(path.with_name(part.name) if model.file.split else path)
        file = there.get(name)
        if file is None:
            return finding("gone", f"{source.repo} has no {name} at {(source.revision or found.commit)[:12]}")
        if file.size != part.size:
            problems.append(f"{name} has {file.size} bytes, in the catalogue {part.size}")
        elif file.sha256 != part.sha256:
            problems.append(f"the sha256 of {name} is {file.sha256 or 'not told'}, in the catalogue {part.sha256}")
    if source.revision and found.commit != source.revision:
        problems.append(f"the hub took {source.revision[:12]} for {found.commit[:12]}")
    licence = catalogue.licence(model)
    names = {model.licence.lower(), *(licence.hub if licence else ())}
    if found.licence and found.licence not in names:
        problems.append(f"its licence is {found.licence}, in the catalogue {model.licence}")
    if problems:
        return finding("wrong", "; ".join(problems))
    if not source.revision:
        return finding("unpinned", f'the file is the right one; pin it with revision = "{found.commit}"')
    return (
        finding("gated", "its terms have to be accepted before it is fetched") if found.gated else finding("right", "")
    )
