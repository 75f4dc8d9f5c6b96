"""What a server's refusal or a broken connection means for people: status and words in, one error out. No network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from specchat.errors import Refusal
from specchat.remote.errors import RemoteError, ServerFull, StreamBroken, clipped
from specchat.remote.wire import said_in
from specchat.settings.endpoints import Endpoint

if TYPE_CHECKING:
    import httpx2


class Refused(RemoteError):
    """A request that the server does not take; `said` is all that it says of it."""

    def __init__(self, text: str, said: str) -> None:
        super().__init__(text)
        self.said = said


class NotThere(RemoteError):
    """An address or a model that the server does not know."""


def refusal(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str, *, has_key: bool) -> Refusal:
    """The error for an answer that is not 200."""
    said = _words(body)
    host, why = endpoint.host, f": {said}" if said else ""
    if status in (401, 403):
        return RemoteError(_about_key(endpoint, status, why, has_key=has_key))
    if status == 404:
        return NotThere(f"{host} has nothing under {endpoint.url} (404){why}; check url and model of the endpoint")
    if status == 429:
        wait = headers.get("retry-after", "").strip()
        when = f" in {wait} s" if wait.isdigit() else f" after {clipped(wait)}" if wait else " later"
        return RemoteError(f"{host} is asked too often (429){why}; try again{when}")
    if 300 <= status < 400:
        place = clipped(headers.get("location", "")) or "another address"
        return RemoteError(
            f"{host} sends on to {place} ({status}), where nothing was sent; put that into url if it is right"
        )
    if status == 503:
        return RemoteError(f"{host} is not ready (503){why}; try again in a while")
    if status >= 500:
        return RemoteError(f"{host} failed ({status}){why}")
    if status in (400, 413, 422) and _is_about_length(body):
        return ServerFull(f"the chat is longer than the context of {host} holds{why}; begin a new one or attach less")
    return Refused(f"{host} does not take the request ({status}){why}", body)


def trouble(host: str, error: httpx2.HTTPError, silence_s: float) -> RemoteError:
    """The error for a connection that failed or ended."""
    import httpx2

    if isinstance(error, httpx2.ConnectTimeout):
        return RemoteError(f"{host} cannot be reached: no answer; is the address right, and is it up?")
    if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
        return RemoteError(
            f"{host} cannot be reached: {_reason(error)}; is the address right, and is the server running?"
        )
    if isinstance(error, httpx2.ReadTimeout):
        return StreamBroken(f"{host} has said nothing for {silence_s:g} s, so it was left")
    if isinstance(error, httpx2.TimeoutException):
        return StreamBroken(f"{host} takes nothing more that is sent to it")
    if isinstance(error, httpx2.ReadError | httpx2.WriteError | httpx2.CloseError | httpx2.RemoteProtocolError):
        return StreamBroken(f"{host} broke off: {_reason(error)}")
    return RemoteError(f"{host}: {_reason(error)}")


def _about_key(endpoint: Endpoint, status: int, why: str, *, has_key: bool) -> str:
    if has_key:
        return f"{endpoint.host} does not accept the key in {endpoint.api_key_env} ({status}){why}"
    name = f"[endpoints.{endpoint.name}]" if endpoint.name else "[endpoints.NAME] in the settings"
    return f"{endpoint.host} wants a key ({status}){why}; {name} takes the name of its variable as api_key_env"


def _words(body: str) -> str:
    """What a server says, in one line; of a web page nothing."""
    try:
        return said_in(json.loads(body))
    except (ValueError, RecursionError):
        return "" if body.lstrip().startswith("<") else clipped(body)


def _is_about_length(body: str) -> bool:
    """Whether the prompt is too long: llama-server, OpenAI and vLLM, SGLang say it in these words."""
    text = body.lower()
    return any(
        words in text
        for words in (
            "exceed_context_size_error",
            "context_length_exceeded",
            "maximum context length",
            "longer than the model's context",
        )
    )


def _reason(error: Exception) -> str:
    """What the network says, without the numbers of the system's errors."""
    text = clipped(str(error)) or type(error).__name__
    return text.partition("] ")[2] or text if text.startswith("[Errno") else text
