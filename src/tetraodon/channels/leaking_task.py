"""What is asked of a least leaking channel, on arrays: the secrets and values that have mass, and the way back to the domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Domain, a_domain
from ..errors import SpecificationError
from ..exact import Number
from ..lengths import measured
from ..metrics import Metric
from .certificate import Certificate
from .channel import Asked, Channel
from .geometry import MAX_ENTRIES, Floats, Geometry, distances, plain_domain, unit_of
from .leaking_search import pruned
from .lower_bound import Ints, Problem, Solved, information_bound, leaked, within
from .priors import joint_of
from .table import Table

BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Task:
    """What was asked, on arrays: the problem of the secrets and rows with mass, and how to come back to the domain."""

    domain: Domain
    outputs: Domain
    joint: Floats  # whole
    cost: Floats | None  # whole, if it is a table of losses
    metric: Metric | None
    rows: Ints
    kept: Ints  # secrets with mass
    declared: bool  # whether neighbouring cells are near each other, for all that is known
    problem: Problem

    @classmethod
    def of(
        cls, joint: object, metric: object, domain: Domain | None, outputs: Domain | None, distortion: Number
    ) -> Task:
        values = _values(joint, metric) if domain is None else a_domain(domain, "domain")
        out = values if outputs is None else a_domain(outputs, "outputs")
        whole = joint_of(joint, values.size)
        budget = float(measured(distortion, unit_of(metric, values), "distortion"))
        rows, kept = np.flatnonzero(whole.sum(0) > 0), np.flatnonzero(whole.sum(1) > 0)
        known = metric is None or hasattr(metric, "to_spec")
        if known and out == values:
            cost, told = None, metric
            part = Geometry(values).between(metric, rows[:, None], np.arange(values.size))  # type: ignore[arg-type]
        else:
            cost, told = distances(metric, values, out), None
            part = cost[rows]
        problem = Problem.of(whole[np.ix_(kept, rows)], part, budget)
        declared = domain is not None or cost is None
        return cls(values, out, whole, cost, told, rows, kept, declared, problem)  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns, where values and outputs are the cells of one grid."""
        place = Geometry(self.domain)
        regular = self.declared and self.outputs == self.domain and place.is_grid
        return place.shape if regular and place.ordinary.all() else None

    @property
    def row_of(self) -> Ints:
        """The row of the problem that each value follows: its own, or that of the nearest value with mass."""
        size = self.domain.size
        if len(self.rows) == size:
            return np.arange(size)
        found = np.empty(size, dtype=np.int64)
        found[self.rows] = np.arange(len(self.rows))
        rest = np.setdiff1d(np.arange(size), self.rows)
        block = max(BLOCK // len(self.rows), 1)
        for start in range(0, len(rest), block):
            part = rest[start : start + block]
            found[part] = self._apart(part).argmin(1)
        return found

    def _apart(self, cells: Ints) -> Floats:
        if self.cost is None:
            return Geometry(self.domain).between(self.metric, cells[:, None], self.rows[None, :])
        if self.outputs == self.domain:
            return self.cost[np.ix_(cells, self.rows)]
        return np.stack([np.abs(self.cost[c] - self.problem.cost).sum(1) for c in cells])

    def table(self, K: Floats, used: Ints) -> Table:
        """The exact table of a channel of the problem's rows, within the budget."""
        part = self.problem.only(used)
        row_of = self.row_of
        for share in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
            least = part.least()
            budget = max(part.budget - share * max(part.budget, 1.0), least)
            within_it = within(Problem.of(part.joint, part.cost, budget), K)
            table = Table.of(within_it, used, self.outputs.size, row_of)
            if self.spent(table) <= self.problem.budget:
                break
        return table

    def spent(self, table: Table) -> float:
        """The expected cost of an exact table."""
        return self.problem.only(table.columns).distortion(table.entries)

    def channel(self, found: Solved, source: str) -> Channel:
        K, used = pruned(self.problem, found)
        table = self.table(K, used)
        settings = {"leakage": "information", "steps": found.steps}
        return self.made(table, self._certificate(table, found), None, source, settings)

    def made(
        self, table: Table, proof: Certificate, asked: Asked | None, source: str, settings: dict[str, Any]
    ) -> Channel:
        told = {
            **settings,
            "distortion": self.problem.budget,
            "unit": unit_of(self.measure, self.domain) or "",
        }
        return Channel(self.domain, table, self.outputs, "least leaking", asked, source, proof, told)

    @property
    def measure(self) -> object:
        return self.metric if self.cost is None else self.cost

    def _certificate(self, table: Table, found: Solved) -> Certificate:
        problem = self.problem
        bound = information_bound(
            problem.joint, problem.cost, problem.budget, found.log_ratio, found.multiplier
        )
        value = leaked(problem.only(table.columns), table.entries)
        arrays = self.statement() | {
            "multiplier": np.asarray(found.multiplier),
            "log_ratio": found.log_ratio,
        }
        return Certificate("information", max(value, 0.0), max(bound, 0.0), "bits", arrays)

    def statement(self) -> dict[str, Any]:
        """The problem itself; a table of costs beyond 2^24 numbers is left to the metric."""
        problem = self.problem
        told = {"joint": problem.joint, "rows": self.rows, "budget": np.asarray(problem.budget)}
        return told | ({"cost": problem.cost} if problem.cost.size <= MAX_ENTRIES else {})


def _values(joint: object, metric: object) -> Domain:
    if isinstance(metric, np.ndarray) and metric.ndim == 2 and len(metric):
        return plain_domain(len(metric))
    try:
        told = np.array(joint, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError("joint: a table of numbers, one row for each secret.") from None
    if told.ndim != 2 or not told.size:
        raise SpecificationError("joint: a table of shape (secrets, values); or state domain=.")
    return plain_domain(told.shape[1])
