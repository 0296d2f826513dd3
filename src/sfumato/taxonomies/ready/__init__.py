"""Ready-made taxonomies, which a policy names: ``taxonomy = { ready = "countries" }``. Each is loaded when it is used.

ready_taxonomy   what a ready-made taxonomy can do; one whose leaves are fixed, in several ways of writing
countries        ISO 3166-1 to subregions and regions of the UN
country_codes    the codes and names of countries, by region
calendar_parts   months to quarters and half-years; weekdays to working days and the weekend
icd10            codes of ICD-10 to categories, blocks and chapters
icd10_blocks     the chapters and blocks of ICD-10
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sfumato.errors import PolicyError
from sfumato.taxonomies.ready.ready_taxonomy import FixedTaxonomy, ReadyTaxonomy
from sfumato.taxonomies.taxonomy import Taxonomy

NAMES = ("countries", "months", "weekdays", "icd-10")


@cache
def ready_taxonomy(name: str) -> ReadyTaxonomy:
    """Return the ready-made taxonomy of this name."""
    match name:
        case "countries":
            from sfumato.taxonomies.ready.countries import countries

            return countries()
        case "months":
            from sfumato.taxonomies.ready.calendar_parts import months

            return months()
        case "weekdays":
            from sfumato.taxonomies.ready.calendar_parts import weekdays

            return weekdays()
        case "icd-10":
            from sfumato.taxonomies.ready.icd10 import Icd10

            return Icd10()
    raise PolicyError.unknown_choice("ready-made taxonomy", name, NAMES)


def has_fixed_leaves(name: str) -> bool:
    """Return whether a ready-made taxonomy has the same leaves for every table, so that a release alone tells them."""
    return isinstance(ready_taxonomy(name), FixedTaxonomy)


def taxonomy_of_release(name: str | None, labels: Iterable[str], column: str) -> Taxonomy | None:
    """Return a ready-made taxonomy with its leaves as a release writes them; None without one of fixed leaves."""
    ready = None if name is None else ready_taxonomy(name)
    return ready.of_release(labels, column) if isinstance(ready, FixedTaxonomy) else None
