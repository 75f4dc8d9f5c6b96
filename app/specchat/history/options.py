"""The flags of `specchat chats`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse

FORMS = ("md", "json", "html")


def add_chats(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command with all its actions; without one it lists."""
    listing = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.add_argument("--limit", type=int, metavar="N", help="at most so many (all; 50 of a search)")
    chats = commands.add_parser("chats", parents=[listing], help="list, search, export and delete the chats kept here")
    chats.set_defaults(call="specchat.history.command:list_chats")
    actions = chats.add_subparsers(dest="action", metavar="ACTION")
    which = "the number of a chat, how its title begins, or last"

    actions.add_parser("list", parents=[listing], help="all chats, the newest first")
    show = actions.add_parser("show", help="print a chat")
    show.add_argument("chat", metavar="ID", help=which)
    show.set_defaults(call="specchat.history.command:show_chat")
    resume = actions.add_parser("resume", help="go on with a chat")
    resume.add_argument("resume", metavar="ID", help=which)
    resume.set_defaults(call="specchat.tui.command:run")
    search = actions.add_parser("search", parents=[listing], help="find messages by their words")
    search.add_argument("words", nargs="+", metavar="WORDS", help='all must be in it; "in quotes" side by side')
    search.set_defaults(call="specchat.history.command:search_chats")
    rename = actions.add_parser("rename", help="give a chat a title")
    rename.add_argument("chat", metavar="ID", help=which)
    rename.add_argument("title", metavar="TITLE")
    rename.set_defaults(call="specchat.history.command:rename_chat")
    delete = actions.add_parser("delete", help="delete chats for good")
    delete.add_argument("chats", nargs="+", metavar="ID", help=which)
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")
    delete.set_defaults(call="specchat.history.command:delete_chats")
    export = actions.add_parser("export", help="write a chat as Markdown, JSON or HTML")
    export.add_argument("chat", metavar="ID", help=which)
    export.add_argument("-o", "--output", metavar="FILE", help="instead of stdout")
    export.add_argument("--format", choices=FORMS, help="(what FILE ends with, or md)")
    export.set_defaults(call="specchat.history.command:export_chat", output=None, format=None)
    taking = actions.add_parser("import", help="take up chats of a JSON file of specchat or ChatGPT")
    which_file = "conversations.json, the archive that holds it, or our own export; - is standard input"
    taking.add_argument("file", metavar="FILE", help=which_file)
    taking.set_defaults(call="specchat.history.command:import_chats")
    purge = actions.add_parser("purge", help="delete old chats; pinned ones stay")
    purge.add_argument("--older-than", required=True, metavar="AGE", help="since the last message: 90d, 12w or 2y")
    purge.add_argument("-y", "--yes", action="store_true", help="do not ask")
    purge.set_defaults(call="specchat.history.command:purge_chats")
