"""The file ``tables.toml``: several tables about the same persons, which are released together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, StrictBool, ValidationError, model_validator

from sfumato.errors import PolicyError
from sfumato.policy.error_text import explain, listed, unknown_key_sentence, wrong
from sfumato.policy.flags import merge_flags
from sfumato.policy.model import Policy
from sfumato.policy.policy_file import read_policy_file
from sfumato.policy.section import PolicySection, given_name, optional_name, optional_path, text_list
from sfumato.policy.toml_lines import KeyPath, Origin

TABLES_FILE = "tables.toml"
FEWEST_TABLES = 2

JoinAttack = Literal["pseudonyms", "records-per-person", "shared-columns", "kept-quasi-identifiers"]
"""The ways in which releases can be joined. Each has lines in the joint check, and can be accepted by its name."""
JOIN_ATTACKS: tuple[JoinAttack, ...] = get_args(JoinAttack)


def _given_path(value: Any) -> str:
    path = optional_path(value)
    if path is None:
        raise wrong("must be the path of a file")
    return path


def _attacks(value: Any) -> tuple[str, ...]:
    names = text_list(value)
    for name in names:
        if name not in JOIN_ATTACKS:
            raise wrong(f"may hold {listed(JOIN_ATTACKS)}, not {name!r}", show=False)
    return names


class LinkedTable(PolicySection):
    """One of the tables: where it is, its policy, and where its release goes. Paths are relative to the file."""

    file: Annotated[str, BeforeValidator(_given_path)]
    policy: Annotated[str, BeforeValidator(_given_path)]
    output: Annotated[str, BeforeValidator(_given_path)]
    person: Annotated[str | None, BeforeValidator(optional_name)] = None
    """The column that identifies persons in this table, if it has another name than in the others."""


class LinkedTables(PolicySection):
    """Tables that are released together, and what is asked of their releases jointly."""

    person: Annotated[str | None, BeforeValidator(optional_name)] = None
    """The column that identifies persons in every table that does not name its own."""
    pseudonym_key: Annotated[str | None, BeforeValidator(optional_path)] = None
    """The path of the key that the pseudonyms of all tables are made with."""
    together: StrictBool = False
    """Whether persons are grouped once, and every table shows the same groups."""
    accept_linked: Annotated[tuple[JoinAttack, ...], BeforeValidator(_attacks)] = ()
    """The attacks of the joint check that may succeed."""
    tables: dict[Annotated[str, BeforeValidator(given_name)], LinkedTable] = Field(default_factory=dict)
    base: Path = Field(default=Path(), exclude=True)
    """The directory that relative paths start from: that of the file."""

    _origin: Origin = PrivateAttr(default_factory=Origin)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LinkedTables:
        """Read the file, or the file ``tables.toml`` of a folder."""
        file = Path(path)
        if file.is_dir():
            file = file / TABLES_FILE
        data, origin = read_policy_file(file)
        if "base" in data:
            raise PolicyError(origin.say(unknown_key_sentence(("base",), cls._keys()), ("base",)))
        try:
            tables = cls.model_validate({**data, "base": file.parent})
        except ValidationError as error:
            raise explain(error, origin) from None
        tables._origin = origin
        return tables

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        if len(self.tables) < FEWEST_TABLES:
            raise wrong("must name at least two tables, each under [tables.NAME]", "tables", show=False)
        for name, table in self.tables.items():
            if table.person is None and self.person is None:
                raise wrong(
                    "is missing: it is the column that identifies persons. Name it here, or above for all tables",
                    *("tables", name, "person"),
                    show=False,
                )
        return self

    def data(self, name: str) -> str:
        """Return where a table is."""
        text = self.tables[name].file
        return text if "://" in text else str(self.base / text)

    def output(self, name: str) -> Path:
        """Return where the release of a table goes."""
        return self.base / self.tables[name].output

    def person_of(self, name: str) -> str:
        """Return the column that identifies persons in a table."""
        person = self.tables[name].person or self.person
        assert person is not None  # checked when the file was read
        return person

    def policy(self, name: str) -> Policy:
        """Read the policy of a table, with the key that all tables share.

        The person key must not be released as it is, and must be the persons that the policy counts, if it counts any.
        """
        policy, person = Policy.load(self.base / self.tables[name].policy), self.person_of(name)
        role = policy.columns[person].role if person in policy.columns else None
        if role not in ("identifier", "drop", "pseudonym"):
            raise self.wrong(
                f"the policy of {name!r} does not withhold {person!r}, which identifies persons. Give it the role "
                "identifier there, or pseudonym.",
                *("tables", name, "policy"),
            )
        if policy.privacy.person not in (None, person):
            raise self.wrong(
                f"the policy of {name!r} counts persons by {policy.privacy.person!r}, and the tables are linked by "
                f"{person!r}. Name the same column.",
                *("tables", name, "person"),
            )
        return self._with_key(policy)

    def _with_key(self, policy: Policy) -> Policy:
        if self.pseudonym_key is None or not policy.pseudonyms:
            return policy
        key = self.base / self.pseudonym_key
        own = policy.pseudonym_key_path
        if own is not None and own.resolve() != key.resolve():
            raise self.wrong(
                "a policy names another key for pseudonyms, so a person would have another pseudonym in its table. "
                "Remove one of the two.",
                "pseudonym_key",
            )
        return merge_flags(policy, pseudonym_key=key)

    def wrong(self, text: str, *keys: str) -> PolicyError:
        """Return an error that begins with the file and the line of a key."""
        path: KeyPath = keys
        return PolicyError(self._origin.say(text, path))

    @property
    def accepted(self) -> frozenset[JoinAttack]:
        """The attacks that may succeed. Whoever may join by pseudonyms may count the records that they join."""
        implied: tuple[JoinAttack, ...] = ("records-per-person",) if "pseudonyms" in self.accept_linked else ()
        return frozenset({*self.accept_linked, *implied})
