"""Work in plain threads: kernels release the interpreter's lock, so several run at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """The cores this process may use; ``SFUMATO_THREADS`` says so where others share them, as tasks of Spark do."""
    told = os.environ.get("SFUMATO_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``work`` on every item, side by side; the results in the order of the items."""
    if len(items) < 2 or thread_count() == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(thread_count()) as pool:
        return list(pool.map(work, items))


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; while one is worked on, the next is made in another thread."""
    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = pool.submit(next, items, None)
            while (item := waiting.result()) is not None:
                waiting = pool.submit(next, items, None)
                yield item
        finally:
            waiting.cancel()


def slices(total: int, length: int) -> list[tuple[int, int]]:
    """The half-open ranges of at most ``length`` that make up ``total``."""
    return [(start, min(start + length, total)) for start in range(0, total, length)]
