"""Value labels of SPSS and Stata files: the names of codes, such as "female" for 2.

Not every column with labels is one of codes. A column of incomes may have labels for -1 and -2 alone, and a scale from
0 to 10 labels for its ends. A column is read by its labels if at least half of the different values that occur in it
have one. Its other values keep their codes, as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from sfumato.tables.coding.arrow_arrays import from_texts, to_python

Code: TypeAlias = float | str


class LabelledColumn:
    """The labels of a column, and the different values that occur in it, gathered batch by batch.

    asked: whether the column is read by its labels whatever occurs in it.
    """

    def __init__(self, labels: Mapping[Code, str | None], *, asked: bool) -> None:
        self._labels = {_code(code): label for code, label in labels.items() if label and label.strip()}
        self._asked = asked
        self._labelled: set[Code] = set()
        self._unlabelled: set[Code] = set()

    def see(self, column: pa.Array) -> None:
        """Take the values of a batch into account."""
        if self._is_decided:
            return
        for value in to_python(column.unique().drop_null()):
            (self._labelled if value in self._labels else self._unlabelled).add(value)

    @property
    def by_labels(self) -> bool:
        """Whether the column is read by its labels."""
        return self._asked or (bool(self._labelled) and len(self._unlabelled) <= len(self._labelled))

    @property
    def labelled(self) -> int:
        """How many different values that occur have a label."""
        return len(self._labelled)

    @property
    def unlabelled(self) -> int:
        """How many different values that occur have no label; a column of numbers may have more."""
        return len(self._unlabelled)

    @property
    def joined(self) -> int:
        """How many different values have the text of another one, and cannot be told apart when read by labels."""
        seen = [*self._labelled, *self._unlabelled]
        return len(seen) - len({self._text(value) for value in seen})

    def texts(self, column: pa.Array) -> pa.DictionaryArray:
        """Return a column with labels in the place of its codes."""
        encoded = column.dictionary_encode()
        texts = [self._text(value) for value in to_python(encoded.dictionary)]
        return pa.DictionaryArray.from_arrays(encoded.indices, from_texts(texts))

    @property
    def _is_decided(self) -> bool:
        # So many values without a label that the rest does not matter. They need not be kept.
        return not self._asked and len(self._unlabelled) > len(self._labels)

    def _text(self, value: Code) -> str:
        label = self._labels.get(value)
        if label is not None:
            return label
        return value if isinstance(value, str) else str(int(value)) if value == int(value) else repr(value)


def _code(code: Code) -> Code:
    return code if isinstance(code, str) else float(code)
