"""Many dimensions to one: orderings under which near records have near keys.

Every ordering gives two methods of its name: the best cut by the loss of the true boxes, and with ``-fast`` behind it
by the distance between keys. A further ordering is one file and an entry point in the group ``sfumato.orderings``
whose object is an ``Ordering``.
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
    """Every ordering there is, by name: ours first, then those of installed packages."""
    own: list[Ordering] = [Hilbert(), IDistance(), Snake(), Snake(curve=Hilbert())]
    found = {ordering.name: ordering for ordering in own}
    for entry in entry_points(group="sfumato.orderings"):
        found.setdefault(entry.name, entry.load())
    return found
