"""The base class of the sections of a policy, and checks that several sections share."""

from __future__ import annotations

import os
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from sfumato.policy.error_text import explain, listed, unknown_key, wrong
from sfumato.policy.toml_lines import Origin


class PolicySection(BaseModel):
    """A section of the policy: a table in the TOML file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error, Origin()) from None

    # Without this mark pydantic would also call __init__ for the sections inside a policy. The error would then lose
    # the path to the wrong key, by which its line is found.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key in data:
            if key not in fields:
                raise unknown_key(key, cls._keys())
        for name, field in fields.items():
            if field.is_required() and name not in data:
                choices = get_args(field.annotation)
                raise wrong(f"is missing. Choose one of {listed(choices)}" if choices else "is missing", name)
        return data

    @classmethod
    def _keys(cls) -> list[str]:
        """Return the keys that a policy file may hold."""
        return [field.alias or name for name, field in cls.model_fields.items() if not field.exclude]


def text_list(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise wrong("must be a list of strings")
    return tuple(value)


def table_list(header: str) -> Any:
    """Return a check for a list of tables, each of which stands under ``[[header]]``."""

    def check(value: Any) -> Any:
        if not isinstance(value, list | tuple) or not all(isinstance(item, dict | BaseModel) for item in value):
            raise wrong(f"must be a list of tables, each under [[{header}]]")
        return value

    return check


def given_name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise wrong("must be a name")
    return value


def optional_name(value: Any) -> str | None:
    return None if value is None else given_name(value)


def optional_path(value: Any) -> str | None:
    """Accept the path of a file, as text or as a path object."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if path is not None and (not isinstance(path, str) or not path or "\0" in path):
        raise wrong("must be the path of a file")
    return path
