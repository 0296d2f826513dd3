"""Write a recoding as an SQL query: a nested CASE finds the region, and a table lists the labels of every region.

The query uses only SQL that DuckDB and PostgreSQL share, so one text serves both. The names of the user's columns are
quoted, and all other names are the query's own, so no name can be mistaken for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.errors import UsageError
from sfumato.policy import Policy
from sfumato.releases.recoding import Recoding
from sfumato.releases.regions import Regions, is_discrete
from sfumato.releases.rules import check_rules_show_no_more, json_value
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.coding.scaled_integers import MOST_DIGITS

DIALECTS = ("duckdb", "postgresql")
DEEPEST = 200  # levels of nested CASE; both databases have a limit somewhere above
TYPES = {"date": "DATE", "moment": "TIMESTAMP"}


def query_of(recoding: Recoding, dialect: str, table: Sequence[str]) -> str:
    """A SELECT that gives the columns of a release, in the column order of the table that was learnt from."""
    check_dialect(dialect)
    check_rules_show_no_more(recoding.policy)
    for name, column in recoding.policy.columns.items():
        if column.nulls:
            raise UsageError(
                f"the policy has nulls for the column {name!r}, which a query would take for values. Make them null in "
                "the table and learn the rules from that, or use the rules as JSON."
            )
    check_columns_are_stored(recoding.policy)
    if recoding.levels:
        raise UsageError(
            f"rules by {recoding.method} are levels of columns, for which there is no query. Use the rules as JSON, or "
            "learn regions with another method, such as mondrian."
        )
    regions, domains = recoding.regions, recoding.domains
    number = {domain.name: q for q, domain in enumerate(domains)}
    kept = [name for name in recoding.names if name not in number]
    coded = [f"{_coded(domain)} AS q{q}" for q, domain in enumerate(domains)]
    coded += [f"{_name(name)} AS c{index}" for index, name in enumerate(kept)]
    inside = "\n      AND ".join(_inside(domain, f"q{q}") for q, domain in enumerate(domains))
    columns, rows = _shown(recoding)
    selected = []
    for name in recoding.names:
        if name in number:
            q = number[name]
            selected.append(f"CASE WHEN placed.region IS NULL THEN '{WHOLE}' ELSE shown.s{q} END AS {_name(name)}")
            selected += [
                f"shown.{end}{q} AS {_name(f'{name}_{end}')}" for end in ("min", "max") if f"{end}{q}" in columns
            ]
        else:
            selected.append(f"placed.c{kept.index(name)} AS {_name(name)}")
    values = ",\n    ".join(f"({', '.join(row)})" for row in rows)
    # All names and texts of the user are quoted, and we format the numbers.
    return f"""\
