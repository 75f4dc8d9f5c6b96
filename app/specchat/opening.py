"""From the names on a command line to loaded models, with downloads where the user agrees to them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from specchat.console import say, watched
from specchat.dialogue import Dialogue
from specchat.errors import NotHere
from specchat.kept import kept_prices, kept_survival, kept_trials
from specchat.loading import EngineOptions, Engines, NoRoom, load_engines
from specchat.machine import decoding_threads
from specchat.session import ChatSession, Guess, ReplySettings
from specchat.settings import Settings, to_sampling_config
from specchat.shelf import Shelf
from specchat.trial import NOTE, tried, vouched_for
from speculation.llama import EngineLog, LlamaModel
from speculation.types import Interrupted


def open_session(args: Namespace) -> Dialogue:
    """Who answers, as the arguments say: a server that they name, or a model that is loaded.

    Raises what `open_remote` and `open_here` do.
    """
    if args.endpoint is None:
        return open_here(args)
    from specchat.remote.opening import open_remote

    return open_remote(args, reply_settings_of(args.chosen.settings))


def open_here(args: Namespace) -> ChatSession:
    """Load what the arguments ask for. Raises the errors of `Shelf.locate`, CannotLoad, UnfitDraft, UsageError."""
    settings = reply_settings_of(args.chosen.settings)
    shelf = Shelf()
    target = args.model or shelf.catalogue.default_target
    draft = shelf.paired_draft(target)
    # The pair is fetched together at the first start, so that /guess draft works at once.
    beside = [draft] if draft is not None and args.model is None else []
    if args.model is None and not shelf.store.has(shelf.catalogue.find(target)) and (better := shelf.suggestion()):
        say(better)
    path = harmless(shelf, shelf.locate(target, agreed=args.yes, beside=beside))
    options = EngineOptions(args.ctx, args.threads or decoding_threads(), args.cache_type)
    engines = load_with_bar(path, options)
    chosen = args.chosen.settings_for(engines.target.weights.name).guess
    guess, args.draft = Guess(chosen.mode), chosen.draft  # which /guess draft loads later
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


def close_session(session: Dialogue) -> None:
    """Keep what the session learned of guesses, and let go of its model."""
    if isinstance(session, ChatSession):
        kept_survival().put(session.model.name, session.learned())
    session.close()


def load_draft(engines: Engines, shelf: Shelf, args: Namespace) -> None:
    """Load the draft model that the arguments name or the catalogue pairs. Raises what `draft_path` and loading do."""
    target = args.model or shelf.catalogue.default_target
    engines.load_draft(draft_path(shelf, target, args.draft, agreed=args.yes, beside=engines.target))


def draft_path(shelf: Shelf, target: str, asked: str | None, *, agreed: bool, beside: LlamaModel | None = None) -> Path:
    """The file of the draft model to use for a target. Raises NotHere where nothing is known to fit.

    Only where the target is loaded, `beside`, may it be an EAGLE-3 head.
    """
    if asked in (None, "auto"):
        paired = shelf.paired_draft(target)
        if paired is None:
            raise NotHere("the catalogue knows no draft for this model; name one with --draft")
        asked = paired.id
    if asked == "none":
        raise NotHere("--guess draft needs a draft model, and --draft none forbids one")
    return harmless(shelf, shelf.locate(str(asked), agreed=agreed), beside)


def harmless(shelf: Shelf, path: Path, target: LlamaModel | None = None) -> Path:
    """The path to load a file by, after a trial unless somebody vouches for it. Raises what `tried` does.

    `target`: for which what the file holds would guess.
    """
    if vouched_for(path, shelf.catalogue.models, shelf.store):
        return path
    with watched(path.name) as work:
        work.bar.note(NOTE)
        return tried(path, kept_trials(), work.progress, target)


def reply_settings_of(settings: Settings) -> ReplySettings:
    """The settings of replies as the user has set them."""
    sampling, guess = settings.sampling, settings.guess
    return ReplySettings(
        sampling=to_sampling_config(sampling),
        seed=sampling.seed,
        max_tokens=sampling.max_tokens,
        stop=sampling.stop,
        rule=sampling.rule,
        guess_max=guess.length,
        pause_below=guess.pause_below,
    )


def load_with_bar(path: Path, options: EngineOptions) -> Engines:
    """Load a target; Ctrl-C stops it. Raises CannotLoad, Interrupted."""
    with watched(f"loading {path.name}") as work:

        def progress(done: float) -> bool:
            if done == 1.0:
                work.bar.note("preparing")
            return work.progress(done)

        engines = load_engines(path, options, EngineLog(), progress, kept_prices())
        if not work.is_wanted:
            engines.close()
            raise Interrupted(f"loading {path.name} was stopped")
        return engines
