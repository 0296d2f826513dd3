"""Plain threads for kernels, which release the interpreter's lock and so run side by side."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import count, pairwise
from threading import Event, Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# Results are made at once by so many threads, at most: each is in memory, and one thread that reads keeps few busy.
MOST_AHEAD = 4
SECONDS_BETWEEN_LOOKS = 0.1
LEAST_OF_PART, MOST_PARTS = 1 << 17, 4  # of ``even_parts``

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return the number of cores to use. ``SFUMATO_THREADS`` sets it where others share them, as tasks of Spark do."""
    limit = os.environ.get("SFUMATO_THREADS", "")
    if limit.isdecimal() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Return the threads that work beside a caller. They are kept: to start one takes as long as a piece of work."""
    return ThreadPoolExecutor(threads - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not survive in the child


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` on every item side by side; return the results in the order of the items.

    The caller takes items too, so it need not be woken for each of them, and it takes all where every helper is busy:
    inside ``work``, this may be called again. Items are begun in their order; the first that fails gives the error.
    """
    return _side_by_side(work, items, Event())


def _side_by_side(work: Callable[[Item], Result], items: Sequence[Item], failed: Event) -> list[Result]:
    """Do what ``in_threads`` does. ``failed`` is set once an item fails, or the caller is interrupted anywhere."""
    threads = min(thread_count(), len(items))
    if threads < 2:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    numbers = count()

    def take_items() -> None:
        while not failed.is_set() and (number := next(numbers)) < len(items):
            try:
                results[number] = work(items[number])
            except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the caller
                errors[number] = error
                failed.set()

    helpers: list[Future[None]] = []
    try:
        helpers += [_helpers(thread_count()).submit(take_items) for _ in range(threads - 1)]
        take_items()
    except BaseException:
        failed.set()
        raise
    finally:
        wait([helper for helper in helpers if not helper.cancel()])
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]


def in_turns(make: Callable[[Item], Result], use: Callable[[Item, Result], bool], items: Sequence[Item]) -> bool:
    """Make something of every item side by side, and use it in the order of the items, one after the other.

    A thread uses what it has made, while that is in the cache of its core. Ends early, with False, once ``use`` does.
    """
    turns, ended, failed = [Lock() for _ in items], Event(), Event()
    for turn in turns[1:]:
        turn.acquire()

    def comes(turn: Lock) -> bool:
        # A signal may interrupt whoever has the turn before it is passed on, so nobody waits for it for ever.
        while not turn.acquire(timeout=SECONDS_BETWEEN_LOOKS):
            if failed.is_set():
                return False
        return True

    def work(number: int) -> None:
        goes_on = False
        try:
            if not ended.is_set():
                made = make(items[number])
                goes_on = comes(turns[number]) and not ended.is_set() and use(items[number], made)
        finally:
            if not goes_on:
                ended.set()
            if number + 1 < len(turns):
                turns[number + 1].release()

    _side_by_side(work, range(len(items)), failed)
    return not ended.is_set()


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


def even_parts(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges of groups with about as many members each, the same for any number of threads.

    starts: int64[g + 1]; group i has the members starts[i]..starts[i + 1] - 1.
    """
    total = int(starts[-1])
    count = min(total // LEAST_OF_PART + 1, MOST_PARTS)
    edges = np.searchsorted(starts, np.linspace(0, total, count + 1)[1:-1])
    return list(pairwise(np.unique([0, *edges, len(starts) - 1]).tolist()))
