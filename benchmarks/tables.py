"""The options of a run and the tables that its sections measure on."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato import Policy, generate
from sfumato.methods import AUTO
from sfumato.policy import EffortName, InputOptions, merge_flags
from sfumato.policy.run_settings import USUAL_EFFORT
from sfumato.synthetic import Census
from sfumato.tables.sources.source import open_source

GENERATOR = f"{Census.name} {Census.version}"
SMALLEST = 1_000
"""The fewest records of a trial."""

QUICK: EffortName = "fast"
"""The effort of releases that are timed or attacked: the classes as they are formed, without a search."""

MISSING = "?"
"""How the real tables write a missing value."""

One = TypeVar("One")


def method_in_words(method: str, effort: EffortName) -> str:
    """Return the name of a method in a table: with its effort, if that is not the usual one of the method."""
    return method if method != AUTO or effort == USUAL_EFFORT else f"{method}, {effort}"


@dataclass(frozen=True)
class Options:
    """Where to work, where to find tables and peers, and whether the sizes are those that are recorded."""

    work: Path
    data: Path | None = None
    peers: Path | None = None
    records: tuple[int, ...] = ()
    trial: bool = False

    @property
    def recordable(self) -> bool:
        """Whether the sizes are those that the documentation is made from."""
        return not (self.trial or self.records)

    def sizes(self, *standard: int) -> tuple[int, ...]:
        """Return the numbers of records to measure with: the standard ones, those of ``--records``, or tiny ones."""
        if self.records:
            return self.records
        return tuple(max(SMALLEST, one // 1000) for one in standard) if self.trial else standard

    def size(self, standard: int) -> int:
        return self.sizes(standard)[0]

    def some(self, values: Sequence[One]) -> Sequence[One]:
        """Return all values, or in a trial the first two."""
        return values[:2] if self.trial else values

    def times(self, standard: int) -> int:
        """Return how often to repeat something: as often as given, or in a trial twice."""
        return min(2, standard) if self.trial else standard

    def census(self, records: int) -> GeneratedTable:
        """Return the census-like table of that size."""
        return GeneratedTable(*self.generated(Census.name, Census.version, records), records)

    def census_data(self, records: int, **settings: Any) -> tuple[pa.Table, Policy]:
        """Return the census-like table without passthrough columns, and its policy without k."""
        path, policy_path = self.generated(Census.name, Census.version, records, **settings)
        whole = Policy.load(policy_path)
        contents = whole.to_dict() | {"other": "drop", "privacy": {}}
        contents["columns"] = {
            name: column
            for name, column in contents["columns"].items()
            if column["role"] in ("quasi-identifier", "sensitive")
        }
        return pq.read_table(path), Policy.from_dict(contents, whole.base)

    def generated(self, name: str, version: object, records: int, **settings: Any) -> tuple[Path, Path]:
        """Return a generated Parquet file and its policy. Each is made once for all sections."""
        path = self.work / "-".join(map(str, (name, version, records, *settings.values()))) / f"{name}.parquet"
        policy = path.with_name(f"{name}.policy.toml")
        if not (path.exists() and policy.exists()):
            path.parent.mkdir(parents=True, exist_ok=True)
            generate(name, records, path, force=True, **settings)
        return path, policy

    def directory(self, name: str) -> Path:
        """Return the directory of a real table, which the section has declared."""
        assert self.data is not None
        return self.data / name

    def real(self, name: str) -> SmallTable:
        return _read_directory(self.directory(name))

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Options:
        contents = json.loads(text)
        paths = {name: contents[name] and Path(contents[name]) for name in ("work", "data", "peers")}
        return cls(**{**contents, **paths, "records": tuple(contents["records"])})


@dataclass(frozen=True)
class GeneratedTable:
    """A census-like Parquet file with its policy."""

    path: Path
    policy_path: Path
    records: int

    def policy(self, *, k: int, quasi_identifiers: int | None = None) -> Policy:
        """Return the table's policy with another k, and with only the first few quasi-identifiers.

        The others are kept as passthrough columns, so that the file has the same columns whatever their number.
        """
        whole = Policy.load(self.policy_path)
        contents = whole.to_dict()
        rest = () if quasi_identifiers is None else whole.quasi_identifiers[quasi_identifiers:]
        kept = {name: {"role": "other"} for name in rest}
        contents["columns"] = {name: kept.get(name, column) for name, column in contents["columns"].items()}
        policy = Policy.from_dict(contents, whole.base)
        return merge_flags(policy, k=k, accept_linkable=list(kept))


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
    numeric_columns: tuple[str, ...]
    """Columns of any role; ``numeric`` are the quasi-identifiers among them."""

    @property
    def quasi_identifiers(self) -> list[str]:
        return list(self.policy.quasi_identifiers)


def without_columns(policy: Policy, names: Collection[str]) -> Policy:
    """Return the policy for releases that lack these columns."""
    contents = policy.to_dict()
    columns = {name: column for name, column in contents["columns"].items() if name not in names}
    return Policy.from_dict({**contents, "columns": columns, "other": "drop"}, policy.base)


def complete_records(path: Path) -> pa.Table:
    """Return the table without the records that lack a value in any column."""
    source = open_source(path, InputOptions())
    table = pa.Table.from_batches(list(source.batches(source.names)))
    for name in table.column_names:
        column = table.column(name).cast(pa.string())
        table = table.filter(pc.not_equal(column, MISSING)) if MISSING in column.unique().to_pylist() else table
    return table


def data_file(directory: Path) -> Path | None:
    """Return the data file of a real table: in a directory of its own, or beside others."""
    files = (directory / "data.csv.gz", directory / "data.csv", directory.with_suffix(".csv"))
    return next((file for file in files if file.exists()), None)


def _read_directory(directory: Path) -> SmallTable:
    schema = json.loads((directory / "schema.json").read_text("utf-8"))
    path = data_file(directory)
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
        name=f"{directory.name} ({records:,} records)",
        path=path,
        policy=policy,
        numeric=tuple(column["name"] for column in quasi_identifiers if column["type"] == "numeric"),
        hierarchies={
            column["name"]: _rows(directory / column["taxonomy"])
            for column in quasi_identifiers
            if "taxonomy" in column
        },
        numeric_columns=tuple(column["name"] for column in attributes if column["type"] == "numeric"),
    )


def _count_records(path: Path) -> int:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return sum(1 for _ in csv.reader(file)) - 1


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]
