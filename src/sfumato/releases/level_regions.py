"""The regions of a recoding that shows every column on one level: the combinations of groups.

Such rules need no bounds of the table that they were learnt from: a level says to which group any value belongs. So
every table gets the regions of its own groups, and a number that lies beyond those of the first table still has a cell.
Categories that the taxonomy does not know, and null in a column that had none, are in no region, unless the column
shows ``*``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sfumato.methods.lattice.level_lattice import with_null
from sfumato.methods.lattice.region_grid import RegionGrid
from sfumato.releases.regions import Regions, codes_of_values, converted
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain


def level_regions(own: Sequence[Domain], levels: Mapping[str, int], codes: Codes, domains: Sequence[Domain]) -> Regions:
    """Return the regions of the groups that occur in a table, beside others that hold none of its records.

    own: the domains of the rules, each on its level. codes: uint[n, d], of ``domains``, those of the table.
    """
    pairs = list(zip(own, domains, strict=True))
    shown = [_domain_of_table(rule, domain, levels[rule.name] == rule.top_level) for rule, domain in pairs]
    sizes = tuple(domain.size for domain in shown)
    whole = [levels[domain.name] == domain.top_level for domain in shown]
    starts = tuple(np.arange(1 if star else size) for star, size in zip(whole, sizes, strict=True))
    translated = [codes_of_values(domain, shown[q])[codes[:, q]] for q, domain in enumerate(domains)]
    combinations = np.unique(np.stack(translated, axis=1), axis=0)
    inside = combinations[(combinations >= 0).all(axis=1)].astype(np.uint32)
    grid = RegionGrid(starts, sizes)
    line = grid.line(inside)
    return Regions.exactly(grid.tree(inside, line, np.ones(len(inside), np.int64)), shown)


def domains_of_levels(domains: Sequence[Domain], levels: Mapping[str, int]) -> list[Domain]:
    """Return the domains of columns on their levels, as rules have them: of numbers they hold no value."""
    shown: list[Domain] = []
    for domain in domains:
        level = levels[domain.name]
        own = domain if level == domain.top_level else domain.at_level(level)[0]
        shown.append(replace(own, values=own.values[:0], extent=None) if isinstance(own, NumericDomain) else own)
    return shown


def _domain_of_table(own: Domain, domain: Domain, star: bool) -> Domain:
    """Return the domain of a column on its level with the groups of another table."""
    if isinstance(own, CategoricalDomain):
        return with_null(own) if star else own
    assert isinstance(own, NumericDomain)
    if isinstance(domain, NumericDomain):
        below, above = (own.cell_starts(numbers) for numbers in converted(domain, own))
        starts = [value for value in np.append(below, above).tolist() if _fits(value, own)]
        own = replace(own, values=np.unique(np.array(starts, own.values.dtype)), extent=None)
    return with_null(own) if star else own


def _fits(value: float, own: NumericDomain) -> bool:
    """Return whether a number is one that the column can hold: not NaN, and no whole number beyond 64 bits."""
    return value == value and (own.values.dtype.kind == "f" or -(2**63) <= value < 2**63)  # noqa: PLR0124
