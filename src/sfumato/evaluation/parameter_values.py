"""The values of k or l that a trade-off covers, and the sample of them that is computed first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from sfumato.errors import UsageError

ALL = "all"
"""In place of names: every method or model that suits what is asked for."""

MOST = 20
"""The most values of a range that are computed at first; a longer range is sampled."""

RequestedValues = int | range | Iterable[int | range]


@dataclass(frozen=True)
class ParameterValues:
    """Positive whole numbers as the user gave them: single numbers, and ranges that may be long."""

    pieces: tuple[range, ...]

    @classmethod
    def of(cls, name: str, given: RequestedValues) -> ParameterValues:
        """Read a number, a range, or several of both. A range with steps stands for its single numbers."""
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
        """These values without the part of each range above ``most``. Its first number stays, so that it can fail."""
        return ParameterValues(tuple(piece[: max(most - piece.start + 1, 1)] for piece in self.pieces))

    def sample(self) -> list[int]:
        """The values to compute first, ascending: all of a short range, and growing steps through a long one."""
        return sorted({value for piece in self.pieces for value in _sample(piece)})

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> int:
        """The value at an index, in ascending order."""
        piece = bisect_right(self._ends, index)
        return self._merged[piece][index - (self._ends[piece - 1] if piece else 0)]

    def index(self, value: int) -> int:
        """The index of a value in ascending order."""
        piece = next(number for number, numbers in enumerate(self._merged) if value in numbers)
        return value - self._merged[piece].start + (self._ends[piece - 1] if piece else 0)

    def __str__(self) -> str:
        return ",".join(
            str(piece.start) if len(piece) == 1 else f"{piece.start}..{piece.stop - 1}" for piece in self.pieces
        )

    @cached_property
    def _merged(self) -> list[range]:
        """The values as ascending, disjoint ranges."""
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


def _sample(piece: range) -> list[int]:
    """All numbers of a short range; of a long one MOST numbers, including both ends, in growing steps."""
    if len(piece) <= MOST:
        return list(piece)
    first, last = piece[0], piece[-1]
    sample = [first]
    for left in range(MOST - 1, 0, -1):
        sample.append(max(sample[-1] + 1, round(sample[-1] * (last / sample[-1]) ** (1 / left))))
    return sample


def runs_of(values: Iterable[int]) -> str:
    """Format ascending numbers for people: 2, 3, 4, 5, 8 as ``2..5, 8``."""
    numbers = list(values)
    gaps = [index for index, (number, following) in enumerate(pairwise(numbers), 1) if following != number + 1]
    starts = [0, *gaps, len(numbers)]
    parts = []
    for begin, end in pairwise(starts):
        if end - begin > 2:
            parts.append(f"{numbers[begin]:,}..{numbers[end - 1]:,}")
        else:
            parts += [f"{number:,}" for number in numbers[begin:end]]
    return ", ".join(parts)
