"""How the values of a column are generalised: trees of named groups, and ways to widen ranges of numbers or dates.

code_tree            nested groups of codes: lowest common ancestors
taxonomy             a tree whose nodes have names: leaves in depth-first order, labels
taxonomy_file        trees from CSV files
derived_taxonomies   trees built from the values of the column: flat, and by common prefix
ready                trees by name: countries, months, weekdays, ICD-10
group_tree           trees whose groups are made, renamed, moved and dissolved
taxonomy_rows        trees as rows, level by level, and the text of a file
order_groups         groups of about equally many records, in the order of the values
frequent_values      the most frequent values apart
sensitive_hierarchy  a tree over the values of a sensitive column, for t-closeness
widening             numeric and date columns: released bounds widened to intervals, calendar units or a grid
decimal_multiples    the multiples of a decimal step among floating-point numbers
"""

from __future__ import annotations

from sfumato.taxonomies.derived_taxonomies import flat, prefix
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid, Snap, Snapped

__all__ = ["Calendar", "Intervals", "RoundingGrid", "Snap", "Snapped", "Taxonomy", "flat", "prefix", "read_taxonomy"]
