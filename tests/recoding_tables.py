"""A table of people, and what the tests of recodings ask of it."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa


def people(count: int = 400, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    days = generator.integers(0, 900, count)
    return pa.table(
        {
            "name": [f"p{row}" for row in range(count)],
            "age": generator.integers(17, 90, count),
            "weight": np.round(generator.normal(70, 10, count), 1),
            "born": [datetime.date(1960, 1, 1) + datetime.timedelta(int(day)) for day in days],
            "zip": generator.choice(["10115", "10117", "20095", "20099", "80331"], count),
            "sex": generator.choice(["F", "M"], count),
            "diagnosis": generator.choice(["flu", "cold", "gout", "none"], count),
        }
    )


ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "weight", "born", "zip", "sex"],
    "identifiers": ["name"],
    "sensitive": "diagnosis",
    "taxonomy": {"zip": {"prefix": [2]}},
    "k": 5,
}
