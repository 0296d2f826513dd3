"""The keyword arguments that can be laid over a policy: what a type checker and a caller see of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.not_quick
def test_a_type_checker_refuses_what_merge_flags_would(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    # The type checker reads the policy only: the whole package would take it half a minute.
    package = Path(sfumato.policy.__file__).parent
    options = ["--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--follow-imports=skip"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file), *map(str, package.glob("*.py"))],
        env={**os.environ, "MYPYPATH": str(package.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = [
        line.partition("snippet.py:")[2]
        for line in done.stdout.splitlines()
        if "snippet.py" in line and "error:" in line
    ]
    assert [int(line.partition(":")[0]) for line in refused] == [6, 7, 8, 9], done.stdout + done.stderr
    assert '"max_suppresed"' in refused[0]


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("max_suppresed", "unexpected keyword argument 'max_suppresed'. Did you mean 'max_suppressed'?"),
        ("zzz", "unexpected keyword argument 'zzz'. Available: accept_linkable, boxes, "),
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
