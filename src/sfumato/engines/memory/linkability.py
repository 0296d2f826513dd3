"""Kept columns that would undo a release, of a table in memory."""

from __future__ import annotations

import numpy as np

from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.linkability.column_facts import ValueTotals
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import linkable_columns
from sfumato.tables.coding.passthrough import PassthroughColumn


def linkable_in_memory(table: TableInMemory) -> dict[str, str]:
    """Return the linkable columns that the policy does not accept, each with the reason in words."""
    policy, encoded = table.job.policy, table.encoded
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others = [column for column in encoded.carried if column.name not in accepted]
    reasons = linkable_columns(others, encoded.codes, encoded.domains)
    rules = IdentifierRules.of(table.job.source, policy)
    for column in others:
        if column.name not in reasons:
            reason = rules.reason(column.name, column.values, _totals(column))
            if reason is not None:
                reasons[column.name] = reason
    return reasons


def _totals(column: PassthroughColumn) -> ValueTotals:
    codes, size = column.distinct
    counts = np.bincount(codes, minlength=size)[:-1]  # null is the last
    alone, distinct = np.count_nonzero(counts == 1), np.count_nonzero(counts)
    return ValueTotals(len(codes), int(counts.sum()), int(alone), int(distinct))
