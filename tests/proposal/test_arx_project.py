"""Projects of ARX: what they say becomes a policy, what it cannot say is listed, and hostile files are refused."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tomllib
import traceback
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

import sfumato
from sfumato import Policy
from sfumato.cli import main
from sfumato.errors import InputError
from sfumato.proposal import arx_archive
from sfumato.proposal.arx_criteria import read_criteria
from sfumato.proposal.arx_definition import strptime_format

SECRET = "Zaphod"
IDENTIFYING, QUASI, SENSITIVE, INSENSITIVE = (
    f"{word}_ATTRIBUTE" for word in ("IDENTIFYING", "QUASI_IDENTIFYING", "SENSITIVE", "INSENSITIVE")
)
AGES = [[str(age), f"{age // 10 * 10}-{age // 10 * 10 + 9}", "*"] for age in range(20, 60)]
ILLNESSES = [["flu", "lungs"], ["asthma", "lungs"], ["ulcer", "stomach"]]


def element(tag: str, *content: str) -> str:
    return f"<{tag}>\n{''.join(content)}</{tag}>\n"


def leaf(tag: str, text: object) -> str:
    return f"<{tag}>{escape(str(text), {chr(39): '&apos;'})}</{tag}>\n"


def attribute(name: str, kind: str, datatype: str = "String", **further: object) -> str:
    pairs = {"name": name, "type": kind, "datatype": datatype, **further}
    return element("assigment", *(leaf(tag, text) for tag, text in pairs.items()))


def config(
    criteria: Sequence[str] = ("5-anonymity",), limit: object = 0.05, weights: dict[str, float] | None = None
) -> str:
    weighted = [
        element("attributeWeight", leaf("attribute", name), leaf("weight", weight))
        for name, weight in (weights or {}).items()
    ]
    return element(
        "config",
        leaf("suppressTuplesInNonAnonymousOutput", "false"),
        element("suppressedAttributeTypes", leaf("type", QUASI)),
        leaf("practicalMonotonicity", "false"),
        leaf("relativeMaxOutliers", limit),
        leaf("metric", "Loss"),
        element("attributeWeights", *weighted),
        element("criteria", *(leaf("criterion", text) for text in criteria)),
    )


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=";", lineterminator="\n").writerows(rows)
    return stream.getvalue()


def parts(
    attributes: Sequence[str], hierarchies: dict[str, Sequence[Sequence[str]]] | None = None, **settings: Any
) -> dict[str, str | bytes]:
    """The parts of a project as ARX names them."""
    return {
        "metadata.xml": element("metadata", leaf("version", "3.9.0"), leaf("vocabulary", "2.0")),
        "project.xml": element("project", leaf("name", "Clinic"), leaf("separator", ";"), leaf("linebreak", "UNIX")),
        "input/definition.xml": element("definition", *attributes),
        "input/config.xml": config(**settings),
        "input/config.dat": b"\xac\xed\x00\x05",
        **{f"input/hierarchies/{name}.csv": as_csv(rows) for name, rows in (hierarchies or {}).items()},
    }


def write(folder: Path, content: dict[str, str | bytes]) -> Path:
    path = folder / "clinic.deid"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def table(rows: int = 120) -> str:
    records = [
        [f"{SECRET} {row}", str(20 + row % 40), f"{1 + row % 28:02}.03.{1950 + row % 40}", ILLNESSES[row % 3][0], "x"]
        for row in range(rows)
    ]
    return as_csv([["name", "age", "born", "illness", "note"], *records])


COLUMNS = [
    attribute("name", IDENTIFYING),
    attribute("age", QUASI, "Integer", ref="hierarchies/age.csv", min=1, max="All"),
    attribute("born", QUASI, "Date/Time", format="dd.MM.yyyy", locale="DE"),
    attribute("illness", SENSITIVE),
    attribute("note", INSENSITIVE),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    criteria = ["5-anonymity", "distinct-2-diversity for attribute 'illness'", "(0.1, 0.2)-presence"]
    content = parts(COLUMNS, {"age": AGES}, criteria=criteria, weights={"age": 0.75, "born": 0.5})
    return write(tmp_path, {**content, "data/input.csv": table()})


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        sfumato.arx_project(path)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def read(folder: Path, *arguments: Any, **settings: Any) -> Any:
    return sfumato.arx_project(write(folder, parts(*arguments, **settings)))


def test_a_project_becomes_a_policy_with_taxonomies(project: Path) -> None:
    loaded = sfumato.arx_project(project)
    assert loaded.policy.to_dict() == {
        "input": {"separator": ";", "nulls": ["", "NULL"], "date_format": "%d.%m.%Y"},
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "taxonomy": "taxonomies/age.csv", "finest": 1, "weight": 1.5},
            "born": {"role": "quasi-identifier", "type": "date"},
            "illness": {"role": "sensitive"},
            "note": {"role": "other"},
        },
        "privacy": {"k": 5, "sensitive": [{"attribute": "illness", "kind": "distinct", "l": 2}]},
        "method": {"name": "global"},
        "release": {"max_suppressed_fraction": 0.05},
    }
    assert loaded.unsupported == ("the privacy model '(0.1, 0.2)-presence'",)
    assert loaded.name == "Clinic"
    assert loaded.save("policy.toml") == [Path("policy.toml"), Path("taxonomies/age.csv")]
    assert Policy.load("policy.toml").to_dict() == loaded.policy.to_dict()
    with Path("taxonomies/age.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == AGES


@pytest.mark.not_quick
def test_the_table_of_a_project_is_released_by_its_policy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", str(project), "-o", "policy.toml", "--data", "input.csv"]) == 0
    shown = capsys.readouterr().out
    assert "not taken over: the privacy model '(0.1, 0.2)-presence'" in shown
    assert "sfumato anonymize input.csv --policy policy.toml --dry-run" in shown
    assert Path("input.csv").read_text("utf-8") == table()
    assert {oct(Path(name).stat().st_mode & 0o777) for name in ("input.csv", "taxonomies/age.csv")} == {"0o600"}
    assert main(["anonymize", "input.csv", "-o", "release.csv", "--policy", "policy.toml"]) == 0
    with Path("release.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    classes = Counter((row["age"], row["born"]) for row in rows)
    assert len(rows) >= 114
    assert min(classes.values()) >= 5
    assert {age for age, _ in classes} <= {"20-29", "30-39", "40-49", "50-59"}
    assert all(len({row["illness"] for row in rows if (row["age"], row["born"]) == shown}) >= 2 for shown in classes)


def test_what_is_not_taken_over_stands_in_the_policy_file(project: Path) -> None:
    text = sfumato.arx_project(project).to_toml()
    heading = text[: text.index("\n\n")]
    assert (
        "# NOT TAKEN OVER, so that this policy promises less than the project:\n#   - the privacy model '(0.1"
        in heading
    )
    assert "#   - a suppressed record is left out of the release; ARX shows it as '*'" in heading
    assert all(line.startswith("#") for line in heading.splitlines())


@pytest.mark.parametrize(
    "text, requirement",
    [
        ("distinct-3-diversity for attribute 'it's'", {"attribute": "it's", "kind": "distinct", "l": 3}),
        ("entropy-3.0-diversity for attribute 'a'", {"attribute": "a", "kind": "entropy", "l": 3}),
        ("shannon-entropy-2.5-diversity for attribute 'a'", {"attribute": "a", "kind": "entropy", "l": 3}),
        ("grassberger-entropy-2.0-diversity for attribute 'a'", {"attribute": "a", "kind": "entropy", "l": 2}),
        ("recursive-(4.0,2)-diversity for attribute 'a'", {"attribute": "a", "kind": "recursive", "c": 4.0, "l": 2}),
        *(
            (
                f"0.2-closeness with {distance} distance for attribute 'a'",
                {"attribute": "a", "kind": "t-closeness", "t": 0.2, "distance": distance},
            )
            for distance in ("equal", "ordered", "hierarchical")
        ),
        ("1.5-basic likeness for attribute 'a'", {"attribute": "a", "kind": "beta-likeness", "beta": 1.5}),
        (
            "enhanced-1.0E-1-likeness for attribute 'a'",
            {"attribute": "a", "kind": "beta-likeness", "beta": 0.1, "enhanced": True},
        ),
        (
            "2.0-disclosure privacy for attribute 'a'",
            {"attribute": "a", "kind": "delta-disclosure", "delta": 2 * math.log(2)},
        ),
    ],
)
def test_privacy_models_become_requirements(text: str, requirement: dict[str, Any]) -> None:
    criteria = read_criteria([text])
    assert criteria.requirements == [requirement]
    assert criteria.unsupported == []
    content = {"columns": {requirement["attribute"]: {"role": "sensitive"}}, "privacy": {"sensitive": [requirement]}}
    assert Policy.from_dict(content).privacy.sensitive[0].kind == requirement["kind"]


def test_where_a_model_is_measured_differently_that_is_said() -> None:
    remarks = read_criteria(
        [
            "entropy-2.5-diversity for attribute 'a'",
            "grassberger-entropy-2.0-diversity for attribute 'a'",
            "2.0-disclosure privacy for attribute 'a'",
            "distinct-2-diversity for attribute 'a'",
        ]
    ).remarks
    assert len(remarks) == 3
    assert "so 2.5 became 3" in remarks[0]
    assert "Grassberger" in remarks[1]
    assert "so 2 was multiplied by ln 2" in remarks[2]


@pytest.mark.parametrize(
    "text",
    [
        "(1.0E-5,0.1)-differential privacy",
        "5-map",
        "0.05-average-risk",
        "4-anonymity of something",
        "x\n# y",
        "5" * 500,
    ],
)
def test_other_models_are_listed_in_the_words_of_arx(text: str) -> None:
    criteria = read_criteria([text, "3-anonymity", "7-anonymity"])
    assert criteria.k == 7
    assert criteria.requirements == []
    (listed,) = criteria.unsupported
    assert listed.startswith(text[:8].replace("\n", "\\u000a"))
    assert len(listed) <= 130
    assert listed.isprintable()


@pytest.mark.parametrize(
    "lowest, highest, rows, settings",
    [
        ("All", "All", AGES, {}),
        (0, 2, AGES, {}),
        (1, 2, AGES, {"finest": 1}),
        (0, 1, AGES, {"coarsest": 1}),
        (1, 1, AGES, {"finest": 1, "coarsest": 1}),
        ("All", "All", ILLNESSES, {"coarsest": 1}),  # several groups at the end: '*' is never shown
        ("All", 0, ILLNESSES, {"coarsest": 0}),
        ("All", "All", [["flu"], ["ulcer"]], {"coarsest": 0}),  # no groups at all
        ("All", "All", [["flu", "any"], ["ulcer", "any"]], {}),
    ],
)
def test_the_levels_of_arx_are_the_finest_and_the_coarsest(
    tmp_path: Path, lowest: object, highest: object, rows: list[list[str]], settings: dict[str, int]
) -> None:
    column = attribute("x", QUASI, ref="hierarchies/x.csv", min=lowest, max=highest)
    loaded = read(tmp_path, [column], {"x": rows})
    expected = {"role": "quasi-identifier", "taxonomy": "taxonomies/x.csv", **settings}
    assert loaded.policy.to_dict()["columns"] == {"x": expected}
    assert loaded.unsupported == ()
    written = loaded.taxonomies["taxonomies/x.csv"].splitlines()
    assert written == [",".join(row if row[-1] == "*" else [*row, "*"]) for row in rows]


def test_a_column_that_is_always_suppressed_is_dropped(tmp_path: Path) -> None:
    loaded = read(tmp_path, [attribute("x", QUASI, min=2, max=2), attribute("y", QUASI)], {"x": AGES})
    assert loaded.policy.to_dict()["columns"] == {"x": {"role": "drop"}, "y": {"role": "quasi-identifier"}}
    assert "column 'x' is always '*' in ARX, so it is dropped" in loaded.remarks


@pytest.mark.not_quick
def test_names_of_taxonomies_stay_in_their_folder_and_apart(tmp_path: Path) -> None:
    names = ["../../evil", "a b", "a_b", "A_B", "Größe"]
    loaded = read(tmp_path, [attribute(name, QUASI) for name in names], dict.fromkeys(names, AGES))
    files = [loaded.policy.columns[name].taxonomy_file for name in names]
    assert files == [f"taxonomies/{stem}.csv" for stem in ("______evil", "a_b", "a_b-2", "A_B-3", "Größe")]
    loaded.save(tmp_path / "policy.toml")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.csv")) == sorted(files)


def test_what_a_policy_cannot_say_of_columns_is_listed(tmp_path: Path) -> None:
    columns = [
        attribute("pay", QUASI, "Decimal", microAggregationFunction="Arithmetic mean"),
        attribute("broken", QUASI, ref="hierarchies/broken.csv", min="All", max="All"),
        attribute("first", QUASI, "Date/Time", format="dd.MM.yyyy"),
        attribute("second", QUASI, "Date/Time", format="yyyy-MM-dd"),
        attribute("goal", INSENSITIVE, responseVariable="true"),
    ]
    broken = [["a", "x", "*"], ["b", "x", "y"]]
    criteria = ["0.2-closeness with equal distance for attribute 'goal'"]
    loaded = read(tmp_path, columns, {"broken": broken}, criteria=criteria, limit=1.0)
    assert loaded.policy.to_dict()["columns"]["pay"] == {"role": "quasi-identifier", "type": "numeric"}
    assert [text.partition(",")[0] for text in loaded.unsupported] == [
        "the microaggregation of 'pay' by 'Arithmetic mean'; it is generalized instead",
        "the hierarchy of 'broken'",
        "t-closeness of 'goal'",
        "the date formats of 'first'",
    ]
    assert loaded.policy.release.max_suppressed_fraction == 0.99
    assert any("'goal' is a response variable in ARX" in remark for remark in loaded.remarks)
    assert "privacy" not in loaded.policy.to_dict()
    assert tomllib.loads(loaded.to_toml())["privacy"] == {}
    assert "# k = 10  # decide: no privacy model of the project could be taken over" in loaded.to_toml()


def test_closeness_by_hierarchy_gets_the_hierarchy_of_the_sensitive_column(tmp_path: Path) -> None:
    criteria = ["0.3-closeness with hierarchical distance for attribute 'illness'"]
    columns = [attribute("illness", SENSITIVE)]
    loaded = read(tmp_path, columns, {"illness": ILLNESSES}, criteria=criteria)
    assert loaded.policy.columns["illness"].taxonomy_file == "taxonomies/illness.csv"
    without = read(tmp_path, columns, criteria=criteria)
    assert without.unsupported == ("the hierarchy for the closeness of 'illness', which is not in the project",)


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("dd.MM.yyyy", "%d.%m.%Y"),
        ("yyyy-MM-dd'T'HH:mm:ss", "%Y-%m-%dT%H:%M:%S"),
        ("d MMM yy 'o''clock' 100%", "%d %b %y o'clock 100%%"),
        ("dd.MM.yyyy G", None),
        ("'dd", None),
        ("", None),
        ("...", None),
    ],
)
def test_date_formats_of_java_are_translated_or_not_at_all(pattern: str, expected: str | None) -> None:
    assert strptime_format(pattern) == expected


def test_the_table_of_a_project_is_not_read_unless_somebody_asks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = project.read_bytes()
    start = content.index(b"data/input.csv") + len("data/input.csv")
    project.write_bytes(content[: start + 20] + b"\0" * 40 + content[start + 60 :])
    assert sfumato.arx_project(project).has_data
    assert main(["policy", str(project), "-o", "policy.toml", "--data", "input.csv"]) == 4
    told = capsys.readouterr()
    assert "cannot be read as a project of ARX: it is damaged" in " ".join(told.err.split())
    assert SECRET not in told.err + told.out
    assert [path.name for path in project.parent.iterdir()] == ["clinic.deid"]


@pytest.mark.not_quick
def test_existing_files_are_replaced_only_by_force(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["policy", str(project), "-o", "policy.toml"]
    Path("taxonomies").mkdir()
    Path("taxonomies/age.csv").write_text("mine")
    assert main(command) == 2
    assert "taxonomies/age.csv exists. Name another file for the taxonomy, or add --force" in capsys.readouterr().err
    assert Path("taxonomies/age.csv").read_text() == "mine"
    assert not Path("policy.toml").exists()
    assert main([*command, "--force"]) == 0
    assert main(command) == 2
    assert main([*command, "--force", "--data", "policy.toml/x"]) == 4


def test_without_an_output_nothing_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", str(project)]) == 0
    assert f"next    sfumato policy {project} -o clinic.policy.toml" in capsys.readouterr().out
    assert main(["policy", str(project), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == []
    assert told["unsupported"] == ["the privacy model '(0.1, 0.2)-presence'"]
    assert told["policy"]["privacy"]["k"] == 5
    assert [path.name for path in project.parent.iterdir()] == ["clinic.deid"]


@pytest.mark.parametrize(
    "flags, said",
    [
        (["-k", "5", "-o", "p.toml"], "are not for a project of ARX. Edit its policy."),
        (["--data", "x.csv"], "--data writes the table beside a policy. Name the policy too, with -o."),
    ],
)
def test_flags_that_say_nothing_about_a_project_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    assert main(["policy", str(project), *flags]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_data_is_for_projects_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", str(tmp_path / "x.csv"), "--data", "y.csv"]) == 2
    assert "--data is for projects of ARX" in capsys.readouterr().err


def test_a_project_without_a_table_says_so(tmp_path: Path) -> None:
    loaded = read(tmp_path, COLUMNS, {"age": AGES})
    with pytest.raises(InputError, match=r"holds no table\. Save it in ARX with its data\."):
        loaded.save(tmp_path / "policy.toml", data=tmp_path / "x.csv")


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><definition>&b;</definition>'


@pytest.mark.parametrize(
    "part, content, said",
    [
        ("input/definition.xml", BOMB, "has something else than ARX writes in input/definition.xml."),
        ("input/config.xml", f'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x>{SECRET}</x>', "writes in input/config.xml."),
        ("project.xml", "<a>" * 40 + "</a>" * 40, "has something else than ARX writes in project.xml."),
        (
            "input/definition.xml",
            f"<definition>{SECRET}",
            "has something else than ARX writes in input/definition.xml.",
        ),
        ("input/definition.xml", "<definition></definition>", "names no columns, or one twice."),
        ("input/definition.xml", element("definition", *[COLUMNS[0]] * 2), "names no columns, or one twice."),
        ("input/definition.xml", element("definition", attribute("x", "BOSS")), "a role that ARX does not have."),
        ("input/definition.xml", element("definition", attribute("x", QUASI, min="-1")), "a level that is no number."),
        ("input/hierarchies/age.csv", f"1;2\n{SECRET}\n", "of the column 'age' whose rows differ in length."),
        ("input/hierarchies/age.csv", "x" * 200_000, "a hierarchy of the column 'age' that is no CSV."),
    ],
)
def test_parts_that_arx_does_not_write_are_refused(tmp_path: Path, part: str, content: str, said: str) -> None:
    assert said in refusal(write(tmp_path, {**parts(COLUMNS, {"age": AGES}), part: content}))


@pytest.mark.parametrize("part", ["project.xml", "input/definition.xml", "input/config.xml"])
def test_a_project_without_a_part_is_refused(tmp_path: Path, part: str) -> None:
    content = parts(COLUMNS, {"age": AGES})
    del content[part]
    assert f"has no {part}: it is no project of ARX, or not a whole one." in refusal(write(tmp_path, content))


def test_parts_beyond_a_size_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arx_archive, "MOST_XML", 1 << 20)
    path = write(tmp_path, {**parts(COLUMNS), "project.xml": "<project>" + " " * (1 << 20) + "</project>"})
    assert "has more than 1 MiB in project.xml, which no project of ARX has." in refusal(path)
    monkeypatch.setattr(arx_archive, "HARMLESS", 1 << 10)
    path = write(tmp_path, {**parts(COLUMNS), "data/input.csv": "0" * (1 << 22)})
    with pytest.raises(InputError, match="holds far more data than compressed tables do"):
        sfumato.arx_project(path).save(tmp_path / "policy.toml", data=tmp_path / "data.csv")
    assert [each.name for each in tmp_path.iterdir()] == ["clinic.deid"]


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.deid"
    assert "does not exist. Check the path." in refusal(path)
    path.write_text(SECRET * 99)
    assert "it is damaged, or not what its name says. Save it again in ARX." in refusal(path)
    os.mkfifo(tmp_path / "pipe.deid")
    assert "is a pipe or a device. Write the project to a file first." in refusal(tmp_path / "pipe.deid")
    whole = write(tmp_path, parts(COLUMNS)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "it is damaged, or not what its name says. Save it again in ARX." in refusal(path)


def test_an_archive_with_two_parts_of_one_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, parts(COLUMNS))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("project.xml", "<project/>")
    assert "has parts that a project of ARX does not have." in refusal(path)


def test_hierarchies_of_old_versions_may_be_in_the_encoding_of_windows(tmp_path: Path) -> None:
    rows = as_csv([["Köln", "Rhein", "*"]]).encode("cp1252")
    content = {**parts([attribute("city", QUASI)]), "input/hierarchies/city.csv": rows}
    assert sfumato.arx_project(write(tmp_path, content)).taxonomies == {"taxonomies/city.csv": "Köln,Rhein,*\n"}


def test_a_project_is_no_table(project: Path) -> None:
    with pytest.raises(InputError, match=r"is a project of ARX, not a table\. 'sfumato policy' makes a policy of it"):
        sfumato.risk(project, quasi_identifiers=["age"])
