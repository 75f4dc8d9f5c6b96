"""`specchat` on a terminal: settings and flags together start the app."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import replace

from specchat.console import say
from specchat.history.store import history_path
from specchat.settings import Settings, SettingsError, SettingsFile, settings_path
from specchat.tui.app import SpecchatApp
from specchat.tui.engine_thread import Wanted
from specchat.tui.start import Start


def run(args: Namespace) -> int:
    """Open the app and stay until the user leaves. Returns the exit code."""
    file = SettingsFile(settings_path())
    trouble = ""
    try:
        stored = file.load()
        trouble = "; ".join(file.warnings)
    except SettingsError as error:
        stored, trouble = Settings(), f"{error}; using the defaults"
    settings = with_flags(stored, args)
    wanted = Wanted(
        settings.model,
        settings.guess.draft,
        settings.guess.mode,
        settings.context.size,
        settings.context.threads,
        getattr(args, "cache_type", "f16"),
    )
    if args.yes:
        fetch(wanted)
    resume = None if args.resume is None else chat_of(args.resume)
    app = SpecchatApp(Start(settings, stored, file, wanted, trouble, history_path(), is_private(args), resume))
    app.run()
    app.end_chats()
    unfinished = [] if app.fetches is None else [each.model for each in app.fetches.all() if each.is_open]
    let_go = app.fetches is None or app.fetches.close()
    for model in unfinished:
        say(f"{model.id} is not all here yet; `specchat models pull {model.id}` goes on where it stopped")
    if not app.engine.close() or not let_go:
        sys.stdout.flush()
        os._exit(app.return_code or 0)  # the engine is inside something that does not look up; the terminal is restored
    return app.return_code or 0


def chat_of(wanted: str) -> int:
    """The stored chat that `--resume` means. Raises StoreRefused, NoSuchChat."""
    from specchat.history.choosing import chosen
    from specchat.history.store import Store

    with Store.open(history_path()) as store:
        return chosen(store, wanted).id


def is_private(args: Namespace) -> bool:
    """Whether nothing is to be written down."""
    return bool(args.private) or bool(os.environ.get("SPECCHAT_NO_HISTORY"))


def fetch(wanted: Wanted) -> None:
    """Fetch what is missing before the screen opens: `-y` has agreed to it. Raises what `Shelf.locate` does."""
    from specchat.opening import Shelf

    shelf = Shelf(say)
    name = wanted.model or shelf.catalogue.default_target
    paired = shelf.paired_draft(name)
    shelf.locate(name, agreed=True, beside=[paired] if paired is not None else [])


def with_flags(settings: Settings, args: Namespace) -> Settings:
    """The settings with what was asked for on the command line. Raises UsageError."""
    given = vars(args).get("given", {})
    guess = {"mode": "guess", "draft": "draft", "length": "guess_max"}
    sampling = {
        "temperature": "temp", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "repeat_penalty": "repeat_penalty",
        "repeat_last_n": "repeat_last_n", "seed": "seed", "max_tokens": "max_tokens", "rule": "rule",
    }  # fmt: skip
    context = {"size": "ctx", "threads": "threads", "policy": "on_full"}

    def chosen(names: dict[str, str]) -> dict[str, object]:
        return {field: given[flag] for field, flag in names.items() if flag in given}

    return replace(
        settings,
        **chosen({"model": "model", "system": "system"}),  # type: ignore[arg-type]
        guess=replace(settings.guess, **chosen(guess)),  # type: ignore[arg-type]
        sampling=replace(settings.sampling, **chosen(sampling)),  # type: ignore[arg-type]
        context=replace(settings.context, **chosen(context)),  # type: ignore[arg-type]
    )
