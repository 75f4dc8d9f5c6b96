"""From an endpoint to a session on its server, as the screen names it. In the engine's thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.settings.endpoints import Endpoint, api_key
from specchat.tui.messages import Loaded

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.remote.client import Server
    from specchat.remote.session import RemoteSession
    from specchat.reply import ReplySettings


def connected(
    endpoint: Endpoint, model: str | None, settings: ReplySettings, tell_server: Callable[[Server], None]
) -> tuple[RemoteSession, Loaded]:
    """Ask a server what it is; `model` names one of its models, `tell_server` is given what can be stopped meanwhile.

    Raises UsageError without the key, RemoteError.
    """
    from specchat.remote.client import Secret, Server
    from specchat.remote.opening import connect, where_text_goes

    key = Secret(api_key(endpoint, os.environ))
    server = Server(endpoint, key)
    tell_server(server)
    session = connect(server, model, settings)
    answerer = session.model
    loaded = Loaded(
        name=answerer.name,
        title=answerer.name,
        draft=None,
        back_end=answerer.where,
        n_ctx=answerer.n_ctx,
        size_bytes=0,
        load_s=answerer.load_s,
        notices=(where_text_goes(endpoint, has_key=bool(key)), *session.notices),
        can_guess=False,
        endpoint=endpoint,
    )
    return session, loaded
