"""Tables for proposals, made of columns that a function fills cell by cell."""

from __future__ import annotations

import csv
import datetime
import io
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from sfumato.policy import Policy
from sfumato.proposal import Proposal

RECORDS = 300
FIRST = ["Anna", "Ben", "Carla", "David", "Eva", "Felix", "Greta", "Hans", "Ida", "Jonas", "Klara", "Lars"]
LAST = ["Miller", "Smith", "Weber", "Fischer", "Meyer", "Wagner", "Becker", "Hoffmann", "Koch", "Bauer"]

Make = Callable[[random.Random, int], object]


def choice(text: str) -> Make:
    return lambda chance, _: chance.choice(text.split())


def whole(low: int, high: int) -> Make:
    return lambda chance, _: chance.randrange(low, high)


def day(first: int, last: int, form: str = "%Y-%m-%d") -> Make:
    start, days = datetime.date(first, 1, 1), 365 * (last - first)
    return lambda chance, _: (start + datetime.timedelta(chance.randrange(days))).strftime(form)


def person(chance: random.Random, _: int) -> str:
    return f"{chance.choice(FIRST)} {chance.choice(LAST)}"


def zip_code(chance: random.Random, _: int) -> str:
    return f"{chance.randrange(10**5):05d}"


def latitude(chance: random.Random, _: int) -> str:
    return f"{chance.uniform(40, 50):.4f}"


def table_with(columns: dict[str, Make], records: int = RECORDS) -> pa.Table:
    chance = random.Random(3)
    return pa.table({name: [str(make(chance, row)) for row in range(records)] for name, make in columns.items()})


def csv_file(path: Path, table: pa.Table, separator: str = ",", encoding: str = "utf-8") -> Path:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(table.column_names)
    writer.writerows(zip(*[column.to_pylist() for column in table.columns], strict=True))
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def decided(proposal: Proposal, role: str) -> Policy:
    """The policy once somebody has given every open column a role, and k."""
    content = proposal.policy.to_dict()
    for name in proposal.undecided:
        content["columns"][name]["role"] = role
    content.setdefault("privacy", {})["k"] = 5
    return Policy.from_dict(content)
