"""One registry behind the slash commands, the command palette and the help screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """Something the app can do. `action` is the name of an action of the app; an argument is passed to it."""

    name: str  # without the slash
    hint: str  # of the argument; empty: it takes none
    text: str
    action: str
    key: str = ""


COMMANDS = (
    Command("new", "", "start a new chat", "new_chat", "Ctrl+N"),
    Command("chats", "", "all chats: find, open, rename, delete", "chats", "Ctrl+S"),
    Command("resume", "[number|title|last]", "go on with an earlier chat", "resume"),
    Command("private", "", "start a chat of which nothing is kept", "private"),
    Command("title", "[text]", "give this chat a title", "title"),
    Command("pin", "", "keep the selected message in the prompt, or no longer", "pin"),
    Command("context", "", "what each message takes up of the context", "context"),
    Command("export", "[file]", "write this chat as Markdown, JSON or HTML", "export"),
    Command("model", "[name]", "choose a model", "models", "Ctrl+L"),
    Command("guess", "auto|draft|lookup|...", "who guesses, from the next step on", "guess", "Ctrl+G"),
    Command("draft", "[name|none]", "load or drop a draft model", "draft"),
    Command("try", "[draft]", "what a draft model would have given on your last replies", "try_draft"),
    Command("settings", "", "open or close the settings", "settings", "F2"),
    Command("panel", "", "show or hide the figures of the guessing", "panel", "F3"),
    Command("tint", "off|gutter|token", "mark what was guessed", "tint", "Ctrl+T"),
    Command("raw", "", "Markdown as it was written, or rendered", "raw"),
    Command("rewrite", "[files] [what to do]", "rewrite files and review the changes", "rewrite", "F4"),
    Command("undo", "[file]", "take back what the last rewrite wrote", "undo"),
    Command("attach", "path", "attach a text file", "attach", "@"),
    Command("detach", "", "drop the attachments of the next message", "detach"),
    Command("editor", "", "write the message in $EDITOR", "editor", "Ctrl+O"),
    Command("redo", "", "write the last reply anew", "redo", "Ctrl+R"),
    Command("continue", "", "go on with the last reply", "go_on"),
    Command("check", "", "write the last reply again without guesses and compare", "check"),
    Command("steps", "", "list the steps of the last reply", "steps"),
    Command("copy", "", "copy the last reply", "copy_reply"),
    Command("system", "[text]", "set the system prompt of this chat; without text, none", "system"),
    Command("seed", "number|random", "seed of the next replies", "seed"),
    Command("temp", "number", "temperature of the next replies", "temperature"),
    Command("theme", "[name]", "choose the colours", "theme"),
    Command("help", "", "keys and commands", "show_help", "F1"),
    Command("quit", "", "leave", "quit", "Ctrl+Q"),
)


def find_command(name: str) -> Command | None:
    """The command of a name, or the only one that it begins."""
    exact = [command for command in COMMANDS if command.name == name]
    found = exact or [command for command in COMMANDS if name and command.name.startswith(name)]
    return found[0] if len(found) == 1 else None


def completions(text: str) -> list[Command]:
    """The commands that a text may become; [] for anything that is not the beginning of a command."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return []
    return [command for command in COMMANDS if command.name.startswith(text[1:])]
