"""Columns as codes into sorted dictionaries."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.coding.compact_arrays import compact, one_type
from sfumato.tables.coding.dictionaries import sorted_codes

TEXTS = st.lists(
    st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b", "\u00fc"]), st.text(max_size=2))), max_size=5
)


@given(TEXTS)
def test_codes_are_ranks_among_the_texts_of_all_batches(batches: list[list[str | None]]) -> None:
    arrays = [pa.array(batch, pa.string()).dictionary_encode() for batch in batches]
    kind = pa.dictionary(pa.int32(), pa.string())
    for column in (
        pa.chunked_array(arrays, kind),
        one_type([compact(each, numbers=False) for each in arrays] or arrays or [pa.nulls(0, kind)]),
    ):
        values, codes = sorted_codes(column)
        texts = [text for batch in batches for text in batch]
        known = sorted({text for text in texts if text is not None}, key=str.encode)
        assert values.to_pylist() == known
        assert [None if code == len(known) else known[code] for code in codes.tolist()] == texts


def test_a_category_that_no_record_has_gets_no_code() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int8()), pa.array(["c", "b", "a"]))
    values, codes = sorted_codes(pa.chunked_array([column]))
    assert (values.to_pylist(), codes.tolist()) == (["a", "c"], [0, 2, 1])


def test_numbers_and_codes_take_the_narrowest_type_that_holds_all_batches() -> None:
    few = pa.array(["a", None, "b"]).dictionary_encode()
    many = pa.array([str(number) for number in range(128)]).dictionary_encode()
    assert compact(few, numbers=False).type.index_type == pa.int8()
    assert compact(many, numbers=False).type.index_type == pa.int16()  # 128 itself stands for null
    together = one_type([compact(few, numbers=False), compact(many, numbers=False)])
    assert together.type.index_type == pa.int16()
    assert together.to_pylist() == [*few.to_pylist(), *many.to_pylist()]
    numbers = [[1, None], [-129, 5], [1 << 40]]
    narrowed = one_type([compact(pa.array(batch, pa.int64()), numbers=True) for batch in numbers])
    assert (narrowed.type, narrowed.to_pylist()) == (pa.int64(), [1, None, -129, 5, 1 << 40])
    assert compact(pa.array([1, None], pa.int64()), numbers=True).type == pa.int8()
    assert compact(pa.array([1, None], pa.int64()), numbers=False).type == pa.int64()
