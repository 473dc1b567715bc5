"""Channels of least expected distortion that keep ε, exactly and with a certificate.

    minimise Σ_w π_w Σ_z K[w, z] d(w, z)   such that   K[a, z] ≤ e^{b(a,b)} K[b, z]   for every pair of the policy and output z.

Geo-indistinguishability (all pairs, ε·distance; Bordenabe, Chatzikokolakis, Palamidessi 2014), Blowfish graphs (edges, ε each;
He, Machanavajjhala, Ding 2014), local differential privacy (``Full()``), districts (``Partition``): one programme.

The certificate of kind "distortion" holds arrays ``prior``, ``cost`` (inputs, outputs) and multipliers, one for each inequality
K[below, output] ≤ e^exponent K[above, output] that matters. Its bound is

    Σ_w min_z ( prior_w cost[w, z] + Σ multiplier [w = below, z = output] − Σ e^exponent multiplier [w = above, z = output] ),

which no channel beats that keeps what was asked, since rows sum to 1 and multipliers are not negative.
"""

from __future__ import annotations

import numpy as np

from ..domain import Domain
from ..errors import SpecificationError
from ..exact import Number, positive
from ..graphs import Graph
from ..metrics import Metric
from ..secrets import Secrets
from ..threads import one_thread
from .bounds import bounds_of
from .certificate import Certificate
from .channel import Asked, Channel
from .geometry import Floats, Geometry, distances, plain_domain, unit_of
from .priors import prior_of, source_of
from .reduced import METHODS, proved, solve_bounds
from .repair import repaired
from .symmetry import Group

TOLERANCE = 1e-6


def least_distortion(
    prior: object = "uniform",
    metric: Metric | Floats | None = None,
    secrets: Secrets | Graph | None = None,
    *,
    epsilon: Number,
    domain: Domain | None = None,
    epsilon_per: Number | None = None,
    outputs: Domain | None = None,
    source: str = "private",
    method: str = "auto",
) -> Channel:
    """The channel of least expected distortion that keeps ε, with a certificate of how near to the least it is.

    Values of zero prior mass are in the programme as all others: ε holds for them too. Values that no path of the secret graph
    joins share no constraint; which component a value lies in is disclosed, as the policy says, and one without any edge comes
    out as it is.

    Args:
        prior: "uniform", numbers in cell order, or a charged release of a histogram.
        metric: what distortion is: ``L2`` unless told otherwise, another metric, or a table of losses (values × outputs).
        secrets: a graph, ε for each of its edges; or
        epsilon_per: a length ("km", "100 m", or a number in the domain's unit): ε for each such length between any two values.
        epsilon: exact, above 0.
        domain: of the values; numbered cells unless told otherwise.
        outputs: what may come out; the domain itself unless told otherwise. Others need a table of losses.
        source: where the prior comes from: "public", "released", "disjoint" or "private" (then a release has no proved ε).
        method: "auto"; "exact" (all pairs), "spanner" (few pairs with bounds divided by the longest detour along them: some per
            mille above the least), "highs" (a general solver).

    Returns:
        A channel whose exact table keeps what was asked, and whose ``certificate`` has the value of that table and the bound.

    Raises:
        SpecificationError: a prior of another shape, a negative or undefined loss, neither or both of ``secrets`` and
            ``epsilon_per``.
        Unsupported: more values than the method can do; the message names what can.

    >>> from ..attributes import Point
    >>> grid = Domain(at=Point("x", "y", box=((0, 3), (0, 3)), cell=1, metric="planar"))
    >>> channel = least_distortion(epsilon=1, epsilon_per=1, domain=grid)
    >>> round(channel.distortion(), 4), channel.epsilon_per(1) <= 1, channel.certificate.gap < 1e-5
    (0.8839, True, True)
    """
    if method not in METHODS:
        raise SpecificationError(f"least_distortion.method: one of {', '.join(METHODS)}.")
    amount = positive(epsilon, "epsilon")
    values = _domain(prior, metric) if domain is None else domain
    law = prior_of(prior, values)
    cost = distances(metric, values, outputs)
    bounds = bounds_of(values, amount, secrets, epsilon_per)
    out = values if outputs is None else outputs
    whence = source_of(source, prior)
    group = _symmetries(values, whence) if out == values else None
    with one_thread():
        found = solve_bounds(law[:, None] * cost, bounds, group, method, TOLERANCE)
    table = repaired(found.matrix, bounds)
    place = Geometry(values)
    certificate = Certificate(
        "distortion",
        table.expected(law, cost, place),
        proved(law[:, None] * cost, found.proof),
        unit_of(metric, values) or "",
        {
            "prior": law,
            "cost": cost,
            "below": found.proof.below.astype(np.int32),
            "above": found.proof.above.astype(np.int32),
            "output": found.proof.output.astype(np.int32),
            "exponent": found.proof.exponent,
            "multiplier": found.proof.multiplier,
        },
    )
    settings = {"method": found.route, "pairs": found.pairs, "components": found.components}
    per = None if epsilon_per is None else str(epsilon_per)
    return Channel(
        values, table, out, "least distortion", Asked(amount, per), whence, certificate, settings
    )  # fmt: skip


def _domain(prior: object, metric: object) -> Domain:
    if isinstance(metric, np.ndarray) and metric.ndim == 2 and len(metric):
        return plain_domain(len(metric))
    if isinstance(prior, str) or not hasattr(prior, "__len__"):
        raise SpecificationError("least_distortion.domain: of which values? State domain=.")
    told = np.asarray(prior, dtype=object)
    if not told.size:
        raise SpecificationError("prior: at least one number.")
    return plain_domain(told.size)


def _symmetries(domain: Domain, source: str) -> Group:
    """Candidates: those of the grid, where the domain is one without special cells; none for a private prior, of which it would
    show that it has them."""
    place = Geometry(domain)
    if source != "private" and place.is_grid and place.ordinary.all():
        return Group.of_grid(place.shape)
    return Group.trivial(domain.size)
