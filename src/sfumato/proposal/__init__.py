"""A first policy for a table: roles, types and taxonomies, each with its reason.

names      what the name of a column says, in four languages
forms      what values look like: forms of identifiers, words of demographic columns
values     numbers, dates or text; how text is to be read
reading    encoding and separator of a file
roles      from these to a role, a type and a taxonomy
proposing  the whole: propose_policy and Proposal
document   the policy as a file with comments
"""

from __future__ import annotations

from sfumato.proposal.propose import Proposal, propose_policy

__all__ = ["Proposal", "propose_policy"]
