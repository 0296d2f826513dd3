"""Plain threads for kernels, which release the interpreter's lock and so run side by side."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

# Results are made at once by so many threads, at most: each is in memory, and one thread that reads keeps few busy.
MOST_AHEAD = 4

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return the number of cores to use. ``SFUMATO_THREADS`` sets it where others share them, as tasks of Spark do."""
    limit = os.environ.get("SFUMATO_THREADS", "")
    if limit.isdecimal() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` on every item side by side; return the results in the order of the items."""
    if len(items) < 2 or thread_count() == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(thread_count()) as pool:
        return list(pool.map(work, items))


def ahead(items: Iterator[Item]) -> Generator[Item]:
    """Yield the items. While the caller works on one, another thread makes the next."""
    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = pool.submit(next, items, None)
            while (item := waiting.result()) is not None:
                waiting = pool.submit(next, items, None)
                yield item
        finally:
            waiting.cancel()


def in_threads_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yield ``work`` of every item, in order. While the caller works on a result, other threads make the next ones.

    No thread is left when the generator ends or is closed.
    """
    threads = min(thread_count(), MOST_AHEAD)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for result in waiting:
                result.cancel()


def slices(total: int, length: int) -> list[tuple[int, int]]:
    """Return the half-open ranges of at most ``length`` that together cover 0..total-1."""
    return [(start, min(start + length, total)) for start in range(0, total, length)]
