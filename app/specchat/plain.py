"""Chat in line mode: a prompt, a streamed reply, a line of figures. What pipes, ssh and screen readers get."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress

from specchat.console import ReadingBar, can_ask, confirmed, figures, on_interrupt, printable, say
from specchat.context_policy import CUT, Policy
from specchat.conversation import Message, Role
from specchat.downloads import DownloadError
from specchat.errors import InputRefused, Refusal
from specchat.fitting import fit_messages
from specchat.headers import HeaderError
from specchat.opening import Shelf, close_session, load_draft, open_session
from specchat.session import ChatSession, ContextFull, Guess, Reading, Reply, Wrote
from specchat.template import TemplateError
from speculation.types import Finish, SpeculationError

HELP = """\
/guess auto|draft|lookup|off   who guesses, from the next reply on
/stats                         what the last reply took, guesser by guesser
/system TEXT                   the system prompt; without TEXT, none
/new                           forget this conversation
/quit                          leave (so does Ctrl-D)
Ctrl-C stops a reply. A line that ends with \\ goes on in the next one."""


def chat(args: Namespace) -> int:
    """Talk until the user leaves. Returns the exit code."""
    session = open_session(args)
    try:
        engines = session.engines
        draft = f" + {engines.draft.weights.name}" if engines.draft else ""
        say(
            f"{engines.target.weights.name}{draft} · {engines.target.weights.back_end} · "
            f"context {engines.target.n_ctx} · guess {session.guess} · /help"
        )
        return LineChat(session, args).run()
    finally:
        close_session(session)


class LineChat:
    """The loop of questions and answers."""

    def __init__(self, session: ChatSession, args: Namespace) -> None:
        self._session = session
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
            elif line.strip() and self._makes_room(line):
                self._answer(line)

    def _line(self) -> str:
        line = input("> " if self._talks else "")
        while line.endswith("\\"):
            line = line[:-1]
            with suppress(EOFError):
                line += "\n" + input("  " if self._talks else "")
        return line.encode("utf-8", "replace").decode()

    def _makes_room(self, text: str) -> bool:
        """Drop the oldest turns where the policy says so; False where the question is not to be answered."""
        session = self._session
        messages = [*session.messages, Message(Role.USER, text)]
        try:
            fitted = fit_messages(session.engines, messages, self._policy, max_tokens=session.settings.max_tokens)
        except ContextFull as error:
            if not self._talks:
                raise
            say(f"{error}; /new starts over")
            return False
        except (SpeculationError, TemplateError) as error:
            say(str(error))
            return False
        if fitted.newly_dropped:
            if self._policy is Policy.ASK:
                what = (
                    "question and its reply" if fitted.rounds == 1 else f"{fitted.rounds} questions and their replies"
                )
                say(f"the context of {session.engines.target.n_ctx} tokens is full")
                if not confirmed(f"Drop the oldest {what} ({fitted.freed} tokens)?"):
                    say("not asked: /new starts over, --on-full drop drops without asking")
                    return False
            else:
                say(f"note: {fitted.notice}")
            session.messages = [messages[i] for i in fitted.kept[:-1]]
        return True

    def _answer(self, text: str) -> None:
        try:
            with ReadingBar() as bar, on_interrupt(self._session.stop):
                for event in self._session.reply(text):
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
                        stopped = "" if event.finish else "stopped · "
                        say(stopped + figures(event))
                        self._tell()
                        self._tell_of_end(event)
        except (SpeculationError, TemplateError) as error:
            say(str(error))

    def _tell_of_end(self, reply: Reply) -> None:
        """A reply that the end of the context cut. Raises InputRefused where nobody can say how to go on."""
        if reply.finish is Finish.CONTEXT:
            if self._policy is Policy.STOP and not self._talks:
                raise InputRefused(CUT)
            say(f"note: {CUT}")

    def _tell(self) -> None:
        for notice in self._session.notices:
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
            self._session.new()
            say("a new conversation")
        elif name == "stats":
            say(self._stats())
        elif name == "guess":
            self._choose(rest)
        elif name == "system":
            self._session.set_system(rest)
            say("the system prompt is set" if rest else "no system prompt")
        elif name in ("help", "?", ""):
            say(HELP)
        else:
            say(f"no command /{name}; /help lists them")
        return True

    def _choose(self, name: str) -> None:
        if name not in list(Guess):
            say(f"guess {self._session.guess}; /guess auto, draft, lookup or off changes it")
            return
        try:
            if name == Guess.DRAFT and self._session.engines.draft is None:
                load_draft(self._session.engines, Shelf(), self._args)
            self._session.guess = Guess(name)
            say(f"guess {name}")
        except (SpeculationError, HeaderError, Refusal, DownloadError) as error:
            say(f"guess {self._session.guess} as before: {error}")
        except KeyboardInterrupt:
            say(f"guess {self._session.guess} as before")

    def _stats(self) -> str:
        reply = self._session.last_reply
        if reply is None:
            return "no reply yet"
        totals = reply.totals
        rows = [
            figures(reply),
            f"{totals.steps} steps: {totals.plain_steps} plain, {totals.steps - totals.plain_steps} with a draft",
            f"drafted {totals.drafted}, examined {totals.examined}, accepted {totals.accepted}"
            + "".join(f", {name} {count}" for name, count in totals.accepted_by.items()),
            f"seconds: read {reply.read_s:.2f}, draft {totals.draft_s:.2f}, "
            f"verify {totals.verify_s:.2f}, accept {totals.accept_s:.3f}",
            f"context {self._session.context_tokens} of {self._session.engines.target.n_ctx} tokens",
        ]
        return "\n".join(rows)
