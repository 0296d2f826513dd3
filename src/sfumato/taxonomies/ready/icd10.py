"""Codes of ICD-10 to three-character categories, blocks and chapters. The leaves are the codes that the column has.

A code is a letter and two digits, and perhaps a point and further characters: E11, E11.9 or E119. A category is shown
as E11.-, as in the classification itself, so it is never mistaken for a code. Every category that lies in a block is
known, whether the WHO has filled it or not; codes that lie in none, as national versions have some, are outside.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from sfumato.taxonomies.ready.icd10_blocks import CHAPTERS_AND_BLOCKS
from sfumato.taxonomies.ready.ready_taxonomy import ReadyRows
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

# Further characters, and the marks of a cause (+), of what it affects (*) or of an addition (!).
CODE = re.compile(r"\s*([A-Z][0-9]{2})(?:\.?[0-9A-Z]{1,4}|\.-)?[+*!\N{DAGGER}]?\s*", re.IGNORECASE | re.ASCII)
CATEGORY = ".-"


class Block(NamedTuple):
    """A block: its first and last category, its name and that of its chapter."""

    first: str
    last: str
    name: str
    chapter: str


class Icd10:
    """The ready-made taxonomy of diagnoses."""

    source = "ICD-10 of the WHO, version of 2019"

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in the order of their codes."""
        blocks, chapter = [], ""
        for line in CHAPTERS_AND_BLOCKS.strip().splitlines():
            if line[0] != " ":
                number, _, title = line.split(" ", 2)
                chapter = f"{number} {title}"
                continue
            codes, title = line.strip().split(" ", 1)
            first, last = codes.split("-")
            blocks.append(Block(first, last, f"{first if first == last else codes} {title}", chapter))
        return tuple(sorted(blocks))

    def block_of(self, category: str) -> Block | None:
        """Return the block that a three-character category lies in."""
        found = bisect_right(self.blocks, category, key=lambda block: block.first) - 1
        return self.blocks[found] if found >= 0 and category <= self.blocks[found].last else None

    def rows(self, values: Sequence[str]) -> ReadyRows:
        rows, outside = [], []
        for value in sorted(values, key=lambda text: (text.strip().upper(), text)):
            groups = self._groups(value)
            if groups is None:
                outside.append(value)
            else:
                rows.append((value, *groups))
        no_rows = TaxonomyRows((), ((), (), ()))
        return ReadyRows(TaxonomyRows.of(rows) if rows else no_rows, tuple(outside), "codes of ICD-10")

    def levels_of(self, label: str) -> tuple[int, int] | None:
        level = self._level_of_name.get(label)
        if level is None and self._groups(label.removesuffix(" (group)")) is not None:
            level = 1 if label.endswith((CATEGORY, f"{CATEGORY} (group)")) else 0
        return None if level is None else (level, level)

    @cached_property
    def _level_of_name(self) -> dict[str, int]:
        return {block.name: 2 for block in self.blocks} | {block.chapter: 3 for block in self.blocks}

    def _groups(self, value: str) -> tuple[str, str, str] | None:
        """Return category, block and chapter of a code."""
        found = CODE.fullmatch(value)
        category = "" if found is None else found[1].upper()
        block = self.block_of(category)
        return None if block is None else (f"{category}{CATEGORY}", block.name, block.chapter)
