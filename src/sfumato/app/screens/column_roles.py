"""The roles of columns: what the buttons of the screen of columns change in the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.app.forms import PostedForm
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.files.key_file import make_key

ROLES = {
    "identifier": "page_columns.roles.identifier",
    "drop": "page_columns.roles.drop",
    "pseudonym": "page_columns.roles.pseudonym",
    "quasi-identifier": "page_columns.roles.quasi",
    "sensitive": "page_columns.roles.sensitive",
    "other": "page_columns.roles.keep",
}
UNDECIDED = "decide"
RELEASED_AS_THEY_ARE = ("sensitive", "other")
KEY_FILE = "private/pseudonym.key"


def role(view: ProjectView, form: PostedForm) -> None:
    """Give a column its role."""
    column, chosen = column_at(view, form.text("column")), form.text("role")
    if chosen not in ROLES:
        raise UsageError("this role does not exist. Load the page again.")
    if chosen == "pseudonym" and view.policy.privacy.pseudonym_key is None:
        key = view.project.directory / KEY_FILE
        if not key.exists():
            make_key(key)
    view.change(form, "page.steps.role", lambda data: with_role(data, column, chosen, _proposed_settings(view, column)))


def accept(view: ProjectView, form: PostedForm) -> None:
    """Keep a column although persons may be recognised by it, or no longer."""
    column, kept = column_at(view, form.text("column")), bool(form.text("accept"))

    def change(data: dict[str, Any]) -> dict[str, Any]:
        others = [name for name in data.get("accept_linkable", ()) if name != column]
        return {**data, "accept_linkable": [*others, column] if kept else others}

    view.change(form, "page.steps.accept", change)


def column_at(view: ProjectView, position: str) -> str:
    """The name of the column at a position: a form cannot hold every name."""
    columns = (view.examined or {"columns": []})["columns"]
    if not position.isdigit() or int(position) >= len(columns):
        raise UsageError("this column does not exist. Load the page again.")
    found: str = columns[int(position)]["name"]
    return found


def _proposed_settings(view: ProjectView, column: str) -> dict[str, Any]:
    """What was proposed for a column as a quasi-identifier."""
    found: dict[str, Any] = ((view.examined or {}).get("settings") or {}).get(column, {})
    return found


def with_role(data: dict[str, Any], column: str, role: str, as_quasi_identifier: Mapping[str, Any]) -> dict[str, Any]:
    """The policy with another role for a column, and without what no longer fits it."""
    before = data.get("columns", {}).get(column, {"role": UNDECIDED})
    if before["role"] == role:
        return data
    nulls = {"nulls": before["nulls"]} if "nulls" in before and role != "identifier" else {}
    settings = dict(as_quasi_identifier) if role == "quasi-identifier" else {}
    columns = {**data.get("columns", {}), column: {"role": role, **settings, **nulls}}
    privacy = dict(data.get("privacy", {}))
    if role != "sensitive" and "sensitive" in privacy:
        privacy["sensitive"] = [line for line in privacy["sensitive"] if line["attribute"] != column]
    if role not in ("identifier", "pseudonym") and privacy.get("person") == column:
        privacy.pop("person")
    if role == "pseudonym":
        privacy.setdefault("pseudonym_key", KEY_FILE)
    elif not any(settings["role"] == "pseudonym" for settings in columns.values()):
        privacy.pop("pseudonym_key", None)
    linkable = [name for name in data.get("accept_linkable", ()) if name != column or role in RELEASED_AS_THEY_ARE]
    return {**data, "columns": columns, "privacy": privacy, "accept_linkable": linkable}


def rest(view: ProjectView, form: PostedForm) -> None:
    """Leave out all columns that are still to decide."""

    def change(data: dict[str, Any]) -> dict[str, Any]:
        for column, role in view.roles.items():
            if role == UNDECIDED:
                data = with_role(data, column, "drop", {})
        return data

    view.change(form, "page.steps.rest", change)
