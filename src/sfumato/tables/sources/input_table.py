"""The table of a policy: what is read, with everything that the policy says about reading it."""

from __future__ import annotations

from sfumato.policy import Policy
from sfumato.tables.sources.derived_columns import with_derived
from sfumato.tables.sources.source import Source, open_source


def open_input(data: object, policy: Policy) -> Source:
    """Open a table that is to be released, with the columns that the policy derives."""
    return with_derived(open_source(data, policy.input_options), policy)
