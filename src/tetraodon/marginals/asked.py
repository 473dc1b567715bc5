"""``Marginals`` laid out over a domain: one axis for every attribute, and the tables as sets of axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..axes import Bools, Ints
from ..binning import Grouping, grouping, mask
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..phrases import between
from ..queries import Histogram, Linear, Query
from ..sensitivity import Term, rows
from ..sensitivity.rows import Layer
from ..workload import Resolved, resolve
from .query import Marginals
from .residuals import Axes, cells

if TYPE_CHECKING:
    from ..table import Counts

MAX_TABLES = 2000
MAX_CELLS = 2 * 10**7
TAKEN = ("table", "value", "lower", "upper")


@dataclass(frozen=True, eq=False)
class Asked:
    """Tables over a domain.

    Attributes:
        query, whole: what was asked, and of which domain.
        domain: of the attributes that are read, those of filters included, in declared order.
        groupings: the attributes of all tables, in declared order: axis i of every table that has it.
        filters: attributes that only filter, with the cells that they keep.
        tables: the axes of every table asked for, in the order asked.
    """

    query: Marginals
    whole: Domain
    domain: Domain
    groupings: tuple[Grouping, ...]
    filters: tuple[tuple[str, Bools], ...]
    tables: tuple[Axes, ...]
    _held: dict[Axes, Resolved] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions of every attribute."""
        return tuple(g.size for g in self.groupings)

    @property
    def n_cells(self) -> int:
        """Published numbers."""
        return sum(cells(self.shape, t) for t in self.tables)

    @property
    def is_filtered(self) -> bool:
        """Whether some declared record counts nowhere."""
        return any(g.labels is not None and bool((g.labels < 0).any()) for g in self.groupings) or any(
            not kept.all() for _, kept in self.filters
        )

    def names(self, table: Axes) -> tuple[str, ...]:
        """The attributes of a table."""
        return tuple(self.groupings[i].name for i in table)

    def title(self, table: Axes) -> str:
        """What the published file calls a table."""
        return " by ".join(self.names(table))

    def term(self, table: Axes, weight: int = 1, factor: Fraction = Fraction(1)) -> Term:
        """A table as rows of the histogram that it is, one for each cell; () is the number of all records that the filter keeps."""
        if table not in self._held:
            self._held[table] = resolve(self._histogram(table) if table else self._total(), self.whole)
        resolved = self._held[table]
        layer: Layer = rows.Blocks(resolved.n_positions, weight=weight)
        if not table:
            layer = rows.Matrix(np.ones((1, resolved.n_positions), dtype=np.int64), weight)
        return Term(resolved, (layer,), factor)

    def home(self, name: str) -> Ints:
        """A cell of an attribute that no filter leaves out, shape (1,)."""
        kept = dict(self.filters).get(name)
        for g in self.groupings:
            if g.name == name and g.labels is not None:
                kept = g.labels >= 0
        return np.zeros(1, dtype=np.int64) if kept is None else np.flatnonzero(kept)[:1]

    def _where(self) -> dict[str, Any]:
        spec = self.query.to_spec()
        return {n: between(v, "marginals.where") for n, v in spec.get("where", {}).items()}

    def _histogram(self, table: Axes) -> Query:
        names = self.names(table)
        bins = {n: v for n, v in self.query.to_spec().get("bins", {}).items() if n in names}
        return Histogram(*names, where=self._where(), bins=bins)

    def _total(self) -> Query:
        """The sum over the positions of any one attribute."""
        where = self._where()
        name = next(iter(where), self.groupings[0].name)
        size = grouping(name, self.whole[name], None, dict(self.query.where).get(name), "marginals").size
        return Linear([[1] * size], name, where=where)

    def tabulate(self, counts: Counts, tables: tuple[Axes, ...]) -> dict[Axes, Ints]:
        """True tables, int64, each of shape (positions of its attributes)."""
        shape = self.shape
        flat = {t: np.zeros(cells(shape, t), dtype=np.int64) for t in tables}
        for codes, numbers in counts.items():
            told = dict(zip(counts.domain.names, counts.domain.decode(codes), strict=True))
            kept = np.ones(len(codes), dtype=bool)
            for name, mask_ in self.filters:
                kept &= mask_[told[name]]
            places = [g.positions(told[g.name]) for g in self.groupings]
            for place in places:
                kept &= place >= 0
            found = numbers[kept]
            places = [place[kept] for place in places]
            for table, total in flat.items():
                index = np.zeros(len(found), dtype=np.int64)
                for i in table:
                    index = index * shape[i] + places[i]
                np.add.at(total, index, found)
        return {t: v.reshape([shape[i] for i in t]) for t, v in flat.items()}


def ask(query: Marginals, whole: Domain) -> Asked:
    """Lay the tables out over a domain.

    Raises:
        SpecificationError: an unknown attribute, bins or a filter that do not fit one, a name that a column needs.
        Unsupported: more than 2,000 tables or 2·10^7 cells.
    """
    tables = query.tables(whole)
    if len(tables) > MAX_TABLES:
        raise Unsupported(f"marginals: {len(tables):,} tables; at most {MAX_TABLES:,} at once.")
    shown = [n for n in whole.names if any(n in t for t in tables)]
    for name in shown:
        if name in TAKEN:
            raise SpecificationError(
                f"marginals: {name!r} is the name of a column of the answers; declare the attribute under another name "
                f"with column={name!r}."
            )
    bins, where = dict(query.bins), dict(query.where)
    groupings = tuple(grouping(n, whole[n], bins.get(n), where.get(n), "marginals") for n in shown)
    filters = []
    for name, told in where.items():
        if name not in shown:
            kept = mask(whole.attribute(name, "marginals.where"), told, f"marginals.where.{name}")
            if not kept.any():
                raise SpecificationError(f"marginals.where.{name}: leaves no cell.")
            filters.append((name, kept))
    axis = {n: i for i, n in enumerate(shown)}
    asked = Asked(
        query, whole, whole.select(*shown, *(n for n, _ in filters)), groupings, tuple(filters),
        tuple(tuple(axis[n] for n in t) for t in tables),
    )  # fmt: skip
    called = [asked.title(t) for t in asked.tables]
    if len(set(called)) < len(called):
        twice = next(n for i, n in enumerate(called) if n in called[:i])
        raise SpecificationError(
            f"marginals: two tables would be called {twice!r}; declare an attribute under another name with column=."
        )
    if asked.n_cells > MAX_CELLS:
        raise Unsupported(
            "marginals: more than 2·10^7 cells would have to be published; use coarser bins or fewer tables."
        )
    return asked
