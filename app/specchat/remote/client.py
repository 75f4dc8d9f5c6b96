"""The connection to one server: the only module that talks to one. Nothing is kept open between two requests.

The key goes to the host of the endpoint and to no other: redirects are not followed, and no text that leaves this
module has it in it.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2

from specchat import __version__
from specchat.errors import Refusal
from specchat.remote.errors import RemoteError, StreamBroken
from specchat.remote.events import Events, Limits
from specchat.remote.refusals import refusal, trouble
from specchat.remote.waiting import waited_for
from specchat.settings.endpoints import Endpoint

_MOST_PAGE = 8 << 20  # bytes of an answer that is no stream
_MOST_REFUSAL = 1 << 16


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait."""

    connect_s: float = 10.0
    silence_s: float = 300.0  # of a reply: a long prompt is read in silence
    look_s: float = 10.0  # for a list or a page of metrics


def _no_certificates() -> ssl.SSLContext:
    """What trusts nobody, where nothing is encrypted: reading the system's certificates takes longer than asking."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Secret:
    """A key that no repr, message or log shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def __bool__(self) -> bool:
        return bool(self._value)

    def sign(self, request: httpx2.Request) -> httpx2.Request:
        """Put it into a request, whose own repr hides it."""
        if self._value:
            request.headers["Authorization"] = f"Bearer {self._value}"
        return request

    def hidden_in(self, text: str) -> str:
        """A text of others without the key, which a server may repeat."""
        return text.replace(self._value, "***") if self._value else text


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # it has ended
        # Not `connection.shutdown`, which takes the encryption off a socket that another thread reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Server:
    """Asks one endpoint, one request after the other."""

    def __init__(
        self,
        endpoint: Endpoint,
        key: Secret,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._key = key
        self._timeouts = timeouts or Timeouts()
        self._limits = limits or Limits()
        self._socket: socket.socket | None = None
        self._asking: object = None  # stands for the present request: one that nobody waits for may still connect
        self._stopped = False

    def page(self, path: str, *, at_root: bool = False) -> str:
        """A page below the endpoint's address, or below its host's. Raises RemoteError, Refused."""
        self._stopped = False
        parts = urlsplit(self.endpoint.url)
        base = f"{parts.scheme}://{parts.netloc}" if at_root else self.endpoint.url
        with self._asked("GET", f"{base}{path}", None, self._timeouts.look_s) as response:
            return self._read(response, _MOST_PAGE).decode("utf-8", "replace")

    def data(self, path: str, *, at_root: bool = False) -> object:
        """The same as data; None where it is no JSON."""
        try:
            found: object = json.loads(self.page(path, at_root=at_root))
        except (ValueError, RecursionError):
            return None
        return found

    def stream(self, body: Mapping[str, Any]) -> Generator[str, None, None]:
        """Ask for a reply; the data of its events. A `stop` ends it early, as the end of the connection does.

        Raises RemoteError, StreamBroken, and Refused for a request that the server does not take.
        """
        self._stopped = False
        content = json.dumps(body).encode()
        url = f"{self.endpoint.url}/chat/completions"
        try:
            with self._asked("POST", url, content, self._timeouts.silence_s) as response:
                yield from self._events(response)
        except RemoteError:
            if not self._stopped:
                raise

    def stop(self) -> None:
        """End the present reply at once, also one that is silent. Callable from a signal handler or a thread."""
        self._stopped = True
        if (connection := self._socket) is not None:
            _hang_up(connection)

    @contextmanager
    def _asked(self, method: str, url: str, content: bytes | None, silence_s: float) -> Iterator[httpx2.Response]:
        """An answer with status 200. Raises RemoteError also where a `stop` came before the answer."""
        timeout = httpx2.Timeout(silence_s, connect=self._timeouts.connect_s)
        headers = {
            "User-Agent": f"specchat/{__version__}",
            "Accept-Encoding": "identity",
            **({} if content is None else {"Content-Type": "application/json"}),
        }
        host = self.endpoint.host
        asking = self._asking = object()
        try:
            # A proxy of the environment has nothing to do with a server on this machine.
            client = httpx2.Client(
                timeout=timeout,
                trust_env=not self.endpoint.is_loopback,
                verify=True if self.endpoint.is_encrypted else _no_certificates(),
            )
            trace = {"trace": partial(self._trace, asking)}
            request = client.build_request(method, url, content=content, headers=headers, extensions=trace)
            response = waited_for(
                lambda: self._sent(client, request),
                lambda: not self._stopped,
                lambda _: client.close(),
            )
            if response is None:
                raise RemoteError(f"{host} was not waited for")
            with closing(client), closing(response):
                if response.status_code != 200:
                    raise self._refused(response)
                yield response
        except httpx2.HTTPError as error:
            raise trouble(host, error, silence_s) from None
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise RemoteError(f"{host} is no address that can be asked: {self._key.hidden_in(str(error))}") from None
        finally:
            self._socket = self._asking = None

    def _sent(self, client: httpx2.Client, request: httpx2.Request) -> httpx2.Response:
        try:
            return client.send(request, auth=self._key.sign, stream=True)
        except BaseException:
            client.close()
            raise

    def _trace(self, asking: object, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        connection = info["return_value"].get_extra_info("socket")
        if asking is self._asking:
            self._socket = connection
        if asking is not self._asking or self._stopped:  # before anything is asked
            _hang_up(connection)

    def _events(self, response: httpx2.Response) -> Iterator[str]:
        kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
        if kind == "application/json":  # the whole reply at once
            yield self._key.hidden_in(self._read(response, _MOST_PAGE).decode("utf-8", "replace"))
            return
        if kind != "text/event-stream":
            raise RemoteError(f"{self.endpoint.host} answers with {kind} and no reply; is the address right?")
        events = Events(self._limits)
        for data in self._raw(response):
            yield from map(self._key.hidden_in, events.feed(data))  # errors of servers may repeat it
        if not events.is_between and not self._stopped:
            raise StreamBroken(f"{self.endpoint.host} broke off in the middle of the reply")

    def _read(self, response: httpx2.Response, most: int) -> bytes:
        found = bytearray()
        for data in self._raw(response):
            found += data
            if len(found) > most:
                raise RemoteError(f"{self.endpoint.host} answers with more than {most} bytes")
        return bytes(found)

    def _raw(self, response: httpx2.Response) -> Iterator[bytes]:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise RemoteError(f"{self.endpoint.host} sends compressed what was asked for as it is")
        return response.iter_raw()

    def _refused(self, response: httpx2.Response) -> Refusal:
        begun = b""
        with suppress(httpx2.HTTPError, RemoteError):  # the status says most
            for data in self._raw(response):
                begun += data
                if len(begun) > _MOST_REFUSAL:
                    break
        said = self._key.hidden_in(begun[:_MOST_REFUSAL].decode("utf-8", "replace"))
        return refusal(self.endpoint, response.status_code, response.headers, said, has_key=bool(self._key))
