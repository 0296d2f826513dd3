"""Generated tables with many categorical quasi-identifiers that depend on each other.

Hidden variables, each with a few states of different frequency, stand behind the columns: a column shows the state of
one of them, mixed with that of a second one, and with a value at random in a part of the records. Its values have very
different frequencies, and its taxonomy has groups of very different sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import Options
from sfumato.synthetic.generator import GeneratedColumn, policy_of, taxonomies_of
from sfumato.taxonomies.taxonomy_rows import taxonomy_text

VERSION = 1  # raised whenever the tables change
STATES, COLUMNS_OF_A_VARIABLE = 12, 4  # of a hidden variable; it stands behind about so many columns
FEWEST_VALUES, MOST_VALUES = 4, 40
WIDEST_GROUP = 6  # parts in a group of the taxonomy
LEVELS = 2  # of groups, below *
SHOWN, SECOND = 0.75, 0.15  # how often a column shows its variable, and the second one; else it is drawn
SEED = 0

CategoricalPolicy = dict[str, object]


def wide_table(options: Options, columns: int, records: int) -> tuple[Path, CategoricalPolicy]:
    """Return a Parquet file with that many categorical quasi-identifiers, and its policy with files of taxonomies."""
    random = np.random.Generator(np.random.PCG64([SEED, columns]))
    variables = -(-columns // COLUMNS_OF_A_VARIABLE)
    hidden = [_drawn(random, STATES, records) for _ in range(variables)]
    generated, values = [], {}
    for number in range(columns):
        name, size = f"q{number}", int(np.exp(random.uniform(np.log(FEWEST_VALUES), np.log(MOST_VALUES + 1))))
        first, second = hidden[number % variables], hidden[int(random.integers(variables))]
        choice = random.random(records)
        codes = np.where(
            choice < SHOWN,
            random.integers(0, size, STATES)[first],
            np.where(choice < SHOWN + SECOND, random.integers(0, size, STATES)[second], _drawn(random, size, records)),
        )
        labels = [f"{name}-{value}" for value in range(size)]
        values[name] = pa.array(labels).take(pa.array(codes))
        taxonomy = _taxonomy(random, name, labels)
        generated.append(GeneratedColumn(name=name, role="quasi-identifier", type="categorical", taxonomy=taxonomy))
    directory = options.work / f"wide-{VERSION}-{columns}-{records}"
    (directory / "taxonomies").mkdir(parents=True, exist_ok=True)
    for name, rows in taxonomies_of(generated).items():
        (directory / "taxonomies" / f"{name}.csv").write_text(taxonomy_text(rows), "utf-8")
    pq.write_table(pa.table(values), directory / "wide.parquet")
    return directory / "wide.parquet", policy_of(generated)


def _drawn(random: np.random.Generator, states: int, records: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Draw states whose frequencies fall as one over their rank, in a random order."""
    shares = random.permutation(1 / np.arange(1, states + 1))
    return random.choice(states, records, p=shares / shares.sum())


def _taxonomy(random: np.random.Generator, name: str, labels: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return one row per value: the value, its groups from fine to coarse, and ``*``."""
    levels, parts = [labels], np.arange(len(labels))
    for level in range(1, LEVELS + 1):
        sizes = random.integers(1, WIDEST_GROUP + 1, int(parts.max()) + 1)
        group_of_part = np.repeat(np.arange(len(sizes)), sizes)[: len(sizes)]
        parts = group_of_part[parts]
        levels.append([f"{name} {'group' * level} {part}" for part in parts])
    return tuple(zip(*levels, ["*"] * len(labels), strict=True))
