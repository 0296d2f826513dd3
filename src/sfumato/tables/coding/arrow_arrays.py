"""Convert between NumPy and Arrow arrays.

PyArrow's own conversions (``pa.array``, ``to_numpy``) load pandas where it is installed, which takes longer than most
runs. These functions share memory and load nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def to_numpy(array: pa.Array, null: float | None = None) -> NDArray[Any]:
    """Convert numbers, dates, moments or booleans, with ``null`` in place of nulls.

    Without nulls the result is a read-only view, booleans aside. Dates and moments become the integers that Arrow
    stores for them.
    """
    if pa.types.is_boolean(array.type):
        return to_numpy(array.cast(pa.uint8()), null).view(np.bool_)
    if array.null_count and null is None:
        raise ValueError("the array holds nulls, but no value for null was given")
    temporal = pa.types.is_temporal(array.type)
    dtype = np.dtype(f"int{array.type.bit_width}" if temporal else array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    values: NDArray[Any] = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
    if array.null_count:
        return np.where(to_numpy(array.is_null()), dtype.type(null), values)
    return values


def from_numpy(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Convert numbers or booleans, null where ``missing``."""
    arrow_type = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(_bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow_type, len(values), [_validity(missing), data])


def from_texts(texts: Sequence[str | None]) -> pa.StringArray:
    """Convert texts, with null for None."""
    encoded = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] >= 1 << 31:
        raise ValueError("one Arrow array cannot hold that much text")
    missing = np.array([text is None for text in texts], np.bool_)
    return pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded)), _validity(missing)
    )


def to_python(array: pa.Array) -> list[Any]:
    """Convert to Python objects that are equal exactly if the values are; null becomes None.

    Python has no nanoseconds: PyArrow would load pandas for moments, or cut the nanoseconds of times of day. Moments in
    nanoseconds become text that sorts as they do, and of times and durations those that need it.
    """
    kind = array.type
    if not pa.types.is_temporal(kind) or getattr(kind, "unit", None) != "ns":
        return list(array.to_pylist())
    numbers, is_moment = array.cast(pa.int64()).to_pylist(), pa.types.is_timestamp(kind)
    coarser = {"timestamp": pa.timestamp("us"), "duration": pa.duration("us"), "time64": pa.time64("us")}
    wanted = next(unit for name, unit in coarser.items() if str(kind).startswith(name))
    whole = from_numpy(to_numpy(array, null=0) // 1000, to_numpy(array.is_null())).cast(wanted).to_pylist()
    utc = "+00:00" if is_moment and kind.tz is not None else ""

    def value(number: int | None, microseconds: Any) -> Any:
        if number is None or (number % 1000 == 0 and not is_moment):
            return microseconds
        digits = f".{number % 10**9:09}".rstrip("0").rstrip(".")
        return f"{str(microseconds).partition('.')[0]}{digits}{utc}"

    return [value(number, microseconds) for number, microseconds in zip(numbers, whole, strict=True)]


def _validity(missing: NDArray[np.bool_] | None) -> pa.Buffer | None:
    return pa.py_buffer(_bits(~missing)) if missing is not None and missing.any() else None


def _bits(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(flags, bitorder="little")
