"""Chat in line mode: a prompt, a streamed reply, a line of figures. What pipes, ssh and screen readers get."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing, suppress

from specchat.chat import Chat
from specchat.console import ReadingBar, can_ask, confirmed, figures, on_interrupt, printable, say
from specchat.context_policy import CUT, Policy
from specchat.dialogue import Dialogue
from specchat.downloads import DownloadError
from specchat.errors import InputRefused, Refusal
from specchat.exactness import INEXACT
from specchat.folders import history_path
from specchat.headers import HeaderError
from specchat.history.choosing import chosen
from specchat.history.keeper import Keeper
from specchat.history.records import ChatRecord
from specchat.history.store import Store
from specchat.history.wanted import kept_in
from specchat.opening import close_session, load_draft, open_session
from specchat.remote.telling import figures_page
from specchat.session import ChatSession, ContextFull, Guess, Reading, Reply, Wrote
from specchat.shelf import Shelf
from specchat.states import kept_states
from specchat.talk import Talk
from specchat.template import TemplateError
from speculation.types import Finish, SpeculationError

HELP = """\
/guess NAME                    who guesses from now on; without NAME, who can
/stats                         what the last reply took, guesser by guesser
/system TEXT                   the system prompt; without TEXT, none
/new                           begin another conversation
/quit                          leave (so does Ctrl-D)
Ctrl-C stops a reply. A line that ends with \\ goes on in the next one."""


def chat(args: Namespace) -> int:
    """Talk until the user leaves. Returns the exit code."""
    resumed = None if args.resume is None else stored(args.resume)
    keeper = Keeper(kept_in(args), lambda text: say(f"note: {text}"))
    session = open_session(args)
    try:
        say(_heading(session))
        talk = Talk(session, keeper, kept_states(), args.chosen.settings.guess.sources)
        lines = LineChat(session, args, talk)
        if resumed is not None:
            lines.resume(resumed)
        code = lines.run()
        talk.leave()
        return code
    finally:
        keeper.finish()
        close_session(session)


def _heading(session: Dialogue) -> str:
    model = session.model
    draft = f" + {model.draft_name}" if model.draft_name else ""
    context = "not known" if model.n_ctx is None else str(model.n_ctx)
    guess = "the server's" if model.is_remote else str(session.guess)
    return f"{model.name}{draft} · {model.where} · context {context} · guess {guess} · /help"


def stored(wanted: str) -> ChatRecord:
    """The stored chat that `--resume` means. Raises StoreRefused, NoSuchChat."""
    with Store.open(history_path()) as store:
        return store.load(chosen(store, wanted).id)


class LineChat:
    """The loop of questions and answers."""

    def __init__(self, session: Dialogue, args: Namespace, talk: Talk) -> None:
        self._session = session
        self._talk = talk
        self._args = args
        self._talks = sys.stdin.isatty()
        self._told: set[str] = set()
        self._clean: Callable[[str], str] = printable if sys.stdout.isatty() else str
        self._policy = Policy(args.on_full) if args.on_full else Policy.ASK
        if self._policy is Policy.ASK and not can_ask():
            self._policy = Policy.STOP

    def run(self) -> int:
        """Read, answer, repeat. Raises ContextFull and InputRefused where the context is full and nobody is there."""
        self._tell()
        if self._talks:
            with suppress(ImportError):  # Windows brings its own line editing
                import readline  # noqa: F401 # importing it is what gives input() history and editing
        while True:
            try:
                line = self._line()
            except EOFError:
                if self._talks:
                    say("")
                return 0
            except KeyboardInterrupt:
                say("\n/quit or Ctrl-D leaves")
                continue
            if line.startswith("/"):
                if not self._command(line):
                    return 0
            elif line.strip() and self._asks(line):
                self._answer()

    def resume(self, record: ChatRecord) -> None:
        """Go on with a stored chat."""
        from specchat.history.restore import to_chat

        self._talk.begin(to_chat(record), record)
        say(f"going on with {record.id}: {record.title}")
        model = self._session.model.name
        if record.model not in ("", model):
            say(f"note: written with {record.model}; it goes on with {model}")
        if self._talks:
            for turn in record.path()[-2:]:
                say(f"> {turn.text}" if turn.role == "user" else turn.text)

    def _line(self) -> str:
        line = input("> " if self._talks else "")
        while line.endswith("\\"):
            line = line[:-1]
            with suppress(EOFError):
                line += "\n" + input("  " if self._talks else "")
        return line.encode("utf-8", "replace").decode()

    def _asks(self, text: str) -> bool:
        """Put a question, and drop the oldest turns where the policy says so; False where it is not to be answered."""
        try:
            found = self._talk.ask(text, (), self._policy)
        except ContextFull as error:
            if not self._talks:
                raise
            say(f"{error}; /new starts over")
            return False
        except (SpeculationError, TemplateError) as error:
            say(str(error))
            return False
        fitted = found.fitted
        if fitted.newly_dropped:
            if self._policy is Policy.ASK:
                what = (
                    "question and its reply" if fitted.rounds == 1 else f"{fitted.rounds} questions and their replies"
                )
                say(f"the context of {self._session.model.n_ctx} tokens is full")
                if not confirmed(f"Drop the oldest {what} ({fitted.freed} tokens)?"):
                    say("not asked: /new starts over, --on-full drop drops without asking")
                    self._talk.take_back()
                    return False
            else:
                say(f"note: {fitted.notice}")
        found.mark()
        return True

    def _answer(self) -> None:
        try:
            with ReadingBar() as bar, on_interrupt(self._session.stop), closing(self._talk.answer()) as events:
                for event in events:
                    if isinstance(event, Reading):
                        bar.show(event)
                    elif isinstance(event, Wrote):
                        bar.stop()
                        sys.stdout.write(self._clean(event.text))
                        sys.stdout.flush()
                    else:
                        bar.stop()
                        sys.stdout.write("\n")
                        sys.stdout.flush()
                        say(("" if event.finish else "stopped · ") + figures(event))
                        self._tell(*([] if event.exact else [INEXACT]))
                        self._tell_of_end(event)
        except (SpeculationError, TemplateError) as error:
            say(str(error))
        except Refusal as error:
            if not self._talks:
                raise
            say(f"\n{error}")

    def _tell_of_end(self, reply: Reply) -> None:
        """A reply that the end of the context cut. Raises InputRefused where nobody can say how to go on."""
        if reply.finish is Finish.CONTEXT:
            if self._policy is Policy.STOP and not self._talks:
                raise InputRefused(CUT)
            say(f"note: {CUT}")

    def _tell(self, *more: str) -> None:
        for notice in [*self._session.notices, *more]:
            if notice not in self._told:
                self._told.add(notice)
                say(f"note: {notice}")

    def _command(self, line: str) -> bool:
        """Do a slash command; False to leave."""
        name, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        if name in ("quit", "exit", "q"):
            return False
        if name == "new":
            self._talk.begin(Chat(self._talk.chat.system))
            say("a new conversation")
        elif name == "stats":
            say(self._stats())
        elif name == "guess":
            self._choose(rest)
        elif name == "system":
            self._talk.change_system(rest)
            say("the system prompt is set" if rest else "no system prompt")
        elif name in ("help", "?", ""):
            say(HELP)
        else:
            say(f"no command /{name}; /help lists them")
        return True

    def _choose(self, name: str) -> None:
        if name not in list(Guess):
            say(f"guess {self._session.guess}; /guess changes it: {', '.join(Guess)}")
            return
        try:
            session = self._session
            if isinstance(session, ChatSession) and name == Guess.DRAFT and session.engines.draft_name is None:
                load_draft(session.engines, Shelf(), self._args)
            session.guess = Guess(name)
            say(f"guess {name}")
        except (SpeculationError, HeaderError, Refusal, DownloadError) as error:
            say(f"guess {self._session.guess} as before: {error}")
        except KeyboardInterrupt:
            say(f"guess {self._session.guess} as before")

    def _stats(self) -> str:
        reply = self._session.last_reply
        if reply is None:
            return "no reply yet"
        if not isinstance(self._session, ChatSession):
            return "\n".join(figures_page(reply, self._session.model.n_ctx))
        totals = reply.totals
        rows = [
            figures(reply),
            f"{totals.steps} steps: {totals.plain_steps} plain, {totals.steps - totals.plain_steps} with a draft",
            f"drafted {totals.drafted}, examined {totals.examined}, accepted {totals.accepted}"
            + "".join(f", {name} {count}" for name, count in totals.accepted_by.items()),
            f"seconds: read {reply.read_s:.2f}, draft {totals.draft_s:.2f}, "
            f"verify {totals.verify_s:.2f}, accept {totals.accept_s:.3f}",
            f"context {self._session.context_tokens} of {self._session.model.n_ctx} tokens",
        ]
        return "\n".join(rows)
