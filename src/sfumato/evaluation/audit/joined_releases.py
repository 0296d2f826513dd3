"""The joint check: do releases about the same persons undo each other?

The attacker has all releases, and knows the quasi-identifiers of every person in every table: which classes each person
is in, and how many records each has there. Of the records of a class, only the columns that are released as they are
can then tell one from another. So there are three ways to gain from a second release, and a line for each.

- A pseudonym shows which records are one person's. The candidates for a pseudonym are the persons who are in the same
  classes of all tables that show it: a class with k persons does not help a person who shares the other classes with
  nobody. Whoever also knows how many records a person has looks for the same number in each class.
- A column that two releases keep has the same value in both. A record is a person's only if its value occurs in a class
  that the person is in elsewhere. The candidates are counted in both directions: the persons whom a record can belong
  to, and the persons among whose records that of a given person is. The person key tells whether the two tables agree
  about the person at all; where they do not, such a join would mislead, and does not count.
- A quasi-identifier of one table that another keeps as it is tells the exact value in the second.

Without any of them, records of a class cannot be told apart with the help of other tables, however the boxes of the
tables overlap. What would be left if something else joined the records is ``persons_if_joined``.

Like the audit, this reads the finished releases and shares no code with what formed their classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.audit.narrowed_classes import sensitive_verdicts
from sfumato.evaluation.audit.personal_release import PersonalRelease
from sfumato.evaluation.audit.shared_columns import SharedColumns, fewest_candidates
from sfumato.policy.linked_tables import JoinAttack
from sfumato.requirements import Verdict

Signature = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class JointVerdict:
    """A line of the joint check: the attack that it is about, and what holds."""

    attack: JoinAttack
    verdict: Verdict


@dataclass(frozen=True)
class JointReport:
    """The result of the joint check.

    persons_if_joined: the fewest persons who are in the same classes of all tables. It is what k would be if something
    outside the releases told which records are one person's.
    """

    lines: tuple[JointVerdict, ...]
    persons_if_joined: int

    def open_lines(self, accepted: Collection[JoinAttack]) -> list[JointVerdict]:
        """Return the lines that do not hold or could not be checked, and whose attack is not accepted."""
        return [line for line in self.lines if not line.verdict.holds and line.attack not in accepted]


def check_jointly(releases: Sequence[PersonalRelease]) -> JointReport:
    """Check what somebody gains who has all of these releases."""
    by_pseudonym, cells = _pseudonym_lines(releases)
    lines = [*by_pseudonym, *_shared_column_lines(releases, cells), *_kept_quasi_identifier_lines(releases)]
    return JointReport(tuple(lines), _fewest(_signatures(releases)))


def _pseudonym_lines(
    releases: Sequence[PersonalRelease],
) -> tuple[list[JointVerdict], dict[str, NDArray[np.int64]]]:
    """Return the lines on pseudonyms, and for each table the parts of its classes that pseudonyms tell apart.

    The parts are those of the strongest attack that still leaves k persons. Where none does, they are the classes: what
    other columns add is then of no more interest to somebody who joins by pseudonyms.
    """
    cells = {release.name: release.classes for release in releases}
    joined = [release for release in releases if release.shows_pseudonyms]
    if not joined:
        text = "no release shows the pseudonyms of persons"
        return [JointVerdict("pseudonyms", Verdict(text, True, 0))], cells
    k = max(release.policy.k for release in joined)
    names = _listed([release.name for release in joined])
    attacks: list[tuple[JoinAttack, str]] = [
        ("pseudonyms", f"k = {k} persons are in the same classes of {names}, which pseudonyms join"),
        ("records-per-person", f"k = {k} persons also have as many records in each of these classes"),
    ]
    lines = []
    for attack, text in attacks:
        signatures = _signatures(joined, counted=attack == "records-per-person")
        fewest = _fewest(signatures)
        lines.append(JointVerdict(attack, Verdict(text, fewest >= k, fewest)))
        if fewest >= k:
            cells |= {release.name: _parts(release, signatures) for release in joined}
    if lines[0].verdict.holds:
        for release in joined:
            for verdict in sensitive_verdicts(release, cells[release.name]):
                text = f"{verdict.requirement} in {release.name}, where pseudonyms join"
                lines.append(JointVerdict("pseudonyms", replace(verdict, requirement=text)))
    return lines, cells


def _shared_column_lines(
    releases: Sequence[PersonalRelease], cells: Mapping[str, NDArray[np.int64]]
) -> list[JointVerdict]:
    """Return a line for each table that keeps a column which another one keeps too."""
    lines = []
    for release in releases:
        partners, columns = [], dict[str, None]()
        for other in releases:
            shared = [name for name in release.kept if name in other.kept]
            same_pseudonyms = release.shows_pseudonyms and other.shows_pseudonyms
            if other is release or not shared or same_pseudonyms:  # these are joined already
                continue
            partners.append(
                SharedColumns.of(release.source, other.source, shared, persons=other.persons, cells=cells[other.name])
            )
            columns |= dict.fromkeys(shared)
        if not partners:
            continue
        k, names = release.policy.k, _listed(map(repr, columns))
        fewest = fewest_candidates(release.persons, cells[release.name], partners, k)
        text = f"k = {k} persons remain for the records of {release.name}, joined by the kept columns {names}"
        lines.append(JointVerdict("shared-columns", Verdict(text, fewest is None or fewest >= k, fewest or k)))
        for verdict in sensitive_verdicts(release, cells[release.name], partners):
            text = f"{verdict.requirement} in {release.name}, joined by the kept columns {names}"
            lines.append(JointVerdict("shared-columns", replace(verdict, requirement=text)))
    beside = " that pseudonyms do not join" if any(release.shows_pseudonyms for release in releases) else ""
    return lines or [JointVerdict("shared-columns", Verdict(f"no column is kept in two releases{beside}", True, 0))]


def _kept_quasi_identifier_lines(releases: Sequence[PersonalRelease]) -> list[JointVerdict]:
    """Return a failed line for each quasi-identifier that another release shows as it is."""
    lines = [
        JointVerdict(
            "kept-quasi-identifiers",
            Verdict(f"{name!r}, a quasi-identifier of {release.name}, is not kept as it is in {other.name}", False, 1),
        )
        for release in releases
        for other in releases
        for name in release.policy.quasi_identifiers
        if other is not release and name in other.kept
    ]
    text = "no quasi-identifier of one table is kept as it is in another"
    return lines or [JointVerdict("kept-quasi-identifiers", Verdict(text, True, 0))]


def _signatures(releases: Sequence[PersonalRelease], *, counted: bool = False) -> dict[int, Signature]:
    """Return the classes of every person in these releases; with ``counted``, also the number of records in each."""
    signatures = defaultdict[int, list[tuple[int, ...]]](list)
    for number, release in enumerate(releases):
        pairs = np.stack([release.persons, release.classes], axis=1)
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for (person, class_id), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            signatures[person].append((number, class_id, count) if counted else (number, class_id))
    return {person: tuple(classes) for person, classes in signatures.items()}


def _fewest(signatures: Mapping[int, Signature]) -> int:
    """Return the smallest number of persons with the same signature."""
    persons = defaultdict[Signature, int](int)
    for signature in signatures.values():
        persons[signature] += 1
    return min(persons.values(), default=0)


def _parts(release: PersonalRelease, signatures: Mapping[int, Signature]) -> NDArray[np.int64]:
    """Number the parts of classes whose persons have the same signature, by row."""
    numbers: dict[tuple[int, Signature], int] = {}
    number: Callable[[int, int], int] = lambda class_id, person: numbers.setdefault(  # noqa: E731
        (class_id, signatures[person]), len(numbers)
    )
    rows = zip(release.classes.tolist(), release.persons.tolist(), strict=True)
    return np.array([number(class_id, person) for class_id, person in rows], np.int64)


def _listed(names: Iterable[str]) -> str:
    """Return names as a list in words."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
