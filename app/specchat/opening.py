"""From the names on a command line to loaded models, with downloads where the user agrees to them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from specchat.catalogue import Catalogue, HubSource, Model, UnknownModel
from specchat.catalogue_file import catalogue_path, load_catalogue, user_catalogue_path
from specchat.console import Bar, can_ask, confirmed, on_interrupt, say, size
from specchat.downloads import Store, models_dir
from specchat.errors import Declined, NotHere, UsageError
from specchat.fit import too_large
from specchat.headers import HeaderError
from specchat.hub import repository
from specchat.kept import kept_prices, kept_survival, kept_trials
from specchat.loading import EngineOptions, Engines, NoRoom, load_engines, room_here
from specchat.machine import decoding_threads, total_memory
from specchat.own_models import OwnModels, fetchable
from specchat.recommended import among_what_is_here, better_pair, memory_bytes
from specchat.repositories import choose, is_spec, parse_spec
from specchat.session import ChatSession, Guess, ReplySettings
from specchat.settings import Settings, to_sampling_config
from specchat.tables import CatalogueError
from specchat.trial import NOTE, tried, vouched_for
from speculation.llama import EngineLog
from speculation.sampling import SamplingConfig
from speculation.types import Interrupted

LIMITS = {
    "ctx": (16, 2**24),
    "threads": (1, 512),
    "max_tokens": (1, 2**31),
    "guess_max": (1, 63),
    "seed": (0, 2**64 - 1),
}


class Shelf:
    """The catalogue, the user's own models and the store together: what is known and what is here."""

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        """Raises CatalogueError; with `tell`, lists of the user's that are broken are left out and told instead."""
        self.store = Store(models_dir(os.environ))
        self.own = OwnModels(self.store.folder)
        shipped, user = catalogue_path(), user_catalogue_path(os.environ)
        try:
            known = load_catalogue(shipped, user)
        except CatalogueError as error:
            if tell is None or error.path == shipped:
                raise
            tell(f"{error}; using the shipped catalogue")
            known = load_catalogue(shipped)
        own: tuple[Model, ...] = ()
        try:
            own = self.own.models()
        except CatalogueError as error:
            if tell is None:
                raise
            tell(f"{error}; going on without the models in it")
        names = {model.id for model in own}
        others = tuple(model for model in known.models if model.id not in names)
        self.catalogue: Catalogue = among_what_is_here(replace(known, models=others + own), self.store.has)

    def locate(self, name: str, *, agreed: bool, beside: Sequence[Model] = ()) -> Path:
        """The file of a model that is known, of one of the hub, or at a path; fetches it, and `beside`, on a yes.

        Raises UnknownModel, NotHere, Declined, UsageError, DownloadError, HeaderError.
        """
        if is_path(name):
            return Path(os.path.expanduser(name))  # which, unlike Path's own, leaves an unknown user alone
        model = self.hub_model(name) if is_spec(name) else self.catalogue.find(name)
        if model.is_linked:
            return self.store.pull(model, Bar(model.id, "bytes"))  # which only looks whether it is there
        if not self.store.has(model):
            if model.why_not_fetched:
                raise NotHere(model.why_not_fetched)
            missing = [model, *(each for each in beside if not self.store.has(each) and not each.why_not_fetched)]
            total = sum(other.file.size for other in missing)
            titles = " and ".join(f"{other.title} ({size(other.file.size)})" for other in missing)
            if not agreed:
                say(f"{titles} will be fetched into {self.store.path(model).parent}, {size(total)} in all.")
                self.warn(missing)
                if not confirmed("Fetch now?"):
                    self._refuse(missing)
            for other in missing:
                self.pull(other)
        self.own.complete(model, self.store.path(model))
        return self.store.path(model)

    def hub_model(self, name: str) -> Model:
        """The model that hf:owner/name:QUANT means: as it was asked for before, or as the hub has it now.

        Raises UsageError, DownloadError.
        """
        try:
            return self.catalogue.find(name)
        except UnknownModel:
            spec = parse_spec(name)
        found = repository(spec.repo, spec.revision, lambda: None)
        variant = choose(spec, found)
        sums = [file.sha256 for file in variant.files]
        for model in self.catalogue.models:  # which may have another source for it, or be here already
            if [part.sha256 for part in model.file.parts] == sums:
                if model.sources:
                    return model
                return replace(model, sources=(HubSource(spec.repo, found.commit, variant.name),))  # now it is pinned
        return fetchable(self.own, name, spec, found, variant, {model.id for model in self.catalogue.models})

    def pull(self, model: Model) -> Path:
        """Fetch one model with a progress bar; one that only the hub knows becomes one of the user's own.

        Raises DownloadError, HeaderError.
        """
        asked_by_name = is_spec(model.origin)
        if asked_by_name:
            self.own.put(model)
        try:
            with Bar(model.id, "bytes") as bar:
                path = self.store.pull(model, bar)
            self.own.complete(model, path)
            return path
        except HeaderError:
            self.store.remove(model)  # it is what was published, and no model
            raise
        finally:
            if asked_by_name and not self.store.begun(model):
                self.own.forget(model.id)

    def paired_draft(self, name: str) -> Model | None:
        """The draft that the catalogue recommends for a target."""
        if is_path(name) or is_spec(name):
            return None
        draft = self.catalogue.find(name).draft
        return None if draft is None else self.catalogue.find(draft)

    def warn(self, models: Sequence[Model]) -> None:
        """Say what somebody should know before models are fetched."""
        for warning in self.warnings(models):
            say(warning)

    def warnings(self, models: Sequence[Model]) -> list[str]:
        """What the licences of models ask of people, and which of them there is no memory for, each once."""
        room = room_here()
        licences = [self.catalogue.warning(model) for model in models]
        sizes = [too_large(model.title, memory_bytes(model), room) for model in models]
        return [warning for warning in dict.fromkeys(licences + sizes) if warning]

    def suggestion(self) -> str:
        """A line on a pair that suits the memory of this machine better; "" where there is nothing to say."""
        pair = better_pair(self.catalogue, self.store.has, total_memory())
        if pair is None:
            return ""
        missing = " ".join(model.id for model in pair if not self.store.has(model))
        return f"this machine has room for {pair[0].id} with {pair[1].id}: specchat models pull {missing}"

    def _refuse(self, missing: Sequence[Model]) -> None:
        names = " ".join(model.origin if is_spec(model.origin) else model.id for model in missing)
        if can_ask():
            raise Declined(f"nothing fetched; `specchat models pull {names}` does it later")
        raise NotHere(f"no terminal to ask on: run `specchat models pull {names}` first, or add -y")


