"""Threads beside the caller: results in order, the first error, turns, and no thread that waits for ever."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from sfumato.kernels import threads as module
from sfumato.kernels.threads import in_threads, in_turns


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("SFUMATO_THREADS", str(request.param))
    return int(request.param)


def test_results_are_in_the_order_of_the_items(threads: int) -> None:
    def square(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number * number

    assert in_threads(square, range(20)) == [number * number for number in range(20)]
    assert in_threads(square, []) == []


def test_two_threads_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "2")
    both = threading.Barrier(2, timeout=20)
    assert len(in_threads(lambda _: both.wait(), range(2))) == 2


def test_the_error_is_that_of_the_first_item_that_fails(threads: int) -> None:
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            time.sleep(0.01)  # a later one fails earlier
        if number >= 3:
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match=r"^3$"):
        in_threads(work, range(1000))
    assert len(begun) <= 3 + threads


def test_work_may_itself_use_threads(threads: int) -> None:
    def rows(first: int) -> list[int]:
        return in_threads(lambda second: 10 * first + second, range(10))

    assert in_threads(rows, range(10)) == [[10 * first + second for second in range(10)] for first in range(10)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_threads_work_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "2")
    in_threads(str, range(4))  # the helper waits in this process, and is not in the child
    child = os.fork()
    if child == 0:
        both, code = threading.Barrier(2, timeout=20), 1
        try:
            in_threads(lambda _: both.wait(), range(2))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_made_side_by_side_is_used_in_turn(threads: int) -> None:
    used: list[tuple[int, str]] = []

    def make(number: int) -> str:
        time.sleep(0.002 * (3 - number % 4))
        return str(number)

    def use(number: int, made: str) -> bool:
        before = len(used)
        time.sleep(0.001)
        assert len(used) == before  # nobody else uses anything meanwhile
        used.append((number, made))
        return True

    assert in_turns(make, use, range(30))
    assert used == [(number, str(number)) for number in range(30)]
    assert in_turns(make, use, [])


def test_turns_end_when_one_of_them_says_so(threads: int) -> None:
    used = []

    def use(number: int, made: int) -> bool:
        used.append(made)
        return number < 5

    assert not in_turns(int, use, range(1000))
    assert used == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("fails", ["make", "use"])
def test_nobody_waits_for_a_turn_that_failed(threads: int, fails: str) -> None:
    used = []

    def make(number: int) -> int:
        if fails == "make" and number == 4:
            raise ValueError("made")
        return number

    def use(number: int, made: int) -> bool:
        if fails == "use" and number == 4:
            raise ValueError("used")
        used.append(made)
        return True

    with pytest.raises(ValueError, match="made" if fails == "make" else "used"):
        in_turns(make, use, range(50))
    assert used == list(range(len(used)))
    assert 4 not in used


def turns_of_two(interrupted_at: int) -> bool:
    """Whether turns that both threads take part in end by themselves, and not by a signal at that instruction."""
    met, both = 0, threading.Barrier(2)

    def make(number: int) -> int:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.005)
        return number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal met
        if frame.f_code.co_filename != module.__file__:
            return None
        frame.f_trace_opcodes = True
        met += event == "opcode"
        if met > interrupted_at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        return in_turns(make, lambda number, made: number == made, range(4))
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(None)


def test_nobody_waits_for_a_turn_if_a_signal_interrupts_the_caller_at_any_instruction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "2")
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LOOKS", 0.001)
    faulthandler.dump_traceback_later(300, exit=True)  # the caller would wait for a thread that waits for ever
    instruction = 0
    while not turns_of_two(instruction):
        instruction += 1
    faulthandler.cancel_dump_traceback_later()
    assert instruction > 100
