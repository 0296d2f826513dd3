"""Full-domain generalization of least cost: Samarati's lattice (2001, section 3), searched for the optimum.

Every column is released on one level, the same for all records, and classes that do not meet the requirements are left
out within the limit. Among all nodes of the lattice the method takes the one whose release costs least; ARX calls this
global recoding with the optimal solution (Kohlmayer et al., Flash, 2012). How the search avoids most of the lattice is
in ``least_cost_node``; requirements of every kind are tested as ``node_results`` explains.

Differs from Flash: nodes are visited in the order of a bound on their cost instead of along paths, because the cost of
all records at a node is known without counting them. A search that would take too long ends after a number of steps,
and says what it has proven until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.lattice.least_cost_node import SearchOutcome, least_cost_node
from sfumato.methods.lattice.node_results import NodeResults
from sfumato.methods.method import Effort
from sfumato.progress import Progress
from sfumato.requirements import Requirements


@dataclass(frozen=True, kw_only=True)
class GlobalRecoding(LatticeMethod):
    """Search the whole lattice for the least cost."""

    name = "global"
    paper = "Sfumato's own search; full-domain generalization of Samarati, TKDE 2001"
    summary = "one level for each column everywhere; the least loss on the whole lattice of levels"
    use = "when every column must be on the same level in all records, as for tables that are joined or compared"
    suppresses_cells: ClassVar[bool] = True
    ends_early: ClassVar[bool] = True

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes that do not meet it are left out, or the node is not taken."""

    def search(self, results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
        return least_cost_node(results, effort, progress)
