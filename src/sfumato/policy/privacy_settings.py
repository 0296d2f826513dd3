"""The section ``[privacy]``: what every class of the release must meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, StrictBool, model_validator

from sfumato.parameters import whole_number
from sfumato.policy.error_text import instead, listed, unknown_choice, unknown_key, wrong
from sfumato.policy.section import PolicySection, given_name, optional_name, optional_path, table_list

if TYPE_CHECKING:
    from sfumato.requirements import Requirement

NullSensitive = Literal["missing", "value"]


def _kinds() -> dict[str, type[Requirement]]:
    # Requirements load numba, so they are imported only for a policy that names one.
    from sfumato.requirements import kinds

    return kinds()


class SensitiveRequirement(PolicySection):
    """A requirement on one sensitive column. Its kind declares the parameters that the other keys set."""

    model_config = ConfigDict(extra="allow", frozen=True)

    attribute: Annotated[str, BeforeValidator(given_name)]
    kind: str

    def parameters(self) -> dict[str, Any]:
        """The parameters of the kind that the policy sets."""
        return dict(self.model_extra or {})

    def requirement(self) -> Requirement:
        """The requirement in the form that methods and the audit take."""
        return _kinds()[self.kind](self.attribute, **self.parameters())  # type: ignore[call-arg]

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = _kinds()
        for name in ("attribute", "kind"):
            if name not in data:
                raise wrong(f"is missing. Choose one of {listed(known)}" if name == "kind" else "is missing", name)
        kind = data["kind"]
        if not isinstance(kind, str) or kind not in known:
            raise unknown_choice("kind", kind, list(known))
        declared = known[kind].parameters
        of_any_kind = {name for other_kind in known.values() for name in other_kind.parameters}
        checked = {}
        for key, value in data.items():
            if key in declared:
                try:
                    checked[key] = declared[key].check(value)
                except ValueError as error:
                    raise wrong(f"{error}{instead(value)}", key) from None
            elif key in of_any_kind:
                has = listed(declared) if declared else "no parameters"
                raise wrong(f"does not belong to the kind {kind!r}, which has {has}. Remove it", key)
            elif key not in ("attribute", "kind"):
                raise unknown_key(key, ["attribute", "kind", *declared])
            else:
                checked[key] = value
        for key, parameter in declared.items():
            if parameter.required and key not in data:
                value = known[kind].example.get(key)
                example = "" if value is None else f", such as {key} = {value}"
                raise wrong(f"is missing: the kind {kind!r} needs it{example}", key)
        return checked


class PrivacySettings(PolicySection):
    """What every class of the release must meet."""

    k: Annotated[int, BeforeValidator(whole_number(1))] | None = None
    person: Annotated[str | None, BeforeValidator(optional_name)] = None
    """The column that identifies the person of a record. If it is set, persons are counted instead of records."""
    pseudonym_key: Annotated[str | None, BeforeValidator(optional_path)] = None
    """The path of the key that pseudonyms are made with."""
    sensitive: Annotated[tuple[SensitiveRequirement, ...], BeforeValidator(table_list("privacy.sensitive"))] = ()
    joint: StrictBool = False
    """Each sensitive column must meet its requirements with the other sensitive columns as quasi-identifiers."""
    null_sensitive: NullSensitive = "missing"
    """Null in a sensitive column is either missing, so that it protects nobody, or a value like any other."""
