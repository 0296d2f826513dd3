"""The policy: what it accepts, what it refuses and in which words, how it is saved, and flags over it."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, OutputError, PolicyError
from sfumato.policy import (
    ColumnSettings,
    EngineSettings,
    Grouping,
    InputSettings,
    MethodSettings,
    Policy,
    PrivacySettings,
    ReleaseSettings,
    merge_flags,
)
from sfumato.policy.toml_lines import key_lines

WHOLE_EXAMPLE = """\
other = "drop"
accept_linkable = ["note"]

[input]
separator = ";"
encoding = "cp1252"
decimal = ","
nulls = ["", "NA", "?"]
date_format = "%d.%m.%Y"
sheet = "2024"

[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
type = "numeric"
round = 5
[columns.country]
role = "quasi-identifier"
taxonomy = "taxonomies/country.csv"
weight = 2.0
[columns."zip code"]
role = "quasi-identifier"
taxonomy = { prefix = [2, 3] }
[columns.income]
role = "quasi-identifier"
taxonomy = { intervals = [0.5, 10] }
[columns.born]
role = "quasi-identifier"
taxonomy = { calendar = ["month", "year"] }
[columns.gender]
role = "quasi-identifier"
taxonomy = "flat"
[columns.diagnosis]
role = "sensitive"
[columns.note]
role = "other"

[privacy]
k = 10

[method]
name = "hilbert"
[engine]
name = "memory"
[release]
seed = 7
keep_order = true
form = "bounds"
"""

Load = Callable[[str], Policy]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a text as POLICY.toml, by its relative name."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str) -> Policy:
        Path("POLICY.toml").write_text(text, encoding="utf-8")
        return Policy.load("POLICY.toml")

    return load_text


def message_of(call: Callable[[], object], kind: type[Exception] = PolicyError) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None
    return str(caught.value)


# What a policy holds


def test_every_key_of_a_policy_file_is_read(load: Load, tmp_path: Path) -> None:
    policy = load(WHOLE_EXAMPLE)
    assert policy == Policy(
        other="drop",
        accept_linkable=("note",),
        input=InputSettings(
            separator=";",
            encoding="cp1252",
            decimal=",",
            nulls=("", "NA", "?"),
            date_format="%d.%m.%Y",
            sheet="2024",
        ),
        columns={
            "name": ColumnSettings(role="identifier"),
            "age": ColumnSettings(role="quasi-identifier", type="numeric", round=5),
            "country": ColumnSettings(role="quasi-identifier", taxonomy="taxonomies/country.csv", weight=2.0),
            "zip code": ColumnSettings(role="quasi-identifier", taxonomy=Grouping(prefix=(2, 3))),
            "income": ColumnSettings(role="quasi-identifier", taxonomy=Grouping(intervals=(0.5, 10))),
            "born": ColumnSettings(role="quasi-identifier", taxonomy=Grouping(calendar=("month", "year"))),
            "gender": ColumnSettings(role="quasi-identifier", taxonomy="flat"),
            "diagnosis": ColumnSettings(role="sensitive"),
            "note": ColumnSettings(role="other"),
        },
        privacy=PrivacySettings(k=10),
        method=MethodSettings(name="hilbert"),
        engine=EngineSettings(name="memory"),
        release=ReleaseSettings(seed=7, keep_order=True, form="bounds"),
    )
    assert policy.base == tmp_path
    assert policy.taxonomy_path("country") == tmp_path / "taxonomies" / "country.csv"


def test_an_empty_policy_has_the_defaults(load: Load) -> None:
    policy = load("")
    assert policy == Policy()
    assert policy.to_dict() == {}
    assert policy.other is None
    assert policy.accept_linkable == ()
    assert policy.columns == {}
    assert policy.privacy.k is None
    assert policy.method.name == "auto"
    assert policy.engine.name == "auto"
    assert (policy.release.seed, policy.release.keep_order, policy.release.form) == (None, False, "labels")
    assert policy.input == InputSettings(
        separator=",", encoding="utf-8", decimal=".", nulls=("",), date_format=None, sheet=None
    )


def test_columns_are_listed_by_role_in_the_order_of_the_policy(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    assert policy.quasi_identifiers == ("age", "country", "zip code", "income", "born", "gender")
    assert policy.sensitive == ("diagnosis",)
    assert policy.identifiers == ("name",)
    assert policy.others == ("note",)


def test_a_taxonomy_decides_the_type_of_its_column(load: Load) -> None:
    columns = load(WHOLE_EXAMPLE).columns
    assert {name: column.implied_type for name, column in columns.items()} == {
        "name": None,
        "age": "numeric",
        "country": "categorical",
        "zip code": "categorical",
        "income": "numeric",
        "born": "date",
        "gender": "categorical",
        "diagnosis": None,
        "note": None,
    }
    assert [name for name, column in columns.items() if column.taxonomy_file] == ["country"]
    assert ColumnSettings(role="quasi-identifier", type="date").implied_type == "date"


def test_a_type_that_says_what_the_taxonomy_says_is_accepted() -> None:
    assert ColumnSettings(role="quasi-identifier", type="categorical", taxonomy="flat").implied_type == "categorical"
    assert (
        ColumnSettings(role="quasi-identifier", type="numeric", taxonomy=Grouping(intervals=(5,))).implied_type
        == "numeric"
    )
    assert (
        ColumnSettings(role="quasi-identifier", type="date", taxonomy=Grouping(calendar=("year",))).implied_type
        == "date"
    )


def test_only_a_column_with_a_taxonomy_file_has_a_taxonomy_path(load: Load) -> None:
    with pytest.raises(ValueError, match="'gender' has no taxonomy file"):
        load(WHOLE_EXAMPLE).taxonomy_path("gender")


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Policy().other = "keep"


def test_a_policy_survives_copying_and_pickling(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert other == policy
        assert other.origin == policy.origin


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "POLICY.toml"
    path.write_bytes(b'\xef\xbb\xbfother = "keep"\r\n\r\n[privacy]\r\nk = 3\r\n')
    assert Policy.load(path) == Policy(other="keep", privacy=PrivacySettings(k=3))
    path.write_bytes(b"\xef\xbb\xbf[privacy]\r\n\r\nk = 0\r\n")
    assert message_of(lambda: Policy.load(path)).startswith(f"{path}, line 3: k must")


def test_python_accepts_plain_dictionaries_numpy_numbers_and_path_objects() -> None:
    columns: Any = {
        "age": {"role": "quasi-identifier", "round": np.int64(5), "weight": np.float64(0.5)},
        "size": {"role": "quasi-identifier", "round": Fraction(1, 2), "weight": 2},
        "zip": {"role": "quasi-identifier", "taxonomy": {"prefix": [np.int8(1), 3]}},
        "city": {"role": "quasi-identifier", "taxonomy": Path("flat")},
    }
    policy = Policy(columns=columns, privacy=PrivacySettings(k=np.int32(4)))  # type: ignore[arg-type]
    assert policy.to_dict() == {
        "columns": {
            "age": {"role": "quasi-identifier", "round": 5, "weight": 0.5},
            "size": {"role": "quasi-identifier", "round": 0.5, "weight": 2.0},
            "zip": {"role": "quasi-identifier", "taxonomy": {"prefix": [1, 3]}},
            "city": {"role": "quasi-identifier", "taxonomy": "./flat"},
        },
        "privacy": {"k": 4},
    }
    assert type(policy.privacy.k) is int
    assert type(policy.columns["age"].round) is int
    assert type(policy.columns["size"].weight) is float


def test_reading_a_policy_loads_no_heavy_library() -> None:
    heavy = ["numba", "numpy", "pyarrow", "polars", "pandas", "duckdb"]
    code = f"import sys, sfumato.policy; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# What a policy refuses: the whole message, with the line


AGE = '[columns.age]\nrole = "quasi-identifier"\n'
WIDTHS = "must be a list of finite numbers above 0, each larger than the one before"
UNITS = "must be a list of units out of 'week', 'month', 'quarter', 'year', 'decade', from fine to coarse"
KINDS = (
    "'frequency', 'distinct', 'entropy', 'recursive', 'variance', 't-closeness', 'alpha-k', 'beta-likeness', "
    "'delta-disclosure'"
)
ROLES = "'identifier', 'drop', 'pseudonym', 'quasi-identifier', 'sensitive', 'other', 'decide'"
TOP = (
    "'other', 'accept_linkable', 'about', 'input', 'derive', 'columns', 'privacy', 'workload', 'method', 'engine', "
    "'release'"
)
SECOND = "must be a list of whole numbers, each larger than the one before"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # unknown keys
        ('\n[columns.age]\nrol = "x"', "line 3: unknown key 'rol' in [columns.age]. Did you mean 'role'?"),
        (AGE + "wieght = 2", "line 3: unknown key 'wieght' in [columns.age]. Did you mean 'weight'?"),
        ('[columns."zip code"]\nx = 1\nrole = "other"', "line 2: unknown key 'x' in [columns.\"zip code\"]. "
         "Available: 'role', 'type', 'round', 'taxonomy', 'nulls', 'weight', 'form', 'statistic_round', 'bottom', "
         "'top', 'finest', 'coarsest'."),
        ("[colums.age]", "line 1: unknown key 'colums'. Did you mean 'columns'?"),
        ("# k\nk = 5", f"line 2: unknown key 'k'. Available: {TOP}."),
        ("base = '/tmp'", f"line 1: unknown key 'base'. Available: {TOP}."),
        ("[release]\n\nshuffle = true", "line 3: unknown key 'shuffle' in [release]. Available: 'seed', 'keep_order', "
         "'max_suppressed_fraction', 'suppression_cost', 'form', 'boxes', 'formulas', 'separator', 'encoding', "
         "'decimal', 'codebook'."),
        ('[release]\nencoding = "cp1525"',
         'line 2: encoding must be an encoding of text that Python knows, such as "utf-8", "utf-8-sig" (which '
         'spreadsheets recognise) or "cp1252", not \'cp1525\'.'),
        ('[release]\nencoding = "unicode_escape"',  # it would write the ends of lines as letters
         'line 2: encoding must be an encoding of text that Python knows, such as "utf-8", "utf-8-sig" (which '
         'spreadsheets recognise) or "cp1252", not \'unicode_escape\'.'),
        ('[release]\nseparator = "||"',
         "line 2: separator must be one ASCII character other than a quotation mark or a line break, not '||'."),
        ('[release]\nseparator = ","\ndecimal = ","',
         "line 2: separator is ',' and so is the decimal mark. Set the two to different characters."),
        ('[release]\ndecimal = ";"', "line 2: decimal must be one of '.', ',', not ';'."),
        ("[release]\ncodebook = 1", "line 2: codebook must be true or false, not 1."),
        ("[release]\nmax_suppressed_fraction = 1",
         "line 2: max_suppressed_fraction must be a number of at least 0 and below 1, not 1."),
        ('[input]\nseperator = ";"', "line 2: unknown key 'seperator' in [input]. Did you mean 'separator'?"),
        ("[privacy]\nl = 3", "line 2: unknown key 'l' in [privacy]. Available: 'k', 'person', 'pseudonym_key', "
         "'sensitive', 'joint', 'null_sensitive'."),
        ('[method]\nsplit = "median"',
         "line 2: unknown key 'split' in [method]. Available: 'name', 'loss', 'effort', 'seconds', 'least_gain', "
         "'cells'."),
        (AGE + "taxonomy = { interval = [5] }",
         "line 3: unknown key 'interval' in [columns.age.taxonomy]. Did you mean 'intervals'?"),
        ('[privacy]\nk = 2\nperson = 3', "line 3: person must be a name, not 3."),
        ('[privacy]\nnull_sensitive = "no"', "line 2: null_sensitive must be one of 'missing', 'value', not 'no'."),
        ('[privacy]\nk = 2\n\n[[privacy.sensitive]]\nattribute = "x"',
         f"line 4: privacy.sensitive.0.kind is missing. Choose one of {KINDS}."),
        ('[[privacy.sensitive]]\nkind = "distinct"\nl = 2', "line 1: privacy.sensitive.0.attribute is missing."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = "distict"\nl = 2',
         f"line 3: privacy.sensitive.0.kind must be one of {KINDS}, not 'distict'. Did you mean 'distinct'?"),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = {}\nl = 2',
         f"line 3: privacy.sensitive.0.kind must be one of {KINDS}, not a table."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = ["distinct"]\nl = 2',
         f"line 3: privacy.sensitive.0.kind must be one of {KINDS}, not a list."),
        (f"[release]\nmax_suppressed_fraction = 1{'0' * 400}",
         "line 2: max_suppressed_fraction must be a number of at least 0 and below 1, "
         "not a number of very many digits."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = "distinct"\nl = 0',
         "line 4: privacy.sensitive.0.l must be a whole number of at least 1, not 0."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = "frequency"\nl = 2.0',
         "line 4: privacy.sensitive.0.l must be a whole number of at least 1, not 2.0."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = "frequency"\nl = 2\nm = 3',
         "line 5: unknown key 'm' in [privacy.sensitive.0]. Available: 'attribute', 'kind', 'l'."),
        ('[[privacy.sensitive]]\nattribute = "x"\nkind = "frequency"\nl = 2\n'
         '[[privacy.sensitive]]\nattribute = ""\nkind = "distinct"\nl = 2',
         "line 6: privacy.sensitive.1.attribute must be a name, not ''."),
        ('[privacy]\nsensitive = "x"',
         "line 2: sensitive must be a list of tables, each under [[privacy.sensitive]], not 'x'."),
        ('[privacy.sensitive]\nattribute = "x"',
         "line 1: sensitive must be a list of tables, each under [[privacy.sensitive]], not a table."),
        # k and the seed
        ("[privacy]\nk = 0", "line 2: k must be a whole number of at least 1, not 0."),
        ("[privacy]\nk = true", "line 2: k must be a whole number of at least 1, not true."),
        ("[privacy]\nk = 5.0", "line 2: k must be a whole number of at least 1, not 5.0."),
        ('[privacy]\nk = "5"', "line 2: k must be a whole number of at least 1, not '5'."),
        ("[privacy]\nk = [5]", "line 2: k must be a whole number of at least 1, not a list."),
        ("[privacy]\nk = 2020-01-01", "line 2: k must be a whole number of at least 1, not a value of type date."),
        ("privacy = { k = -1 }", "line 1: k must be a whole number of at least 1, not -1."),
        ("privacy.k = -1", "line 1: k must be a whole number of at least 1, not -1."),
        (f"[privacy]\nk = -1{'0' * 50}",
         "line 2: k must be a whole number of at least 1, not a number of very many digits."),
        ("[release]\nseed = -1", "line 2: seed must be a whole number from 0 to 9223372036854775807, not -1."),
        ("[release]\nseed = 9223372036854775808",
         "line 2: seed must be a whole number from 0 to 9223372036854775807, not 9223372036854775808."),
        # choices
        ('other = "kep"', "line 1: other must be one of 'keep', 'drop', not 'kep'. Did you mean 'keep'?"),
        ('[columns.a]\nrole = "id"', f"line 2: role of column 'a' must be one of {ROLES}, not 'id'."),
        ("[columns.a]\nrole = ['other']", f"line 2: role of column 'a' must be one of {ROLES}, not a list."),
        ("[columns.a]", f"line 1: role of column 'a' is missing. Choose one of {ROLES}."),
        (AGE + 'type = "number"', "line 3: type of column 'age' must be one of 'numeric', 'categorical', 'date', "
         "not 'number'. Did you mean 'numeric'?"),
        ('[engine]\nname = "cloud"', "line 2: engine must be one of 'auto', 'memory', 'disk', 'spark', not 'cloud'."),
        ('[release]\nform = "label"',
         "line 2: form must be one of 'labels', 'bounds', 'mean', 'median', 'statistics', not 'label'. "
         "Did you mean 'labels'?"),
        ("[release]\nkeep_order = 1", "line 2: keep_order must be true or false, not 1."),
        ('[method]\nname = ""', "line 2: method must be a name, not ''."),
        # tables and lists
        ('method = "hilbert"', "line 1: method must be a table, not 'hilbert'. Write [method] and its keys below."),
        ("columns = 3", "line 1: columns must be a table, not 3. Write [columns] and its keys below."),
        ('[columns]\nage = "other"',
         "line 2: columns.age must be a table, not 'other'. Write [columns.age] and its keys below."),
        ('accept_linkable = "note"', "line 1: accept_linkable must be a list of strings, not 'note'."),
        ("accept_linkable = [\n  1,\n]", "line 1: accept_linkable must be a list of strings, not a list."),
        # input
        ('[input]\nseparator = ";;"', "line 2: separator must be one ASCII character other than a quotation mark or a "
         "line break, not ';;'."),
        ("[input]\nseparator = '\"'", "line 2: separator must be one ASCII character other than a quotation mark or a "
         "line break, not '\"'."),
        ('[input]\nseparator = "§"', "line 2: separator must be one ASCII character other than a quotation mark or a "
         "line break, not '§'."),
        ('[input]\ndecimal = ";"', "line 2: decimal must be one of '.', ',', not ';'."),
        ('[input]\nnulls = []\ndecimal = ","',
         "line 3: decimal is ',' and so is the separator. Set the two to different characters."),
        ('[input]\nseparator = "."',
         "line 2: separator is '.' and so is the decimal. Set the two to different characters."),
        ('[input]\nencoding = "latin-99"', "line 2: encoding must be an encoding that Python knows, such as \"utf-8\" "
         "or \"cp1252\", not 'latin-99'."),
        ('[input]\nencoding = "base64"', "line 2: encoding must be an encoding that Python knows, such as \"utf-8\" "
         "or \"cp1252\", not 'base64'."),
        ("[input]\nencoding = 8",
         'line 2: encoding must be an encoding that Python knows, such as "utf-8" or "cp1252", not 8.'),
        ('[input]\nnulls = "NA"', "line 2: nulls must be a list of strings, not 'NA'."),
        ('[input]\ndate_format = "YYYY-MM-DD"', "line 2: date_format must be made of the directives of strptime, such "
         "as \"%d.%m.%Y\", not 'YYYY-MM-DD'."),
        ('[input]\ndate_format = "100%%Y"', "line 2: date_format must be made of the directives of strptime, such "
         "as \"%d.%m.%Y\", not '100%%Y'."),
        ('[input]\ndate_format = "%Y-%q"', "line 2: date_format must be made of the directives of strptime, such "
         "as \"%d.%m.%Y\", not '%Y-%q'."),
        ('[input]\nsheet = ""', "line 2: sheet must be a name, not ''."),
        # columns
        (AGE + "round = 0", "line 3: round of column 'age' must be a finite number above 0, not 0."),
        (AGE + "round = nan", "line 3: round of column 'age' must be a finite number above 0, not nan."),
        (AGE + "round = true", "line 3: round of column 'age' must be a finite number above 0, not true."),
        (AGE + "weight = inf", "line 3: weight of column 'age' must be a finite number above 0, not inf."),
        (AGE + f"weight = 1{'0' * 400}",
         "line 3: weight of column 'age' must be a finite number above 0, not a number of very many digits."),
        (AGE + 'weight = "2"', "line 3: weight of column 'age' must be a finite number above 0, not '2'."),
        ('[columns.a]\nweight = 1.0\nrole = "other"', "line 2: weight of column 'a' is only for quasi-identifiers. "
         "Remove it, or change the role."),
        ('[columns.a]\nrole = "decide"\n\ntype = "date"', "line 4: type of column 'a' is only for quasi-identifiers. "
         "Remove it, or change the role."),
        (AGE + "taxonomy = 5", "line 3: taxonomy of column 'age' must be the path of a file, \"flat\" or a table, "
         "not 5."),
        (AGE + 'taxonomy = ""', "line 3: taxonomy of column 'age' must be the path of a file, \"flat\" or a table, "
         "not ''."),
        (AGE + "taxonomy = {}", "line 3: taxonomy of column 'age' must have exactly one of the keys intervals, "
         "calendar, prefix and ready."),
        (AGE + "taxonomy = { intervals = [5], prefix = [1] }", "line 3: taxonomy of column 'age' must have exactly one "
         "of the keys intervals, calendar, prefix and ready."),
        (AGE + "taxonomy = { intervals = [10, 5] }",
         f"line 3: taxonomy.intervals of column 'age' {WIDTHS}, not a list."),
        (AGE + "taxonomy = { intervals = [] }", f"line 3: taxonomy.intervals of column 'age' {WIDTHS}, not a list."),
        (AGE + "taxonomy.intervals = [inf]", f"line 3: taxonomy.intervals of column 'age' {WIDTHS}, not a list."),
        (AGE + "[columns.age.taxonomy]\nintervals = 5",
         f"line 4: taxonomy.intervals of column 'age' {WIDTHS}, not 5."),
        (AGE + "taxonomy = { prefix = [0] }",
         "line 3: taxonomy.prefix of column 'age' must be a list of whole numbers of at least 1, not a list."),
        (AGE + "taxonomy = { prefix = [1.0] }",
         "line 3: taxonomy.prefix of column 'age' must be a list of whole numbers of at least 1, not a list."),
        (AGE + "taxonomy = { prefix = [2, 2] }", f"line 3: taxonomy.prefix of column 'age' {SECOND}, not a list."),
        (AGE + 'taxonomy = { calendar = ["year", "month"] }',
         f"line 3: taxonomy.calendar of column 'age' {UNITS}, not a list."),
        (AGE + 'taxonomy = { calendar = ["day"] }', f"line 3: taxonomy.calendar of column 'age' {UNITS}, not a list."),
        (AGE + 'type = "numeric"\ntaxonomy = "age.csv"', "line 3: type of column 'age' is 'numeric', but the taxonomy "
         "makes the column categorical. Remove one of the two."),
        (AGE + 'taxonomy = "flat"\ntype = "date"', "line 4: type of column 'age' is 'date', but the taxonomy makes the "
         "column categorical. Remove one of the two."),
        (AGE + 'type = "date"\ntaxonomy = { prefix = [2] }', "line 3: type of column 'age' is 'date', but the taxonomy "
         "makes the column categorical. Remove one of the two."),
        (AGE + 'type = "categorical"\ntaxonomy = { intervals = [2] }', "line 3: type of column 'age' is 'categorical', "
         "but the taxonomy makes the column numeric. Remove one of the two."),
        (AGE + 'type = "numeric"\ntaxonomy = { calendar = ["year"] }', "line 3: type of column 'age' is 'numeric', but "
         "the taxonomy makes the column date. Remove one of the two."),
        (AGE + 'type = "date"\nround = 5', "line 4: round of column 'age' is only for numbers, but the type is 'date'. "
         "Remove one of the two."),
        (AGE + "round = 5\ntaxonomy = { intervals = [5] }",
         "line 3: round of column 'age' does not go with a taxonomy. Remove one of the two."),
        # the first problem of the file wins
        ('[privacy]\nk = 0\n[columns.a]\nrol = "other"', "line 2: k must be a whole number of at least 1, not 0."),
        ('[columns.a]\nrole = "x"\n[input]\nsheet = 5', f"line 2: role of column 'a' must be one of {ROLES}, not 'x'."),
        # long values are cut
        (f'other = "{"x" * 5000}"', f"line 1: other must be one of 'keep', 'drop', not '{'x' * 40}...'."),
    ],
)  # fmt: skip
def test_a_wrong_policy_names_the_line_and_what_to_do(load: Load, text: str, expected: str) -> None:
    assert message_of(lambda: load(text)) == f"POLICY.toml, {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("other = 'keep'\nk 5", "line 2: not valid TOML: expected '=' after a key in a key/value pair. Write a "),
        ("other = 'keep'\n[columns", "line 2: not valid TOML: "),
        ('\n\nother = "C:\\taxonomies\\q.csv"\n', "line 3: not valid TOML: unescaped '\\' in a string."),
        ("[input]\n[input]\n", "line 2: not valid TOML: "),
        ("other = \n", "line 1: not valid TOML: the key other has no value. Write one, or remove the line."),
        ("other = 'keep'\nnulls = [\n", "line 2: not valid TOML: "),
    ],
)
def test_a_syntax_error_names_the_line(load: Load, text: str, expected: str) -> None:
    message = message_of(lambda: load(text))
    assert message.startswith(f"POLICY.toml, {expected}")
    assert message.endswith(".")
    assert len(message) < 200


def test_a_number_beyond_the_parser_is_an_error(load: Load) -> None:
    message = message_of(lambda: load(f"[privacy]\nk = 1{'0' * 6000}"))
    assert message == "POLICY.toml: a number has too many digits. Shorten it."


def test_nesting_beyond_the_parser_is_an_error(load: Load) -> None:
    message = message_of(lambda: load("x = " + "[" * 20_000 + "]" * 20_000))
    assert message.startswith("POLICY.toml")
    assert "nested too deeply" in message


def test_a_missing_policy_file_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    message = message_of(lambda: Policy.load(path), InputError)
    assert message == f"the policy {path} cannot be read: no such file or directory. Check the path."


def test_a_directory_is_not_a_policy_file(tmp_path: Path) -> None:
    message = message_of(lambda: Policy.load(tmp_path), InputError)
    assert message == f"the policy {tmp_path} cannot be read: is a directory. Check the path."


def test_a_policy_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'other = "drop"\n[columns."stra\xdfe"]\n')
    message = message_of(lambda: Policy.load(path), InputError)
    assert message == f"the policy {path} cannot be read: line 2 is not UTF-8. Save it in that encoding."


def as_another_user(action: str, path: Path) -> str:
    """What an action says when a user without rights takes it; root may read and write everything."""
    code = (
        "import os, sys\n"
        "from sfumato.errors import SfumatoError\n"
        "from sfumato.policy import Policy\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        f"try: {action}\n"
        "except SfumatoError as error: print(type(error).__name__, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_without_permission_a_policy_is_neither_read_nor_written(tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    path = tmp_path / "secret.toml"
    path.write_text("")
    path.chmod(0o000)
    expected = f"InputError the policy {path} cannot be read: permission denied. Check the path.\n"
    assert as_another_user("Policy.load(sys.argv[1])", path) == expected
    expected = (
        f"OutputError the policy cannot be written to {path}: permission denied. "
        "Choose another place, or make it writable.\n"
    )
    assert as_another_user("Policy().save(sys.argv[1])", path) == expected


def test_python_meets_the_same_words_without_a_place() -> None:
    wrong: Any = {"age": {"role": "quasi-identifier", "round": -5}}
    assert message_of(lambda: Policy(columns=wrong)) == (
        "round of column 'age' must be a finite number above 0, not -5."
    )
    assert message_of(lambda: Policy(privacy={"k": 2.5})) == (  # type: ignore[arg-type]
        "k must be a whole number of at least 1, not 2.5."
    )
    assert message_of(lambda: Policy(colums={})) == (  # type: ignore[call-arg]
        "unknown key 'colums'. Did you mean 'columns'?"
    )
    assert message_of(lambda: Policy(columns={3: ColumnSettings(role="other")})) == (  # type: ignore[dict-item]
        "the name of a column must be text that UTF-8 can hold, not 3."
    )
    assert message_of(lambda: Policy(base=3)) == (  # type: ignore[arg-type]
        "base must be the path of a directory, not 3."
    )
    assert message_of(lambda: Policy.from_dict({None: 1})) == (  # type: ignore[dict-item]
        f"unknown key 'None'. Available: {TOP}."
    )
    assert message_of(lambda: ColumnSettings(role="quasi-identifier", round=np.float64(-2.5))) == (
        "round must be a finite number above 0, not -2.5."
    )
    assert message_of(lambda: Policy.from_dict({"base": "/tmp"})).startswith("unknown key 'base'.")


def test_parts_made_in_python_are_checked_at_once() -> None:
    assert message_of(lambda: ColumnSettings(role="sensitve")) == (  # type: ignore[arg-type]
        f"role must be one of {ROLES}, not 'sensitve'. Did you mean 'sensitive'?"
    )
    assert message_of(lambda: ColumnSettings(**{})) == (f"role is missing. Choose one of {ROLES}.")
    assert message_of(lambda: ColumnSettings(role="other", weight=2.0)) == (
        "weight is only for quasi-identifiers. Remove it, or change the role."
    )
    assert message_of(Grouping) == (
        "the table must have exactly one of the keys intervals, calendar, prefix and ready."
    )
    assert message_of(lambda: PrivacySettings(k=True)) == "k must be a whole number of at least 1, not true."
    assert message_of(lambda: ColumnSettings(role="quasi-identifier", taxonomy={"prefix": [0]})) == (  # type: ignore[arg-type]
        "taxonomy.prefix must be a list of whole numbers of at least 1, not a list."
    )


section_names = ["other", "accept_linkable", "input", "columns", "privacy", "method", "engine", "release"]
any_keys = st.sampled_from(
    [*section_names, "role", "type", "round", "taxonomy", "intervals", "k", "name", "seed", "nulls"]
)
any_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["flat", "keep"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_keys | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(section_names), any_values, max_size=4))
@settings(max_examples=examples(8.5), deadline=None)
def test_whatever_is_wrong_is_a_policy_error_of_one_short_line(data: dict[str, Any]) -> None:
    message = ""
    try:
        policy = Policy.from_dict(data)
        assert Policy.from_dict(policy.to_dict()) == policy
    except PolicyError as error:
        message = str(error)
    assert len(message) < 400
    assert len(message.splitlines()) <= 1


# Complete, and fitting the table


def test_a_complete_policy_passes(load: Load) -> None:
    load(WHOLE_EXAMPLE).check_complete()


def test_columns_still_to_decide_are_refused_with_their_lines(load: Load) -> None:
    policy = load('[columns.a]\nrole = "decide"\n[columns.b]\nrole = "other"\n\n[columns."c d"]\nrole = "decide"\n')
    assert message_of(policy.check_complete) == (
        "POLICY.toml: the role is still to decide for 'a' (line 2), 'c d' (line 7). "
        "Choose one of 'identifier', 'drop', 'pseudonym', 'quasi-identifier', 'sensitive', 'other'."
    )
    in_python = Policy(columns={"a": ColumnSettings(role="decide")})
    assert message_of(in_python.check_complete).startswith("the role is still to decide for 'a'. Choose")


def test_a_policy_without_k_is_not_complete(load: Load) -> None:
    assert message_of(load(AGE).check_complete) == (
        "POLICY.toml: k is absent, so nothing is asked for. Set k; in a policy file, under [privacy]."
    )


def test_a_policy_without_quasi_identifier_is_not_complete() -> None:
    policy = Policy(columns={"a": ColumnSettings(role="sensitive")}, privacy=PrivacySettings(k=2))
    assert message_of(policy.check_complete) == (
        "no column is a quasi-identifier. Name the columns by which somebody could be recognised."
    )


def test_a_column_that_the_table_lacks_is_refused(load: Load) -> None:
    policy = load('other = "drop"\n\n[columns.agee]\nrole = "other"\n')
    assert message_of(lambda: policy.check_columns(["age", "sex"])) == (
        "POLICY.toml, line 3 names the column 'agee', which the table does not have. "
        "Did you mean 'age'? Available: 'age', 'sex'."
    )
    in_python = Policy(columns={"x": ColumnSettings(role="other")})
    assert message_of(lambda: in_python.check_columns(["age"])) == (
        "the policy names the column 'x', which the table does not have. Available: 'age'."
    )


def test_a_linkable_column_that_the_table_lacks_is_refused(load: Load) -> None:
    policy = load('other = "keep"\naccept_linkable = ["age", "x"]')
    assert message_of(lambda: policy.check_columns(["age"])) == (
        "POLICY.toml, line 2: accept_linkable names the column 'x', which the table does not have. Available: 'age'."
    )


def test_a_table_column_without_a_role_needs_a_decision(load: Load) -> None:
    policy = load(AGE)
    names = ["age", *(f"c{number}" for number in range(22))]
    listed = ", ".join(f"'c{number}'" for number in range(20))
    assert message_of(lambda: policy.check_columns(names)) == (
        f"POLICY.toml: no role is given for {listed} and 2 more. Give each a role, or say what happens to columns "
        'without one: other = "keep" or other = "drop".'
    )
    policy.check_columns(["age"])
    merge_flags(policy, other="keep").check_columns(names)
    merge_flags(policy, other="drop").check_columns(names)


# Saving


def test_a_saved_policy_is_the_same_when_loaded(load: Load, tmp_path: Path) -> None:
    policy = load(WHOLE_EXAMPLE)
    policy.save(tmp_path / "again.toml")
    again = Policy.load(tmp_path / "again.toml")
    assert again == policy
    assert again.to_dict() == policy.to_dict() == tomllib.loads(WHOLE_EXAMPLE)


def test_a_policy_saved_elsewhere_leads_to_the_same_taxonomies(load: Load, tmp_path: Path) -> None:
    policy = load(WHOLE_EXAMPLE)
    elsewhere = tmp_path / "a" / "b"
    elsewhere.mkdir(parents=True)
    policy.save(elsewhere / "p.toml")
    again = Policy.load(elsewhere / "p.toml")
    assert again.columns["country"].taxonomy == "../../taxonomies/country.csv"
    assert again == policy
    assert policy.columns["country"].taxonomy == "taxonomies/country.csv"


def test_a_taxonomy_file_named_flat_stays_a_file(tmp_path: Path) -> None:
    (tmp_path / "taxonomies").mkdir()
    policy = Policy.from_dict(
        {"columns": {"a": {"role": "quasi-identifier", "taxonomy": "taxonomies/flat"}}}, base=tmp_path
    )
    policy.save(tmp_path / "taxonomies" / "p.toml")
    again = Policy.load(tmp_path / "taxonomies" / "p.toml")
    assert again.columns["a"].taxonomy == "./flat"
    assert again == policy


def test_a_policy_saved_through_a_link_leads_to_the_same_taxonomies(tmp_path: Path) -> None:
    deep = tmp_path / "real" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep, target_is_directory=True)
    (tmp_path / "country.csv").write_text("a,*\n")
    policy = Policy.from_dict(
        {"columns": {"a": {"role": "quasi-identifier", "taxonomy": "country.csv"}}}, base=tmp_path
    )
    policy.save(tmp_path / "link" / "p.toml")
    again = Policy.load(tmp_path / "link" / "p.toml")
    assert again.taxonomy_path("a").samefile(tmp_path / "country.csv")
    assert again == policy


def test_absolute_taxonomy_paths_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    absolute = (tmp_path / "country.csv").as_posix()
    policy = Policy(columns={"a": ColumnSettings(role="quasi-identifier", taxonomy=absolute)})
    policy.save(tmp_path / "a" / "p.toml")
    assert Policy.load(tmp_path / "a" / "p.toml").columns["a"].taxonomy == absolute


def test_where_no_relative_path_exists_the_taxonomy_path_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, start: str) -> str:
        raise ValueError("path is on mount 'C:', start on mount 'D:'")

    (tmp_path / "a").mkdir()
    policy = Policy.from_dict({"columns": {"a": {"role": "quasi-identifier", "taxonomy": "c.csv"}}}, base=tmp_path)
    monkeypatch.setattr(os.path, "relpath", refuse)
    policy.save(tmp_path / "a" / "p.toml")
    assert Policy.load(tmp_path / "a" / "p.toml").columns["a"].taxonomy == (tmp_path / "c.csv").as_posix()


def test_policies_differ_when_their_taxonomies_are_other_files(tmp_path: Path) -> None:
    data = {"columns": {"a": {"role": "quasi-identifier", "taxonomy": "c.csv"}}}
    assert Policy.from_dict(data, tmp_path / "x") != Policy.from_dict(data, tmp_path / "y")
    assert Policy.from_dict(data, tmp_path / "x") == Policy.from_dict(data, tmp_path / "x" / "." / "z" / "..")
    assert Policy() != "a policy"


def test_a_policy_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    path = tmp_path / "none" / "p.toml"
    assert message_of(lambda: Policy().save(path), OutputError) == (
        f"the policy cannot be written to {path}: no such file or directory. Choose another place, or make it writable."
    )


def test_a_name_that_no_policy_file_can_hold_is_refused(tmp_path: Path) -> None:
    assert message_of(lambda: Policy(columns={"\ud800": ColumnSettings(role="other")})) == (
        "the name of a column must be text that UTF-8 can hold, not '\\ud800'."
    )
    policy = Policy(columns={"a": ColumnSettings(role="quasi-identifier", taxonomy=os.fsdecode(b"stra\xdfe.csv"))})
    assert message_of(lambda: policy.save(tmp_path / "p.toml")) == (
        "the policy has text that UTF-8 cannot hold, such as a file name in another encoding. Rename the file."
    )
    assert not (tmp_path / "p.toml").exists()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(bool)
positive = st.integers(1, 10**20) | st.floats(1e-300, 1e300)
file_names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


def ascending(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(elements, min_size=1, max_size=4, unique=True).map(sorted)


units = ["week", "month", "quarter", "year", "decade"]
files_and_words = st.fixed_dictionaries({"taxonomy": file_names | st.just("flat")})
prefixes = st.builds(lambda lengths: {"taxonomy": {"prefix": lengths}}, ascending(st.integers(1, 50)))
categorical = st.tuples(
    files_and_words | prefixes, st.fixed_dictionaries({}, optional={"type": st.just("categorical")})
).map(lambda parts: {**parts[0], **parts[1]})
intervals = st.fixed_dictionaries(
    {"taxonomy": st.builds(lambda widths: {"intervals": widths}, ascending(positive))},
    optional={"type": st.just("numeric")},
)
calendars = st.fixed_dictionaries(
    {
        "taxonomy": st.builds(
            lambda chosen: {"calendar": sorted(chosen, key=units.index)},
            st.lists(st.sampled_from(units), min_size=1, unique=True),
        )
    },
    optional={"type": st.just("date")},
)
rounded = st.fixed_dictionaries({"round": positive}, optional={"type": st.just("numeric")})
typed = st.fixed_dictionaries({}, optional={"type": st.sampled_from(["numeric", "categorical", "date"])})
described_columns = st.tuples(
    categorical | intervals | calendars | rounded | typed, st.fixed_dictionaries({}, optional={"weight": positive})
).map(lambda parts: {"role": "quasi-identifier", **parts[0], **parts[1]})
plain_columns = st.sampled_from(
    ["identifier", "drop", "pseudonym", "sensitive", "other", "decide", "quasi-identifier"]
).map(lambda role: {"role": role})
inputs = st.fixed_dictionaries(
    {},
    optional={
        "separator": st.sampled_from([";", "\t", "|", ","]),
        "encoding": st.sampled_from(["cp1252", "utf-8", "utf-16"]),
        "decimal": st.just("."),
        "nulls": st.lists(texts, max_size=3),
        "date_format": st.sampled_from(["%d.%m.%Y", "%Y%m%d", "%%%y"]),
        "sheet": names,
    },
)
requirements = st.fixed_dictionaries(
    {"attribute": names, "kind": st.sampled_from(["frequency", "distinct"]), "l": st.integers(1, 10**25)}
)
contents = st.fixed_dictionaries(
    {"columns": st.dictionaries(texts, plain_columns | described_columns, max_size=5)},
    optional={
        "other": st.sampled_from(["keep", "drop"]),
        "accept_linkable": st.lists(texts, max_size=3),
        "input": inputs,
        "privacy": st.fixed_dictionaries(
            {}, optional={"k": st.integers(1, 10**25), "sensitive": st.lists(requirements, max_size=3)}
        ),
        "method": st.fixed_dictionaries({}, optional={"name": names}),
        "engine": st.fixed_dictionaries({}, optional={"name": st.sampled_from(["auto", "memory"])}),
        "release": st.fixed_dictionaries(
            {},
            optional={
                "seed": st.integers(0, 2**63 - 1),
                "keep_order": st.booleans(),
                "form": st.sampled_from(["labels", "bounds"]),
            },
        ),
    },
)


@given(contents, st.sampled_from([".", "sub", "sub/deeper", "taxonomies"]))
@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_policy_saved_and_loaded_is_equal(tmp_path: Path, data: dict[str, Any], directory: str) -> None:
    policy = Policy.from_dict(data, base=tmp_path)
    assert Policy.from_dict(policy.to_dict(), base=tmp_path) == policy
    file = tmp_path / directory / "p.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    policy.save(file)
    again = Policy.load(file)
    assert again == policy
    assert list(again.columns) == list(policy.columns)
    for name, column in policy.columns.items():
        if column.taxonomy_file is not None:
            ours, theirs = policy.taxonomy_path(name), again.taxonomy_path(name)
            assert os.path.normpath(theirs) == os.path.normpath(ours)
    assert merge_flags(policy) == policy


# Flags over the policy


def test_flags_alone_make_a_policy() -> None:
    policy = merge_flags(
        quasi_identifiers=["age", "zip"],
        sensitive="diagnosis",
        identifiers=("name",),
        other="drop",
        k=5,
        taxonomy={"zip": "zip.csv"},
        method="hilbert",
        engine="memory",
        seed=3,
        keep_order=True,
        form="bounds",
        accept_linkable="diagnosis",
        input={"separator": ";"},
        round={"age": 5},
        weight={"age": 2},
        type={"age": "numeric"},
    )
    assert policy.to_dict() == {
        "other": "drop",
        "accept_linkable": ["diagnosis"],
        "input": {"separator": ";"},
        "columns": {
            "age": {"role": "quasi-identifier", "type": "numeric", "round": 5, "weight": 2.0},
            "zip": {"role": "quasi-identifier", "taxonomy": "zip.csv"},
            "diagnosis": {"role": "sensitive"},
            "name": {"role": "identifier"},
        },
        "privacy": {"k": 5},
        "method": {"name": "hilbert"},
        "engine": {"name": "memory"},
        "release": {"seed": 3, "keep_order": True, "form": "bounds"},
    }


def test_without_flags_the_policy_stays_as_it_is(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    merged = merge_flags(policy)
    assert merged == policy
    assert merged.base == policy.base
    assert merge_flags() == Policy()


def test_l_is_frequency_diversity_of_the_one_sensitive_column(load: Load) -> None:
    asked = {"attribute": "diagnosis", "kind": "frequency", "l": 4}
    policy = merge_flags(quasi_identifiers=["age"], sensitive="diagnosis", l=4)
    assert policy.to_dict()["privacy"] == {"sensitive": [asked]}
    assert policy.k == 1
    policy.check_complete()
    assert merge_flags(load(WHOLE_EXAMPLE), l=4).to_dict()["privacy"] == {"k": 10, "sensitive": [asked]}
    other = {"attribute": "diagnosis", "kind": "distinct", "l": 2}
    before = merge_flags(Policy(privacy={"sensitive": [{**asked, "l": 9}, other]}), sensitive="diagnosis")  # type: ignore[arg-type]
    assert merge_flags(before, l=4).to_dict()["privacy"] == {"sensitive": [other, asked]}
    assert message_of(lambda: merge_flags(quasi_identifiers=["age"], sensitive="s", l=0)).endswith(
        "l must be a whole number of at least 1, not 0."
    )


@pytest.mark.parametrize("sensitive, count", [([], "no column is"), (["a", "b"], "2 columns are")])
def test_l_needs_exactly_one_sensitive_column(sensitive: list[str], count: str) -> None:
    message = message_of(lambda: merge_flags(quasi_identifiers=["q"], sensitive=sensitive, l=2))
    assert message.startswith(f"l is given, but {count} sensitive. Name one sensitive column, or ")


def test_requirement_for_a_column_that_is_not_sensitive_is_refused(load: Load) -> None:
    text = '[columns.a]\nrole = "quasi-identifier"\n[[privacy.sensitive]]\nkind = "distinct"\nl = 2\nattribute = "a"'
    assert message_of(lambda: load(text).check_complete()) == (
        "POLICY.toml, line 6: a requirement is named for the column 'a', which is not sensitive. Give it the role "
        "sensitive, or remove the requirement."
    )


def test_flags_override_the_file(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    merged = merge_flags(
        policy, other="keep", k=3, method="hilbert-fast", engine="auto", seed=0, keep_order=False, form="labels"
    )
    assert merged.other == "keep"
    assert merged.privacy.k == 3
    assert merged.method.name == "hilbert-fast"
    assert merged.engine.name == "auto"
    assert merged.release == ReleaseSettings(seed=0)
    assert merged.columns == policy.columns
    assert merged.input == policy.input
    assert policy.privacy.k == 10


def test_input_flags_replace_single_keys_of_the_file(load: Load) -> None:
    merged = merge_flags(load(WHOLE_EXAMPLE), input={"separator": "\t", "nulls": ["-"]})
    assert (merged.input.separator, merged.input.nulls, merged.input.decimal) == ("\t", ("-",), ",")


def test_linkable_columns_of_flags_are_added_to_those_of_the_file(load: Load) -> None:
    merged = merge_flags(load(WHOLE_EXAMPLE), accept_linkable=["diagnosis", "note"])
    assert merged.accept_linkable == ("note", "diagnosis")


def test_a_role_flag_changes_the_role_and_leaves_what_no_longer_fits(load: Load) -> None:
    merged = merge_flags(load(WHOLE_EXAMPLE), sensitive=["age"], quasi_identifiers=["country", "note"])
    assert merged.columns["age"] == ColumnSettings(role="sensitive")
    assert merged.columns["note"] == ColumnSettings(role="quasi-identifier")
    assert merged.columns["country"] == ColumnSettings(
        role="quasi-identifier", taxonomy="taxonomies/country.csv", weight=2.0
    )


def test_a_role_flag_decides_a_column_left_to_decide(load: Load) -> None:
    policy = load('[columns.a]\nrole = "decide"\n[privacy]\nk = 2')
    merge_flags(policy, quasi_identifiers=["a"]).check_complete()


def test_a_column_in_two_role_flags_is_refused() -> None:
    assert message_of(lambda: merge_flags(quasi_identifiers=["a", "b", "b"], sensitive=["b"])) == (
        "the column 'b' is in two roles, 'quasi-identifier' and 'sensitive'. Name it in one of them."
    )
    assert message_of(lambda: merge_flags(identifiers=["a"], other=["a"])) == (
        "the column 'a' is in two roles, 'identifier' and 'other'. Name it in one of them."
    )


def test_other_as_a_list_keeps_these_columns_and_asks_for_all_other_roles(load: Load) -> None:
    merged = merge_flags(load(AGE + '[columns.x]\nrole = "identifier"'), other=["note", "x"])
    assert merged.others == ("note", "x")
    assert merged.other is None
    merged.check_columns(["age", "note", "x"])
    assert "no role is given for 'city'" in message_of(lambda: merged.check_columns(["age", "note", "x", "city"]))
    assert merge_flags(Policy(other="drop"), other=["note"]).other is None


def test_other_as_a_word_that_is_no_choice_is_refused() -> None:
    assert message_of(lambda: merge_flags(other="a,b")) == "other must be one of 'keep', 'drop', not 'a,b'."


@pytest.mark.parametrize("key", ["taxonomy", "round", "weight", "type"])
def test_a_description_of_a_column_that_is_no_quasi_identifier_is_refused(key: str) -> None:
    flags: dict[str, Any] = {"identifiers": "a", key: {"a": "numeric"}}
    also = " or sensitive" if key == "taxonomy" else ""
    assert message_of(lambda: merge_flags(**flags)) == (
        f"{key} is given for the column 'a', which is not a quasi-identifier{also}. "
        f"Name it among the quasi-identifiers, or leave out its {key}."
    )


def test_a_taxonomy_flag_starts_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "data").mkdir()
    path = tmp_path / "policies" / "p.toml"
    path.write_text(AGE + '[columns.zip]\nrole = "quasi-identifier"\ntaxonomy = "zip.csv"\n')
    monkeypatch.chdir(tmp_path / "data")
    merged = merge_flags(Policy.load(path), taxonomy={"age": "age.csv"})
    assert merged.columns["age"].taxonomy == "../data/age.csv"
    assert merged.taxonomy_path("age").resolve() == tmp_path / "data" / "age.csv"
    assert merged.taxonomy_path("zip") == tmp_path / "policies" / "zip.csv"
    alone = merge_flags(quasi_identifiers="age", taxonomy={"age": Path("age.csv")})
    assert alone.taxonomy_path("age") == tmp_path / "data" / "age.csv"


def test_taxonomy_flags_take_words_rules_and_path_objects(load: Load, tmp_path: Path) -> None:
    policy = load("")
    merged = merge_flags(
        policy,
        quasi_identifiers=["a", "b", "c", "d"],
        taxonomy={"a": "flat", "b": {"prefix": [2]}, "c": Path("flat"), "d": Grouping(intervals=(5, 10))},
    )
    assert [column.taxonomy for column in merged.columns.values()] == [
        "flat",
        Grouping(prefix=(2,)),
        "./flat",
        Grouping(intervals=(5, 10)),
    ]
    assert merged.taxonomy_path("c") == tmp_path / "flat"


def test_a_wrong_flag_is_not_blamed_on_the_file(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    assert message_of(lambda: merge_flags(policy, k=0)) == "k must be a whole number of at least 1, not 0."
    assert message_of(lambda: merge_flags(policy, round={"age": -1})) == (
        "round of column 'age' must be a finite number above 0, not -1."
    )
    assert message_of(lambda: merge_flags(policy, input={"seperator": ","})) == (
        "unknown key 'seperator' in [input]. Did you mean 'separator'?"
    )
    added = merge_flags(policy, sensitive="ghost", accept_linkable="spirit")
    named = list(policy.columns)
    assert message_of(lambda: added.check_columns(named)).startswith("the policy names the column 'ghost', ")
    assert message_of(lambda: added.check_columns([*named, "ghost"])).startswith("accept_linkable names the column ")


def test_a_flag_that_contradicts_the_file_names_the_line_of_the_file(load: Load) -> None:
    policy = load(WHOLE_EXAMPLE)
    assert message_of(lambda: merge_flags(policy, taxonomy={"age": "age.csv"})) == (
        "POLICY.toml, line 16: type of column 'age' is 'numeric', but the taxonomy makes the column categorical. "
        "Remove one of the two."
    )


def test_the_lines_of_the_file_stay_known_under_flags(load: Load) -> None:
    policy = load('[columns.a]\nrole = "decide"\n[columns.b]\nrole = "other"')
    merged = merge_flags(policy, identifiers="b", k=2)
    assert "'a' (line 2)" in message_of(merged.check_complete)
    assert message_of(lambda: merged.check_columns(["a"])).startswith("POLICY.toml, line 3 names the column 'b'")


# Lines of keys


def test_keys_are_found_wherever_toml_lets_them_stand() -> None:
    text = (
        '''\
# [not.a.table]
top = 1   # x = 2
"quoted key" = """
[inside]
a = "]" \\"""
""""
'it''s' = 3
'''.replace("'it''s'", "'it is'")
        + """\
a . "b.c" .'d' = { x = 1, y = [2, { z = 3 }] }
list = [ # [
  "]", ']', '''
]''''',
  [1, 2], # ]
]

[ table . "in ner" ]
key = "#"
[[array]]
x = 1
[array.sub]
y = 1
  [[array]]
  x = 2
  [[array.deep]]
  [[array.deep]]
  z = 1
[array.sub]
"\\u0041" = 1
[super.table]
[super]
late = 2024-01-01T00:00:00Z"""
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("top",): 2,
        ("quoted key",): 3,
        ("it is",): 7,
        ("a",): 8,
        ("a", "b.c"): 8,
        ("a", "b.c", "d"): 8,
        ("list",): 9,
        ("table",): 15,
        ("table", "in ner"): 15,
        ("table", "in ner", "key"): 16,
        ("array",): 17,
        ("array", 0): 17,
        ("array", 0, "x"): 18,
        ("array", 0, "sub"): 19,
        ("array", 0, "sub", "y"): 20,
        ("array", 1): 21,
        ("array", 1, "x"): 22,
        ("array", 1, "deep"): 23,
        ("array", 1, "deep", 0): 23,
        ("array", 1, "deep", 1): 24,
        ("array", 1, "deep", 1, "z"): 25,
        ("array", 1, "sub"): 26,
        ("array", 1, "sub", "A"): 27,
        ("super",): 29,
        ("super", "table"): 28,
        ("super", "late"): 30,
    }


values = st.sampled_from(
    [
        "1",
        '"# [x]"',
        "'\\'",
        '"\\""',
        "[1, 2]",
        "[\n# ]\n[\n'a = 1'\n],\n]",
        "{ a = 1, b = [{ c = '}' }] }",
        '"""\n[x]\ny = 1\n"""',
        '"""a""b"""""',
        "'''\n'' ]\n'''",
        '""',
        '""""""',
        "2024-01-01 00:00:00",
        "-inf",
    ]
)
key_parts = st.sampled_from(["bare", "-", "12"]) | st.text(st.characters(codec="ascii"), max_size=4)


@given(st.lists(st.tuples(st.lists(key_parts, min_size=1, max_size=2), values, st.booleans()), max_size=8))
@settings(deadline=None)
def test_every_key_is_found_on_its_line(statements: list[tuple[list[str], str, bool]]) -> None:
    text, expected = "", {}
    for number, (parts, value, opens_table) in enumerate(statements):
        quoted = [tomli_w.dumps({part: 0}).removesuffix(" = 0\n") for part in parts]
        line = text.count("\n") + 1
        if opens_table:
            text += f"[t{number}.{'.'.join(quoted)}] # [no]\n"
            expected[(f"t{number}", *parts)] = line
            table: tuple[str, ...] = (f"t{number}", *parts)
        else:
            text += f"\n[t{number}]\n{' . '.join(quoted)} = {value} # = [\n"
            table = (f"t{number}",)
            expected[(*table, *parts)] = line + 2
    tomllib.loads(text)
    found = key_lines(text)
    assert {path: found.get(path) for path in expected} == expected
