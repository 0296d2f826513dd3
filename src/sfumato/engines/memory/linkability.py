"""Kept columns that would undo a release, of a table in memory."""

from __future__ import annotations

from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import linkable_columns


def linkable_in_memory(table: TableInMemory) -> dict[str, str]:
    """Return the linkable columns that the policy does not accept, each with the reason in words."""
    policy, encoded = table.job.policy, table.encoded
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others = [column for column in encoded.carried if column.name not in accepted]
    return linkable_columns(others, encoded.codes, encoded.domains, IdentifierRules.of(table.job.source, policy))
