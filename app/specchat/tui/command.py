"""`specchat` on a terminal: settings and flags together start the app."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import replace

from specchat.console import say
from specchat.crash import tell
from specchat.folders import history_path
from specchat.history.wanted import is_private
from specchat.settings import SettingsFile
from specchat.settings.endpoints import Endpoint, api_key, find_endpoint, load_endpoints
from specchat.settings.reading import Chosen
from specchat.tui.app import SpecchatApp
from specchat.tui.seat import Wanted
from specchat.tui.start import Start


def run(args: Namespace) -> int:
    """Open the app and stay until the user leaves. Returns the exit code."""
    chosen: Chosen = args.chosen
    settings = chosen.settings
    endpoint = None if args.endpoint is None else endpoint_of(args.endpoint, chosen.file)
    wanted = Wanted(
        settings.model,
        settings.guess.draft,
        settings.guess.mode,
        settings.context.size,
        settings.context.threads,
        settings.context.cache_type,
    )
    if endpoint is not None:
        wanted = replace(wanted, model=args.given.get("model"), endpoint=endpoint)  # not the model of this machine
    elif args.yes:
        fetch(wanted)
    resume = None if args.resume is None else chat_of(args.resume)
    app = SpecchatApp(
        Start(
            settings,
            chosen.stored,
            chosen.file,
            wanted,
            trouble_of(chosen),
            history_path(),
            is_private(args),
            resume,
            chosen.resolved.origins,
        )
    )
    app.run()
    if app.fault is not None:
        tell(app.fault, "app")
    app.end_chats()
    unfinished = [] if app.fetches is None else [each.model for each in app.fetches.all() if each.is_open]
    let_go = app.fetches is None or app.fetches.close()
    for model in unfinished:
        say(f"{model.id} is not all here yet; `specchat models pull {model.id}` goes on where it stopped")
    if not app.engine.close() or not let_go:
        sys.stdout.flush()
        os._exit(app.return_code or 0)  # the engine is inside something that does not look up; the terminal is restored
    return app.return_code or 0


def trouble_of(chosen: Chosen) -> str:
    """What to tell about settings that were not used; "" for nothing."""
    wrong = [] if chosen.problem is None else [f"{chosen.problem}; using the defaults"]
    return "; ".join([*wrong, *chosen.notices])


def endpoint_of(asked: str, file: SettingsFile) -> Endpoint:
    """The server that `--endpoint` means, with its key at hand. Raises UsageError, SettingsError."""
    endpoint = find_endpoint(asked, load_endpoints(file))
    api_key(endpoint, os.environ)  # better missed now than on a full screen
    return endpoint


def chat_of(wanted: str) -> int:
    """The stored chat that `--resume` means. Raises StoreRefused, NoSuchChat."""
    from specchat.history.choosing import chosen
    from specchat.history.store import Store

    with Store.open(history_path()) as store:
        return chosen(store, wanted).id


def fetch(wanted: Wanted) -> None:
    """Fetch what is missing before the screen opens: `-y` has agreed to it. Raises what `Shelf.locate` does."""
    from specchat.shelf import Shelf

    shelf = Shelf(say)
    name = wanted.model or shelf.catalogue.default_target
    paired = shelf.paired_draft(name)
    shelf.locate(name, agreed=True, beside=[paired] if paired is not None else [])
