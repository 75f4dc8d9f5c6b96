"""The servers that the user has named: [endpoints.NAME] in the user's own settings file, and in no other.

A project can never add or change one: what decides where a chat is sent is not to be had from a folder of others.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from specchat.errors import UsageError
from specchat.settings.file import SettingsFile
from specchat.settings.text import SettingsError, SettingsText
from specchat.tables import CatalogueError, Table

ENDPOINT_KEYS = {
    "url": "address of a server, like http://127.0.0.1:8080/v1",
    "model": "which of its models; without it, the one that it has",
    "api_key_env": "name of the variable that holds its key; never the key itself",
    "prediction": "whether it takes the old text of a rewrite as a prediction",
}  # and what each means, for the documents
_PLACE = ("endpoints",)
_FORM = "http://HOST:PORT or https://HOST, with a path but without a name, a password or a question in it"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the chat completions interface."""

    url: str  # what "/chat/completions" follows
    name: str = ""  # in the settings; empty: it was given by its address
    model: str | None = None  # None: the one that the server has
    api_key_env: str | None = None  # the name of a variable, never the key
    prediction: bool | None = None  # whether it takes an old text as a prediction; None: as its host is known to

    @property
    def host(self) -> str:
        """Its host and port, as the address has them."""
        return urlsplit(self.url).netloc

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return _is_loopback(urlsplit(self.url).hostname or "")

    @property
    def is_encrypted(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return urlsplit(self.url).scheme == "https"

    @property
    def told(self) -> str:
        """Where what is said goes, for people."""
        return f"a server on this machine ({self.host})" if self.is_loopback else self.host


def read_endpoints(contents: SettingsText) -> dict[str, Endpoint]:
    """The endpoints of a settings file, by name. Raises SettingsError that names line and key."""
    found = {}
    for name, endpoint in _examined(contents):
        if isinstance(endpoint, SettingsError):
            raise endpoint
        found[name] = endpoint
    return found


def endpoint_problems(contents: SettingsText) -> list[str]:
    """A line for each endpoint that cannot be used."""
    return [str(endpoint) for _, endpoint in _examined(contents) if isinstance(endpoint, SettingsError)]


def load_endpoints(file: SettingsFile) -> dict[str, Endpoint]:
    """The same, from the file on disk. Raises SettingsError."""
    contents = file.contents()
    return {} if contents is None else read_endpoints(contents)


def find_endpoint(asked: str, known: Mapping[str, Endpoint]) -> Endpoint:
    """The endpoint of a name, or at an address, which has the key of a known one only where it is the same.

    Raises UsageError.
    """
    if "://" in asked:
        try:
            url = checked_url(asked)
        except ValueError as error:
            raise UsageError(f"--endpoint {error}") from None
        return next((each for each in known.values() if each.url == url), Endpoint(url))
    if asked in known:
        return known[asked]
    if "@" in asked:  # an address with a password before its host
        raise UsageError(f"--endpoint must be a name of your settings, or {_FORM}")
    raise UsageError(f"no endpoint is named {asked!r}{_way_out(asked, known)}")


def api_key(endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    """The key of an endpoint; empty where it needs none. Raises UsageError, which never shows it."""
    if endpoint.api_key_env is None:
        return ""
    found = environ.get(endpoint.api_key_env, "").strip()
    if not found:
        raise UsageError(f"endpoint {endpoint.name}: the variable {endpoint.api_key_env} is not set; it holds the key")
    if not found.isascii() or not found.isprintable():
        raise UsageError(f"endpoint {endpoint.name}: {endpoint.api_key_env} holds no key: not plain text in one line")
    return found


def checked_url(text: str) -> str:
    """An address without a slash at its end; "/v1" is added where it has no path. Raises ValueError, without secrets.

    A user name or a password in it would be shown with it, so there may be none.
    """
    parts = _split(text)
    if parts is None or parts.username is not None or parts.password is not None:
        raise ValueError(f"must be {_FORM}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        is_whole = not (parts.query or parts.fragment)  # keys are given there too, so neither is repeated
        raise ValueError(f"must be {_FORM}{f', not {text!r}' if is_whole else ''}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text.strip())
        _ = parts.port  # which may be no number
    except ValueError:
        return None
    return None if any(each.isspace() or not each.isprintable() for each in text.strip()) else parts


def _examined(contents: SettingsText) -> Iterator[tuple[str, Endpoint | SettingsError]]:
    """The endpoints by name, and in the place of one that cannot be used why."""
    if _PLACE not in contents.unknown:
        return
    names = contents.unknown[_PLACE] if isinstance(contents.unknown[_PLACE], dict) else {"": None}
    for name in names:
        try:
            table = Table(contents.path, "endpoints.", contents.unknown[_PLACE], contents.text, _PLACE)
            yield name, _endpoint(name, table.table(name))
        except CatalogueError as error:
            yield name, SettingsError(error.path, "", error.problem, error.line)


def _endpoint(name: str, table: Table) -> Endpoint:
    table.check_known(" ".join(ENDPOINT_KEYS))
    try:
        url = checked_url(table.text("url"))
    except ValueError as error:
        raise table.error("url", str(error)) from None
    prediction = table.value("prediction") if table.has("prediction") else None
    if not isinstance(prediction, bool | None):
        raise table.error("prediction", f"must be true or false, not {prediction!r}")
    return Endpoint(
        url=url,
        name=name,
        model=table.text("model") if table.has("model") else None,
        api_key_env=_variable(table) if table.has("api_key_env") else None,
        prediction=prediction,
    )


def _variable(table: Table) -> str:
    """The name of a variable; what is no name may be the key itself, which is not repeated."""
    name = table.value("api_key_env")
    if not isinstance(name, str) or not re.fullmatch("[A-Z_][A-Z0-9_]*", name):  # keys have small letters in them
        wanted = "must be the name of an environment variable in capitals, such as WORK_KEY, not the key itself"
        raise table.error("api_key_env", wanted)
    return name


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _way_out(asked: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(asked, names, 1)
    if close:
        return f"; did you mean {close[0]}?"
    if re.search("[.:/]", asked):
        return "; an address begins with http:// or https://"
    if names:
        return f"; there are {', '.join(names)}"
    return '; name one in your settings: [endpoints.NAME] with url = "http://..." in it, or give its address'
