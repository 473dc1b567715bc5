"""Channels that are learned from the rows they are applied to: their options, training on counts of declared cells, exact tables.

Values are the middles of declared cells, each with as much weight as rows lie in it; what is learned is brought back to cells,
where it is one exact table as any other channel, keeps the asked distance on these rows, and has a certificate for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..axes import Ints
from ..channels.certificate import Certificate
from ..channels.channel import Channel
from ..channels.geometry import MAX_ENTRIES, Floats, Geometry, unit_of
from ..channels.learned import LearnedChannel, learn
from ..channels.learning.samples import Samples, apart, chance
from ..channels.lower_bound import Problem, information_bound, leaked, within
from ..channels.priors import joint_of
from ..channels.table import Table
from ..counting import DENSE
from ..domain import Domain
from ..errors import Refused, SpecificationError, Unsupported, unknown
from ..exact import exact
from ..lengths import measured
from ..metrics import L1, L2, Metric
from ..reading import table
from ..threads import one_thread

KEYS = ("secret", "distortion", "outputs", "steps", "held_out", "metric", "seed", "floor")
FLOORS = ("planar-geometric",)
DEFAULTS: Mapping[str, int] = {"outputs": 128, "steps": 400, "seed": 0}
MOST: Mapping[str, int] = {"outputs": 1024, "steps": 10**6, "seed": 2**31 - 1}
ROWS = 1000  # cells whose exact optimum gives the classifier of the certificate
SECONDS = 30.0
TOLERANCE = 1e-3  # bits
FACTORS = (0.9, 0.94, 0.97, 1.0, 1.03)  # of the multiplier: the classifier is not quite that of all rows
LEAST = -50.0  # log-ratios below are no news
FINISHED, MOST_SECONDS = 0.01, 10.0  # bits and seconds at which the last steps end
SLACK = 1e-12
CHUNK = 1 << 22
NEEDED = (
    "channel.kind: 'learned' needs the extra 'learn': pip install 'tetraodon[learn]'. Nothing was spent. kind = 'least-leaking' needs no "
    "extra."
)


def check_options(told: Mapping[str, Any], where: str) -> None:
    """Refuse options of the wrong kind.

    Raises:
        SpecificationError: names the key.
    """
    for key, what in (
        ("secret", "an attribute whose joint counts with the values are taken from these rows"),
        ("distortion", "how far values may move on average, such as '500 m'"),
    ):
        if key not in told:
            raise SpecificationError(f"{where}.{key}: is missing; {what}.")
    for key, most in MOST.items():
        least = 0 if key == "seed" else 1
        if key in told:
            count = exact(told[key], f"{where}.{key}")
            if count.denominator != 1 or not least <= count <= most:
                raise SpecificationError(f"{where}.{key}: a whole number from {least} to {most:,}.")
    if "held_out" in told and not 0 <= exact(told["held_out"], f"{where}.held_out") <= 0.9:
        raise SpecificationError(f"{where}.held_out: a share of the rows from 0 to 0.9.")
    if "floor" in told:
        _check_floor(told["floor"], f"{where}.floor")


def _check_floor(told: Any, where: str) -> None:
    if isinstance(told, str):
        if told not in FLOORS:
            raise unknown(where, "kind of channel", told, FLOORS)
        return
    floor = table(told, where, "'planar-geometric', or a table such as { epsilon = 1, per = '1 km' }")
    for key in floor:
        if key not in ("epsilon", "per"):
            raise unknown(where, "key", key, ["epsilon", "per"])
    if "epsilon" not in floor or not exact(floor["epsilon"], f"{where}.epsilon") > 0:
        raise SpecificationError(
            f"{where}.epsilon: a number above 0; for every length of per, or along every edge."
        )


def check_fits(told: Mapping[str, Any], domain: Domain, whole: Domain, metric: Metric | None) -> None:
    """Refuse what cannot be learned, by public facts alone, before anything is read.

    Args:
        domain: of the values; ``whole``: of the table.

    Raises:
        Unsupported: the extra is not installed; too many cells.
        SpecificationError: values that have no place, another metric, a distance in another unit.
    """
    if metric is not None and (not isinstance(metric, L1 | L2) or any(w != 1 for _, w in metric.weights)):
        raise SpecificationError(
            "channel.metric: { l2 = {} } or { l1 = {} }, without weights, where a channel is learned."
        )
    first = np.zeros(1, dtype=np.int64)
    Geometry(domain).between(metric, first, first)
    if not length_of(told, domain) > 0:
        raise SpecificationError("channel.distortion: above 0; with 0 values would leave as they are.")
    if domain.size * number_of(told, "outputs") > MAX_ENTRIES:
        raise Unsupported(
            "channel.outputs: more than 2^24 probabilities with these cells; state fewer, or declare coarser cells."
        )
    if domain.size * whole[str(told["secret"])].size > DENSE:
        raise Unsupported("channel.secret: more than 10^7 joint cells with the values; declare coarser ones.")
    if find_spec("jax") is None or find_spec("optax") is None:
        raise Unsupported(NEEDED)


def length_of(told: Mapping[str, Any], domain: Domain) -> float:
    """The asked distance in the values' unit."""
    return float(measured(told["distortion"], Geometry(domain).unit, "channel.distortion"))


