"""How an examination becomes part of a policy: it proposes a first one, and later keeps what people decided."""

from __future__ import annotations

from typing import Any

from sfumato.app.background_run import last_run
from sfumato.app.project import OutdatedPageError, Project


def adopt_examination(project: Project) -> None:
    """Take over the last examination if it is finished and new. Nobody else changes the project meanwhile."""
    state = project.state
    run = last_run(project, "examine")
    if run is None or run.number == state.notes.get("examined") or "published" in state.notes or run.state != "done":
        return
    found = (run.result or {})["found"]
    try:
        project.change(state.version, "page.steps.examined", lambda data: adopted(data, found["policy"]))
        project.note(None, examined=run.number, examined_table=found.get("table"))
    except OutdatedPageError:
        return  # another tab was quicker, and the next look at the page sees what it did


def adopted(data: dict[str, Any], proposed: dict[str, Any]) -> dict[str, Any]:
    """The policy with the proposed reading, and the proposed role of every column that has none yet.

    A column that the table no longer has leaves the policy, and so does what refers to it.
    """
    kept = data.get("columns", {})
    columns = {name: kept.get(name, column) for name, column in proposed.get("columns", {}).items()}
    for name, column in proposed.get("columns", {}).items():
        if kept.get(name, {}).get("role") == "decide":
            columns[name] = column
        if "nulls" in column and columns[name]["role"] != "identifier":
            columns[name] = {**columns[name], "nulls": column["nulls"]}
    privacy = {**proposed.get("privacy", {}), **data.get("privacy", {})}
    if privacy.get("person") not in columns:
        privacy.pop("person", None)
    demands = [line for line in privacy.get("sensitive", ()) if line["attribute"] in columns]
    if demands or "sensitive" in privacy:
        privacy["sensitive"] = demands
    changed = {**data, "input": proposed.get("input", {}), "columns": columns, "privacy": privacy}
    if proposed.get("derive"):
        changed["derive"] = proposed["derive"]
    else:
        changed.pop("derive", None)
    linkable = [name for name in data.get("accept_linkable", ()) if name in columns]
    return {**changed, "accept_linkable": linkable} if linkable else _without(changed, "accept_linkable")


def _without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}
