"""From --endpoint on a command line to a session: the address, the key, and what the server is."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from specchat.console import say
from specchat.folders import settings_path
from specchat.remote.client import Secret, Server
from specchat.remote.engine import RemoteModel
from specchat.remote.errors import RemoteError
from specchat.remote.figures import read_counters
from specchat.remote.kinds import Kind, ServerFacts, claims_of_llama_server, claims_of_sglang, read_models
from specchat.remote.refusals import NotThere
from specchat.remote.session import RemoteSession
from specchat.remote.wire import unsent
from specchat.reply import ReplySettings
from specchat.settings.endpoints import Endpoint, api_key, find_endpoint, load_endpoints
from specchat.settings.file import SettingsFile

_OF_THE_ENGINE = (
    "draft",
    "ctx",
    "threads",
    "cache_type",
    "guess",
    "guess_max",
    "rule",
)  # flags without a meaning there


def open_remote(args: Namespace, settings: ReplySettings) -> RemoteSession:
    """A session on the endpoint that the arguments name, after a line that says where text goes.

    Raises UsageError, SettingsError, RemoteError.
    """
    given: Mapping[str, object] = getattr(args, "given", {})
    endpoint = find_endpoint(args.endpoint, load_endpoints(SettingsFile(settings_path())))
    key = Secret(api_key(endpoint, os.environ))
    say(where_text_goes(endpoint, has_key=bool(key)))
    if useless := [f"--{name.replace('_', '-')}" for name in _OF_THE_ENGINE if name in given]:
        say(f"note: not used with a server, which decides that itself: {', '.join(useless)}")
    model = given.get("model")  # not that of the settings, which is one of this machine
    wanted = model if isinstance(model, str) else None
    session = connect(Server(endpoint, key), wanted, settings)
    if args.system:
        session.set_system(args.system)
    return session


def connect(
    server: Server, wanted: str | None, settings: ReplySettings, clock: Callable[[], float] = perf_counter
) -> RemoteSession:
    """Ask a server what it is; `wanted` names one of its models, None: that of the endpoint. Raises RemoteError."""
    started = clock()
    facts = look(server, wanted or server.endpoint.model)
    notices = []
    if missing := unsent(facts):
        notices.append(f"{', '.join(missing)}: not sent, for this server is not known to take them")
    return RemoteSession(server, RemoteModel(server.endpoint, facts, clock() - started), settings, notices)


def look(server: Server, wanted: str | None) -> ServerFacts:
    """What a server says of itself. Raises RemoteError."""
    try:
        facts = read_models(server.data("/models"), wanted)
    except NotThere:
        if wanted is None:
            raise
        return ServerFacts(Kind.OTHER, wanted)  # not every server lists its models
    return replace(facts, claims=_claims(server, facts.kind))


def where_text_goes(endpoint: Endpoint, *, has_key: bool) -> str:
    """One line on who will read what is said."""
    if endpoint.is_loopback:
        return f"what you write is sent to {endpoint.told}"
    also = "" if endpoint.is_encrypted else f"; nothing on the way is encrypted{', the key neither' if has_key else ''}"
    return f"what you write leaves this machine: it is sent to {endpoint.host}{also}"


def _claims(server: Server, kind: Kind) -> bool | None:
    """Whether a server says that it guesses ahead; None where it says nothing."""
    if kind is Kind.LLAMA:
        slots, props = (_data(server, path) for path in ("/slots", "/props"))
        return claims_of_llama_server(slots, props)
    if kind is Kind.SGLANG:
        return claims_of_sglang(_data(server, "/get_server_info"))
    if kind is Kind.VLLM:
        with suppress(RemoteError):
            counters = read_counters(server.page("/metrics", at_root=True))
            return "spec_decode_num_draft_tokens" in counters if counters else None
    return None


def _data(server: Server, path: str) -> object:
    with suppress(RemoteError):
        return server.data(path, at_root=True)
    return None
