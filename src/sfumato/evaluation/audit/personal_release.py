"""A finished release about persons, and whose its records are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.audit.audit import class_key
from sfumato.policy import Policy
from sfumato.requirements import Requirements
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class PersonalRelease:
    """A finished release, and whose its records are.

    persons: int64[rows], numbered alike in all tables. person: the column of the original that identifies them.
    """

    name: str
    source: Source
    persons: NDArray[np.int64]
    person: str
    policy: Policy
    requirements: Requirements
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The class of each row."""
        found = find_classes(self.source, class_key(self.policy, self.source.names), by_row=True)
        assert found.class_of_row is not None
        return found.class_of_row

    @property
    def shows_pseudonyms(self) -> bool:
        """Whether the release shows the persons as pseudonyms."""
        return self.person in self.policy.pseudonyms and self.person in self.source.names

    @property
    def kept(self) -> list[str]:
        """The columns that are released as they are, but for the pseudonyms of persons."""
        key = {*class_key(self.policy, self.source.names), self.person}
        return [name for name in self.source.names if name not in key]
