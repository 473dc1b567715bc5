"""``HybridObscuring``: the estimator, with scikit-learn's conventions, over frames of pandas, Polars or Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..errors import SpecificationError, Unsupported
from .data import Data
from .drawing import Drawn, drawn
from .features import Features
from .fit import candidates_of, fit
from .frames import Frame, classes_in, columns_in, like, published, recoded, table_of
from .joint import reach
from .plan import LN2, Plan
from .prepared import Prepared
from .settings import Hybrid


class HybridObscuring(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Microdata: private columns generalised, the others exchanged between similar rows of one group, at least leakage.

    Every row gets the label of its group, and in each exchanged column the value of a donor: a row of the same group, drawn
    from a cluster that the group's channel draws. Groups and channels are those of least I(private; published) for the stated
    distortion, with a certified bound (method "optimal"), or what HyObscure's alternating steps come to ("alternating").
    Nothing about ε is promised. Donors' values are real values of real people, which leave as they are.

    Args:
        private, insensitive, distortion, k, l, alpha, beta, variety, groups, coarseness, metric, clusters, method, budget, invariant,
            publish, donors, quasi_identifiers, class_size, generalise, sample: see ``Hybrid``.
        hierarchy: of private categories, by column: a mapping from each value and node to the node above it.
        map_width: the private column holds cells of a map, numbered row by row, of so many columns.

    Attributes:
        plan_: groups and channels, with figures (``plan_.figures``).
        leakage_, bound_, gap_: bits; the bound and the gap are None where nothing is proved.
        distortion_: expected distance between a row's columns and what is published for it.
        realised_distortion_: mean of the last draw, after ``transform``.
        groups_: labels with their values, by private column.
        history_: of an alternating search, leakage in bits after each step.

    Raises:
        SpecificationError: see ``Hybrid``.
    Source: HyObscure (Han et al. 2021), corrected and solved to its optimum, docs/microdata.md.

    >>> import numpy as np, pyarrow as pa
    >>> age = np.repeat(np.arange(20, 30), 20)
    >>> table = pa.table({"age": age, "hours": np.tile([10, 20, 30, 40], 50), "films": age // 5 + np.tile([0, 1], 100)})
    >>> hybrid = HybridObscuring("age", ["hours", "films"], groups=2, k=40, clusters=4, distortion=0.3)
    >>> out = hybrid.fit_transform(table)
    >>> out.column_names, out.num_rows, hybrid.gap_ < 1e-3
    (['age', 'hours', 'films'], 200, True)
    """

    def __init__(
        self,
        private: str | Sequence[str] = (),
        insensitive: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        distortion: Any = None,
        k: Any = 2,
        l: Any = 1,  # noqa: E741
        alpha: Any = None,
        beta: Any = None,
        variety: str = "count",
        groups: Any = None,
        coarseness: Any = None,
        metric: str = "gower",
        clusters: Any = 20,
        method: str = "optimal",
        budget: str = "shared",
        invariant: bool = False,
        publish: str = "donors",
        donors: Any = 5,
        quasi_identifiers: Sequence[str] | str = (),
        class_size: Any = 5,
        generalise: str = "auto",
        sample: Any = None,
        hierarchy: Mapping[str, Mapping[str, str]] | None = None,
        map_width: int | None = None,
    ) -> None:
        self.private = private
        self.insensitive = insensitive
        self.distortion = distortion
        self.k = k
        self.l = l
        self.alpha = alpha
        self.beta = beta
        self.variety = variety
        self.groups = groups
        self.coarseness = coarseness
        self.metric = metric
        self.clusters = clusters
        self.method = method
        self.budget = budget
        self.invariant = invariant
        self.publish = publish
        self.donors = donors
        self.quasi_identifiers = quasi_identifiers
        self.class_size = class_size
        self.generalise = generalise
        self.sample = sample
        self.hierarchy = hierarchy
        self.map_width = map_width

    @property
    def settings(self) -> Hybrid:
        """The request that these parameters are.

        Raises:
            SpecificationError: parameters of the wrong kind, or that do not fit each other.
        """
        beside = ("hierarchy", "map_width")
        told = {key: value for key, value in self.get_params(deep=False).items() if key not in beside}
        if not told["private"]:
            raise SpecificationError("hybrid.private: name the column that is generalised.")
        return Hybrid(**told)

    def fit(self, X: Frame, y: object = None) -> HybridObscuring:
        """Find groups and channels. Reads the rows, draws nothing that is published.

        Args:
            X: a frame of pandas, Polars or Arrow, a dict of columns, or a table of Ibis, of which the columns with a part are read,
                batch by batch, and held.
            y: not looked at.

        Raises:
            DataError: a column with nulls.
            Refused: no groups meet the requirements within the distortion.
        """
        return self._fit(table_of(X, self._needed()))

    def _needed(self) -> list[str] | None:
        """The columns that are looked at; None where that is every one."""
        asked = self.settings
        if asked.prefix is not None:
            return None
        return [*asked.private, *asked.insensitive, *asked.quasi_identifiers]

    def _fit(self, table: pa.Table) -> HybridObscuring:
        settings = self.settings.named(table.column_names)
        data, self.classes_named_ = self._data(table, settings)
        self._fitted(data, settings)
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = table.num_columns
        return self

    def distortions(self, X: Frame) -> tuple[float, float]:
        """Between which distortions there is something to choose: the least that any groups allow, and that of exchange with
        anybody of the group, where the exchanged columns tell nothing beyond the group. Private figures; nothing is drawn.

        Raises:
            Refused: no groups meet the requirements.
            Unsupported: several private columns.
        """
        table = table_of(X, self._needed())
        settings = self.settings.named(table.column_names)
        if len(settings.private) > 1:
            raise Unsupported("hybrid.distortions: for one private column.")
        prepared = Prepared.of(self._data(table, settings)[0], settings)
        return reach(prepared, candidates_of(prepared, 0))

    def _data(self, table: pa.Table, settings: Hybrid) -> tuple[Data, dict[str, list[str]]]:
        features = Features.of_arrow(table, settings.insensitive)
        columns, codes = columns_in(table, settings.private, self.hierarchy, self.map_width)
        classes, names = classes_in(table, settings)
        return Data(features, columns, codes, classes), names

    def _fitted(self, data: Data, settings: Hybrid) -> None:
        plan = fit(data, settings)
        self.plan_: Plan = plan
        self.leakage_ = plan.leakage
        self.bound_, self.gap_ = plan.bound, plan.gap
        self.distortion_ = plan.figures["distortion"]
        self.groups_ = {
            column.name: {g.label: [column.labels[m] for m in g.members.tolist()] for g in groups}
            for column, groups in zip(plan.columns, plan.groups, strict=True)
        }
        self.history_ = [(step.leak + plan.prepared.classes) / LN2 for step in plan.history]

    def fit_transform(self, X: Frame, y: object = None, **ignored: object) -> Any:
        """``fit``, then what is published for the same rows, drawn once."""
        table = table_of(X, self._needed())  # once: a table of Ibis may come in another order each time
        self._fit(table)
        return self._out(X, table, self.plan_.prepared.data)

    def transform(self, X: Frame) -> Any:
        """What is published for these rows, drawn anew: a frame of the kind that was given, rows in the same order.

        Rows that are published should be put in another order first; a release does so. Donors are rows of ``X``. Other rows
        than the fitted ones are tested anew: k, alpha, l, beta and donors must hold among them.

        Raises:
            SpecificationError: a column that is missing, or a value that the fitted rows did not have.
            Refused: other rows do not meet the requirements.
        """
        check_is_fitted(self, "plan_")
        plan = self.plan_
        settings, fitted = plan.settings, plan.prepared.data
        needed = (*settings.private, *settings.insensitive, *settings.quasi_identifiers)
        table = table_of(X, needed)
        missing = [n for n in needed if n not in table.column_names]
        if missing:
            raise SpecificationError(f"hybrid: the column {missing[0]!r}, which was fitted, is not there.")
        features = fitted.features.encode(table.select(settings.insensitive))
        codes = recoded(table, plan.columns, self.map_width)
        classes, _ = classes_in(table, settings)
        data = Data(features, plan.columns, codes, classes)
        if _same(data, fitted):
            return self._out(X, table, fitted)
        if settings.quasi_identifiers:
            raise Unsupported(
                "hybrid: classes of quasi-identifiers hold for the fitted rows alone; fit on the rows that are published."
            )
        return self._out(X, table, data)

    def _out(self, X: Frame, table: pa.Table, data: Data) -> Any:
        made = drawn(self.plan_, data)
        self.realised_distortion_ = made.realised
        self.drawn_: Drawn = made
        return like(X, published(table, self.plan_, made, self.classes_named_))

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """The published columns."""
        check_is_fitted(self, "plan_")
        told = self.plan_.settings
        shown = {*told.private, *told.insensitive, *told.quasi_identifiers}
        return np.array([n for n in self.feature_names_in_ if n in shown], dtype=object)


def _same(data: Data, fitted: Data) -> bool:
    """Whether these are the fitted rows, so that their clusters are known."""
    return (
        data.rows == fitted.rows
        and np.array_equal(data.values, fitted.values)
        and np.array_equal(data.classes, fitted.classes)
        and np.array_equal(data.features.numbers, fitted.features.numbers)
        and np.array_equal(data.features.codes, fitted.features.codes)
    )
