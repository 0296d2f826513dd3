"""Query accuracy: how well counts over the original are answered from a release alone (Ghinita 2007, section 6.3).

The datacube at level i has a group-by for every choice of i quasi-identifiers. A group-by counts the records of each
cell and sensitive value: exactly in the original (P), and in the release (Q) as a reader would estimate it. P and Q are
distributions. The error is their Kullback-Leibler divergence, the sum of P ln(P / Q) where P > 0; the total is the mean
over group-bys. Random range-count queries (Xiao and Tao 2006) are answered in the same way, and their relative error is
measured.

A reader of a generalized release spreads each record evenly over the codes that its released values leave open
(``box_estimates``). A reader of the two tables of Anatomy knows the cell of a record, and gives it every sensitive
value of its group in proportion to that value's share of the group (``anatomy_estimates``).

Differs from the papers:

- null is a separate cell; ``*`` is spread over it as over any other code, so that Q > 0 wherever P > 0;
- suppressed records are spread over the whole domain and evenly over the sensitive values;
- the user may define cells as bins of numbers; a bin counts as many codes as the original has values in it;
- range queries ask for a contiguous range of numbers or dates, where Xiao and Tao draw any set of values; of categories
  both draw any set.
"""

from sfumato.evaluation.queries.accuracy import GroupBy, Measured, QueryAccuracy, RangeAccuracy
from sfumato.evaluation.queries.anatomy_estimates import GroupedRecords, grouped_records
from sfumato.evaluation.queries.measure_queries import ask_release, measure_queries
from sfumato.evaluation.queries.query_workload import QueryWorkload, queried_columns

__all__ = [
    "GroupBy",
    "GroupedRecords",
    "Measured",
    "QueryAccuracy",
    "QueryWorkload",
    "RangeAccuracy",
    "ask_release",
    "grouped_records",
    "measure_queries",
    "queried_columns",
]
