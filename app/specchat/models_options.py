"""The actions of `specchat models` and their options; importing this loads no engine."""

from __future__ import annotations

import argparse


def add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of the program."""
    models = commands.add_parser("models", help="list, fetch and check models")
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what the catalogue knows and what is here")
    listing.add_argument("--json", action="store_true", help="as JSON")
    names = "specchat.listed_names:list_names"
    listing.add_argument("--names", dest="call", action="store_const", const=names, help="only the names, one a line")
    listing.add_argument("--fits", action="store_true", help="only what fits into the memory that is free here")
    listing.set_defaults(call="specchat.listing:list_models")
    pull = actions.add_parser("pull", help="fetch models; goes on where it was interrupted")
    named = "one that is listed, or hf:OWNER/NAME:QUANTIZATION; without one, the starter pair"
    pull.add_argument("names", nargs="*", metavar="NAME", help=named)
    pull.add_argument("-y", "--yes", action="store_true", help="do not ask")
    pull.set_defaults(call="specchat.models:pull_models")
    verify = actions.add_parser("verify", help="check size and sha256")
    verify.add_argument("names", nargs="*", metavar="NAME", help="without one, all that are here")
    verify.set_defaults(call="specchat.models:verify_models")
    check = actions.add_parser("check-catalogue", help="compare what the catalogue says with the model hub")
    check.add_argument("names", nargs="*", metavar="NAME", help="without one, the whole catalogue")
    check.add_argument("--json", action="store_true", help="as JSON")
    check.set_defaults(call="specchat.check_catalogue:check_catalogue")
    path = actions.add_parser("path", help="where a model is, or all of them")
    path.add_argument("name", nargs="?", metavar="NAME")
    path.set_defaults(call="specchat.models:model_path")
    add = actions.add_parser("add", help="use a GGUF file by name, where it lies")
    add.add_argument("path", metavar="PATH", help="of a split model, any part")
    add.add_argument("--alias", metavar="NAME", help="its name (made from that of the file)")
    add.set_defaults(call="specchat.own_commands:add_model")
    find = actions.add_parser("find", help="models of Hugging Face, LM Studio, llama.cpp and Ollama on this machine")
    find.add_argument("--add", action="store_true", help="use them by name, where they lie")
    find.set_defaults(call="specchat.own_commands:find_others")
    info = actions.add_parser("info", help="what is known of a model, and what its file says")
    info.add_argument("name", metavar="NAME", help="or the path of a .gguf file")
    info.add_argument("--json", action="store_true", help="as JSON")
    info.set_defaults(call="specchat.own_commands:model_info")
    pair = actions.add_parser("pair", help="which models can guess for one, why others cannot, and what it is worth")
    pair.add_argument("name", metavar="NAME", help="or the path of a .gguf file")
    pair.add_argument("-t", "--threads", type=int, metavar="N", help="of the prices to go by (one a fast core)")
    pair.add_argument("--json", action="store_true", help="as JSON")
    pair.set_defaults(call="specchat.pair_command:pair")
    remove = actions.add_parser("rm", help="delete fetched models, forget linked ones (their files stay)")
    remove.add_argument("names", nargs="+", metavar="NAME")
    remove.add_argument("-y", "--yes", action="store_true", help="do not ask")
    remove.set_defaults(call="specchat.own_commands:remove_models")
    prune = actions.add_parser("prune", help="delete what downloads have left over; asks first")
    prune.add_argument("--dry-run", action="store_true", help="only say what and how much")
    prune.add_argument("-y", "--yes", action="store_true", help="do not ask; also files that are on no list")
    prune.set_defaults(call="specchat.pruning:prune_models")
