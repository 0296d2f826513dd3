"""Write a synthetic table with its taxonomies and its policy, so that it can be anonymized at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import tomli_w

from sfumato.errors import UsageError
from sfumato.synthetic.agrawal import Agrawal
from sfumato.synthetic.census import Census
from sfumato.synthetic.export_files import generate_export
from sfumato.synthetic.generator import Generator
from sfumato.synthetic.hospital import Hospital
from sfumato.synthetic.hospital_export import HospitalExport
from sfumato.synthetic.normal import Normal
from sfumato.tables.targets.file_operations import new_directories
from sfumato.tables.targets.staging import Stage, cannot_write, check_target, write_staged
from sfumato.taxonomies.taxonomy_rows import taxonomy_text

GENERATORS: dict[str, type[Generator]] = {kind.name: kind for kind in (Hospital, Census, Agrawal, Normal)}

BATCHES_A_ROW_GROUP = 4


def generate(
    name: str,
    records: int,
    path: str | Path,
    *,
    seed: int = 0,
    force: bool = False,
    flaws: bool = False,
    **options: Any,
) -> list[Path]:
    """Write a table of ``records`` synthetic records, its policy and its taxonomies.

    The suffix sets the format: .parquet, .csv, .csv.gz or .csv.zst. ``options`` are those of the generator. The policy
    ``STEM.policy.toml`` is written beside the table, taxonomies into ``taxonomies/`` beside it. Either all files are
    written or none. A table that the generator wrote, with its policy unchanged beside it, is replaced. Other files
    that exist are replaced only with ``force``.

    With ``flaws``, the hospital's table is written alone, as another system would export it: .csv or .xlsx.

    Return the paths written: the table, the policy, the taxonomies.
    """
    table = Path(path)
    if flaws:
        return generate_export(make_export(name, **options), records, table, seed=seed, force=force)
    generator = make_generator(name, **options)
    _, write = _format(table)
    batches = generator.batches(records, seed)
    policy, policy_text = policy_beside(table), tomli_w.dumps(generator.policy())
    texts = {
        table.parent / "taxonomies" / f"{column}.csv": taxonomy_text(rows)
        for column, rows in generator.taxonomies().items()
    }
    try:
        check_target(table)
        if not force:
            _check_existing(table, {policy: policy_text, **texts})
        with new_directories({taxonomy.parent for taxonomy in texts}), Stage() as stage:
            write(batches, stage.path(table))
            for file, text in {**texts, policy: policy_text}.items():
                write_staged(stage, file, text)
            stage.publish()
    except OSError as error:
        raise cannot_write(table, error) from None
    return [table, policy, *texts]


def make_generator(name: str, **options: Any) -> Generator:
    """Return the generator of that name with these options."""
    if name not in GENERATORS:
        raise UsageError.unknown_choice("generator", name, GENERATORS)
    _check_options(name, GENERATORS[name], options)
    return GENERATORS[name](**options)


def make_export(name: str, **options: Any) -> HospitalExport:
    """Return the generator of that name whose table has flaws, with these options."""
    if name not in GENERATORS:
        raise UsageError.unknown_choice("generator", name, GENERATORS)
    if name != Hospital.name:
        raise UsageError(f"the table of {name} has no flaws. Leave out --flaws, or generate {Hospital.name}.")
    _check_options(name, HospitalExport, options)
    return HospitalExport(**options)


def _check_options(name: str, kind: type[Generator | HospitalExport], options: dict[str, Any]) -> None:
    known = list(signature(kind).parameters)
    for option in options:
        if option not in known:
            raise UsageError(
                f"the generator {name} has no option {option!r}. "
                + (f"Its options are {', '.join(known)}." if known else "It has no options.")
            )


def _write_parquet(batches: Iterator[pa.RecordBatch], path: Path) -> None:
    first = next(batches)
    # Without the Arrow schema, the file has plain string columns, even if the batches hold dictionaries.
    with pyarrow.parquet.ParquetWriter(path, first.schema, compression="zstd", store_schema=False) as writer:
        waiting = chain([first], batches)
        while group := list(islice(waiting, BATCHES_A_ROW_GROUP)):
            writer.write_table(pa.Table.from_batches(group))


def _write_csv(batches: Iterator[pa.RecordBatch], path: Path, compression: str | None) -> None:
    first = next(batches)
    # No name or value holds a separator or a quote, so nothing is quoted; PyArrow would refuse one that did.
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    with pa.output_stream(path, compression=compression) as stream:
        stream.write((",".join(first.schema.names) + "\n").encode())
        with pyarrow.csv.CSVWriter(stream, first.schema, write_options=options) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)


Writer = Callable[[Iterator[pa.RecordBatch], Path], None]
FORMATS: dict[str, Writer] = {
    ".parquet": _write_parquet,
    ".csv": partial(_write_csv, compression=None),
    ".csv.gz": partial(_write_csv, compression="gzip"),
    ".csv.zst": partial(_write_csv, compression="zstd"),
}


def _format(table: Path) -> tuple[str, Writer]:
    """Return the stem of the table's name, and the writer for the format of its suffix."""
    for suffix, write in FORMATS.items():
        stem = table.name.removesuffix(suffix)
        if stem not in ("", table.name):
            return stem, write
    raise UsageError(f"{table} has no suffix that names a format. Choose a name that ends in {' or '.join(FORMATS)}.")


def policy_beside(table: Path) -> Path:
    """Return the path of the policy that is written with a table."""
    return table.with_name(f"{_format(table)[0]}.policy.toml")


def _check_existing(table: Path, texts: dict[Path, str]) -> None:
    """Refuse to replace a policy or taxonomy with other contents, or a table without the very policy beside it.

    texts: the policy, then the taxonomies.
    """
    for file, text in texts.items():
        if file.is_file() and file.read_bytes() != text.encode():
            raise UsageError(
                f"{file} exists with other contents. Move it away, write to another directory, or add --force to "
                "replace it."
            )
    policy = next(iter(texts))
    if table.exists() and not policy.exists():
        raise UsageError(
            f"{table} exists, and no policy beside it says that it was generated. Name another file, or add --force to "
            "replace it."
        )
