"""k persons in every class, said in another way: k records with k different values of one more sensitive column.

Kernels count records and the values that they have. Said so, they decide about persons as well, and searches can keep
k persons in every class instead of merging classes that lack some. Requirements on the sensitive values of persons
cannot be said so: a person counts once however many records have the value.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import DistinctDiversity, Requirements


def persons_as_values(records: Records, requirements: Requirements) -> tuple[Records, Requirements]:
    """Return records and requirements that mean the same and count no persons, or the given ones if there are none."""
    if records.persons is None or requirements.person is None or requirements.columns:
        return records, requirements
    count = int(records.persons.max(initial=0)) + 1
    persons = SensitiveValues(records.persons, count, np.full(count, np.nan))
    different = DistinctDiversity(requirements.person, requirements.least_class)
    return (
        replace(records, persons=None, sensitive={**records.sensitive, requirements.person: persons}),
        Requirements((*requirements.parts, different)),
    )
