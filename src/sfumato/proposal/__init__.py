"""Propose a first policy for a table: roles, types and taxonomies, each with its reason.

text_format    the encoding and separator of a file
roles          the role, type and taxonomy of a column, from what evaluation.linkability says about it
propose        the entry point: propose_policy and Proposal
toml_document  the policy as a file with comments
"""

from __future__ import annotations

from sfumato.proposal.propose import Proposal, propose_policy

__all__ = ["Proposal", "propose_policy"]
