"""Orderings that map many dimensions to one, so that near records have near keys.

Every ordering gives two methods: one of its own name, which minimizes the loss of the true boxes, and one with the
suffix ``-fast``, which minimizes the distance between keys. To add an ordering, write one file and an entry point in
the group ``sfumato.orderings`` whose object is an ``Ordering``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from sfumato.orderings.hilbert import Hilbert
from sfumato.orderings.idistance import IDistance
from sfumato.orderings.ordering import Keys, KeysOf, Ordering
from sfumato.orderings.snake import Snake

__all__ = ["Hilbert", "IDistance", "Keys", "KeysOf", "Ordering", "Snake", "orderings"]


@cache
def orderings() -> dict[str, Ordering]:
    """Return every ordering by name: the built-in ones first, then those of installed packages."""
    built_in: list[Ordering] = [Hilbert(), IDistance(), Snake(), Snake(curve=Hilbert())]
    by_name = {ordering.name: ordering for ordering in built_in}
    for entry in entry_points(group="sfumato.orderings"):
        by_name.setdefault(entry.name, entry.load())
    return by_name
