"""Collect, re-estimate, re-optimise: a location channel that learns the crowd it protects, from its own outputs.

Each round builds the elastic channel (``blahut_arimoto``) for the law of values as known so far, collects a batch of outputs through it,
and estimates the law again from all outputs, each round's through its own channel: the likeliest law under

    Σ_t Σ_z m_t(z) ln Σ_w θ(w) K_t[w, z],

by the iterative Bayesian update, stopped where the likelihood is within what noise explains (half a nat for each free number,
as of a likelihood ratio): beyond, updates fit the noise and move away from the truth. The first law is public; later ones come from outputs that were paid for, so every channel is a
function of charged answers alone, and a person who takes part in every round loses at most the sum of the rounds' ε per length.
After Biswas and Palamidessi (2022), whose estimate uses the last batch alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, positive
from ..metrics import Metric
from ..reading import kind_of
from .channel import Asked, Channel
from .geometry import Floats, distances
from .likelihood import Rows, likeliest
from .priors import prior_of, source_of, worst
from .rate import blahut_arimoto

GAP = 0.5  # nats for each free number of a law: by so much the truth itself lies below the likeliest law, on average
UPDATES = 3000
MOST_ROUTES = 2**18


@dataclass(frozen=True, eq=False)
class Round:
    """One round.

    Attributes:
        channel: through which its batch was collected.
        counts: outputs counted, shape (cells,).
        law: the law of values estimated from this round's and all earlier outputs.
        spent: ε per length of this and all earlier rounds together, for a person in all of them.
        distance: earth mover's distance between ``law`` and the truth that was given; None without one.
    """

    channel: Channel
    counts: Floats
    law: Floats
    spent: Asked
    distance: float | None


@dataclass(frozen=True, eq=False)
class Learnt:
    """What the rounds found.

    Attributes:
        rounds: in order.
        channel: the elastic channel for the last law, for use from now on; using it costs its own ε each time.
    """

    rounds: tuple[Round, ...]
    channel: Channel

    @property
    def law(self) -> Floats:
        """The last estimate, shape (cells,)."""
        return self.rounds[-1].law

    @property
    def spent(self) -> Asked:
        """ε per length of all rounds together."""
        return self.rounds[-1].spent

    @property
    def source(self) -> str:
        """Where the last law comes from: "released" (from charged outputs), unless the first prior was private."""
        return self.channel.source

    def __str__(self) -> str:
        return f"{len(self.rounds)} rounds, {self.spent} for a person in all of them, law {self.source}"


def privic(
    collect: Callable[[Channel], object],
    *,
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number,
    rounds: int = 5,
    metric: Metric | None = None,
    prior: object = "uniform",
    source: str = "public",
    truth: object = None,
) -> Learnt:
    """Run ``rounds`` rounds of collecting through an elastic channel and estimating the law of values again.

    Args:
        collect: called with each round's channel; gives how often each output came, in cell order. It is the only thing that sees
            values, and what it gives is charged at ``epsilon`` per length for everybody in it.
        domain: of the values, and of the outputs.
        epsilon: exact; what one round costs, for each ``epsilon_per``.
        epsilon_per: a length ("km", "100 m", or a number in the domain's unit).
        rounds: 1 or more.
        metric: of distances; ``L2`` unless told otherwise.
        prior: the first law: "uniform", or numbers in cell order.
        source: where the first law comes from.
        truth: a law to compare with, for experiments on public data; None otherwise.

    Raises:
        SpecificationError: rounds below 1; counts of another shape, or of outputs that the channel never gives.

    >>> from ..attributes import Integer
    >>> line = Domain(x=Integer(0, 4))
    >>> people = np.repeat(np.arange(5), [50, 10, 10, 10, 20])
    >>> found = privic(
    ...     lambda channel: np.bincount(channel.sample(people), minlength=5),
    ...     domain=line, epsilon=2, epsilon_per=1, rounds=2,
    ... )
    >>> str(found)
    '2 rounds, epsilon 4 per 1 for a person in all of them, law released'
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise SpecificationError("privic.rounds: a whole number of at least 1.")
    if not callable(collect):
        raise SpecificationError(f"privic.collect: a function of a channel, not {kind_of(collect)}.")
    amount, law = positive(epsilon, "epsilon"), prior_of(prior, domain)
    whence = source_of(source, prior)
    known = None if truth is None else prior_of(truth, domain, "truth")
    cost = np.zeros((0, 0)) if known is None else distances(metric, domain)
    done: list[Round] = []
    for _ in range(rounds):
        channel = _elastic(law, metric, domain, amount, epsilon_per, whence)
        counts = _counted(collect(channel), channel)
        pooled = [*((one.channel, one.counts) for one in done), (channel, counts)]
        law, whence = estimated(pooled, law), worst(whence, "released")
        spent = Asked(amount * (len(done) + 1), str(epsilon_per))
        apart = None if known is None else earth_mover(law, known, cost)
        done.append(Round(channel, counts, law, spent, apart))
    return Learnt(tuple(done), _elastic(law, metric, domain, amount, epsilon_per, whence))


def _elastic(
    law: Floats, metric: Metric | None, domain: Domain, epsilon: Fraction, per: Number, source: str
) -> Channel:
    return blahut_arimoto(law, metric, domain=domain, epsilon=epsilon, epsilon_per=per, source=source)


def _counted(told: object, channel: Channel) -> Floats:
    try:
        counts = np.asarray(told, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError("privic.collect: how often each output came, in cell order.") from None
    size = channel.outputs.size
    if counts.shape != (size,) or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise SpecificationError(f"privic.collect: {size} counts, one for each output, not all of them 0.")
    return counts


def estimated(batches: list[tuple[Channel, Floats]], start: Floats) -> Floats:
    """The law of values that makes the outputs of all rounds likeliest."""
    tables = [channel.matrix[:, counts > 0] for channel, counts in batches]
    if any((table.sum(0) == 0).any() for table in tables):
        raise SpecificationError("privic.collect: an output is counted that this channel never gives.")
    entries = np.concatenate(tables, axis=1)
    counts = np.concatenate([counts[counts > 0] for _, counts in batches])
    n = len(entries)
    # An input at 0 would stay there.
    begun = 0.99 * start + 0.01 / n
    rows = Rows(entries, np.arange(entries.shape[1]), np.arange(n), entries.shape[1])
    return likeliest(rows, counts, begun, GAP * (n - 1) + 1e-3, UPDATES).law


def earth_mover(a: Floats, b: Floats, cost: Floats) -> float:
    """Least expected distance over which mass must move to turn one law into another (Wasserstein-1), in the unit of ``cost``.

    Args:
        a, b: laws, shape (cells,).
        cost: distances by a metric, (cells, cells): mass that both laws have stays where it is.

    Raises:
        Unsupported: more than 2^18 ways between cells with too much and cells with too little.

    >>> earth_mover(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5]), abs(np.arange(3.0)[:, None] - np.arange(3.0)))
    0.5
    """
    from scipy import sparse
    from scipy.optimize import linprog

    excess = a - b
    giving, taking = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    if not len(giving) or not len(taking):
        return 0.0
    n, m = len(giving), len(taking)
    if n * m > MOST_ROUTES:
        raise Unsupported(
            "privic.truth: earth mover's distances are worked out for about 1,000 cells at most."
        )
    given, taken = excess[giving], -excess[taking]
    out = sparse.kron(sparse.identity(n), np.ones((1, m)))
    into = sparse.kron(np.ones((1, n)), sparse.identity(m))
    rows = sparse.vstack([out, into]).tocsr()[:-1]  # the last follows from the others
    right = np.concatenate([given, taken * (given.sum() / taken.sum())])[:-1]
    done = linprog(cost[np.ix_(giving, taking)].ravel(), A_eq=rows, b_eq=right, method="highs")
    if done.x is None:
        raise Unsupported("privic.truth: HiGHS found no earth mover's distance.")
    return float(done.fun)
