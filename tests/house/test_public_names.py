"""The public names: exactly those listed, each of them there."""

from __future__ import annotations

import inspect

import pytest

import sfumato
from sfumato import errors

EXPECTED = {
    "AuditError", "DataError", "InfeasibleError", "InputError", "Mondrian", "OutputError", "Policy", "PolicyError",
    "Recoding", "Release", "SfumatoError", "SfumatoWarning", "TaxonomyError", "UnmetError", "UsageError", "__version__",
    "aggregate", "anonymize", "anonymize_linked", "apply", "arx_project", "audit", "bound", "codebook", "compare",
    "evaluate", "fit", "generate", "make_key", "mark_run", "measure", "plot", "propose_policy", "report_private",
    "report_release", "risk", "runs", "taxonomy", "tradeoff",
}  # fmt: skip


def test_all_is_what_is_promised_and_sorted() -> None:
    assert set(sfumato.__all__) == EXPECTED
    assert sfumato.__all__ == sorted(sfumato.__all__)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(sfumato, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_a_star_import_brings_exactly_the_public_names() -> None:
    space: dict[str, object] = {}
    exec("from sfumato import *", space)
    assert set(space) - {"__builtins__"} == EXPECTED


def test_dir_shows_exactly_the_public_names() -> None:
    assert set(dir(sfumato)) == EXPECTED


def test_every_error_of_the_tree_is_public() -> None:
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    tree = {name for name, value in classes.items() if issubclass(value, Exception) and not issubclass(value, Warning)}
    assert tree == {name for name in EXPECTED if name.endswith("Error")}
    assert all(getattr(sfumato, name) is getattr(errors, name) for name in tree)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'sfumato' has no attribute 'nothing'"):
        sfumato.nothing  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert sfumato.__version__ == version("sfumato")
