"""The protocol of all generators of synthetic microdata, and the drawing of batches that they share.

Records are drawn in batches of a fixed size. Each batch has its own random stream, which depends only on the seed and
the number of the batch. The first N records are therefore the same however many are requested, and any batch can be
drawn on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa

from sfumato.errors import UsageError

BATCH_RECORDS = 65_536
SUGGESTED_K = 10


@dataclass(frozen=True, kw_only=True)
class GeneratedColumn:
    """A generated column: its settings in the policy, and the rows of its taxonomy if it has one.

    ``grouping`` is the rule by which values are grouped where there are no such rows, as the policy has it.
    """

    name: str
    role: Literal["identifier", "quasi-identifier", "sensitive", "other"]
    type: Literal["numeric", "categorical", "date"]
    taxonomy: tuple[tuple[str, ...], ...] = ()
    grouping: Mapping[str, Sequence[int | str]] | None = None


class Generator(Protocol):
    """A kind of synthetic table. Its options are the fields of the class."""

    name: ClassVar[str]
    version: ClassVar[str]
    """Stated with every figure measured on the records; raised whenever their values change."""

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        """Yield the records in order, batch by batch."""

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        """Return for each column with a taxonomy one row per leaf: the leaf, more and more general groups, ``*``."""

    def policy(self) -> dict[str, Any]:
        """Return a policy for the table, in the form of its TOML file."""


class RandomStream:
    """The purposes of random numbers; each has its own stream."""

    RECORDS = 0
    CONSTANTS = 1
    FLAWS = 2


def random_numbers(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a seed for one purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def check_whole(what: str, value: object, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{what} must be a whole number of at least {least}, not {value!r}.")


def draw_batches(
    records: int, seed: int, draw: Callable[[np.random.Generator], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Call ``draw``, which returns ``BATCH_RECORDS`` records, as often as needed; the last batch is cut to length."""
    check_whole("the number of records", records, 1)
    check_whole("the seed", seed, 0)
    return (
        draw(random_numbers(seed, RandomStream.RECORDS, start // BATCH_RECORDS)).slice(0, records - start)
        for start in range(0, records, BATCH_RECORDS)
    )


def taxonomies_of(columns: Sequence[GeneratedColumn]) -> dict[str, list[tuple[str, ...]]]:
    """Return the taxonomies of the columns that have one."""
    return {column.name: list(column.taxonomy) for column in columns if column.taxonomy}


def policy_of(columns: Sequence[GeneratedColumn]) -> dict[str, Any]:
    """Return a policy that gives each column its role. Only quasi-identifiers have a type and a taxonomy."""
    settings: dict[str, dict[str, Any]] = {}
    for column in columns:
        settings[column.name] = {"role": column.role}
        if column.role == "quasi-identifier":
            settings[column.name]["type"] = column.type
            if column.taxonomy:
                settings[column.name]["taxonomy"] = f"taxonomies/{column.name}.csv"
            elif column.grouping is not None:
                settings[column.name]["taxonomy"] = dict(column.grouping)
    return {"other": "drop", "columns": settings, "privacy": {"k": SUGGESTED_K}}
