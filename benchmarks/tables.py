"""The options of a run and the tables that its sections measure on."""

from __future__ import annotations

import csv
import gzip
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sfumato import Policy, generate
from sfumato.policy import merge_flags
from sfumato.synthetic import Census

GENERATOR = f"{Census.name} {Census.version}"
REAL_TABLE_RECORDS = 30_000
"""The number of generated records that replace a real table, about as many as Adult has."""


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    work: Path
    records: tuple[int, ...]
    data: Path | None
    peers: Path | None
    peer_limit: float

    def census(self, records: int) -> GeneratedTable:
        """Return the census-like table of that size, which is generated once for all sections."""
        path = self.work / f"census-{Census.version}-{records}" / "census.parquet"
        policy = path.with_name("census.policy.toml")
        if not (path.exists() and policy.exists()):
            path.parent.mkdir(parents=True, exist_ok=True)
            generate(Census.name, records, path)
        return GeneratedTable(path, policy, records)

    def small_table(self) -> SmallTable:
        """Return the table of ``--data``, or a generated one of the size of Adult."""
        return _read_directory(self.data) if self.data is not None else self._generated_small_table()

    def _generated_small_table(self) -> SmallTable:
        path = self.work / f"small-{Census.version}" / "census.csv"
        policy_path = path.with_name("census.policy.toml")
        if not (path.exists() and policy_path.exists()):
            path.parent.mkdir(parents=True, exist_ok=True)
            generate(Census.name, REAL_TABLE_RECORDS, path)
        whole = Policy.load(policy_path)
        contents = whole.to_dict()
        # Peers get the quasi-identifiers and the sensitive column, no passthrough columns.
        contents["columns"] = {
            name: column for name, column in contents["columns"].items() if column["role"] != "other"
        }
        policy = Policy.from_dict(contents, whole.base)
        taxonomies = {
            name: policy.taxonomy_path(name)
            for name in policy.quasi_identifiers
            if policy.columns[name].taxonomy_file is not None
        }
        return SmallTable(
            name=f"{GENERATOR} (generated, {REAL_TABLE_RECORDS:,} records; --data gives a real table)",
            path=path,
            policy=policy,
            numeric=tuple(name for name in policy.quasi_identifiers if name not in taxonomies),
            hierarchies={name: _rows(file) for name, file in taxonomies.items()},
            is_adult=False,
            numeric_columns=tuple(name for name in policy.quasi_identifiers if name not in taxonomies),
        )


@dataclass(frozen=True)
class GeneratedTable:
    """A census-like Parquet file with its policy."""

    path: Path
    policy_path: Path
    records: int

    def policy(
        self, *, k: int, quasi_identifiers: int | None = None, pass_through: bool = False, method: str = "auto"
    ) -> Policy:
        """Return the table's policy with another k or method, and with only the first few quasi-identifiers.

        The others are dropped. With ``pass_through`` they are kept as passthrough columns instead, so that the file
        has the same columns whatever their number.
        """
        whole = Policy.load(self.policy_path)
        contents = whole.to_dict()
        rest = () if quasi_identifiers is None else whole.quasi_identifiers[quasi_identifiers:]
        kept = {name: {"role": "other"} for name in rest} if pass_through else {}
        contents["columns"] = {
            name: kept.get(name, column)
            for name, column in contents["columns"].items()
            if name in kept or name not in rest
        }
        policy = Policy.from_dict(contents, whole.base)
        return merge_flags(policy, k=k, method=method, accept_linkable=list(kept))


@dataclass(frozen=True, kw_only=True)
class SmallTable:
    """A table that losses and peers are compared on.

    ``hierarchies`` maps a quasi-identifier with a taxonomy to the rows of its file: the leaf, its ancestors, ``*``.
    """

    name: str
    path: Path
    policy: Policy
    numeric: tuple[str, ...]
    hierarchies: dict[str, list[list[str]]]
    is_adult: bool
    numeric_columns: tuple[str, ...]
    """Columns of any role; ``numeric`` are the quasi-identifiers among them."""

    @property
    def quasi_identifiers(self) -> list[str]:
        return list(self.policy.quasi_identifiers)


ADULT_RECORDS = 30_162
ADULT_COLUMNS = frozenset(
    ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
)


def _read_directory(directory: Path) -> SmallTable:
    schema = json.loads((directory / "schema.json").read_text("utf-8"))
    path = next((file for name in ("data.csv.gz", "data.csv") if (file := directory / name).exists()), None)
    if path is None:
        raise SystemExit(f"error: {directory} has no data.csv or data.csv.gz. See --help for what --data must contain.")
    attributes: Sequence[dict[str, Any]] = schema["attributes"]
    quasi_identifiers = [attribute for attribute in attributes if attribute["role"] == "quasi-identifier"]
    policy = merge_flags(
        quasi_identifiers=[column["name"] for column in quasi_identifiers],
        sensitive=[column["name"] for column in attributes if column["role"] == "sensitive"],
        other="drop",
        type={column["name"]: column["type"] for column in quasi_identifiers if column["type"] == "numeric"},
        taxonomy={
            column["name"]: (directory / column["taxonomy"]).resolve()
            for column in quasi_identifiers
            if column["type"] != "numeric"
        },
    )
    records = _count_records(path)
    return SmallTable(
        name=f"{directory.resolve().name} ({records:,} records)",
        path=path,
        policy=policy,
        numeric=tuple(column["name"] for column in quasi_identifiers if column["type"] == "numeric"),
        hierarchies={
            column["name"]: _rows(directory / column["taxonomy"])
            for column in quasi_identifiers
            if "taxonomy" in column
        },
        is_adult=records == ADULT_RECORDS and {column["name"] for column in quasi_identifiers} == ADULT_COLUMNS,
        numeric_columns=tuple(column["name"] for column in attributes if column["type"] == "numeric"),
    )


def _count_records(path: Path) -> int:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return sum(1 for _ in csv.reader(file)) - 1


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]


def machine_and_versions() -> dict[str, str | int]:
    """Return what the figures depend on beside the code."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("sfumato", "numba", "numpy", "pyarrow", "polars")},
        "generator": GENERATOR,
    }
