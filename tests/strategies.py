"""Hypothesis strategies: taxonomies as rows, tables with their quasi-identifiers, and what is asked of a release."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
from hypothesis import strategies as st

NAMES = ("Arno", "Bassa", "Città", "Duomo, alto", 'E"st', "Fiume", "Gorgona", "Hotel", "isola", "über")


@dataclass(frozen=True)
class Quasi:
    """One quasi-identifier: its values, what the policy says of it, and what the oracle knows."""

    values: list[Any]
    type: pa.DataType
    column: oracle.Column
    taxonomy: dict[str, Any] | str | None = None
    rows: list[list[str]] | None = None
    """Of the taxonomy file, the root included."""


@dataclass(frozen=True)
class Case:
    """A table and what is asked of it."""

    table: pa.Table
    quasi: dict[str, Quasi]
    others: tuple[str, ...]
    k: int
    weights: dict[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, oracle.Column]:
        return {name: one.column for name, one in self.quasi.items()}

    def settings(self, folder: Path) -> dict[str, Any]:
        """The arguments of ``anonymize``; taxonomy files are written into ``folder``."""
        taxonomies: dict[str, Any] = {}
        for name, one in self.quasi.items():
            if one.rows is not None:
                path = folder / f"{name}.csv"
                path.write_text("".join(",".join(map(quoted, row)) + "\n" for row in one.rows), "utf-8")
                taxonomies[name] = str(path)
            elif one.taxonomy is not None:
                taxonomies[name] = one.taxonomy
        return {
            "quasi_identifiers": list(self.quasi),
            "taxonomy": taxonomies,
            "other": "keep",
            "accept_linkable": list(self.others),
            "weight": self.weights,
            "k": self.k,
        }


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@st.composite
def taxonomy_rows(draw: st.DrawFn, leaves: int = 6) -> list[list[str]]:
    """A tree of one to three levels under the root, one row for each leaf. Leaves need not occur in a table."""
    count = draw(st.integers(1, leaves))
    names = draw(st.permutations(NAMES))[:count]
    groups = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    upper = draw(st.lists(st.integers(0, 1), min_size=3, max_size=3))
    depth = draw(st.integers(0, 2))
    rows = []
    for name, group in zip(names, groups, strict=True):
        path = [f"group {group}", f"region {upper[group]}"][:depth]
        rows.append([name, *path, oracle.WHOLE])
    return rows


@st.composite
def whole_numbers(draw: st.DrawFn, size: int) -> Quasi:
    reach = draw(st.sampled_from([2, 30, 10**6, 2**62]))
    values = draw(_column(st.integers(-reach, reach), size))
    return Quasi(values, pa.int64(), oracle.NumberColumn(values))


@st.composite
def decimals(draw: st.DrawFn, size: int) -> Quasi:
    few = st.sampled_from([-0.0, 0.0, 0.1, -2.5, 1e-300, 1e22, float("nan")])
    many = st.floats(-1e6, 1e6)
    values = draw(_column(draw(st.sampled_from([few, many])), size))
    return Quasi(values, pa.float64(), oracle.NumberColumn(values))


@st.composite
def dates(draw: st.DrawFn, size: int) -> Quasi:
    near = st.dates(datetime.date(2019, 12, 1), datetime.date(2020, 3, 10))
    values = draw(_column(draw(st.sampled_from([near, st.dates()])), size))
    return Quasi(values, pa.date32(), oracle.NumberColumn(values))


@st.composite
def moments(draw: st.DrawFn, size: int) -> Quasi:
    values = draw(_column(st.datetimes(datetime.datetime(1969, 12, 30), datetime.datetime(1970, 1, 2)), size))
    return Quasi(values, pa.timestamp("us"), oracle.NumberColumn(values))


@st.composite
def flat_categories(draw: st.DrawFn, size: int) -> Quasi:
    values = draw(_column(st.sampled_from(NAMES), size))
    return Quasi(values, pa.string(), oracle.CategoryColumn(oracle.flat_rows(values)))


@st.composite
def grouped_categories(draw: st.DrawFn, size: int) -> Quasi:
    rows = draw(taxonomy_rows())
    values = draw(_column(st.sampled_from([row[0] for row in rows]), size))
    return Quasi(values, pa.string(), oracle.CategoryColumn([row[:-1] for row in rows]), rows=rows)


@st.composite
def postal_codes(draw: st.DrawFn, size: int) -> Quasi:
    values = draw(_column(st.text("019", min_size=1, max_size=4), size))
    lengths = draw(st.sampled_from([(1,), (2,), (1, 3), (1, 2, 3)]))
    rows = oracle.prefix_rows(values, lengths)
    return Quasi(values, pa.string(), oracle.CategoryColumn(rows), taxonomy={"prefix": list(lengths)})


KINDS = (whole_numbers, decimals, dates, moments, flat_categories, grouped_categories, postal_codes)


@st.composite
def cases(draw: st.DrawFn, rows: int = 24, columns: int = 4, others: bool = True) -> Case:
    """A table of any kinds of quasi-identifiers with nulls and duplicates, and a k that it can meet."""
    size = draw(st.integers(1, rows))
    quasi = {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=columns))):
        quasi[f"q{place}"] = draw(kind(size))
    arrays = {name: pa.array(one.values, one.type, from_pandas=False) for name, one in quasi.items()}
    kept: tuple[str, ...] = ()
    if others and draw(st.booleans()):
        kept = ("note", "score")
        arrays["note"] = pa.array(draw(_column(st.text("ab,\"' \n", max_size=2), size)), pa.string())
        arrays["score"] = pa.array(draw(_column(st.integers(-3, 3), size)), pa.int64())
    weights = {name: draw(st.sampled_from([0.25, 1.0, 3.0])) for name in quasi if draw(st.booleans())}
    return Case(pa.table(arrays), quasi, kept, draw(st.integers(1, size)), weights)


@dataclass(frozen=True)
class Diverse:
    """A table with sensitive columns and requirements on them that it can meet."""

    case: Case
    requirements: list[dict[str, Any]]

    @property
    def policy(self) -> dict[str, Any]:
        """What a policy file says beside the settings of the case."""
        columns = {name: {"role": "sensitive"} for name in self.case.others}
        return {"columns": columns, "privacy": {"sensitive": self.requirements}}


SENSITIVE = (
    (st.integers(0, 4), pa.int16()),
    (st.integers(0, 60), pa.int64()),
    (st.sampled_from([0.0, 0.1, 1.5, -2.5]), pa.float64()),
    (st.sampled_from(["", "a", "b", "c", "nan"]), pa.string()),
    (st.booleans(), pa.bool_()),
    (st.dates(datetime.date(2020, 1, 30), datetime.date(2020, 2, 3)), pa.date32()),
)


@st.composite
def diverse_cases(draw: st.DrawFn, rows: int = 24) -> Diverse:
    """Frequency l-diversity of one column, distinct l-diversity of one or two, or all of it, with a k."""
    case = draw(cases(rows, 3, others=False))
    table, names = case.table, ("s", "t")[: draw(st.integers(1, 2))]
    for name in names:
        values, kind = draw(st.sampled_from(SENSITIVE))
        column = draw(_column(values, table.num_rows))
        table = table.append_column(name, pa.array(column, kind, from_pandas=False))
    requirements: list[dict[str, Any]] = []
    for kind in draw(st.sampled_from([["frequency"], ["distinct"], ["frequency", "distinct"]])):
        name = draw(st.sampled_from(names))
        if kind == "frequency":
            reached = oracle.reached_frequency(table.to_pylist(), (), name)
            most = 5 if reached is None else int(reached)
        else:
            most = oracle.fewest_values(table.to_pylist(), (), name)
        if most > 0:
            requirements.append({"attribute": name, "kind": kind, "l": draw(st.integers(1, most))})
    return Diverse(Case(table, case.quasi, names, case.k, case.weights), requirements)


@st.composite
def _column(draw: st.DrawFn, values: st.SearchStrategy[Any], size: int) -> list[Any]:
    """Values, in one column out of three mixed with nulls."""
    cells = values if draw(st.integers(0, 2)) else st.one_of(st.none(), values)
    return draw(st.lists(cells, min_size=size, max_size=size))


def released_rows(table: pa.Table) -> Sequence[oracle.Row]:
    rows: Sequence[oracle.Row] = table.to_pylist()
    return rows


# ---- What a mistaken or hostile user writes into files and flags ----

ODD_TEXTS = (
    "", " ", "*", "flat", "\0", "\ufeff", "\u202e", "é", "e\u0301", "😀", "'", '"', "\\", "%", "[1..2]", "nan", "inf",
    "-0", "1e999", "../x", "/dev/null", "a,b", "a;b", "a\nb", "__class__", "{}", "[]", "null", "x" * 5000,
    "9" * 5000, "\x1b[31m",
)  # fmt: skip
odd_texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
odd_numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2, 3, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324]),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.integers(-10, 100),
    st.floats(),
)
odd_leaves = st.one_of(st.booleans(), odd_numbers, odd_texts)
odd_values = st.recursive(
    odd_leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=2), max_leaves=4
)


@st.composite
def edited(draw: st.DrawFn, content: Any, keys: Sequence[str], words: Sequence[str]) -> Any:
    """The content of a file of tables and lists after one to three edits: a value replaced, removed or added.

    keys, words: what a user may write there, so that edits also give what nearly fits.
    """
    content = copy.deepcopy(content)
    # Copied, since a later edit may change what an earlier one put there.
    values = st.one_of(odd_values, st.sampled_from(list(words)).map(copy.deepcopy))
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = content
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            inner = holder[place]
            if isinstance(inner, dict | list) and inner and draw(st.integers(0, 4)):
                holder = inner
                continue
            how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
            if how == "replace":
                holder[place] = draw(values)
            elif how == "remove":
                del holder[place]
            elif isinstance(holder, dict):
                holder[draw(st.one_of(st.sampled_from(list(keys)), odd_texts))] = draw(values)
            else:
                holder.insert(place, draw(st.one_of(st.just(copy.deepcopy(inner)), values)))
            break
    return content


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """A file after one to four edits: bytes replaced, repeated or cut off, or all of it in another encoding."""
    odd = st.one_of(
        odd_texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.binary(max_size=6),
        st.sampled_from(
            [b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\r\n", b'"', b",", b",,,", b";", b"\x80", b"*"]
        ),
    )
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 12)))
        how = draw(st.sampled_from(["replace", "replace", "replace", "repeat", "cut off", "encode"]))
        if how == "replace":
            content = content[:start] + draw(odd) + content[end:]
        elif how == "repeat":
            content = content[:end] + content[start:]
        elif how == "cut off":
            content = content[:end]
        else:
            encoding = draw(st.sampled_from(["utf-16", "utf-8-sig", "cp1252", "utf-32"]))
            content = content.decode("utf-8", "replace").encode(encoding, "replace")
    return content
