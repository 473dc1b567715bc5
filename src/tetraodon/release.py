"""A release: answers drawn once, with what they cost, how accurate they are and what guarantees them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .answers import Answers, outward, quantile_positions
from .binning import Grouping
from .disclosure import exact_rows
from .errors import SpecificationError
from .estimates import Estimate, bounds
from .exact import exact
from .layout import Column, published_columns
from .loss import Loss
from .mechanisms import Mechanism
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .people import ONE_RECORD, People
from .plans import Priced, finite, in_unit, name_of, number, unit_of
from .presentation import Presentation, presentation_from_spec
from .presenting import Presented, frame, presented
from .queries import Query, query_from_spec
from .reading import table
from .sensitivity import Sensitivity

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from .clustering.released import Way
    from .ledger import Ledger
    from .marginals.strategy import MarginalStrategy

CURVE = tuple(Fraction(k, 10) for k in (1, 2, 3, 5, 7, 10, 15, 20, 30))


@dataclass(frozen=True, eq=False)
class Release:
    """Private answers. Reading them again gives the same numbers: noise was drawn once.

    Attributes:
        name: what the ledger calls it.
        strategy: what was run, with query, mechanism and cost.
        answers: what was drawn, in counted units.
        total: the number of records (the sum of their weights, in steps) where it is public; else None.
        considered: every mechanism that was priced, best first.
        charge: number of the ledger row that holds it.
        context: what the session says about data, policy and budget.
        people: what one person adds to the table.
        traded: the ± under other policies along a grid of losses, where it was asked for (``traded``).
    """

    name: str
    strategy: Strategy | MarginalStrategy | Way
    answers: Answers
    total: int | None
    considered: tuple[Priced, ...]
    charge: int
    context: Mapping[str, Any]
    people: People = ONE_RECORD
    traded: Mapping[str, Any] | None = None

    guarantee = "proved"

    @property
    def grain(self) -> Fraction:
        """What one counted unit stands for: the step of weights, or 1."""
        return self.people.grain

    @property
    def records(self) -> int | None:
        """The number of records, where it is public and they count 1 each."""
        return None if self.people.weight is not None else self.total

    @property
    def query(self) -> Query:
        return self.strategy.query

    @property
    def mechanism(self) -> Mechanism:
        return self.strategy.mechanism

    @property
    def spent(self) -> Loss:
        """What was charged, exactly."""
        return self.strategy.spent

    @property
    def epsilon(self) -> Fraction | None:
        """What was charged in ε, exactly; None for Gaussian noise (``spent`` is then in ρ)."""
        return self.spent.epsilon

    @property
    def cost(self) -> Sensitivity:
        """The exact cost with an edge that attains it."""
        return self.strategy.cost

    @property
    def expected_error(self) -> float:
        """Mean squared error of the linear estimate over the workload, exact, known before the data were read."""
        return in_unit(self.strategy, self.grain)[0]

    @property
    def half_width(self) -> float:
        """95 % half-width of an answer of average error, in the answer's unit."""
        return in_unit(self.strategy, self.grain)[1]

    @property
    def unit(self) -> str:
        """The unit of ``half_width``: records for counts, the attribute's own for totals and means."""
        return unit_of(self.strategy)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The published table: attributes in domain order, then ``value``, ``lower``, ``upper``."""
        return published_columns(self.strategy, self._told)

    @property
    def _told(self) -> Answers:
        """The answers in their own unit; ratios, and positions, have none of weights."""
        if self.grain == 1 or self.query.word in ("mean", "quantiles"):
            return self.answers
        return self.answers.times(float(self.grain))

    @property
    def values(self) -> Floats:
        """The published numbers, one per row of ``to_arrow()``."""
        return np.asarray(self.columns["value"])

    def to_arrow(self) -> pyarrow.Table:
        """The published table: every declared cell, in declared order, with ``value``, ``lower``, ``upper``."""
        import pyarrow as pa

        return pa.table({name: pa.array(column) for name, column in self.columns.items()})

    def to_frame(self) -> pandas.DataFrame:
        """``to_arrow()`` as a pandas frame."""
        return frame(self.columns)

    @cached_property
    def tables(self) -> dict[tuple[str, ...], pandas.DataFrame]:
        """The tables of ``Marginals`` by their attributes, each with its own columns, then ``value``, ``lower``, ``upper``.

        Raises:
            SpecificationError: the release is none of tables.
        """
        from .marginals.answers import TableAnswers, one_table
        from .marginals.strategy import MarginalStrategy

        if not isinstance(self.strategy, MarginalStrategy) or not isinstance(self.answers, TableAnswers):
            raise SpecificationError("tables: only for Marginals; use to_frame().")
        asked, told = self.strategy.asked, self._told
        assert isinstance(told, TableAnswers)
        return {asked.names(t): frame(one_table(asked, told, t), "tables") for t in asked.tables}

    @property
    def centroids(self) -> Floats:
        """The centres of ``KMeans``, shape (k, coordinates), in the attributes' units (degrees, for a place on a map).

        Raises:
            SpecificationError: the release is none of clusters.
        """
        from .clustering.released import Clusters

        if not isinstance(self.answers, Clusters):
            raise SpecificationError("centroids: only for KMeans.")
        return self.answers.centroids

    def range(self, low: Any, high: Any) -> Estimate:
        """Number of records from ``low`` to ``high``, ends included (arrays of equal length are answered at once).

        Raises:
            SpecificationError: the query was not along an ordered axis, or the range cuts a declared cell.
        """
        axis, prefix, raw, strategy = self._along("range")
        try:
            lows, highs = np.atleast_1d(np.asarray(low)), np.atleast_1d(np.asarray(high))
        except ValueError:
            raise SpecificationError("range: two values, or two lists of equal length.") from None
        first, past = bounds(axis, lows, highs)
        value = prefix[:, past] - prefix[:, first]
        single, grain = np.ndim(low) == 0, float(self.grain)
        most = np.inf if self.total is None else self.total

        def ends() -> tuple[Any, Any]:
            half = strategy.half_widths(strategy.range_variance(first, past))
            linear = raw[:, past] - raw[:, first]
            half = outward(linear, half)
            lower = np.minimum(np.clip(linear - half, 0, most), value) * grain
            upper = np.maximum(np.clip(linear + half, 0, most), value) * grain
            return self._shaped(lower, single), self._shaped(upper, single)

        return Estimate(self._shaped(value * grain, single), ends)

    def quantile(self, level: Any) -> Any:
        """The value below which a share of the records lies, for every group."""
        axis, prefix, _, strategy = self._along("quantile")
        share = exact(level, "quantile")
        if not 0 <= share <= 1:
            raise SpecificationError("quantile: a number from 0 to 1.")
        plain = axis.first_values
        found = [int(p) for p in quantile_positions(prefix, (share,), axis.n_ordinary)[:, 0]]
        told = [plain[p] if plain is not None else axis.text(p) for p in found]
        return told[0] if not strategy.resolved.groups else told

    def histogram(self) -> Floats:
        """Cell counts, shape (groups…, positions), consistent with the cumulative counts."""
        _, prefix, _, _ = self._along("histogram")
        cells: Floats = self._shaped(np.diff(prefix, axis=1) * float(self.grain), False)
        return cells

    def _along(self, what: str) -> tuple[Grouping, Floats, Floats, Strategy]:
        strategy, found = self.strategy, self.answers
        axis = strategy.resolved.axis if isinstance(strategy, Strategy) else None
        if axis is None or found.prefix is None or found.raw_prefix is None or not axis.attribute.ordered:
            raise SpecificationError(f"{what}: only for a CDF, Ranges or Quantiles.")
        assert isinstance(strategy, Strategy)
        return axis, found.prefix, found.raw_prefix, strategy

    def _shaped(self, found: Floats, single: bool) -> Any:
        assert isinstance(self.strategy, Strategy)
        shaped = found.reshape([*(g.size for g in self.strategy.resolved.groups), found.shape[1]])
        shaped = shaped[..., 0] if single else shaped
        return float(shaped) if shaped.ndim == 0 else shaped

    @cached_property
    def curve(self) -> list[dict[str, Any]]:
        """± against ε or ρ for every mechanism considered, from closed forms."""
        unit = self.strategy.loss.unit
        return [
            {
                "name": name_of(row.mechanism),
                unit: [float(e) for e in CURVE],
                "half_width": [
                    finite(Priced(replace(row.strategy, loss=Loss(unit, e)), self.grain).half_width)
                    for e in CURVE
                ],
            }
            for row in self.considered
        ]

    def disclosures(self) -> list[str]:
        """What was published exactly because the policy does not hold it secret."""
        return exact_rows(self.strategy, self.people)

    def present(self, **how: Any) -> Presented:
        """The published table as it is to be shown: a function of what was released, at no cost.

        Args:
            how: ``interval``, ``round_to``, ``suppress_below``, ``totals``, ``labels``, ``units``, as in a settings file
                (docs/settings.md).

        Raises:
            SpecificationError: names the key.
        """
        return self.presented(presentation_from_spec(how))

    def presented(self, how: Presentation) -> Presented:
        """``present`` for a presentation as an object."""
        from .margins import check_presentation, domain_of, published

        check_presentation(how, self.query, domain_of(self.strategy))
        return presented(published(self.strategy, self.answers, self.grain, how), how)

    @property
    def quantiles(self) -> pandas.DataFrame:
        """The quantiles beside a ``CDF``: a row for every group and level, with ``value``, ``lower``, ``upper``.

        Raises:
            SpecificationError: none were asked for.
        """
        return self.present().quantiles

    def save(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] = ("parquet",),
        present: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write the answers and a manifest to a folder; returns the manifest's path.

        Args:
            present: how the answers are shown, as ``present`` takes it.
        """
        from .publish import publish

        told = {} if present is None else table(present, "present", "a table such as { round_to = 10 }")
        how = presentation_from_spec({"format": tuple(formats), **told})
        return publish(Path(folder), [(self, how)], self.context)

    def __repr__(self) -> str:
        return (
            f"Release {self.name!r}: {self.query.title}, {name_of(self.mechanism)}, {self.spent.show()}, "
            f"± {number(self.half_width)} {self.unit}".rstrip()
        )


def published_exactly(ledger: Ledger) -> tuple[str, ...]:
    """Every disclosure that a ledger holds, in words, each once."""
    found = (told if isinstance(told, str) else query_from_spec(told).title for _, told in ledger.disclosures)
    return tuple(dict.fromkeys(found))
