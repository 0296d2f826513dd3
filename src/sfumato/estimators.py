"""The recoding as an estimator of scikit-learn: parameters, ``fit``, ``transform``.

scikit-learn need not be installed. The class has what its pipelines, searches and ``clone`` need, without one of its
base classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from sfumato.api import fit as fit_recoding
from sfumato.errors import UsageError
from sfumato.policy import InputOptions, Policy, merge_flags
from sfumato.releases.recoding import MARK, Recoding
from sfumato.tables.sources.frames import to_frame
from sfumato.tables.sources.source import open_source

LEARNING = ("information-gain", "regression")  # the splits that need a target
SPLITS = ("median", *LEARNING, "selection")
TARGET = "target"  # the name of a y that has none
BOUNDS, LABELS = "bounds", "labels"


class Mondrian:
    """Learn regions of the quasi-identifiers on training data and recode any data by them.

    split: median, information-gain, regression or selection. information-gain and regression need a target: a column of
    X, or y. quasi_identifiers: columns of X; by default all that have no other role. k, l, sensitive, require,
    taxonomy, select, least_gain and policy: see ``anonymize``. output: labels (the region in words, other columns
    unchanged, the same kind of frame as X) or bounds (two numbers for each quasi-identifier, for models). After
    ``fit``, ``recoding_`` is the Recoding.

    What ``transform`` returns is not audited. A pandas frame says so in ``attrs``, a PyArrow table in the metadata of
    its schema.
    """

    recoding_: Recoding
    n_features_in_: int
    feature_names_in_: np.ndarray[Any, np.dtype[np.object_]]

    def __init__(
        self,
        *,
        split: str = "median",
        target: str | None = None,
        quasi_identifiers: Sequence[str] | None = None,
        k: int | None = None,
        l: int | None = None,
        sensitive: str | Sequence[str] = (),
        require: str | Sequence[str] = (),
        taxonomy: Mapping[str, Any] | None = None,
        select: str | Sequence[str] = (),
        least_gain: float | None = None,
        policy: Policy | None = None,
        output: str = LABELS,
    ) -> None:
        # scikit-learn clones an estimator by its parameters, so they are kept unchanged.
        self.split = split
        self.target = target
        self.quasi_identifiers = quasi_identifiers
        self.k = k
        self.l = l
        self.sensitive = sensitive
        self.require = require
        self.taxonomy = taxonomy
        self.select = select
        self.least_gain = least_gain
        self.policy = policy
        self.output = output

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn the regions. ``y`` is the target if no column of ``X`` is; it is never released."""
        self._check_parameters()
        table = _table_of(X)
        names = table.column_names
        target = self.target
        if target is None and y is not None and self.split in LEARNING:
            target = str(getattr(y, "name", None) or TARGET)
        target_is_y = target is not None and target not in names and y is not None
        if target_is_y:
            table = _with_target(table, str(target), y)
        recoding = fit_recoding(table, self._policy(names, target, target_is_y))
        if target_is_y:
            recoding = _without(recoding, str(target))
        self.recoding_ = recoding
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, object)
        return self

    def transform(self, X: object) -> Any:  # noqa: N803
        """Return the regions of the records, in their order. See ``output``."""
        recoding = self._fitted()
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if self.output == BOUNDS:
            numbers = recoding.bounds(_table_of(X))
            if wanted == "default":
                return numbers
            columns = {name: numbers[:, column] for column, name in enumerate(recoding.bound_names())}
            return _framed(pa.table(columns), wanted)
        if isinstance(X, np.ndarray) and wanted == "default":
            shown = recoding.transform(_table_of(X))
            return np.array([shown.column(name).to_pylist() for name in shown.column_names], object).T
        source = open_source(_table_of(X) if isinstance(X, np.ndarray) else X, InputOptions())
        table, _ = recoding.transformed(source)
        if wanted != "default":
            return _framed(table, wanted)
        kept = set(source.names) - {domain.name for domain in recoding.domains}
        return _marked(to_frame(table, source.kind, X, kept & set(table.column_names)))

    def fit_transform(self, X: object, y: object = None) -> Any:  # noqa: N803
        """Learn the regions and recode the same records."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray[Any, np.dtype[np.object_]]:
        """Return the names of the columns that ``transform`` returns."""
        recoding = self._fitted()
        if self.output == BOUNDS:
            return np.array(recoding.bound_names(), object)
        return np.array([name for name in self.feature_names_in_ if name in recoding.names], object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""
        for name, value in parameters.items():
            if name not in _parameters():
                raise UsageError.unknown_choice("parameter", name, _parameters())
            setattr(self, name, value)
        return self

    def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
        """Choose the kind of frame that ``transform`` returns: pandas, Polars, or the default."""
        if transform not in (None, "default", "pandas", "polars"):
            raise UsageError.unknown_choice("output", transform, ("default", "pandas", "polars"))
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recoding_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
        )

    def __repr__(self) -> str:
        changed = {
            name: getattr(self, name)
            for name, parameter in _parameters().items()
            if name != "policy" and getattr(self, name) != parameter.default
        }
        return f"Mondrian({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _check_parameters(self) -> None:
        if self.split not in SPLITS:
            raise UsageError.unknown_choice("split", self.split, SPLITS)
        if self.output not in (LABELS, BOUNDS):
            raise UsageError.unknown_choice("output", self.output, (LABELS, BOUNDS))
        if self.policy is not None and (self.policy.derive or self.policy.pseudonyms):
            raise UsageError(
                "the policy derives columns or makes pseudonyms, and an estimator takes the columns of X as they are. "
                "Make them in a step before it, and remove them from the policy."
            )

    def _fitted(self) -> Recoding:
        if not hasattr(self, "recoding_"):
            raise UsageError("this Mondrian has learnt nothing yet. Call fit with training data first.")
        return self.recoding_

    def _policy(self, names: Sequence[str], target: str | None, target_is_y: bool) -> Policy:
        """Return the policy of the parameters. Columns of X that are neither recoded nor kept are dropped."""
        start = self.policy or Policy()
        sensitive = (self.sensitive,) if isinstance(self.sensitive, str) else tuple(self.sensitive)
        quasi = self.quasi_identifiers
        if quasi is None and not start.quasi_identifiers:
            quasi = [name for name in names if name != target and name not in sensitive and name not in start.columns]
        return merge_flags(
            start,
            quasi_identifiers=quasi or (),
            sensitive=sensitive,
            other=start.other or "drop",
            k=self.k,
            l=self.l,
            require=self.require,
            taxonomy=self.taxonomy,
            target=target or (),
            select=self.select,
            least_gain=self.least_gain,
            method="mondrian" if self.split == "median" else f"mondrian:{self.split}",
            # y is in the table for learning only.
            accept_linkable=[target] if target_is_y and target is not None else (),
        )


def _parameters() -> Mapping[str, inspect.Parameter]:
    named = inspect.signature(Mondrian.__init__).parameters
    return {name: parameter for name, parameter in named.items() if name != "self"}


def _table_of(data: object) -> Any:
    """Return anything that ``open_source`` takes as a table. The columns of a matrix are x0, x1 and so on."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise UsageError(f"an array of {data.ndim} dimensions is not a table. Give an array of two dimensions.")
        columns = {f"x{column}": data[:, column] for column in range(data.shape[1])}
        return pa.table(
            {name: pa.array(list(values) if values.dtype == object else values) for name, values in columns.items()}
        )
    if isinstance(data, pa.Table):
        return data
    source = open_source(data, InputOptions())
    return pa.Table.from_batches(list(source.batches(source.names)))


