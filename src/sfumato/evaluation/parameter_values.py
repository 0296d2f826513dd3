"""The values of k or l that a trade-off is asked for, and which of them are computed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from sfumato.errors import UsageError

MOST = 20
"""So many values of a range are computed at first; a longer one is sampled."""

Given = int | range | Iterable[int | range]


@dataclass(frozen=True)
class ParameterValues:
    """Whole numbers from 1 on, as they were given: single ones, and ranges that may be long."""

    pieces: tuple[range, ...]

    @classmethod
    def of(cls, name: str, given: Given) -> ParameterValues:
        """A number, a range, or several of both. A range with steps stands for its numbers, one by one."""
        pieces = []
        for piece in given if isinstance(given, Iterable) and not isinstance(given, range) else (given,):
            if isinstance(piece, range) and piece.step == 1:
                pieces.append(piece)
            elif isinstance(piece, range):
                pieces += [range(value, value + 1) for value in piece]
            elif isinstance(piece, int) and not isinstance(piece, bool):
                pieces.append(range(piece, piece + 1))
            else:
                raise UsageError(
                    f"{name} takes whole numbers, not {type(piece).__name__}. Give for example {name} = 10."
                )
        if not any(pieces):
            raise UsageError(f"the list of values for {name} is empty. Give at least one.")
        if any(piece.start < 1 for piece in pieces if piece):
            raise UsageError(f"{name} must be at least 1. Leave out the smaller values.")
        return cls(tuple(dict.fromkeys(piece for piece in pieces if piece)))

    def up_to(self, most: int) -> ParameterValues:
        """Without the part of each range that lies above ``most``. Its first number stays, so that errors are told."""
        return ParameterValues(tuple(piece[: max(most - piece.start + 1, 1)] for piece in self.pieces))

    def sample(self) -> list[int]:
        """The values to compute at first: all of a short range, of a long one some in growing steps. Ascending."""
        return sorted({value for piece in self.pieces for value in _some(piece)})

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, place: int) -> int:
        """The value at a place, in ascending order."""
        which = bisect_right(self._ends, place)
        return self._merged[which][place - (self._ends[which - 1] if which else 0)]

    def index(self, value: int) -> int:
        """The place of a value."""
        which = next(number for number, piece in enumerate(self._merged) if value in piece)
        return value - self._merged[which].start + (self._ends[which - 1] if which else 0)

    def __str__(self) -> str:
        return ",".join(
            str(piece.start) if len(piece) == 1 else f"{piece.start}..{piece.stop - 1}" for piece in self.pieces
        )

    @cached_property
    def _merged(self) -> list[range]:
        """The same numbers in ascending ranges that have none in common."""
        merged: list[range] = []
        for piece in sorted(self.pieces, key=lambda piece: piece.start):
            if merged and piece.start <= merged[-1].stop:
                merged[-1] = range(merged[-1].start, max(merged[-1].stop, piece.stop))
            else:
                merged.append(piece)
        return merged

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(piece) for piece in self._merged))


def _some(piece: range) -> list[int]:
    """All numbers of a short range; of a long one MOST of them, both ends among them, in steps that grow with them."""
    if len(piece) <= MOST:
        return list(piece)
    first, last = piece[0], piece[-1]
    found = [first]
    for left in range(MOST - 1, 0, -1):
        found.append(max(found[-1] + 1, round(found[-1] * (last / found[-1]) ** (1 / left))))
    return found


def runs_of(values: Iterable[int]) -> str:
    """Ascending numbers for people: 2, 3, 4, 5, 8 as ``2..5, 8``."""
    numbers = list(values)
    starts = [0, *(place for place, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1), len(numbers)]
    parts = []
    for begin, end in pairwise(starts):
        if end - begin > 2:
            parts.append(f"{numbers[begin]:,}..{numbers[end - 1]:,}")
        else:
            parts += [f"{number:,}" for number in numbers[begin:end]]
    return ", ".join(parts)
