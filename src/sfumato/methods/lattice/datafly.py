"""Datafly: Sweeney 1998, section 3; the core of the algorithm as in Sweeney 2002, Fig. 3.

The table is generalized step by step. As long as too many records are in classes of fewer than k, the column with the
most distinct values goes up one level, in all records. Then the records in classes of fewer than k are left out.

Differs from the paper: it goes on until at most k records are in such classes, we until they are at most as many as the
policy allows (her loss threshold). Of columns with equally many distinct values the first goes up, and a column on its
most general level stays there. Her system also replaces values that nobody may see; here, that is the policy's part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.methods.lattice.lattice_method import LatticeMethod, check_only_k
from sfumato.methods.lattice.least_cost_node import SearchOutcome
from sfumato.methods.lattice.level_lattice import with_level
from sfumato.methods.lattice.node_results import NodeResults
from sfumato.methods.method import Effort
from sfumato.progress import Progress
from sfumato.requirements import Requirements


@dataclass(frozen=True, kw_only=True)
class Datafly(LatticeMethod):
    """Generalize the column with the most distinct values, again and again."""

    name = "datafly"
    paper = "Sweeney: Datafly: a system for providing anonymity in medical data, 1998"
    summary = "one level for each column everywhere; the column with the most distinct values goes up first"
    use = "for comparison with the literature; global loses less"

    def check(self, requirements: Requirements) -> None:
        check_only_k(self, requirements)

    def search(self, results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
        node, top = results.lattice.bottom, results.lattice.top
        while not results.result(node).feasible:
            raisable = [q for q in range(len(node)) if node[q] < top[q]]
            if not raisable:
                return SearchOutcome(None, None, True)
            groups = results.classes(node).groups
            distinct = [len(np.unique(groups[:, q])) for q in range(len(node))]
            q = max(raisable, key=lambda column: (distinct[column], -column))
            node = with_level(node, q, node[q] + 1)
            progress.advance(1)
        return SearchOutcome(results.result(node), None, False)
