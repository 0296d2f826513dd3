"""The flags that make up a policy. A command names those that it takes; each means the same in every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sfumato.cli import column_flags, flags, writing_flags
from sfumato.cli.flag_values import by_column, column_names, derivations, forms, one_k, tokens_by_column

Result = TypeVar("Result")

# The declaration of each flag, by the names that ``merge_flags`` gives them.
DECLARED: dict[str, Any] = {
    "quasi_identifiers": column_flags.QuasiIdentifiers,
    "sensitive": column_flags.Sensitive,
    "identifiers": column_flags.Identifiers,
    "drop": column_flags.Drop,
    "pseudonyms": column_flags.Pseudonyms,
    "pseudonym_key": column_flags.PseudonymKey,
    "other": column_flags.Other,
    "taxonomy": column_flags.Taxonomies,
    "type": column_flags.Types,
    "weight": column_flags.Weights,
    "round": column_flags.Rounds,
    "bottom": column_flags.Bottoms,
    "top": column_flags.Tops,
    "finest": column_flags.FinestLevels,
    "coarsest": column_flags.CoarsestLevels,
    "column_nulls": column_flags.ColumnNulls,
    "accept_linkable": column_flags.AcceptLinkable,
    "derive": column_flags.Derivations,
    "k": flags.K,
    "l": flags.L,
    "require": flags.Requires,
    "person": flags.Person,
    "joint": flags.Joint,
    "null_sensitive": flags.NullSensitive,
    "target": flags.Targets,
    "select": flags.Selects,
    "method": flags.MethodName,
    "loss": flags.LossName,
    "effort": flags.EffortLevel,
    "seconds": flags.Seconds,
    "cells": flags.Cells,
    "engine": flags.Engine,
    "memory": flags.Memory,
    "sampled": flags.Sampled,
    "sample_size": flags.SampleSize,
    "sample_alpha": flags.SampleAlpha,
    "sample_tests": flags.SampleTests,
    "frequency_groups": flags.FrequencyGroups,
    "seed": flags.Seed,
    "keep_order": flags.KeepOrder,
    "max_suppressed": flags.MaxSuppressed,
    "suppression_cost": flags.SuppressionCost,
    "form": flags.Forms,
    "boxes": flags.Boxes,
    "formulas": flags.Formulas,
    "release_separator": writing_flags.ReleaseSeparator,
    "release_encoding": writing_flags.ReleaseEncoding,
    "release_decimal": writing_flags.ReleaseDecimal,
    "codebook": writing_flags.Codebook,
    "language": writing_flags.PageLanguage,
    "separator": flags.Separator,
    "encoding": flags.Encoding,
    "decimal": flags.Decimal,
    "thousands": flags.Thousands,
    "nulls": flags.Nulls,
    "date_format": flags.DateFormat,
    "sheet": flags.Sheet,
    "header_row": flags.HeaderRow,
    "layout": flags.Layout,
    "labels": flags.Labels,
    "max_expansion": flags.MaxExpansion,
}
READ_WITH = (
    "separator",
    "encoding",
    "decimal",
    "thousands",
    "nulls",
    "date_format",
    "sheet",
    "header_row",
    "layout",
    "labels",
    "max_expansion",
)
WRITE_WITH = ("formulas", "release_separator", "release_encoding", "release_decimal", "codebook", "language")
EVERY_FLAG = tuple(DECLARED)
DISK_FLAGS = ("memory", "sampled", "sample_size", "sample_alpha", "sample_tests", "frequency_groups")
# Commands that try several policies and make no release.
FLAGS_OF_MANY = tuple(
    name for name in DECLARED if name not in ("k", "l", "method", "cells", "keep_order", *DISK_FLAGS, *WRITE_WITH)
)


def with_flags(*names: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Declare these flags of a policy for a command, in the position of its parameter ``flags``.

    The command receives those that the user gave as the mapping ``flags``, in the form that ``merge_flags`` takes.
    """

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name != "flags":
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
                continue
            for name in names:
                default = False if DECLARED[name].__origin__ is bool else None
                parameters.append(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=DECLARED[name])
                )

        @functools.wraps(command)
        def run(**arguments: Any) -> Result:
            flags_given = policy_flags({name: arguments.pop(name) for name in names})
            return command(**arguments, flags=flags_given)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def policy_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given, in the form that ``merge_flags`` takes."""
    readers: dict[str, Callable[[Any], Any]] = {
        "quasi_identifiers": lambda value: column_names("--quasi-identifiers", value),
        "sensitive": lambda value: column_names("--sensitive", value),
        "identifiers": lambda value: column_names("--identifiers", value),
        "drop": lambda value: column_names("--drop", value),
        "pseudonyms": lambda value: column_names("--pseudonyms", value),
        "other": lambda value: value[0] if value in (["keep"], ["drop"]) else column_names("--other", value),
        "accept_linkable": lambda value: column_names("--accept-linkable", value),
        "derive": derivations,
        "target": lambda value: column_names("--target", value),
        "k": one_k,
        "taxonomy": lambda value: by_column("--taxonomy", "FILE", value, str),
        "type": lambda value: by_column("--type", "TYPE", value, str),
        "weight": lambda value: by_column("--weight", "W", value, _number),
        "round": lambda value: by_column("--round", "STEP", value, _number),
        "form": forms,
        "bottom": lambda value: by_column("--bottom", "N", value, _number),
        "top": lambda value: by_column("--top", "N", value, _number),
        "finest": lambda value: by_column("--finest", "LEVEL", value, _level),
        "coarsest": lambda value: by_column("--coarsest", "LEVEL", value, _level),
        "column_nulls": lambda value: tokens_by_column("--column-null", value),
        "labels": _labels,
        "separator": _separator,
        "release_separator": _separator,
    }
    policy_options: dict[str, Any] = {}
    input_options: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value is False or value == []:
            continue
        meaning = readers[name](value) if name in readers else value
        (input_options if name in READ_WITH else policy_options)[name] = meaning
    return {**policy_options, "input": input_options} if input_options else policy_options


def _separator(text: str) -> str:
    """Read a separator. A tab may be written as in a shell."""
    return "\t" if text in (r"\t", "tab") else text


def _level(text: str) -> int | str:
    """Read a level: a number, or a name."""
    return int(text) if text.isdecimal() else text


def _labels(text: str) -> bool | list[str]:
    """Read on, off, or the names of columns."""
    return text == "on" if text in ("on", "off") else column_names("--labels", [text])


def _number(text: str) -> int | float | None:
    """Read a number. Whole numbers stay whole, so that a step of 5 is exact."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
