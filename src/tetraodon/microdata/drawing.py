"""Rows drawn from a plan: each gets the columns of a donor of its group, or of a cluster's prototype, by exact chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..axes import Ints
from ..errors import Refused
from ..noise import below
from .data import Data, parts_of
from .distances import apart
from .plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """What is published of each row, in the rows' own order. Private until it is shuffled.

    Attributes:
        groups: of each private column, the group of each row.
        clusters: the cluster whose columns each row gets.
        donors: the row whose columns each row gets; None where prototypes are published.
        realised: mean distance of this draw.
    """

    groups: tuple[Ints, ...]
    clusters: Ints
    donors: Ints | None
    realised: float


def drawn(plan: Plan, data: Data) -> Drawn:
    """Draw once. Donors are rows of ``data`` itself; k, alpha, l, beta and the donors are tested on them again.

    Args:
        data: the fitted rows, or others with the same columns and values.

    Raises:
        Refused: other rows that do not meet the requirements in some group, or that have no donor.
    """
    fitted = plan.prepared
    clusters = (
        fitted.clusters.labels if data is fitted.data else np.asarray(fitted.clusters.assign(data.features))
    )
    joint = plan.joint_group(data.codes)
    check(plan, data, joint)
    groups = int(np.prod(plan.sizes))
    starts, members = _cells(data, joint, clusters, fitted.clusters.number, groups)
    targets = np.full(data.rows, -1, dtype=np.int64)
    donors = np.full(data.rows, -1, dtype=np.int64)
    number = fitted.clusters.number
    for law in plan.laws:
        own = np.flatnonzero((joint == law.group) & (data.classes == law.class_))
        if not len(own):
            continue
        place = np.full(number, -1, dtype=np.int64)
        place[law.rows] = np.arange(len(law.rows))
        rows = place[clusters[own]]
        first = (law.class_ * groups + law.group) * number
        sizes = np.diff(starts[first : first + number + 1])
        used = law.columns[law.table.columns]
        if (rows < 0).any() or (
            plan.settings.published == "donors" and (sizes[used] < plan.settings.donors).any()
        ):
            raise _unlike()
        chosen = law.columns[law.table.draw(rows)]
        targets[own] = chosen
        if plan.settings.published == "donors":
            donors[own] = members[starts[first + chosen] + below(sizes[chosen])]
    if (targets < 0).any():
        raise _unlike()
    parts = tuple(g[c] for g, c in zip(plan.group_of, data.codes, strict=True))
    if plan.settings.published == "prototypes":
        return Drawn(parts, targets, None, _to_prototypes(plan, data, targets))
    return Drawn(parts, targets, donors, _to_donors(plan, data, donors))


def check(plan: Plan, data: Data, joint: Ints) -> None:
    """Refuse rows that do not meet the requirements in some published group.

    Raises:
        Refused: the message names the requirements, and neither the group nor a count.
    """
    need = plan.settings.requirements
    counts = np.bincount(data.values, minlength=data.n_values)
    of_value = np.full(data.n_values, -1, dtype=np.int64)
    of_value[data.values] = joint
    seen = np.flatnonzero(of_value >= 0)
    if len(data.columns) == 1:
        need.check(counts[seen], of_value[seen])
        return
    from .fit import holds_jointly

    if not holds_jointly(need, data, plan.group_of):
        raise Refused(
            "hybrid: these rows do not meet k, alpha, l or beta in every group. Fit on the rows that are published."
        )


def _cells(data: Data, joint: Ints, clusters: Ints, number: int, groups: int) -> tuple[Ints, Ints]:
    """Rows sorted by class, group and cluster, and where each such cell starts among them."""
    keys = (data.classes * groups + joint) * number + clusters
    order = np.argsort(keys, kind="stable").astype(np.int64)
    counts = np.bincount(keys, minlength=data.n_classes * groups * number)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), order


def _unlike() -> Refused:
    return Refused(
        "hybrid: these rows have a cluster or a group without enough donors among them, which the plan was not made for. Fit on the "
        "rows that are published."
    )


def _to_donors(plan: Plan, data: Data, donors: Ints) -> float:
    total = 0.0
    for part in parts_of(data.rows):
        own, given = data.features.take(part), data.features.take(donors[part])
        every = np.arange(len(part))
        total += float(apart(own, every, every, plan.settings.metric, given).sum())
    return total / data.rows


def _to_prototypes(plan: Plan, data: Data, targets: Ints) -> float:
    prototypes, every = plan.prepared.clusters.prototypes, np.arange(data.rows)
    return float(apart(data.features, every, targets, plan.settings.metric, prototypes).mean())