def number_of(told: Mapping[str, Any], key: str) -> int:
    """A whole number among the options, or its default."""
    return int(exact(told[key], f"channel.{key}")) if key in told else DEFAULTS[key]


def learned(
    joint: object, domain: Domain, told: Mapping[str, Any], metric: Metric | None, source: str = "private"
) -> Channel:
    """A channel learned from joint counts, on the cells of their domain.

    Its exact table moves these rows by the asked distance at most, on average. Special cells come out as they are. The
    certificate is of kind "information": no channel from these cells to these cells within the distance leaks less than its bound
    about these rows. It is left out where rows and cells together are more than 2^24.

    Args:
        joint: counts, shape (secrets, cells).
        told: options that ``check_options`` admits.
        source: where the counts come from; as private as they are, so is the channel.

    Raises:
        Refused: so few output points cannot keep the distance.
        SpecificationError: a single secret.
    """
    P = joint_of(joint, domain.size)
    P = P[P.sum(axis=1) > 0]
    place, budget = Geometry(domain), length_of(told, domain)
    Q = P * place.ordinary
    if not Q.any():
        raise Refused("channel.secret: no row has a value that lies anywhere.")
    moving = budget / float(Q.sum())  # special cells do not move
    secrets, cells = np.nonzero(Q)
    values, weights = place.points[cells], P[secrets, cells]
    made = _learned(
        secrets, values, weights, told, "manhattan" if isinstance(metric, L1) else "euclidean", moving, source
    )
    samples = Samples.of(secrets, values, weights, "rows")
    law = _finished(_snapped(made, place, samples).channel(domain), Q[Q.any(axis=1)], metric, moving)
    settings = dict(made.settings) | {"distortion": budget, "unit": unit_of(metric, domain) or ""}
    proof = _certificate(law, P, domain, metric, budget)
    return Channel(domain, law, domain, "learned", None, source, proof, settings)


def _learned(
    secrets: Ints,
    values: Floats,
    weights: Floats,
    told: Mapping[str, Any],
    metric: str,
    budget: float,
    source: str,
) -> LearnedChannel:
    """With as many output points as were asked for; with more and more of them, where none were and so few cannot keep the distance."""
    asked = number_of(told, "outputs")
    counts = (
        [asked]
        if "outputs" in told
        else [n for n in (asked, 2 * asked, 4 * asked, 8 * asked) if n <= MOST["outputs"]]
    )
    for count in counts:
        try:
            return learn(
                secrets, values, distortion=budget, metric=metric, weights=weights, prior="rows", outputs=count,
                steps=number_of(told, "steps"), rng=chance(number_of(told, "seed")),
                held_out=float(exact(told.get("held_out", 0), "channel.held_out")), bound=False, source=source,
            )  # fmt: skip
        except Refused:
            if count == counts[-1]:
                raise
    raise AssertionError("a last count returns or raises")


