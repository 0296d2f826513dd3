"""Numbers for the persons of several tables: a person has the same number in all of them."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.files.key_file import KEY_BYTES
from sfumato.policy import Policy
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.sources.input_table import open_derived
from sfumato.tables.sources.pseudonyms import under_key


class PersonNumbers:
    """Numbers persons as they are read, table by table.

    Persons are told apart by pseudonyms under a key that lives only here. So nothing that knows the numbers can name a
    person, and a person is the same one whatever the type of the column and the kind of file.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def read(self, data: object, policy: Policy, column: str, table: str) -> NDArray[np.int64]:
        """Return the person of each record, in the order of the input. table: its name, for errors."""
        source = open_derived(data, policy)
        if column not in source.names:
            raise UsageError.unknown_column(column, f"the person key of {table!r}", source.names)
        parts, missing = [np.empty(0, np.int64)], 0
        for batch in under_key(source, column, policy, self._key).batches([column]):
            persons = batch.column(0)
            missing += persons.null_count
            numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in persons.dictionary.to_pylist()]
            parts.append(np.array([*numbers, 0], np.int64)[to_numpy(persons.indices, null=len(numbers))])
        if missing:
            raise InputError(
                f"the person key {column!r} of {table!r} is empty in {missing:,} records, so nobody can say whose they "
                "are. Fill it in, or leave these records out."
            )
        return np.concatenate(parts)
