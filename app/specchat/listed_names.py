"""`specchat models list --names`, apart from the list itself because shells wait for it: neither engine nor numpy."""

from __future__ import annotations

import os
from argparse import Namespace

from specchat.catalogue_file import catalogue_path, load_catalogue, user_catalogue_path
from specchat.folders import models_folder
from specchat.own_models import OwnModels


def list_names(args: Namespace) -> int:
    """A line a model: the user's own, then those of the catalogue. Raises CatalogueError."""
    catalogue = load_catalogue(catalogue_path(), user_catalogue_path(os.environ))
    models = [*OwnModels(models_folder()).models(), *catalogue.offered(lambda _: False)]
    if args.fits:
        from specchat.listing import fitting

        models = fitting(models)
    print("\n".join(dict.fromkeys(model.id for model in models)))
    return 0
