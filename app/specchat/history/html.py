"""A stored chat as one HTML file that loads nothing and runs nothing.

Guessed text is tinted by who proposed it, and says where it was copied from in a footnote. Texts are data: whatever
they hold is shown, not obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import groupby

from specchat.attachments import label
from specchat.console import printable
from specchat.conversation import Role
from specchat.history.records import ChatRecord, TurnRecord
from specchat.history.telling import figures, moment, who
from specchat.provenance import Author, Origin, Span, clipped

# The second line of defence: even an escape that was forgotten could load and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --page: #fdfdfd; --faint: #6a6a6a; --line: #dcdcdc;
  --draft: #d7ecd2; --prompt: #d3e5f7; --reply: #f3e4c4; --turn: #e4dbf5; --file: #f7d9dc; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e4e4; --page: #191919; --faint: #9a9a9a; --line: #3a3a3a;
  --draft: #24452a; --prompt: #1f3f5c; --reply: #52421c; --turn: #42335f; --file: #5b2a30; } }
body { color: var(--ink); background: var(--page); font: 1rem/1.55 system-ui, sans-serif; max-width: 50rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0; }
article { border-top: 1px solid var(--line); padding: 0.8rem 0; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.4rem 0; font: inherit; }
.small, .key, footer { color: var(--faint); font-size: 0.85rem; }
.key mark { margin-right: 0.6rem; } mark { color: inherit; border-radius: 0.2em; }
.draft { background: var(--draft); } .prompt { background: var(--prompt); } .reply { background: var(--reply); }
.turn { background: var(--turn); } .file { background: var(--file); }
sup a, footer a { color: var(--faint); text-decoration: none; }
"""

_AUTHORS = {
    Author.DRAFT: "guessed by the draft model",
    Author.PROMPT: "copied from the question",
    Author.REPLY: "copied from the reply itself",
    Author.TURN: "copied from an earlier message",
    Author.FILE: "copied from a file",
}


def to_html(chat: ChatRecord) -> str:
    """The path of the chat as a page."""
    notes: dict[tuple[str, int, int | None], int] = {}
    title = _shown(" ".join(chat.title.split()))
    body = [f"<h1>{title}</h1>", f'<p class="small">{moment(chat.created)}</p>']
    if any(turn.spans for turn in chat.path()):
        key = (f'<mark class="{author}">{words}</mark>' for author, words in _AUTHORS.items())
        body.append(f'<p class="key">{"".join(key)}</p>')
    if chat.system:
        body.append(_article("system", "System prompt", _shown(chat.system), "", ""))
    body += [_message(turn, notes) for turn in chat.path()]
    if notes:
        places = [
            f'<li id="note-{number}">{_shown(label(name))}, line {line}</li>'
            for (name, line, _), number in notes.items()
        ]
        body.append(f"<footer><ol>{''.join(places)}</ol></footer>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _message(turn: TurnRecord, notes: dict[tuple[str, int, int | None], int]) -> str:
    text = _tinted(turn.text, turn.spans, notes)
    attached = [
        f'<details><summary class="small">{_shown(label(each.name))}</summary>'
        f'<pre class="text">{_shown(each.text)}</pre></details>'
        for each in turn.attachments
    ]
    kind = "question" if turn.role is Role.USER else "answer"
    return _article(kind, _shown(label(who(turn))), text, "".join(attached), _shown(figures(turn)))


def _article(kind: str, heading: str, text: str, attached: str, line: str) -> str:
    """A message; everything is HTML already."""
    small = f'<p class="small">{line}</p>' if line else ""
    return f'<article class="is-{kind}"><h2>{heading}</h2><div class="text">{text}</div>{attached}{small}</article>'


def _tinted(text: str, spans: Iterable[Span], notes: dict[tuple[str, int, int | None], int]) -> str:
    """A text with what was guessed in it marked, and a number behind each copied piece."""
    pieces, at = [], 0
    for (author, place), together in groupby(clipped(spans, len(text)), key=lambda span: (span.author, _place(span))):
        of_one = list(together)
        start, end = of_one[0].start, of_one[-1].end
        if author is Author.MODEL or start < at or end <= start:
            continue
        pieces.append(_shown(text[at:start]))
        pieces.append(f'<mark class="{author}">{_shown(text[start:end])}</mark>')
        if place is not None and (origin := of_one[0].origin) is not None:
            number = notes.setdefault((origin.title, origin.line, origin.turn), len(notes) + 1)
            pieces.append(f'<sup><a href="#note-{number}">{number}</a></sup>')
        at = end
    return "".join([*pieces, _shown(text[at:])])


def _place(span: Span) -> tuple[str, int | None] | None:
    """What a span was copied from: copies that go on in the same text share a mark."""
    origin: Origin | None = span.origin
    return None if origin is None else (origin.title, origin.turn)


def _shown(text: str) -> str:
    """A text as HTML shows it."""
    return escape(printable(text), quote=True)
