"""Propose a first policy for a table: roles, types and levels, each with its reason.

header_check     names of columns that are cells of a record
derived_input    how columns are read from which others are derived
text_format      the encoding and separator of a file
roles            the role of a column, from what evaluation.linkability says about it
proposed_levels  its type, taxonomy and limits as a quasi-identifier
propose          the entry point: propose_policy and Proposal
toml_document    the policy as a file with comments
arx_archive      the parts of an ARX project, read with care
arx_definition   its columns and hierarchies
arx_criteria     its privacy models as requirements
arx_project      the entry point: arx_project and ArxProject
"""

from __future__ import annotations

from sfumato.proposal.arx_project import ArxProject, arx_project
from sfumato.proposal.propose import Proposal, propose_policy

__all__ = ["ArxProject", "Proposal", "arx_project", "propose_policy"]
