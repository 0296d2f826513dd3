"""The time that is left: shown when it can be known, steady, and gone when it cannot."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from sfumato.cli.progress_bar import DrawnProgress
from sfumato.progress.time_left import TimeLeft, in_words

LEFT = re.compile(r"(about \d.*?|a few seconds) left")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "a few seconds left"),
        (9.9, "a few seconds left"),
        (10, "about 10 s left"),
        (31, "about 35 s left"),
        (55, "about 1 min left"),
        (61, "about 1 min 10 s left"),
        (120, "about 2 min left"),
        (590, "about 10 min left"),
        (1500, "about 25 min left"),
        (3600, "about 1 h left"),
        (7300, "about 2 h 5 min left"),
    ],
)
def test_long_times_are_said_more_roughly(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_nothing_is_said_before_something_is_known() -> None:
    estimate = TimeLeft(started=100.0)
    assert estimate.seconds(101.9, 50, 100) is None  # too early
    assert estimate.seconds(105.0, 1, 100) is None  # too little is done
    assert estimate.seconds(105.0, 50, None) is None  # nobody knows how much there is
    assert estimate.seconds(105.0, 100, 100) is None  # all is done
    assert estimate.seconds(130.0, 1, 100) == pytest.approx(99 * 30)


def test_an_even_pace_is_counted_down() -> None:
    estimate = TimeLeft(started=0.0)
    for now in range(3, 100):
        assert estimate.seconds(now, now, 100) == pytest.approx(100 - now)


def test_between_two_steps_it_counts_down_and_then_says_nothing() -> None:
    estimate = TimeLeft(started=0.0)
    assert estimate.seconds(10.0, 5, 10) == pytest.approx(10)
    assert estimate.seconds(14.0, 5, 10) == pytest.approx(6)
    assert estimate.seconds(20.5, 5, 10) is None


@pytest.mark.parametrize("seed", range(8))
def test_steps_of_very_different_lengths_do_not_make_it_jump(seed: int) -> None:
    lengths = random.Random(seed).choices([0.1, 0.1, 2.0], k=100)
    estimate, now, before, steady = TimeLeft(started=0.0), 0.0, None, 0
    for number, length in enumerate(lengths, start=1):
        now += length
        left = estimate.seconds(now, number, len(lengths))
        if left is None:
            continue
        if before is not None:
            at, left_then = before
            # It is what was left less the time that passed, and at most a twentieth more or less for every second.
            expected = left_then - (now - at)
            assert abs(left - expected) <= 0.05 * (now - at) * max(expected, 1.0) + 1e-9
            steady += 1
        if number == 75:
            assert left == pytest.approx(sum(lengths) - now, abs=0.2 * sum(lengths))
        before = now, left
    assert steady > 50


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def drawn(clock: Clock) -> tuple[DrawnProgress, Callable[[], str]]:
    """Progress on a terminal by the clock of the test, and a function that returns what is on the screen."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, get_time=clock)
    progress = DrawnProgress(console, delay=3600)

    def screen() -> str:
        with console.capture() as captured:
            console.print(progress._bars.get_renderable())
        return captured.get()

    return progress, screen


def test_a_phase_with_a_known_total_shows_the_time_that_is_left(
    clock: Clock, drawn: tuple[DrawnProgress, Callable[[], str]]
) -> None:
    progress, screen = drawn
    with progress.phase("partition", 1000):
        clock.now = 1.0
        progress.advance(100)
        assert not LEFT.search(screen())
        clock.now = 20.0
        progress.advance(100)
        assert "about 1 min 20 s left" in screen()
        progress.expect(400)
        clock.now = 21.0
        progress.advance(10)
        assert LEFT.search(screen())
        progress.advance(1000)
        assert not LEFT.search(screen())
    with progress.phase("audit"):
        clock.now = 60.0
        progress.advance(10)
        assert not LEFT.search(screen())
    progress.close()


def test_a_phase_that_begins_again_is_estimated_anew(
    clock: Clock, drawn: tuple[DrawnProgress, Callable[[], str]]
) -> None:
    progress, screen = drawn
    with progress.phase("partition", 100):
        clock.now = 50.0
        progress.advance(50)
        assert "about 50 s left" in screen()
    with progress.phase("partition"):
        clock.now = 70.0
        progress.advance(50)
        assert not LEFT.search(screen())
    with progress.phase("partition", 100):
        clock.now = 80.0
        progress.advance(20)
        assert "about 40 s left" in screen()
    progress.close()


def test_several_runs_show_the_time_of_all_that_are_left(
    clock: Clock, drawn: tuple[DrawnProgress, Callable[[], str]]
) -> None:
    progress, screen = drawn
    for number in range(1, 6):
        progress.next_run("auto, k = 5", number, 20)
        clock.now += 10.0
    progress.next_run("auto, k = 5", 6, 20)
    assert "auto, k = 5 (6 of 20)" in screen()
    assert "about 2 min 30 s left" in screen()
    assert "/s" not in screen()
    progress.close()


def test_methods_that_take_more_steps_than_their_phase_has_are_drawn_without_an_end(
    clock: Clock, drawn: tuple[DrawnProgress, Callable[[], str]]
) -> None:
    progress, screen = drawn
    with progress.phase("partition", 10):
        clock.now = 10.0
        progress.advance(10)
        progress.advance(10)
        clock.now = 20.0
        assert "forming classes" in screen()
        assert not LEFT.search(screen())
    progress.close()
