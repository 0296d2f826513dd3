"""The keyword arguments that can be laid over a policy: what a type checker and a caller see of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato
import sfumato.policy
from sfumato.errors import InputError, UsageError
from sfumato.policy import Policy, merge_flags

SNIPPET = """\
from pathlib import Path
from sfumato.policy import merge_flags

merge_flags({"privacy": {"k": 2}}, quasi_identifiers=["age"], max_suppressed=0.1, engine="disk")
merge_flags(Path("policy.toml"), l=2)
merge_flags(None, max_suppresed=0.1)
merge_flags(None, k="two")
merge_flags(None, engine="dsik")
merge_flags(3)
"""


ONE_TABLE = ("anonymize", "fit", "audit", "aggregate", "compare", "tradeoff", "evaluate", "bound", "plot", "risk")
TWO_TABLES = ("measure", "report_release", "report_private")


def lines_refused(code: str, tmp_path: Path, *further: Path) -> list[str]:
    """What mypy refuses of some code, line by line. It reads the policy and some further files only: that is quick."""
    pytest.importorskip("mypy")
    file = tmp_path / "snippet.py"
    file.write_text(code)
    package = Path(sfumato.policy.__file__).parent
    options = ["--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--follow-imports=skip"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file), *map(str, (*package.glob("*.py"), *further))],
        env={**os.environ, "MYPYPATH": str(package.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return [
        line.partition("snippet.py:")[2]
        for line in done.stdout.splitlines()
        if "snippet.py" in line and "error:" in line
    ]


@pytest.mark.not_quick
def test_a_type_checker_refuses_what_merge_flags_would(tmp_path: Path) -> None:
    refused = lines_refused(SNIPPET, tmp_path)
    assert [int(line.partition(":")[0]) for line in refused] == [6, 7, 8, 9], refused
    assert '"max_suppresed"' in refused[0]


@pytest.mark.not_quick
def test_a_type_checker_finds_a_misspelt_argument_of_every_public_function(tmp_path: Path) -> None:
    package = Path(sfumato.__file__).parent
    code = ["from sfumato.api import *", "from sfumato.studies.risk import risk"]
    for given, functions in (("1", ONE_TABLE), ("1, 2", TWO_TABLES)):
        code += [f"{name}({given}, quasi_identifiers=['age'], max_suppressed=0.1)" for name in functions]
        code += [f"{name}({given}, max_suppresed=0.1)" for name in functions]
    refused = lines_refused("\n".join(code), tmp_path, package / "api.py", package / "studies" / "risk.py")
    wrong = [number for number, line in enumerate(code, 1) if "suppresed" in line]
    assert [int(line.partition(":")[0]) for line in refused] == wrong, refused


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("max_suppresed", "unexpected keyword argument 'max_suppresed'. Did you mean 'max_suppressed'?"),
        ("zzz", "unexpected keyword argument 'zzz'. Available: accept_linkable, bottom, "),
    ],
)
def test_an_unknown_flag_is_a_type_error_that_names_the_closest(flag: str, said: str) -> None:
    flags: dict[str, Any] = {flag: 1}
    with pytest.raises(TypeError) as refusal:
        merge_flags(None, **flags)
    assert str(refusal.value).startswith(said)


def test_a_policy_may_be_given_in_any_form(tmp_path: Path) -> None:
    held = {"columns": {"age": {"role": "quasi-identifier"}}, "privacy": {"k": 3}}
    policy = Policy.from_dict(held)
    policy.save(file := tmp_path / "policy.toml")
    for given in (policy, held, file, str(file)):
        assert Policy.of(given) == policy
        assert merge_flags(given, k=4) == merge_flags(policy, k=4)
    assert Policy.of(policy) is policy
    assert Policy.of(None) == Policy()


def test_taxonomies_of_a_policy_file_start_from_its_directory(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[columns.a]\nrole = "quasi-identifier"\ntaxonomy = "a.csv"\n')
    assert merge_flags(file, k=2).taxonomy_path("a") == tmp_path / "a.csv"
    assert merge_flags(Policy.load(file).to_dict()).taxonomy_path("a") == Path.cwd() / "a.csv"


def test_anything_else_is_no_policy(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(UsageError, match=r"a policy cannot be a value of type int\. Give a Policy, the path"):
        Policy.of(wrong)
    with pytest.raises(InputError, match="cannot be read"):
        Policy.of(tmp_path / "absent.toml")
