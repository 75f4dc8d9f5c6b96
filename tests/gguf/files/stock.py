"""A small stock book: what lies on which shelf."""

from collections import defaultdict


def count(entries, minimum):
    """How many pieces of each article there are, where there are at least `minimum`."""
    found = defaultdict(int)
    for name, pieces in entries:
        found[name] += pieces
    return {name: pieces for name, pieces in found.items() if pieces >= minimum}


def missing(entries, wanted):
    """Articles of which there are fewer than wanted, and how many fewer."""
    here = count(entries, 0)
    return {name: number - here.get(name, 0) for name, number in wanted.items() if number > here.get(name, 0)}


class Book:
    def __init__(self, entries=()):
        self.entries = list(entries)    # (name, pieces), oldest first

    def add(self, name, pieces):
        if pieces <= 0:
            raise ValueError(f"{pieces} pieces of {name} cannot be added")
        self.entries.append((name, pieces))

    def total(self):
        return sum(pieces for _, pieces in self.entries)