def _snapped(made: LearnedChannel, place: Geometry, samples: Samples) -> LearnedChannel:
    """The same with its output points on middles of cells, and offsets that fit the distance again."""
    from ..channels.learning.training import calibrated

    middles = place.points[place.ordinary]
    near = np.empty(len(made.points), dtype=np.int64)
    step = max(1, CHUNK // len(middles))
    for start in range(0, len(near), step):
        part = slice(start, start + step)
        near[part] = apart(made.points[part], middles, "euclidean").argmin(axis=1)
    atoms = replace(made.atoms, points=made.scale.to(middles[near]))
    scaled = made.scale.rows(samples)
    fitted = calibrated(atoms, scaled, 0.0, scaled)
    return replace(made, atoms=replace(atoms, offsets=0 * atoms.offsets) if fitted is None else fitted)


def _finished(channel: Channel, Q: Floats, metric: Metric | None, budget: float) -> Table:
    """The exact table: what was learned, finished by steps of mirror descent on the cells that these rows lie in, with the outputs
    that were learned. Cells without rows keep what was learned for them.

    Moving output points to middles of cells costs more than it should where cells are large beside the distance; the steps win it
    back (0.226 bits to 0.142 on New York's 32 × 32 cells, where 0.130 is the least possible).

    Args:
        Q: joint law of secrets and ordinary cells, up to a factor, without empty secrets.
        budget: the largest mean distance of these.
    """
    from ..channels import mirror

    law = channel.law
    assert isinstance(law, Table)
    rows = np.flatnonzero(Q.sum(axis=0))
    used = np.flatnonzero(channel.place.ordinary[law.columns])
    cost = channel.place.between(metric, rows[:, None], law.columns[None, used])
    problem = Problem.of(Q[:, rows] / Q.sum(), cost, budget * (1 - SLACK))
    if problem.least() > problem.budget:
        raise Refused("channel.outputs: so few output points, in so large cells, cannot keep the distortion.")
    entries = np.array(law.entries[law.row_of])
    begun = within(problem, entries[np.ix_(rows, used)])
    with one_thread():
        found = mirror.solve(problem.joint, cost, problem.budget, FINISHED, MOST_SECONDS, begun)
    if found.value < leaked(problem, begun):
        begun = np.zeros_like(begun)
        begun[:, found.columns] = found.K
    entries[np.ix_(rows, used)] = within(problem, begun)
    return Table.of(entries, law.columns, law.n_outputs)


def _certificate(
    law: Table, P: Floats, domain: Domain, metric: Metric | None, budget: float
) -> Certificate | None:
    """What the table leaks about these rows, and what no channel on these cells within the distance leaks less than."""
    rows = np.flatnonzero(P.sum(axis=0))
    if len(rows) * domain.size > MAX_ENTRIES:
        return None
    cost = Geometry(domain).between(metric, rows[:, None], np.arange(domain.size)[None, :])
    problem = Problem.of(P[:, rows], cost, budget)
    log_ratio, multiplier = _classifier(problem, rows, domain)
    bounds = [
        (information_bound(problem.joint, cost, budget, log_ratio, f * multiplier), f * multiplier)
        for f in FACTORS
    ]
    bound, multiplier = max(bounds)
    if not bound > 0:  # the prior as classifier and no price for distance say 0
        log_ratio, multiplier, bound = np.zeros_like(log_ratio), 0.0, 0.0
    value = leaked(problem.only(law.columns), law.entries[law.row_of[rows]])
    arrays = {
        "joint": problem.joint, "rows": rows, "cost": cost, "budget": np.asarray(budget),
        "multiplier": np.asarray(multiplier), "log_ratio": log_ratio,
    }  # fmt: skip
    return Certificate("information", max(value, 0.0), bound, "bits", arrays)


def _classifier(problem: Problem, rows: Ints, domain: Domain) -> tuple[Floats, float]:
    """ln q(secret | cell)/p(secret) for every cell and a price of distance: those of the best channel for the heaviest rows."""
    from ..channels.leaking_search import search

    heavy = np.sort(np.argsort(-problem.mass, kind="stable")[:ROWS])
    joint = problem.joint[:, heavy]
    seen = joint.sum(axis=1) > 0
    part = Problem.of(joint[seen] / joint.sum(), problem.cost[heavy], problem.budget)
    place = Geometry(domain)
    shape = place.shape if place.is_grid and place.ordinary.all() else None
    found = search(part, shape, rows[heavy], TOLERANCE, SECONDS)
    log_ratio = np.zeros((len(joint), domain.size))
    log_ratio[seen] = np.maximum(found.log_ratio, LEAST)
    return log_ratio, found.multiplier
