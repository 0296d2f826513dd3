"""Propose a first policy for a table: roles, types and taxonomies, each with its reason.

column_names   what the name of a column suggests, in four languages
value_forms    what values look like: forms of identifiers, words of demographic columns
column_facts   what a column holds: numbers, dates or text; how to read text
text_format    the encoding and separator of a file
roles          the role, type and taxonomy that follow from these
propose        the entry point: propose_policy and Proposal
toml_document  the policy as a file with comments
"""

from __future__ import annotations

from sfumato.proposal.propose import Proposal, propose_policy

__all__ = ["Proposal", "propose_policy"]
