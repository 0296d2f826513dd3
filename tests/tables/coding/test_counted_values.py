"""The values of a column with their records: those that were counted before are read as a count of the table is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.policy import ColumnSettings, Grouping, InputOptions
from sfumato.progress import Progress
from sfumato.tables.coding.counted_values import CountedValues, count_values, with_known_records
from sfumato.tables.sources.source import open_source

OPTIONS = InputOptions(nulls=())
SETTINGS = [
    ColumnSettings(role="quasi-identifier"),
    ColumnSettings(role="quasi-identifier", type="categorical"),
    ColumnSettings(role="quasi-identifier", round=5),
    ColumnSettings(role="quasi-identifier", taxonomy=Grouping(intervals=(5, 10))),
    ColumnSettings(role="quasi-identifier", top=3, bottom=-2),
]
WORDS = st.text("aäbß𝄞\uffff \u00a0-", min_size=1, max_size=4)
NUMBERS = st.one_of(st.integers(-9, 99).map(str), st.sampled_from(["1.0", "1.50", "-0", "nan", " 7", "1e2"]))
DATES = st.dates().map(str)


def of_the_table(texts: list[str], settings: ColumnSettings, folder: Path) -> CountedValues:
    table = folder / "table.csv"
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    table.write_text("\n".join(["value", *quoted]) + "\n", "utf-8")
    return count_values(open_source(table, OPTIONS), "value", settings, OPTIONS, Progress())


def of_known(texts: list[str], settings: ColumnSettings) -> CountedValues:
    counted = Counter(texts).most_common()
    values, records = pa.array([text for text, _ in counted], pa.string()), np.array([count for _, count in counted])
    return with_known_records("value", values, records, 0, settings, OPTIONS)


@pytest.mark.compiled
@pytest.mark.parametrize("settings", SETTINGS)
@given(texts=st.one_of(*(st.lists(kind, min_size=1, max_size=12) for kind in (WORDS, NUMBERS, DATES))))
def test_known_values_are_read_as_those_of_a_table(
    texts: list[str], settings: ColumnSettings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        counted = of_the_table(texts, settings, tmp_path_factory.getbasetemp())
    except SfumatoError as error:
        with pytest.raises(type(error)):
            of_known(texts, settings)
        return
    known = of_known(texts, settings)
    assert known.values == counted.values
    assert known.records.tolist() == counted.records.tolist()
    assert known.codes.tolist() == counted.codes.tolist()
    assert known.kind == counted.kind
    assert known.total == len(texts)


def test_cells_are_named_once_for_the_values_that_they_hold() -> None:
    texts = ["1", "12", "nan", "4", "13", "7"]
    settings = ColumnSettings(role="quasi-identifier", taxonomy=Grouping(intervals=(5, 10)))
    known = of_known(texts, settings)
    assert known.values == ("1", "4", "7", "12", "13", "nan")
    fine, coarse = known.cell_names()
    assert [cell.name for cell in fine] == ["[0..5]", "[0..5]", "[5..10]", "[10..15]", "[10..15]", "nan"]
    assert [cell.name for cell in coarse] == ["[0..10]", "[0..10]", "[0..10]", "[10..20]", "[10..20]", "nan"]
