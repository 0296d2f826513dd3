"""What every generator of synthetic microdata offers, and the stream of batches they share.

Records are drawn in batches of a fixed size, each from a random stream of its own that only the seed and the batch's
number decide. So the first N records are the same however many are asked for, and any batch can be drawn alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa

from sfumato.errors import UsageError

BATCH_RECORDS = 65_536
SUGGESTED_K = 10


@dataclass(frozen=True, kw_only=True)
class Generated:
    """One column that a generator makes: what its policy says of it, and the rows of its taxonomy, if it has one."""

    name: str
    role: Literal["quasi-identifier", "sensitive", "other"]
    type: Literal["numeric", "categorical"]
    taxonomy: tuple[tuple[str, ...], ...] = ()


class Generator(Protocol):
    """A kind of synthetic table. The options of a kind are the fields of its class."""

    name: ClassVar[str]
    version: ClassVar[str]
    """Named beside every figure that was measured on the records; raised whenever their values change."""

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        """The records, in order, a batch at a time."""

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        """For each column that has a taxonomy one row per leaf: the leaf, ever more general groups, ``*``."""

    def policy(self) -> dict[str, Any]:
        """A policy for the table, as its TOML file holds it."""


class Stream:
    """The purposes that random numbers are drawn for; each has numbers of its own."""

    RECORDS = 0
    CONSTANTS = 1


def random_numbers(seed: int, *key: int) -> np.random.Generator:
    """The random numbers of one seed for one purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def check_whole(what: str, value: object, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{what} must be a whole number of at least {least}, not {value!r}.")


def draw_batches(
    records: int, seed: int, draw: Callable[[np.random.Generator], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Call ``draw``, which makes ``BATCH_RECORDS`` records, as often as needed; the last batch is cut to length."""
    check_whole("the number of records", records, 1)
    check_whole("the seed", seed, 0)
    return (
        draw(random_numbers(seed, Stream.RECORDS, start // BATCH_RECORDS)).slice(0, records - start)
        for start in range(0, records, BATCH_RECORDS)
    )


def taxonomies_of(columns: Sequence[Generated]) -> dict[str, list[tuple[str, ...]]]:
    """The taxonomies of those columns that have one."""
    return {column.name: list(column.taxonomy) for column in columns if column.taxonomy}


def policy_of(columns: Sequence[Generated]) -> dict[str, Any]:
    """The policy that gives each column its role. Only quasi-identifiers are described further."""
    described: dict[str, dict[str, str]] = {}
    for column in columns:
        described[column.name] = {"role": column.role}
        if column.role == "quasi-identifier":
            described[column.name]["type"] = column.type
            if column.taxonomy:
                described[column.name]["taxonomy"] = f"taxonomies/{column.name}.csv"
    return {"other": "drop", "columns": described, "privacy": {"k": SUGGESTED_K}}
