"""Whatever stands in a file or a flag, a command ends with an exit code of its own, at once, and shows no cell.

Every cell of the tables here holds a mark by which it is found in a message. What a command prints may hold names of
columns and of taxonomies, and what the user wrote into a policy or flag.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from strategies import damaged_bytes, edited, odd_texts

from sfumato.cli import main

pytestmark = [pytest.mark.compiled, pytest.mark.not_quick]

EXPECTED = {0, 1, 2, 3, 4, 5}
LONGEST = 60  # seconds for one command
# In text cells, in numbers and in dates.
MARKS = re.compile(r"zzcell|73164\d|2917-", re.IGNORECASE)
ROWS = [
    f"zzcell{number},{731640 + number % 5},2917-0{1 + number % 3}-1{number % 4},{TOWN},{ILLNESS}"
    for number in range(16)
    for TOWN in [("zzcellRoma", "zzcellPisa", "zzcellLucca")[number % 3]]
    for ILLNESS in [("zzcellflu", "zzcellgout", "zzcellcold")[number % 3]]
]
TABLE = "\n".join(["name,age,born,town,illness", *ROWS]) + "\n"
TAXONOMY = "zzcellRoma,Lazio,*\nzzcellPisa,Tuscany,*\nzzcellLucca,Tuscany,*\n"
POLICY: dict[str, Any] = {
    "other": "drop",
    "input": {"separator": ",", "encoding": "utf-8", "decimal": ".", "nulls": ["", "NA"]},
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "type": "numeric", "round": 5, "weight": 2.0},
        "born": {"role": "quasi-identifier", "taxonomy": {"calendar": ["month", "year"]}},
        "town": {"role": "quasi-identifier", "taxonomy": "towns.csv"},
        "illness": {"role": "sensitive"},
    },
    "privacy": {
        "k": 2,
        "person": "name",
        "joint": False,
        "null_sensitive": "missing",
        "sensitive": [{"attribute": "illness", "kind": "distinct", "l": 2}],
    },
    "workload": {"selection": [{"where": "age > 3"}]},
    "method": {"name": "mondrian", "effort": "fast", "least_gain": 0.01},
    "engine": {"name": "memory", "memory": "500MB", "sampled": False},
    "release": {"seed": 0, "keep_order": False, "max_suppressed_fraction": 0.2, "form": "labels", "boxes": "smallest"},
}
# Nothing here starts Spark or lets a search go on for long.
KEYS = (
    "other", "accept_linkable", "input", "columns", "privacy", "workload", "method", "engine", "release",
    "date_format", "sheet", "role", "type", "round", "taxonomy", "weight", "mean_round", "statistic_round", "form",
    "k", "person", "sensitive", "joint", "attribute", "kind", "l", "c", "t", "distance", "beta", "alpha", "v", "delta",
    "enhanced", "classification", "regression", "targets", "features", "target", "where", "name", "memory", "sampled",
    "intervals", "calendar", "prefix", "base",
)  # fmt: skip
WORDS = (
    "age", "born", "town", "illness", "name", "quasi-identifier", "identifier", "sensitive", "other", "decide",
    "numeric", "categorical", "date", "keep", "value", "frequency", "entropy", "recursive", "variance",
    "t-closeness", "alpha-k", "beta-likeness", "delta-disclosure", "ordered", "hierarchical", "hilbert", "anatomy",
    "auto", "disk", "bounds", "statistics", "mean", "median",
    "regions", "best", "week", "decade", "utf-16", "utf-7", "idna",
    "punycode", "rot13", "undefined", "unicode_escape", "%d", "%Y-%m-%d", "age > 3 and age < 2", "town = 'x'",
    ["month", "week"], [1, 2, 3],
)  # fmt: skip


@pytest.fixture(autouse=True)
def _guard(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))

    def hung(*_: object) -> None:
        raise RuntimeError("the command hangs")  # no OSError, which commands handle

    before = signal.signal(signal.SIGALRM, hung)
    yield
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def files(**contents: bytes | str) -> Iterator[Path]:
    """A working directory with these files; a double underscore in a name stands for a dot."""
    start = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, content in {"table__csv": TABLE, "towns__csv": TAXONOMY, **contents}.items():
                path = Path(name.replace("__", "."))
                path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
            yield Path(folder)
        finally:
            os.chdir(start)


def run(*arguments: str) -> int:
    """Run a command and return its exit code, after looking at all that it printed."""
    out, err = io.StringIO(), io.StringIO()
    signal.alarm(LONGEST)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        signal.alarm(0)
    assert code in EXPECTED, err.getvalue()
    shown = MARKS.search(out.getvalue() + err.getvalue())
    assert shown is None, out.getvalue() + err.getvalue()
    if code in (2, 3, 4):
        assert err.getvalue().startswith("error: ")
        assert err.getvalue().count("\n") == 1
    return code


ANONYMIZE = ("anonymize", "table.csv", "-o", "out.csv", "--policy", "policy.toml")
FLAGS = (
    "--quasi-identifiers",
    "age,town",
    "--sensitive",
    "illness",
    "--other",
    "drop",
    "-k",
    "2",
    "--method",
    "mondrian",
)


def test_the_files_as_they_are_give_a_release() -> None:
    """Otherwise every edit below would fail for another reason than the edit."""
    with files(policy__toml=tomli_w.dumps(POLICY)):
        assert run(*ANONYMIZE) == 0
        assert run("audit", "out.csv", "--accept-unchecked") == 0
    with files():
        assert run("anonymize", "table.csv", "-o", "out.csv", *FLAGS) == 0
        assert run("fit", "table.csv", "-o", "rules.json", *FLAGS) == 0
        assert run("apply", "rules.json", "table.csv", "-o", "two.csv") == 0


@given(edited(POLICY, KEYS, WORDS))
def test_any_policy(policy: dict[str, Any]) -> None:
    with files(policy__toml=tomli_w.dumps(policy)):
        run(*ANONYMIZE)


@given(damaged_bytes(tomli_w.dumps(POLICY).encode()))
def test_any_text_as_a_policy(text: bytes) -> None:
    with files(policy__toml=text):
        run(*ANONYMIZE)


@given(damaged_bytes(TAXONOMY.replace("zzcell", "").encode()) | st.binary(max_size=40), st.booleans())
def test_any_taxonomy(content: bytes, fits: bool) -> None:
    # Names of a taxonomy may be shown, so those that are in the table too are not marked.
    table = re.sub("zzcell(?=Roma|Pisa|Lucca)", "" if fits else "zzcell", TABLE)
    with files(table__csv=table, towns__csv=content, policy__toml=tomli_w.dumps(POLICY)):
        run(*ANONYMIZE)


@given(damaged_bytes(TABLE.encode()) | st.binary(max_size=60))
def test_any_table(content: bytes) -> None:
    with files(table__csv=content):
        run("anonymize", "table.csv", "-o", "out.csv", *FLAGS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files that commands write: a release, its certificate, and rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        with files(
            policy__toml=tomli_w.dumps({**POLICY, "privacy": {**POLICY["privacy"], "person": "name"}})
        ) as folder:
            assert main(list(ANONYMIZE)) == 0
            assert main(["fit", "table.csv", "-o", "rules.json", *FLAGS, "--taxonomy", "town=towns.csv"]) == 0
            names = ("out.csv", "out.csv.sfumato.json", "rules.json")
            return {name.replace(".", "__"): (folder / name).read_text() for name in names}


JSON_KEYS = (
    *KEYS,
    "format",
    "policy",
    "files",
    "sha256",
    "audit",
    "nodes",
    "split",
    "to",
    "parts",
    "shows",
    "taxonomies",
    "leaves",
    "bounds",
    "null",
)
JSON_WORDS = (*WORDS, "zzcellRoma", 731640, "Tuscany", None)


@given(data=st.data())
def test_any_rules(made: dict[str, str], data: st.DataObject) -> None:
    rules = data.draw(edited(json.loads(made["rules__json"]), JSON_KEYS, JSON_WORDS))
    with files(rules__json=json.dumps(rules)):
        run("apply", "rules.json", "table.csv", "-o", "two.csv")


@given(data=st.data())
def test_any_text_as_rules(made: dict[str, str], data: st.DataObject) -> None:
    with files(rules__json=data.draw(damaged_bytes(made["rules__json"].encode()))):
        run("apply", "rules.json", "table.csv", "-o", "two.csv")


@given(data=st.data())
def test_any_certificate(made: dict[str, str], data: st.DataObject) -> None:
    name = "out__csv__sfumato__json"
    content = data.draw(edited(json.loads(made[name]), JSON_KEYS, JSON_WORDS))
    with files(out__csv=made["out__csv"], **{name: json.dumps(content)}):
        run("audit", "out.csv")
        run("measure", "table.csv", "out.csv")


@given(data=st.data())
def test_any_text_as_a_certificate(made: dict[str, str], data: st.DataObject) -> None:
    name = "out__csv__sfumato__json"
    with files(out__csv=made["out__csv"], **{name: data.draw(damaged_bytes(made[name].encode()))}):
        run("audit", "out.csv")


LABELS = st.one_of(
    odd_texts,
    st.sampled_from(
        [
            "[1..2]",
            "[2..1]",
            "[..]",
            "[zzcell..zzcell]",
            "*",
            "zzcellRoma",
            "Tuscany",
            "[2917-01-01..2917-02-01]",
            "731640",
            "1e400",
        ]
    ),
)


@given(st.lists(st.tuples(LABELS, LABELS, LABELS, LABELS), min_size=1, max_size=8))
def test_any_labels_in_a_release(rows: list[tuple[str, ...]]) -> None:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    release = "\n".join(["age,born,town,illness", *lines]) + "\n"
    with files(out__csv=release, policy__toml=tomli_w.dumps(POLICY)):
        run("audit", "out.csv", "--policy", "policy.toml")
        run("measure", "table.csv", "out.csv", "--policy", "policy.toml")


REQUIREMENTS = st.one_of(
    st.builds(
        "{}({}, {}={})".format,
        st.sampled_from(["distinct", "entropy", "recursive", "variance", "t-closeness", "nothing"]) | odd_texts,
        st.sampled_from(["illness", "age", "nothing"]) | odd_texts,
        st.sampled_from(["l", "c", "t", "v", "distance", "illness"]) | odd_texts,
        st.sampled_from(["2", "0.5", "-1", "nan", "1e999", "true", "ordered", "hierarchical", "9" * 5000]) | odd_texts,
    ),
    odd_texts,
    st.text("distnc(illness,l=2)' ", max_size=24),
)


@given(REQUIREMENTS)
def test_any_requirement(text: str) -> None:
    with files():
        run("anonymize", "table.csv", "-o", "out.csv", *FLAGS, f"--require={text}")


PREDICATES = st.one_of(
    st.builds(
        "{} {} {}{}".format,
        st.sampled_from(["age", "town", "born", '"age"', "illness"]) | odd_texts,
        st.sampled_from(["=", "<", "<=", ">", ">=", "==", "!=", "between", "in"]),
        st.sampled_from(["3", "'x'", "'Tuscany'", "nan", "inf", "-1e999", "2017-01-01", "'it''s'", "9" * 5000])
        | odd_texts,
        st.sampled_from(["", " and age > 3", " or age > 3", " and", " and age < 3 and age > 5", ";"]),
    ),
    odd_texts,
)


@given(PREDICATES)
def test_any_predicate(text: str) -> None:
    with files():
        run("anonymize", "table.csv", "-o", "out.csv", *FLAGS, f"--select={text}")
