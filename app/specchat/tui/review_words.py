"""What the review screen says: title, facts of the file, lines of its lists, reasons, keys. Knows no widget."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from specchat.attachments import label
from specchat.rewrite.checks import Finding
from specchat.rewrite.flags import Flag, Kind
from specchat.rewrite.hunks import Decision, Hunk
from specchat.tui.reviewing import Reviewing
from specchat.tui.widgets.pick_list import Parts
from specchat.tui.widgets.status import fitted

REASONS = 4  # lines of them at most

_SIGNS = {Decision.OPEN: "[ ]", Decision.ACCEPTED: "[+]", Decision.REJECTED: "[-]"}
_SHORT = 12  # columns that a text keeps at the left
_NARROW = 40  # columns under which a list has no room for reasons

# Key, what it does, how much it is missed where there is no room (0: most).
_KEYS = (
    ("y", "accept", 0),
    ("n", "reject", 0),
    ("s", "split", 3),
    ("e", "edit", 2),
    ("r", "redo with a note", 2),
    ("u", "undo", 1),
    ("a/d", "rest of file", 3),
    ("A/D", "all files", 4),
    ("[ ]", "hunk", 2),
    ("{ }", "file", 4),
    ("v", "side by side", 5),
    ("o", "order", 5),
    ("w", "write accepted", 0),
    ("W", "this file", 5),
    ("/", "find", 4),
    ("q", "leave", 1),
    ("?", "help", 0),
)


def title(instruction: str, state: Reviewing, width: int) -> Content:
    """What was asked for, and how much there is to look at."""
    flags = sum(len(file.flags) + len(file.findings) for file in state.files)
    said = f"{flags} flag{'s' if flags > 1 else ''}" if flags else "no flags"
    left = f"{state.n_open} open" if state.n_open else "all decided"
    return _spread([("Review  ", "bold")], f'"{label(instruction)}"', f"{said}  {left}", width)


def file_line(state: Reviewing, width: int, *, side_by_side: bool) -> Content:
    """The file that is looked at, how it is stored, and how far one is."""
    file, number = state.file, state.number
    accepted = len(file.of(Decision.ACCEPTED))
    undo = state.written.get(number)
    if undo is not None:
        place = f"written, /undo {label(undo)} takes it back"
    elif not file.review.hunks:
        place = "nothing changed"
    else:
        place = f"{_sign(state, state.listed[state.position])} hunk {state.position + 1} of {len(file.review.hunks)}"
    parts = [
        (3, f"file {number + 1} of {len(state.files)}" if len(state.files) > 1 else ""),
        (3, label(file.part)),
        (4, label(file.facts)),
        (5, f"{file.kept_share:.0%} of the lines kept"),
        (2, f"{accepted} accepted" if accepted and undo is None else ""),
        (6, "side by side" if side_by_side else "unified"),
        (1, place),
    ]
    rest = fitted(parts, max(0, width - max(_SHORT, min(cell_len(file.name), width // 2)) - 2))
    return _spread([], file.name, rest, width, "bold")


def file_item(state: Reviewing, number: int, width: int) -> Parts:
    """A line of the list of files."""
    file = state.files[number]
    decided = len(file.review.hunks) - len(file.of(Decision.OPEN))
    count = "written" if number in state.written else f"{decided}/{len(file.review.hunks)}"
    mark = "> " if number == state.number else "  "
    alarm = " !" if file.flags or file.findings else "  "
    room = max(1, width - len(mark) - len(count) - len(alarm) - 1)
    name = shortened(file.name, room, from_start=True)
    return [
        (f"{mark}{name}{' ' * (room - cell_len(name))}", ""),
        (alarm, "alarm"),
        (f" {count}", "quiet"),
    ]


def hunk_item(state: Reviewing, item: int, width: int) -> Parts:
    """A line of the list of hunks."""
    hunk, file = state.listed[item], state.file
    sign = _sign(state, hunk)
    mark = ">" if item == state.position else " "
    size = " ".join(
        part for part in (f"-{hunk.removed}" * bool(hunk.removed), f"+{hunk.added}" * bool(hunk.added)) if part
    )
    flags, findings = file.flags_of(hunk), file.findings_of(hunk)
    names = " ".join(dict.fromkeys([*(_problem(each) for each in findings), *(_kind(each) for each in flags)]))
    line = str(hunk.start + 1)
    if width < _NARROW:
        place = f"{line:>{len(str(len(file.review.source.lines)))}} {size:<6} "
        head = f"{mark}{sign} {hunk.id:<3} "
        if len(head + place + names) > width:
            names = names.split(" ")[0] + ("+" if " " in names else "")
        return [(head, ""), (place, "quiet"), (names, "alarm")]
    least = file.least_sure.get(hunk.id)
    sure = "" if least is None else f"model sure, lowest p {least:.2f}" if least >= 0.9 else f"lowest p {least:.2f}"
    reasons = label("; ".join([*(each.reason for each in findings), *(each.reason for each in flags)]))
    return [
        (f"{mark}{sign} {hunk.id:<5} ", ""),
        (f"line {line:<6} {size:<10} ", "quiet"),
        (f"{names}  " if names else "", "alarm"),
        (reasons or sure, "quiet"),
    ]


def reasons(state: Reviewing) -> Content:
    """Why one should look twice at the hunk, or at the file; empty where nothing speaks against it."""
    file, hunk = state.file, state.hunk
    lines = [(_problem(each), "this file: " + each.reason + _consequence(each)) for each in file.findings_of_all]
    if hunk is not None:
        if (state.number, hunk.id) in state.redoing:
            lines.insert(0, ("REDO", "this hunk is being written anew; go on with the others meanwhile"))
        lines += [(_problem(each), each.reason + _consequence(each)) for each in file.findings_of(hunk)]
        lines += [(_kind(each), _why(each)) for each in file.flags_of(hunk)]
    lines += [("NOTE", each) for each in file.remarks]
    shown = [Content.assemble((f"{name:<8}", "bold $text-warning"), label(text)) for name, text in lines[:REASONS]]
    return Content("\n").join(shown)


def keys(width: int, lines: int = 2) -> Content:
    """The keys in some lines, the ones that are missed most where not all fit."""
    drawn: list[Content] = []
    for least in range(5, -1, -1):
        drawn = _packed([(key, what) for key, what, missed in _KEYS if missed <= least], width)
        if len(drawn) <= lines:
            break
    return Content("\n").join(drawn[:lines])


def _spread(head: Sequence[tuple[str, str]], text: str, right: str, width: int, style: str = "") -> Content:
    """Something at the left and something at the right; the text between gives way where there is no room."""
    taken = sum(cell_len(each) for each, _ in head)
    right = right if width - taken - cell_len(right) > _SHORT else ""
    text = shortened(text, max(0, width - taken - cell_len(right) - 2 * bool(right)))
    gap = " " * max(0, width - taken - cell_len(text) - cell_len(right))
    return Content.assemble(*head, (text, style), f"{gap}{right}")


def shortened(text: str, width: int, *, from_start: bool = False) -> str:
    """A text cut to some columns, with a mark where something is missing."""
    if cell_len(text) <= width:
        return text
    if width < 2:
        return ""
    kept = text
    while kept and cell_len(kept) > width - 1:
        spare = max(1, (cell_len(kept) - width + 1) // 2)
        kept = kept[spare:] if from_start else kept[:-spare]
    return f"\u2026{kept}" if from_start else f"{kept}\u2026"


def _packed(parts: Sequence[tuple[str, str]], width: int) -> list[Content]:
    lines: list[list[Content]] = [[]]
    used = 0
    for key, what in parts:
        size = cell_len(key) + 1 + cell_len(what)
        if used and used + 2 + size > width:
            lines.append([])
            used = 0
        used += size + (2 if used else 0)
        lines[-1].append(Content.assemble((key, "bold $footer-key-foreground"), f" {what}"))
    return [Content("  ").join(line) for line in lines]


def _sign(state: Reviewing, hunk: Hunk) -> str:
    return "[~]" if (state.number, hunk.id) in state.redoing else _SIGNS[hunk.decision]


def _kind(flag: Flag) -> str:
    return "BLANKS" if flag.kind is Kind.WHITESPACE else str(flag.kind).upper()


def _problem(finding: Finding) -> str:
    return "STOP" if finding.never else "CHECK"


def _consequence(finding: Finding) -> str:
    return "; it cannot be written" if finding.never else "; writing it asks first"


def _why(flag: Flag) -> str:
    if flag.kind is Kind.SHAKY and flag.p_old is not None and flag.p_new is not None:
        return f"p {flag.p_old:.2f} old text, {flag.p_new:.2f} new text: nearly a coin flip"
    return flag.reason
