"""Kernels compute what their Python source says, and free what they make: the compiler leaves out nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numba.core.runtime import _nrt_python, rtsys

import sfumato
from sfumato.kernels import decorator
from sfumato.kernels.decorator import kernel


class Pair(NamedTuple):
    one: Any
    other: Any


@kernel
def made(n):
    line = np.empty(n, np.int64)
    for i in range(n):
        line[i] = i * i
    return line


@kernel
def half(line):
    return line[: len(line) // 2]


@kernel
def given_back(pair):
    one, other = pair
    return other, one


@kernel
def swapped(one, other, times):
    for _ in range(times):
        one, other = other, one
    total = 0
    for i in range(len(one)):
        total = total * 10 + one[i] - other[i]
    return total, one


@kernel
def replaced(line, times):
    for i in range(times):
        if i % 2 == 0:
            line = made(len(line) + i)
        line = half(line)
        line[0] = i
    return line


@kernel
def of_parts(pair, n):
    total, kept = 0, pair.one
    for i in range(n):
        fresh = Pair(made(i + 2), pair.other)
        row = pair.other[i % len(pair.other)]
        if i % 3 == 1:
            kept = fresh.one
        elif i % 3 == 2:
            kept = row
        for value in kept:
            total += value * (i + 1)
        total += fresh.other[-1, -2] + row[-1]
    return total, kept


@kernel
def last_items(table, line, i):
    table[-1, i] += line[-i]
    line[i] = table[i, -1] + table[-2, -i]
    return table[i, i] + line[np.uint8(i)]


@kernel
def found_late(line, wanted):
    place, before = -1, 0
    while True:
        for i in range(len(line)):
            if line[i] == wanted:
                place = i
                break
            before = line[i]
        if place >= 0 or wanted > 9:
            break
        wanted += 1
    return place, before, wanted


@kernel
def with_closure(line, more):
    def raised(value):
        return value + more

    total = 0
    for value in line:
        total += raised(value)
    return total


@kernel
def sorted_backwards(n):
    line = np.arange(n)
    for i in range(n):
        line[i] = n - line[i]
    return np.sort(line)


def table() -> Any:
    return np.arange(12, dtype=np.int64).reshape(3, 4)


def frozen() -> Any:
    line = np.arange(5)
    line.flags.writeable = False
    return line


CASES: list[tuple[Any, Callable[[], tuple[Any, ...]]]] = [
    (made, lambda: (5,)),
    (half, lambda: (np.arange(7),)),
    (half, lambda: (frozen(),)),
    (given_back, lambda: (Pair(np.arange(3), table()),)),
    (swapped, lambda: (np.arange(3), np.arange(3)[::-1], 3)),
    (swapped, lambda: (np.arange(3), np.arange(3)[::-1], 0)),
    (replaced, lambda: (np.arange(9), 5)),
    (replaced, lambda: (np.arange(9), 0)),
    (of_parts, lambda: (Pair(np.arange(3), table()), 8)),
    (of_parts, lambda: (Pair(np.arange(3), table()), 0)),
    (last_items, lambda: (table(), np.arange(5), 1)),
    (last_items, lambda: (np.asfortranarray(table()), np.arange(10)[::2], 2)),
    (last_items, lambda: (table().astype(np.uint8)[:, ::-1], np.arange(5, dtype=np.float64), 1)),
    (found_late, lambda: (np.array([3, 7, 5]), 4)),
    (found_late, lambda: (np.array([3, 7, 5]), 10)),
    (sorted_backwards, lambda: (50,)),  # numba's own functions of the same names have all their arguments
    (with_closure, lambda: (np.arange(4), 2)),
]


@pytest.fixture(autouse=True)
def counted_memory() -> Iterator[None]:
    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not enabled:
        _nrt_python.memsys_disable_stats()


def plain(result: Any) -> Any:
    return [plain(one) for one in result] if isinstance(result, tuple) else np.asarray(result).tolist()


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_a_kernel_computes_what_its_source_says_and_frees_what_it_makes(
    function: Any, arguments: Callable[[], tuple[Any, ...]]
) -> None:
    expected_arguments = arguments()
    expected = plain(getattr(function, "py_func", function)(*expected_arguments))
    for _ in range(2):  # the second time it is compiled already
        before, given = rtsys.get_allocation_stats(), arguments()
        assert plain(function(*given)) == expected
        assert plain(given) == plain(expected_arguments)
        del given
        after = rtsys.get_allocation_stats()
        assert after.alloc - before.alloc == after.free - before.free
        assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def test_an_array_that_a_kernel_returns_outlives_what_it_was_given() -> None:
    line = np.arange(1000)
    first, second = half(line), given_back(Pair(line[10:], line[20:]))[0]
    del line
    np.random.default_rng(0).integers(0, 9, 1000)  # something else to be put where it was
    assert first.tolist() == list(range(500))
    assert second.tolist() == list(range(20, 1000))


def releases() -> list[list[dict[str, Any]]]:
    people = {"age": [row * row % 83 for row in range(60)], "city": [chr(97 + row % 5) for row in range(60)]}
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "k": 4}
    methods = ("hilbert", "mondrian")
    return [sfumato.anonymize(pa.table(people), method=name, **asked).data.to_pylist() for name in methods]


OTHER_VERSION = """
import numba
numba.__version__ = "0.1.0"
import json
from sfumato.kernels import decorator
assert decorator._compilers().part is None
from test_compiler import releases
print(json.dumps(releases()))
"""


@pytest.mark.not_quick
@pytest.mark.compiled
def test_other_versions_of_numba_compile_in_their_own_way() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    program = [sys.executable, "-c", OTHER_VERSION]
    told = json.loads(subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout)
    assert decorator._compilers().part is not None
    assert told == releases()
