"""The command line as a process of its own, on a model that makes the edits of `rows` and may wait for a test.

With SPECCHAT_TEST_HOLD it says that it has begun to write by opening the pipe of that name, and goes on when somebody
has written to the pipe of that name with ".go" behind it.
"""

from __future__ import annotations

import os
from argparse import Namespace

from specchat import cli
from specchat.rewrite import command
from specchat.session import ChatSession
from tests.specchat.rewrite.scripted import ScriptedModel, edited, session_on
from tests.specchat.rewrite.shell import rows

HOLD_AT = 1500  # tokens of the reply


def open_session(args: Namespace) -> ChatSession:
    model = ScriptedModel(edited(rows))
    if hold := os.environ.get("SPECCHAT_TEST_HOLD"):

        def wait(written: int) -> None:
            if written > HOLD_AT:
                model.before_forward = lambda written: None
                with open(hold, "w"):
                    pass
                with open(f"{hold}.go") as file:
                    file.read()

        model.before_forward = wait
    return session_on(model, max_tokens=args.max_tokens)


if __name__ == "__main__":
    setattr(command, "open_session", open_session)  # noqa: B010 # it is imported there
    raise SystemExit(cli.main())
