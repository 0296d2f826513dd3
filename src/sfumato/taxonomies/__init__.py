"""How the values of a column are generalised: trees of named groups, and steps that widen a box of numbers or dates.

tree       the tree itself: leaves in depth-first order, labels, lowest common ancestors
files      trees from CSV files
derived    trees made from the values of the column: flat, and by common prefix
snapping   numeric and date columns: released bounds widened outward to intervals, calendar units or a grid
multiples  the multiples of a decimal step among floating-point numbers
"""

from __future__ import annotations

from sfumato.taxonomies.derived_taxonomies import flat, prefix
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid, Snap, Snapped

__all__ = ["Calendar", "Intervals", "RoundingGrid", "Snap", "Snapped", "Taxonomy", "flat", "prefix", "read_taxonomy"]
