"""What the terminal can do, by what it says of itself in the environment: nothing is asked of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specchat.doctor.finding import Finding, note, ok

LEAST = (80, 24)  # columns and rows that the screens are made for; smaller ones show less
# Terminals that tell every key apart (the kitty keyboard protocol), by what they set.
_KEYS_APART = {
    "TERM": ("xterm-kitty", "xterm-ghostty", "foot", "foot-extra", "alacritty", "wezterm", "rio"),
    "TERM_PROGRAM": ("ghostty", "WezTerm", "rio", "iTerm.app", "vscode"),
}
_TRUE_COLOUR = ("truecolor", "24bit")


@dataclass(frozen=True, slots=True)
class Terminal:
    """The facts."""

    environ: Mapping[str, str]
    is_one: bool  # whether input and output are a terminal
    columns: int
    rows: int
    encoding: str  # of the output
    system: str = sys.platform


def this_terminal() -> Terminal:
    """The one that the command runs in."""
    is_one = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno()) if is_one else (0, 0)
    except (OSError, ValueError):
        columns = rows = 0
    return Terminal(os.environ, is_one, columns, rows, sys.stdout.encoding or "")


def colours(environ: Mapping[str, str], system: str = sys.platform) -> int:
    """How many colours a terminal says that it has; 0: none."""
    name = environ.get("TERM", "")
    if environ.get("NO_COLOR") or name == "dumb":
        return 0
    if environ.get("COLORTERM") in _TRUE_COLOUR or name.endswith("-direct") or "WT_SESSION" in environ:
        return 1 << 24
    if "256color" in name or name in _KEYS_APART["TERM"]:
        return 256
    return 16 if name or system == "win32" else 0


def tells_keys_apart(environ: Mapping[str, str]) -> bool:
    """Whether it is known to send other keys for Shift+Enter than for Enter; behind tmux or screen it is not."""
    if environ.get("TMUX") or environ.get("STY"):
        return False
    return any(environ.get(variable) in names for variable, names in _KEYS_APART.items())


def check_terminal(terminal: Terminal) -> Iterator[Finding]:
    """Colours, size, characters, keys."""
    if not terminal.is_one:
        yield ok("terminal", "input or output is no terminal, so commands write plain lines", is_one=False)
        return
    environ = terminal.environ
    count = colours(environ, terminal.system)
    many = {0: "no colours", 16: "16 colours", 256: "256 colours"}.get(count, "all colours")
    apart = tells_keys_apart(environ)
    said = (
        f"{environ.get('TERM') or 'without a name'}, {terminal.columns} columns, {terminal.rows} rows, {many}, "
        f"{terminal.encoding or 'unknown encoding'}"
    )
    values = {
        "is_one": True,
        "columns": terminal.columns,
        "rows": terminal.rows,
        "colours": count,
        "encoding": terminal.encoding,
        "keys_apart": apart,
    }
    troubles = list(_troubles(terminal, count))
    if troubles:
        yield note("terminal", f"{said}; {'; '.join(what for what, _ in troubles)}", troubles[0][1], **values)
    else:
        keys = "every key is told apart" if apart else "a new line is Ctrl+J: Shift+Enter may be the same as Enter"
        yield ok("terminal", f"{said}; {keys}", **values)


def _troubles(terminal: Terminal, count: int) -> Iterator[tuple[str, str]]:
    """What is in the way, the worst first, and what to do."""
    name = terminal.environ.get("TERM", "")
    if terminal.system != "win32" and name in ("", "dumb"):
        yield "it cannot place the cursor", "chat with: specchat --plain; or set TERM to what the terminal is"
    if terminal.encoding.lower().replace("-", "") not in ("utf8", "utf8sig"):
        how = "chcp 65001" if terminal.system == "win32" else "a locale such as LANG=C.UTF-8"
        yield "its characters are not UTF-8, so some are shown as ?", f"set {how}"
    if 0 < terminal.columns < LEAST[0] or 0 < terminal.rows < LEAST[1]:
        yield "it is small", f"make it {LEAST[0]} columns by {LEAST[1]} rows or larger to see all figures"
    if count in (16, 256) and terminal.environ.get("TMUX"):
        yield "tmux passes on fewer colours than most terminals have", "set COLORTERM=truecolor where yours has all"
