"""What certificates say about releases that were checked together.

They name the other releases and the lines of the joint check that hold. How many persons a join leaves is measured from
the person key, which no release shows, so no certificate has such a number. Of an attack that the policy accepts, it
says only that: whether it succeeds is for nobody to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sfumato.policy.linked_tables import JoinAttack, LinkedTables
from sfumato.requirements import Verdict

ACCEPTED: Mapping[JoinAttack, str] = {
    "pseudonyms": "pseudonyms join the records of a person across these tables: k holds in every class of each, and "
    "not for somebody who joins them",
    "records-per-person": "pseudonyms tell how many records a person has: k is not held against somebody who knows the "
    "number",
    "shared-columns": "columns that several of these tables keep join their records: k holds in every class of each, "
    "and not for somebody who compares them",
    "kept-quasi-identifiers": "a quasi-identifier of one of these tables is kept as it is in another: k is not held "
    "there against somebody who knows it",
}
"""What it means to accept an attack, in words for the reader of a release."""


class JointLine(Protocol):
    """A line of the joint check."""

    @property
    def attack(self) -> JoinAttack: ...

    @property
    def verdict(self) -> Verdict: ...


def linked_section(
    table: str, files: Mapping[str, str], lines: Sequence[JointLine], tables: LinkedTables
) -> dict[str, Any]:
    """Return the section of the certificate of a table. files: the released file of each table."""
    accepted = tables.accepted
    return {
        "table": table,
        "files": dict(files),
        "together": tables.together,
        "holds": [line.verdict.requirement for line in lines if line.attack not in accepted],
        "accepted": list(tables.accept_linked),
        "remarks": linked_remarks(tables),
    }


def linked_remarks(tables: LinkedTables) -> list[str]:
    """Say what the policy accepts."""
    return [ACCEPTED[attack] for attack in tables.accept_linked]


def certified_remarks(certificate: Mapping[str, Any]) -> list[str]:
    """Say what a certificate states about the releases that were checked together with its own, if there are any."""
    linked = certificate.get("linked", {})
    others = [file for table, file in linked.get("files", {}).items() if table != linked.get("table")]
    if not others:
        return []
    remark = (
        f"the certificate states that the release was checked jointly with {', '.join(others)}: whose the records are "
        "was known then, and is not here"
    )
    return [remark, *linked.get("remarks", [])]