def is_path(name: str) -> bool:
    """Whether a model name means a file rather than a model that is known or on the hub."""
    return not is_spec(name) and (name.endswith(".gguf") or "/" in name or os.sep in name)


def open_session(args: Namespace) -> ChatSession:
    """Load what the arguments ask for. Raises the errors of `Shelf.locate`, CannotLoad, UnfitDraft, UsageError."""
    settings = reply_settings(args)
    shelf = Shelf()
    target = args.model or shelf.catalogue.default_target
    guess = Guess(args.guess)
    draft = shelf.paired_draft(target)
    # The pair is fetched together at the first start, so that /guess draft works at once.
    beside = [draft] if draft is not None and args.model is None else []
    if args.model is None and not shelf.store.has(shelf.catalogue.find(target)) and (better := shelf.suggestion()):
        say(better)
    path = harmless(shelf, shelf.locate(target, agreed=args.yes, beside=beside))
    options = EngineOptions(args.ctx, args.threads or decoding_threads(), args.cache_type)
    engines = load_with_bar(path, options)
    try:
        session = ChatSession(engines, settings)
        session.take_up(kept_survival().get(engines.target.weights.name))
        if args.draft not in (None, "auto", "none") or guess is Guess.DRAFT:
            try:
                load_draft(engines, shelf, args)
            except NoRoom as error:
                if guess is Guess.DRAFT:
                    raise
                engines.notices.append(str(error))
        session.guess = guess
    except BaseException:
        engines.close()
        raise
    if args.system:
        session.set_system(args.system)
    return session


