"""Checks of a whole policy: that it leaves nothing open, and that it fits the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from sfumato.errors import PolicyError, may_be_cells
from sfumato.policy.column_settings import Role
from sfumato.policy.error_text import listed
from sfumato.policy.workload import check_roles

if TYPE_CHECKING:
    from sfumato.policy.model import Policy
    from sfumato.policy.toml_lines import KeyPath


def check_complete(policy: Policy) -> None:
    """Raise PolicyError if the policy leaves open what it asks for."""
    _check_roles_decided(policy)
    if not policy.quasi_identifiers:
        raise _error(policy, "no column is a quasi-identifier. Name the columns by which somebody could be recognised.")
    _check_requirements(policy)
    person = policy.privacy.person
    if person is not None and person not in (*policy.identifiers, *policy.pseudonyms):
        raise _error(
            policy,
            f"the person key {person!r} is not an identifier, so it would be released. Give it the role identifier, or "
            "pseudonym.",
            ("privacy", "person"),
        )
    for name in policy.pseudonyms:
        if name not in policy.accept_linkable:
            raise _error(
                policy,
                f"the pseudonyms of {name!r} would join the records of a person across classes, so that k does not "
                "hold per person. List the column in accept_linkable if that is meant, or give it the role identifier.",
                ("columns", name, "role"),
            )
    if policy.privacy.joint and (len(policy.sensitive) < 2 or not policy.privacy.sensitive):
        raise _error(
            policy,
            "joint protects several sensitive columns together, which needs at least two of them and a requirement. "
            "Remove it, or name them.",
            ("privacy", "joint"),
        )
    if policy.privacy.k is None and not policy.privacy.sensitive:
        raise _error(policy, "k is absent, so nothing is asked for. Set k; in a policy file, under [privacy].")
    roles = {name: column.role for name, column in policy.columns.items()}
    check_roles(policy.workload, roles, policy.origin, undeclared_kept=policy.other != "drop")


def check_columns(policy: Policy, names: Sequence[str]) -> None:
    """Raise PolicyError if the policy does not fit a table with the columns ``names``."""
    for name in policy.columns:
        if name not in names:
            where = policy.origin.place(("columns", name)) or "the policy"
            raise PolicyError.unknown_column(name, where, names)
    for name in policy.accept_linkable:
        if name not in names:
            where = policy.origin.say("accept_linkable", ("accept_linkable",))
            raise PolicyError.unknown_column(name, where, names)
    for name in (*policy.workload.predicted, *policy.workload.features):
        if name not in names:
            where = policy.origin.say("the workload", ("workload",))
            raise PolicyError.unknown_column(name, where, names)
    unnamed = [name for name in names if name not in policy.columns]
    if unnamed and policy.other is None:
        which = listed(unnamed)
        if may_be_cells(unnamed):
            which = f"{len(unnamed)} columns, not listed as some of their names are numbers or dates"
        raise _error(
            policy,
            f"no role is given for {which}. Give each a role, or say what happens to columns without one: "
            'other = "keep" or other = "drop".',
        )


def _check_roles_decided(policy: Policy) -> None:
    undecided = [name for name, column in policy.columns.items() if column.role == "decide"]
    if not undecided:
        return
    lines = (policy.origin.line(("columns", name, "role")) for name in undecided)
    named = ", ".join(
        repr(name) + (f" (line {line})" if line is not None else "")
        for name, line in zip(undecided, lines, strict=True)
    )
    choices = listed(role for role in get_args(Role) if role != "decide")
    raise _error(policy, f"the role is still to decide for {named}. Choose one of {choices}.")


def _check_requirements(policy: Policy) -> None:
    for index, settings in enumerate(policy.privacy.sensitive):
        column = settings.attribute
        if column not in policy.sensitive:
            raise _error(
                policy,
                f"a requirement is named for the column {column!r}, which is not sensitive. Give it the role "
                "sensitive, or remove the requirement.",
                ("privacy", "sensitive", index, "attribute"),
            )
        counters = settings.requirement().counters
        if "hierarchy" in counters and policy.columns[column].taxonomy is None:
            raise _error(
                policy,
                f"the hierarchical distance needs a taxonomy of the column {column!r}. Give it one, or choose another "
                "distance.",
                ("privacy", "sensitive", index, "distance"),
            )
        if "numbers" in counters and policy.privacy.null_sensitive == "value":
            raise _error(
                policy,
                f"null_sensitive is 'value', but {settings.kind} needs numbers, and null is not a number. Remove one "
                "of the two.",
                ("privacy", "null_sensitive"),
            )


def _error(policy: Policy, text: str, path: KeyPath = ()) -> PolicyError:
    return PolicyError(policy.origin.say(text, path))
