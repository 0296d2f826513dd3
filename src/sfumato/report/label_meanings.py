"""What a released label means, in words: a range, a period, a group with its values, ``*``, or no value.

Everything is told from the label, the policy and what is known without the original: the files of taxonomies and the
ready-made ones that have the same values for every table.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.policy import ColumnSettings, Grouping
from sfumato.report.audit_texts import audit_text
from sfumato.tables.coding.domains import ABOVE, BELOW
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.taxonomies.periods import period_days
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts

MOST_VALUES = 12  # of a group that are named; the others are counted


@dataclass(frozen=True)
class Meaning:
    """What a label stands for. values: the first of those in a group, and ``further`` is how many more there are."""

    text: str
    values: tuple[str, ...] = ()
    further: int = 0


class LabelMeanings:
    """The meanings of the labels of one quasi-identifier. taxonomy: its taxonomy, if the release alone tells it.

    kind: categorical, numeric or date, as the labels are read.
    """

    def __init__(self, column: ColumnSettings, kind: str, taxonomy: Taxonomy | None, say: Texts) -> None:
        self._column = column
        self._say = say
        self._kind = kind
        self._taxonomy = taxonomy
        self._nodes = {} if taxonomy is None else taxonomy.node_of_label()
        self._values: list[tuple[int, str]] = []
        if taxonomy is not None:
            self._values = sorted((code, value) for value, code in taxonomy.code_of_value.items())

    def of(self, label: str | None) -> Meaning:
        if label is None:
            return Meaning(self._say("codebook.meaning.missing"))
        if label == WHOLE:
            return Meaning(self._say("codebook.meaning.nothing"))
        if self._kind == "categorical":
            return self._category(label)
        period = period_days(label) if self._kind == "date" else None
        if period is not None:
            return Meaning(self._say("codebook.meaning.period", low=period[0], high=period[1]))
        return Meaning(_range(label, self._say))

    def place(self, label: str | None) -> tuple[bool, bool, int, str]:
        """Where a label of a category stands in a list: in the order of the taxonomy, ``*`` and null last."""
        node = self._nodes.get(label or "")
        first = 0 if node is None or self._taxonomy is None else int(self._taxonomy.first[node])
        return label is None, label == WHOLE, first, label or ""

    def _category(self, label: str) -> Meaning:
        rule = self._column.taxonomy
        if self._taxonomy is not None:
            return self._group(label)
        if isinstance(rule, Grouping) and rule.ready is not None:
            levels = ready_taxonomy(rule.ready).levels_of(label)
            if levels is not None and levels[0] > 0:
                return Meaning(self._say("codebook.meaning.all_of", level=self._level(levels[0])))
        if isinstance(rule, Grouping) and rule.prefix is not None and label.endswith(WHOLE):
            return Meaning(self._say("codebook.meaning.prefix", prefix=label.rstrip(WHOLE)))
        return Meaning(self._say("codebook.meaning.itself"))

    def _group(self, label: str) -> Meaning:
        assert self._taxonomy is not None
        node = self._nodes.get(label)
        if node is None:
            return Meaning(self._say("codebook.meaning.unknown"))
        first, last = int(self._taxonomy.first[node]), int(self._taxonomy.last[node])
        values = [value for code, value in self._values if first <= code <= last]
        if values == [label]:
            return Meaning(self._say("codebook.meaning.itself"))
        text = self._say("codebook.meaning.one_of", count=len(values))
        return Meaning(text, tuple(values[:MOST_VALUES]), max(len(values) - MOST_VALUES, 0))

    def _level(self, number: int) -> str:
        """The name of a level; English has a singular here, other languages what they call the level."""
        name = self._column.level_names[number]
        return name if self._say is ENGLISH else audit_text(f"the {name}", self._say)


def _range(label: str, say: Texts) -> str:
    """A number, a date or a range of them. Only numbers have the signs for everything above or below."""
    low, bar, high = label[1:-1].partition("..") if label[:1] == "[" and label[-1:] == "]" else (label, "", label)
    below, above = _open(low, BELOW), _open(high, ABOVE)
    if not bar:
        if below or above:
            return say("codebook.meaning.less" if below else "codebook.meaning.more", bound=below or above)
        return say("codebook.meaning.itself")
    if below and above:
        return say("codebook.meaning.any")
    if below:
        return say("codebook.meaning.less", bound=high)
    return say("codebook.meaning.more", bound=low) if above else say("codebook.meaning.range", low=low, high=high)


def _open(end: str, sign: str) -> str:
    """The number before the sign, or nothing if the end of a range has no sign."""
    return end.removesuffix(sign) if end.endswith(sign) and end[:-1] else ""