def close_session(session: ChatSession) -> None:
    """Keep what the session learned of guesses, and free its models."""
    kept_survival().put(session.engines.target.weights.name, session.learned())
    session.engines.close()


def load_draft(engines: Engines, shelf: Shelf, args: Namespace) -> None:
    """Load the draft model that the arguments name or the catalogue pairs. Raises what `draft_path` and loading do."""
    target = args.model or shelf.catalogue.default_target
    engines.load_draft(draft_path(shelf, target, args.draft, agreed=args.yes))


def draft_path(shelf: Shelf, target: str, asked: str | None, *, agreed: bool) -> Path:
    """The file of the draft model to use for a target. Raises NotHere where nothing is known to fit."""
    if asked in (None, "auto"):
        paired = shelf.paired_draft(target)
        if paired is None:
            raise NotHere("the catalogue knows no draft for this model; name one with --draft")
        asked = paired.id
    if asked == "none":
        raise NotHere("--guess draft needs a draft model, and --draft none forbids one")
    return harmless(shelf, shelf.locate(str(asked), agreed=agreed))


def harmless(shelf: Shelf, path: Path) -> Path:
    """The path to load a file by, after a trial unless somebody vouches for it. Raises what `tried` does."""
    if vouched_for(path, shelf.catalogue.models, shelf.store):
        return path
    wanted = True

    def stop() -> None:
        nonlocal wanted
        wanted = False

    with Bar(path.name, "parts") as bar, on_interrupt(stop):
        bar.start(1)
        bar.note(NOTE)

        def progress(done: float) -> bool:
            bar.move_to(done)
            return wanted

        return tried(path, kept_trials(), progress)


def reply_settings(args: Namespace) -> ReplySettings:
    """The settings that the arguments ask for. Raises UsageError that names the wrong one."""
    for name, (least, most) in LIMITS.items():
        value = getattr(args, name)
        if value is not None and not least <= value <= most:
            allowed = f"{least} or more" if value < least else f"{most} or less"
            raise UsageError(f"--{name.replace('_', '-')} is {value}; it must be {allowed}")
    if args.model == "":
        raise UsageError("--model is empty; it must name a model or a .gguf file")
    try:
        sampling = SamplingConfig(
            temperature=args.temp,
            top_k=args.top_k,
            top_p=args.top_p,
            min_p=args.min_p,
            repeat_penalty=args.repeat_penalty,
            repeat_last_n=args.repeat_last_n,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    return ReplySettings(sampling, args.seed, args.max_tokens, tuple(args.stop), args.rule, args.guess_max)


def reply_settings_of(settings: Settings) -> ReplySettings:
    """The settings of replies as the user has set them."""
    sampling, guess = settings.sampling, settings.guess
    return ReplySettings(
        sampling=to_sampling_config(sampling),
        seed=sampling.seed,
        max_tokens=sampling.max_tokens,
        rule=sampling.rule,
        guess_max=guess.length,
        pause_below=guess.pause_below,
    )


def load_with_bar(path: Path, options: EngineOptions) -> Engines:
    """Load a target; Ctrl-C stops it. Raises CannotLoad, Interrupted."""
    wanted = True

    def stop() -> None:
        nonlocal wanted
        wanted = False

    with Bar(f"loading {path.name}", "parts") as bar, on_interrupt(stop):
        bar.start(1)

        def progress(done: float) -> bool:
            bar.move_to(done)
            if done == 1.0:
                bar.note("preparing")
            return wanted

        engines = load_engines(path, options, EngineLog(), progress, kept_prices())
        if not wanted:
            engines.close()
            raise Interrupted(f"loading {path.name} was stopped")
        return engines
