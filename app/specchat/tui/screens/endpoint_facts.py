"""What the models screen says of the servers that the user has named."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from specchat.attachments import label
from specchat.settings.endpoints import Endpoint
from specchat.tui.screens.model_facts import COLUMNS, WIDE_COLUMNS


def answers(endpoint: Endpoint, words: Sequence[str]) -> bool:
    """Whether every word, in lower case, is somewhere in what names the server."""
    said = f"{endpoint.name} {endpoint.host} {endpoint.model or ''} server".lower()
    return all(word in said for word in words)


def row(endpoint: Endpoint, *, in_use: bool, wide: bool) -> list[Text]:
    """The cells of a server, for WIDE_COLUMNS or COLUMNS."""
    style = "bold" if in_use else ""
    told = {
        " ": "*" if in_use else " ",
        "NAME": label(endpoint.name or endpoint.host),
        "STATE": "in use" if in_use else "server",
        "FITS IN MEMORY": "on this machine" if endpoint.is_loopback else f"at {label(endpoint.host)}",
    }
    return [Text(told.get(column, "-"), style) for column in (WIDE_COLUMNS if wide else COLUMNS)]


def about(endpoint: Endpoint, *, in_use: bool) -> str:
    """A few lines on one server: where it is, who reads what is written, what Enter does."""
    model = f", model {label(endpoint.model)}" if endpoint.model else ""
    leaves = "what you write is sent there and does not leave this machine"
    if not endpoint.is_loopback:
        way = "" if endpoint.is_encrypted else ", unencrypted"
        leaves = f"what you write leaves this machine: it is sent there{way}"
    does = "in use now" if in_use else "Enter connects; nothing is asked of it before"
    return "\n".join([f"{label(endpoint.name or endpoint.host)}: {label(endpoint.told)}{model}", leaves, does])
