"""Numbers as text: which mark separates the decimal places, and which one the thousands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
INTEGER = re.compile(r"[+-]?\d+")
LEADING_ZERO = re.compile(r"[+-]?0\d")


@dataclass(frozen=True)
class NumberForm:
    """How numbers are written. Digits are grouped by threes or not at all: with thousands, 1.5 is not a number."""

    decimal: str = "."
    thousands: str | None = None

    def plain(self, text: str) -> str:
        """Return a number with a decimal point and without groups. Other text becomes what is no number either."""
        text = text.strip()
        if self.thousands is not None and self.thousands in text:
            if not self._grouped.fullmatch(text):
                return "x"
            text = text.replace(self.thousands, "")
        return text if self.decimal == "." else text.replace(".", "x").replace(",", ".")

    def is_number(self, text: str) -> bool:
        """Return whether a text is a number, and no code such as 007."""
        return bool(NUMBER.fullmatch(self.plain(text))) and not LEADING_ZERO.match(text.strip())

    def is_grouped(self, text: str) -> bool:
        """Return whether a text is a number whose thousands are separated."""
        return self.thousands is not None and bool(self._grouped.fullmatch(text.strip()))

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        mark, decimal = re.escape(self.thousands or ""), re.escape(self.decimal)
        return re.compile(rf"[+-]?[1-9]\d{{0,2}}({mark}\d{{3}})+({decimal}\d*)?")


PLAIN = NumberForm()
