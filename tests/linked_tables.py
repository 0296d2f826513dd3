"""A small generated hospital: patients, their stays and their laboratory results, with policies and tables.toml."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

ROLES: dict[str, dict[str, str]] = {
    "patients": {"patient_id": "identifier", "born": "quasi-identifier", "sex": "quasi-identifier", "payer": "other"},
    "stays": {
        "patient_id": "identifier",
        "age": "quasi-identifier",
        "month": "quasi-identifier",
        "ward": "other",
        "diagnosis": "sensitive",
    },
    "lab": {"patient_id": "identifier", "age": "quasi-identifier", "test": "other"},
}


def write_hospital(folder: Path, persons: int = 60, seed: int = 1, k: int = 3) -> None:
    """Write the tables, a policy for each, and tables.toml. Every second patient or so has laboratory results."""
    chance = random.Random(seed)
    tables: dict[str, list[dict[str, Any]]] = {"patients": [], "stays": [], "lab": []}
    for number in range(persons):
        person, born = f"patient-{number:04}", chance.randrange(1940, 2000)
        tables["patients"].append(
            {"patient_id": person, "born": born, "sex": chance.choice("mf"), "payer": chance.choice(["state", "own"])}
        )
        stays = [
            {
                "patient_id": person,
                "age": 2024 - born,
                "month": chance.randrange(1, 5),
                "ward": chance.choice("ABC"),
                "diagnosis": chance.choice(["flu", "asthma", "fracture"]),
            }
            for _ in range(chance.choice([1, 1, 2]))
        ]
        tables["stays"] += stays
        if chance.random() < 0.5:
            test = chance.choice(["CRP", "Na"])
            tables["lab"] += [{"patient_id": person, "age": stays[0]["age"], "test": test}]
    for name, rows in tables.items():
        write_rows(folder / f"{name}.csv", rows)
        privacy = {"k": k} | ({} if name == "patients" else {"person": "patient_id"})
        write_policy(folder / f"{name}.toml", ROLES[name], privacy=privacy)
    (folder / "out").mkdir()
    write_tables(folder)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_policy(path: Path, roles: Mapping[str, str], **sections: Any) -> None:
    columns = {column: {"role": role} for column, role in roles.items()}
    path.write_bytes(tomli_w.dumps({**sections, "columns": columns}).encode())


def write_tables(folder: Path, names: Sequence[str] = tuple(ROLES), **settings: Any) -> None:
    """Write tables.toml. ``settings`` stand above the tables."""
    tables = {name: {"file": f"{name}.csv", "policy": f"{name}.toml", "output": f"out/{name}.csv"} for name in names}
    (folder / "tables.toml").write_bytes(tomli_w.dumps({"person": "patient_id", **settings, "tables": tables}).encode())


def with_pseudonyms(folder: Path, *names: str) -> None:
    """Change policies so that they release the person key as pseudonyms."""
    for name in names or ROLES:
        path = folder / f"{name}.toml"
        text = path.read_text().replace('role = "identifier"', 'role = "pseudonym"')
        path.write_text('accept_linkable = ["patient_id"]\n' + text)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
