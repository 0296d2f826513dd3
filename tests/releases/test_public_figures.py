"""Every figure of certificate and shareable report can be computed from the release and its policy alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.policy import InputOptions, Policy
from sfumato.report.release import release_report
from sfumato.tables.sources.source import open_source
from tests.oracle_certificate import certificate_of

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.not_quick]

COUNT = 180
CITIES = {"Roma": "Italy", "Pisa": "Italy", "Lucca": "Italy", "Lyon": "France", "Paris": "France", "Bern": "Swiss"}
ILLNESSES = {"flu": "virus", "cold": "virus", "ulcer": "organ", "gout": "organ"}


def people() -> pa.Table:
    draw = random.Random(7)
    return pa.table(
        {
            "person": [f"P{row // 2}" for row in range(COUNT)],
            "age": [*(draw.randrange(18, 90) for _ in range(COUNT - 1)), 940],
            "weight": [round(draw.gauss(70, 9), 1) for _ in range(COUNT)],
            "city": [None if draw.random() < 0.04 else draw.choice(list(CITIES)) for _ in range(COUNT)],
            "zip": [f"{draw.randrange(20, 40)}{draw.randrange(10)}" for _ in range(COUNT)],
            "born": [f"{draw.randrange(1990, 2010)}-{draw.randrange(1, 13):02}-17" for _ in range(COUNT)],
            "sex": [draw.choice(["f", "m"]) for _ in range(COUNT)],
            "illness": [draw.choice(list(ILLNESSES)) for _ in range(COUNT)],
            "cost": [draw.randrange(100, 900) for _ in range(COUNT)],
        }
    )


def policy(folder: Path, columns: dict[str, Any], **more: Any) -> Policy:
    (folder / "cities.csv").write_text("".join(f"{city},{land},*\n" for city, land in CITIES.items()))
    (folder / "ills.csv").write_text("".join(f"{name},{kind},*\n" for name, kind in ILLNESSES.items()))
    roles = {name: {"role": "quasi-identifier", **settings} for name, settings in columns.items()}
    return Policy.from_dict({"other": "drop", "columns": {**roles, **more.pop("roles", {})}, **more}, folder)


def on(kind: str, attribute: str = "illness", **parameters: Any) -> dict[str, Any]:
    return {"attribute": attribute, "kind": kind, **parameters}


SENSITIVE = {"illness": {"role": "sensitive"}, "cost": {"role": "sensitive"}}
AGE: dict[str, Any] = {"age": {}}
LEFT_OUT = {"max_suppressed_fraction": 0.02}
CASES: dict[str, dict[str, Any]] = {
    "numbers": {"columns": {"age": {"weight": 2}, "weight": {}}},
    "numbers left out": {"columns": {"age": {}, "weight": {}}, "release": LEFT_OUT},
    "dates": {"columns": {"born": {"type": "date"}, "age": {}}, "release": LEFT_OUT},
    "dates whose type is found": {"columns": {"born": {}, "age": {}}},
    "taxonomy": {"columns": {"city": {"taxonomy": "cities.csv"}, "age": {}}, "release": LEFT_OUT},
    "categories": {"columns": {"city": {}, "sex": {"taxonomy": "flat"}, "age": {}}},
    "prefix": {"columns": {"zip": {"taxonomy": {"prefix": [1, 2]}}, "age": {}}, "release": LEFT_OUT},
    "round": {"columns": {"age": {"round": 10}, "weight": {"round": 0.5}}, "release": LEFT_OUT},
    "intervals": {"columns": {"age": {"taxonomy": {"intervals": [5, 10, 20]}}, "sex": {}}, "release": LEFT_OUT},
    "calendar": {"columns": {"born": {"taxonomy": {"calendar": ["year", "decade"]}}, "sex": {}}},
    "bounds": {"columns": {"age": {}, "born": {"type": "date"}}, "release": {"form": "bounds", **LEFT_OUT}},
    "statistics": {"columns": {"age": {}, "born": {"type": "date"}}, "release": {"form": "statistics", **LEFT_OUT}},
    "statistics on a grid": {"columns": {"age": {"statistic_round": 5}, "sex": {}}, "release": {"form": "statistics"}},
    "a form for each": {
        "columns": {
            "age": {"form": "mean"},
            "weight": {"form": "median"},
            "born": {"type": "date", "form": "bounds"},
            "sex": {},
        },
        "release": LEFT_OUT,
    },
    "statistics but of one": {
        "columns": {"age": {}, "born": {"type": "date", "form": "median"}, "weight": {"form": "labels"}},
        "release": {"form": "statistics"},
    },
    "medians of intervals": {
        "columns": {"age": {"form": "median", "taxonomy": {"intervals": [5, 10, 20]}}, "sex": {}},
    },
    "medians of a calendar": {
        "columns": {"born": {"form": "median", "taxonomy": {"calendar": ["month", "year"]}}, "sex": {}},
    },
    "regions": {"columns": {"age": {}, "sex": {}}, "method": {"name": "mondrian"}, "release": {"boxes": "regions"}},
    "keep order": {"columns": {"age": {}, "sex": {}}, "release": {"keep_order": True, "seed": 5}},
    "persons": {
        "columns": {"age": {}, "sex": {}},
        "roles": {"person": {"role": "identifier"}, **SENSITIVE},
        "privacy": {"k": 3, "person": "person", "sensitive": [on("distinct", l=2)]},
    },
    "frequency": {"columns": AGE, "roles": SENSITIVE, "privacy": {"k": 4, "sensitive": [on("frequency", l=2)]}},
    "several": {
        "columns": AGE,
        "roles": SENSITIVE,
        "privacy": {
            "k": 4,
            "sensitive": [
                on("distinct", l=3),
                on("entropy", l=2),
                on("recursive", c=2.0, l=2),
                on("alpha-k", alpha=0.6),
            ],
        },
    },
    "compared with the release": {
        "columns": {"weight": {}},
        "roles": {**SENSITIVE, "illness": {"role": "sensitive", "taxonomy": "ills.csv"}},
        "privacy": {
            "k": 4,
            "sensitive": [
                on("t-closeness", t=0.4),
                on("t-closeness", t=0.4, distance="hierarchical"),
                on("t-closeness", "cost", t=0.4, distance="ordered"),
                on("beta-likeness", beta=3.0),
                on("delta-disclosure", delta=2.5),
                on("variance", "cost", v=900.0),
            ],
        },
        "release": LEFT_OUT,
    },
    "joint": {
        "columns": {"sex": {}, "age": {}},
        "roles": {"illness": {"role": "sensitive"}, "sex2": {"role": "sensitive"}},
        "privacy": {"k": 2, "joint": True, "sensitive": [on("frequency", l=2)]},
    },
    "workload": {
        "columns": {"age": {}, "weight": {}},
        "roles": SENSITIVE,
        "workload": {
            "classification": [{"target": "illness"}],
            "targets": ["cost"],
            "selection": [{"where": "age > 40 and weight < 70"}],
        },
        "release": LEFT_OUT,
    },
    "anatomy": {
        "columns": {"age": {"round": 10}, "city": {"taxonomy": "cities.csv"}},
        "roles": {"illness": {"role": "sensitive"}},
        "privacy": {"sensitive": [on("frequency", l=2)]},
        "method": {"name": "anatomy"},
    },
    "disk": {"columns": {"age": {"round": 10}, "weight": {}}, "engine": {"name": "disk", "memory": "256MB"}},
}


def released(name: str, folder: Path, suffix: str = ".csv") -> tuple[sfumato.Release, list[Path], dict[str, Any]]:
    """A release, its files and its certificate."""
    case = {"privacy": {"k": 4}, **CASES[name]}
    asked = policy(folder, case.pop("columns"), **case)
    table = people()
    table = table.append_column("sex2", pa.array(["x", "y"] * (COUNT // 2)))
    release = sfumato.anonymize(table, asked)
    release.write(folder / f"release{suffix}")
    second = [folder / f"release.sensitive{suffix}"] if name == "anatomy" else []
    certificate = json.loads((folder / f"release{suffix}.sfumato.json").read_text("utf-8"))
    return release, [folder / f"release{suffix}", *second], certificate


@pytest.mark.parametrize("name", CASES)
def test_every_figure_of_the_certificate_follows_from_release_and_policy(name: str, tmp_path: Path) -> None:
    _, files, certificate = released(name, tmp_path)
    engine = "disk" if name == "disk" else "memory"
    expected = certificate_of(files, certificate["policy"], certificate["suppressed"], engine=engine)
    assert set(certificate) == set(expected), "the certificate has a key that nobody can compute, or lacks one"
    for line, computed in zip(certificate.pop("audit"), expected.pop("audit"), strict=True):
        assert set(line) == set(computed)
        assert computed.pop("requirement").split("-")[0].lower() in line.pop("requirement").lower().replace("(", "")
        assert line == pytest.approx(computed)
    for key, value in expected.items():
        assert certificate[key] == approximately(value), key


def approximately(value: Any) -> Any:
    """Numbers are compared with a margin, at any depth; everything else exactly."""
    if isinstance(value, dict):
        return {key: approximately(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [approximately(inner) for inner in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize("name", CASES)
def test_the_shareable_page_follows_from_release_policy_and_certificate(name: str, tmp_path: Path) -> None:
    """Somebody who never saw the original, and has what travels with the release, makes the same page."""
    release, files, certificate = released(name, tmp_path, ".parquet")
    asked = Policy.from_dict(certificate["policy"], tmp_path)
    first, *others = (open_source(file, InputOptions()) for file in files)
    again = release_report(
        first,
        others[0] if others else None,
        asked,
        load_taxonomies(asked),
        certificate,
        remarks=release.audit.remarks,
        persons_counted=asked.privacy.person is not None,  # the page says who counted them, and when
    )
    assert again.page() == release.report().page()
    figures = {key: value for key, value in certificate.items() if key not in ("format", "policy")}
    assert {key: value for key, value in again.summary().items() if key in figures} == figures


def test_what_is_private_is_named_in_the_summary_and_is_not_in_the_certificate(tmp_path: Path) -> None:
    release, _, certificate = released("workload", tmp_path)
    summary = release.summary()
    losses = {"gcp", "gcp_released", "cost", "max_size", "columns", "groups", "c_dm_groups"}
    private = {*losses, "other_costs", "workload", "chosen", "seconds", "warnings"}
    assert set(summary["private_figures"]) == private
    assert private & set(certificate) == {"workload"}  # without what was counted in the original
    assert [task["task"] for task in certificate["workload"]] == ["classification", "regression"]
    for key in set(summary) - private - {"private_figures"}:
        assert certificate[key] == summary[key]
    assert release.private_figures().keys() == private - {"seconds", "warnings"}
