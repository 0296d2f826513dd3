"""The table of a policy: what is read, with everything that the policy says about reading it."""

from __future__ import annotations

from sfumato.policy import Policy
from sfumato.tables.sources.derived_columns import with_derived
from sfumato.tables.sources.pseudonyms import with_pseudonyms
from sfumato.tables.sources.source import Source, open_source


def open_input(data: object, policy: Policy) -> Source:
    """Open a table that is to be released, with the columns that the policy derives and with its pseudonyms."""
    return with_pseudonyms(open_derived(data, policy), policy)


def open_studied(data: object, policy: Policy) -> Source:
    """Open a table to compare a release with it, or to study it. It has pseudonyms if the policy names their key."""
    source = open_derived(data, policy)
    return source if policy.pseudonym_key_path is None else with_pseudonyms(source, policy)


def open_derived(data: object, policy: Policy) -> Source:
    """Open a table with the columns that the policy derives, and with the values that pseudonyms are made of."""
    return with_derived(open_source(data, policy.input_options), policy)