-- {len(recoding):,} regions over {len(domains)} quasi-identifiers. Nobody has audited what this gives: a region that
-- had enough records in one table may have one record in another.
WITH coded AS (
  SELECT {_listed(coded, 4)}
  FROM {".".join(map(_name, table))}
), placed AS (
  SELECT coded.*, CASE WHEN
      {inside}
    THEN
{_case(regions)}
    END AS region
  FROM coded
), shown (region, {", ".join(columns)}) AS (VALUES
    {values}
)
SELECT {_listed(selected, 2)}
FROM placed LEFT JOIN shown ON shown.region = placed.region
"""  # noqa: S608


def check_columns_are_stored(policy: Policy) -> None:
    """Refuse a query of columns that only Sfumato makes: the database has no such columns."""
    if policy.pseudonyms:
        raise UsageError(
            "the policy has pseudonyms, which a query cannot make: it would show the values themselves. Leave out the "
            "query, or give these columns the role identifier."
        )
    if policy.derive:
        raise UsageError(
            "the policy derives columns, which a query does not do. Derive them in a view of the database, remove them "
            "from the policy, and learn from the view; or leave out the query."
        )


def check_dialect(dialect: str) -> None:
    """Refuse a dialect for which the query is not tested."""
    if dialect not in DIALECTS:
        raise UsageError.unknown_choice("dialect of SQL", dialect, DIALECTS)


def _listed(parts: Sequence[str], indent: int) -> str:
    return f",\n{' ' * indent}".join(parts)


def _name(name: str) -> str:
    """The name, quoted for SQL."""
    if "\0" in name:
        raise UsageError("a column or table has a NUL character in its name, which SQL cannot hold. Rename it.")
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    if "\0" in text:
        raise UsageError("a category has a NUL character in its name, which SQL cannot hold. Replace it in the table.")
    return "'" + text.replace("'", "''") + "'"


def _literal(domain: Domain, value: Any) -> str:
    """The exact SQL literal of a value of the domain."""
    if value is None:
        return "NULL"
    if isinstance(domain, CategoricalDomain):
        return _text(value)
    if domain.kind in TYPES:
        return f"{_type(domain)} '{value}'"
    if isinstance(domain, NumericDomain) and domain.is_decimal:
        digits = value if isinstance(value, str) else f"{value:f}"
        return f"CAST('{digits}' AS {_type(domain)})"
    return str(value) if isinstance(value, int) else f"'{value!r}'::float8"


def _type(domain: Domain) -> str:
    """The SQL type of a date, moment or decimal. Both databases hold moments to the microsecond."""
    assert isinstance(domain, NumericDomain)
    if domain.is_decimal:
        assert domain.bound_type is not None
        if domain.bound_type.precision > MOST_DIGITS:
            raise UsageError(
                f"the column {domain.name!r} holds decimals of more than {MOST_DIGITS} digits, which DuckDB cannot "
                "hold. Use the rules as JSON."
            )
        return f"DECIMAL({domain.bound_type.precision}, {max(domain.bound_type.scale, 0)})"
    if domain.kind == "moment" and domain.scale:
        raise UsageError(
            f"the column {domain.name!r} holds moments in nanoseconds, which no query compares exactly. Use the rules "
            "as JSON."
        )
    return "TIMESTAMP WITH TIME ZONE" if domain.zone is not None else TYPES[domain.kind]


def _coded(domain: Domain) -> str:
    """A column in the form that the tree compares: categories as their index among the leaves, NaN as null."""
    column = _name(domain.name)
    if isinstance(domain, CategoricalDomain):
        known = "".join(f" WHEN {_text(value)} THEN {code}" for value, code in domain.taxonomy.code_of_value.items())
        cases = f"CASE CAST({column} AS TEXT){known} ELSE -1 END" if known else "-1"
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE {cases} END"
    # A decimal is never NaN, and comparing it with a float would round it.
    assert isinstance(domain, NumericDomain)
    if domain.kind == "numeric" and not domain.is_decimal:
        column = f"NULLIF({column}, 'NaN'::float8)"
    # GREATEST and LEAST pass over null, so null has to be kept by hand.
    clipped = column
    for clip, end in (("GREATEST", domain.lowest), ("LEAST", domain.highest)):
        if end is not None:
            text = domain.texts(np.array([end], domain.values.dtype))[0].as_py()
            clipped = f"{clip}({clipped}, {_literal(domain, text if domain.is_decimal else end)})"
    return column if clipped == column else f"CASE WHEN {column} IS NOT NULL THEN {clipped} END"


def _inside(domain: Domain, column: str) -> str:
    """The condition that a value lies in the domain."""
    if isinstance(domain, CategoricalDomain):
        inside = f"{column} >= 0"
    else:
        assert isinstance(domain, NumericDomain)
        if not len(domain.values):
            return f"{column} IS NULL"
        first = _literal(domain, json_value(domain, 0))
        inside = f"{column} >= {first} AND {column} {_up_to(domain, len(domain.values) - 1)}"
        if is_discrete(domain):
            whole = f"floor({column})" if domain.kind == "numeric" else f"CAST({column} AS DATE)"
            inside += f" AND {column} = {whole}"
    return f"({column} IS NULL OR {inside})" if domain.has_null else f"({inside})"


def _case(regions: Regions) -> str:
    """The nested CASE from the root to the number of the region. Null is past all values, so the last ELSE takes it."""
    region = {int(node): number for number, node in enumerate(regions.leaves)}
    lines: list[str] = []
    # Each entry is a node to open, with the words before it, or (-1) a CASE to close; and its depth.
    pending: list[tuple[int, str, int]] = [(0, "", 3)]
    while pending:
        node, before, depth = pending.pop()
        if depth > DEEPEST:
            raise UsageError(
                f"the regions are nested more than {DEEPEST} deep, too deep for a query. Ask for a larger k, or use "
                "the rules as JSON."
            )
        indent = "  " * min(depth, 12)
        if node < 0:
            lines.append(f"{indent}END")
        elif node in region:
            lines.append(f"{indent}{before}{region[node]}")
        else:
            q = int(regions.attribute[node])
            lines.append(f"{indent}{before}CASE")
            pending.append((-1, "", depth))
            parts = regions.children(node)
            for part in reversed(parts):
                end = int(regions.high[part, q])
                words = "ELSE " if part == parts[-1] else f"WHEN q{q} {_up_to(regions.domains[q], end)} THEN "
                pending.append((part, words, depth + 1))
    return "\n".join(lines)


def _up_to(domain: Domain, code: int) -> str:
    """The comparison that a value lies in the region that ends with a code, or in one before it."""
    if isinstance(domain, CategoricalDomain):
        return f"<= {code}"
    assert isinstance(domain, NumericDomain)
    end = replace(domain, values=domain.cell_ends(domain.values))
    # The end of a cell of numbers that are not whole belongs to the next cell, unless everything above is one value.
    open_end = domain.finest > 0 and not is_discrete(domain) and end.values[code] != domain.highest
    return f"{'<' if open_end else '<='} {_literal(domain, json_value(end, code))}"


def _shown(recoding: Recoding) -> tuple[list[str], list[list[str]]]:
    """The table of the labels of every region: its columns and its rows."""
    columns: list[str] = []
    rows = [[str(region)] for region in range(len(recoding))]
    for q, (domain, shown) in enumerate(zip(recoding.domains, recoding.shown(), strict=True)):
        columns.append(f"s{q}")
        labels = shown.labels.to_pylist()
        for row, entry in zip(rows, shown.index.tolist(), strict=True):
            row.append("NULL" if labels[entry] is None else _text(labels[entry]))
        if domain.name in recoding.policy.numbered and domain.kind != "categorical":
            for end, bounds in (("min", shown.low), ("max", shown.high)):
                columns.append(f"{end}{q}")
                values = bounds.to_pylist()
                for row, entry in zip(rows, shown.index.tolist(), strict=True):
                    value = values[entry]
                    moment = domain.kind != "numeric" and value is not None
                    row.append(_literal(domain, value.isoformat() if moment else value))
    return columns, rows