def _with_target(table: pa.Table, name: str, values: object) -> pa.Table:
    try:
        column = pa.array(values if hasattr(values, "__len__") else list(values), from_pandas=True)  # type: ignore[call-overload]
        return table.append_column(name, column)
    except (pa.ArrowException, TypeError, ValueError):
        raise UsageError("y is not a column beside X: give as many values as X has records, all of one type.") from None


def _without(recoding: Recoding, target: str) -> Recoding:
    """Return the recoding without the target as a column, so that these rules never release it."""
    content = recoding.policy.to_dict()
    content["columns"].pop(target, None)
    content.pop("workload", None)
    content["accept_linkable"] = [name for name in content.get("accept_linkable", ()) if name != target]
    names = tuple(name for name in recoding.names if name != target)
    return replace(recoding, policy=Policy.from_dict(content, recoding.policy.base), names=names)


def _framed(table: pa.Table, kind: str) -> Any:
    plain = to_frame(table, "pyarrow", None)
    assert isinstance(plain, pa.Table)
    return _marked(plain.to_pandas() if kind == "pandas" else to_frame(plain, "polars", None))


def _marked(frame: Any) -> Any:
    """Mark a frame as not audited, if its kind can hold such a mark."""
    if isinstance(frame, pa.Table):
        return frame.replace_schema_metadata(MARK)
    if hasattr(frame, "attrs"):
        frame.attrs["sfumato"] = "unaudited"
    return frame
