"""Channels that leak the least about a secret within a distortion budget, with a proof of how little any channel could.

The secret X (a user, a diagnosis) is not the value W (a place): P(x, w) says how they go together, and

    min over channels K of  I(X; Z)   with   Σ_w π_w Σ_z K[w, z] d(w, z) ≤ L

is convex. It is solved by a structured interior point (``interior``) on the outputs that matter (``columns``), by mirror
descent where that would be too large, and certified by a classifier and a multiplier (``lower_bound``). With ε along pairs of
values besides, ``joint_program``; against an attacker with one guess instead, ``bayes``.

Values that no secret ever takes are replaced as the nearest value that some secret takes is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, positive
from ..graphs import Graph
from ..metrics import Metric
from ..reading import listed
from ..secrets import Secrets
from ..threads import one_thread
from .bounds import Bounds, bounds_of
from .certificate import Certificate
from .channel import Asked, Channel
from .geometry import Floats, Geometry, distances
from .leaking_search import Trail, follow, search
from .leaking_task import Task
from .lower_bound import Solved
from .priors import source_of


def least_leaking(
    joint: object,
    metric: Metric | Floats | None = None,
    *,
    distortion: Number,
    domain: Domain | None = None,
    outputs: Domain | None = None,
    leakage: Literal["information", "bayes"] = "information",
    secrets: Secrets | Graph | None = None,
    epsilon: Number | None = None,
    epsilon_per: Number | None = None,
    source: str = "private",
    tolerance: float = 1e-4,
    max_seconds: float = 600.0,
) -> Channel:
    """The channel of expected distortion at most ``distortion`` that leaks the least about the secret, with a certificate.

    Args:
        joint: P(secret, value), shape (secrets, values), or counts; divided by its sum.
        metric: what distortion is: ``L2`` unless told otherwise, another metric, or a table of losses (values × outputs).
        distortion: L, the most that Σ P(w) K[w, z] d(w, z) may be, in the domain's unit (or "500 m").
        domain: of the values; numbered cells unless told otherwise.
        outputs: what may come out; the domain itself unless told otherwise. Others need a table of losses.
        leakage: "information" (bits of I(secret; output)) or "bayes" (the error of the best single guess, made largest).
        secrets, epsilon, epsilon_per: besides, ε along the edges of this graph or for each such length, as in
            ``least_distortion``; only with "information".
        source: where ``joint`` comes from: "public", "released", "disjoint" or "private" (then a release has no proved ε, and
            matrix, certificate and distortion are private).
        tolerance: certified gap at which to stop: bits, or probability with "bayes".
        max_seconds: wall clock for the search; after it the channel has the gap that its certificate says.

    Returns:
        A channel whose exact table keeps the budget. Its certificate, of kind "information" or "bayes", holds ``joint`` and
        ``cost`` (rows with mass only, named by ``rows``), ``budget``, ``multiplier`` and ``log_ratio`` = ln q(x | z)/p(x) for every output
        (``strategy`` y(g | z) with "bayes").

    Raises:
        SpecificationError: shapes that do not fit, negative or undefined numbers.
        Unreachable: the budget is below what any channel needs; the message names the least.
        Unsupported: ``epsilon`` with "bayes"; too many values with ``epsilon``.

    Source: problem and game of Romanelli, Chatzikokolakis, Palamidessi 2020; solver, bound and pricing derived.

    >>> from ..attributes import Integer
    >>> line = Domain(x=Integer(0, 4))
    >>> ends = [[3, 1, 0, 0, 0], [0, 0, 0, 1, 3]]
    >>> channel = least_leaking(ends, distortion=1, domain=line, source="public")
    >>> round(channel.leakage(ends), 3), channel.certificate.gap <= 1e-4
    (0.104, True)
    """
    if leakage not in ("information", "bayes"):
        raise SpecificationError('least_leaking.leakage: "information" or "bayes".')
    if not (isinstance(tolerance, float | int) and 0 < tolerance < inf):
        raise SpecificationError("least_leaking.tolerance: a number above 0.")
    task = Task.of(joint, metric, domain, outputs, distortion)
    with one_thread():
        if epsilon is not None or epsilon_per is not None or secrets is not None:
            return _promised(
                task, leakage, secrets, epsilon, epsilon_per, source_of(source, joint), tolerance
            )
        if leakage == "bayes":
            return _guessed(task, source_of(source, joint), tolerance)
        found = search(task.problem, task.shape, task.rows, tolerance, max_seconds)
        return task.channel(found, source_of(source, joint))


@dataclass(frozen=True)
class Trade:
    """One point of a trade-off curve: what leaks at a distortion.

    Attributes:
        distortion: the budget.
        leakage: of the channel found, bits.
        bound: no channel within the budget leaks less, bits.
        bayes_error: how often the best guess of the secret from the channel's output is wrong.
        channel: the channel itself.
    """

    distortion: float
    leakage: float
    bound: float
    bayes_error: float
    channel: Channel

    @property
    def gap(self) -> float:
        """Bits between the channel and the bound."""
        return max(self.leakage - max(self.bound, 0.0), 0.0)


def curve(
    joint: object,
    metric: Metric | Floats | None = None,
    distortions: Sequence[Number] = (),
    *,
    domain: Domain | None = None,
    outputs: Domain | None = None,
    source: str = "private",
    tolerance: float = 1e-4,
    max_seconds: float = 600.0,
) -> list[Trade]:
    """The least leakage at each of several distortions, in the order given.

    The outputs that one budget uses are where the next one begins, and every certificate bounds all budgets: the optimum is
    convex in the budget and its slope is minus the multiplier, so that ``bound`` is the best of all of them.

    Args:
        distortions: budgets, as ``least_leaking`` takes them; the other arguments are its as well (``max_seconds`` for each).

    Raises:
        as ``least_leaking``.

    >>> from ..attributes import Integer
    >>> ends = [[3, 1, 0, 0, 0], [0, 0, 0, 1, 3]]
    >>> points = curve(ends, distortions=[0.5, 1, 2], domain=Domain(x=Integer(0, 4)), source="public")
    >>> [round(point.leakage, 2) for point in points]
    [0.33, 0.1, 0.0]
    """
    distortions = listed(distortions, "curve.distortions", "a list of distortions")
    if not distortions:
        raise SpecificationError("curve.distortions: at least one, given by name: distortions=[…].")
    tasks = [Task.of(joint, metric, domain, outputs, told) for told in distortions]
    order = sorted(range(len(tasks)), key=lambda i: tasks[i].problem.budget)
    made: dict[int, tuple[Channel, Solved]] = {}
    last: Trail | None = None
    with one_thread():
        for i in order:
            task = tasks[i]
            last = follow(task.problem, task.shape, task.rows, tolerance, max_seconds, last)
            made[i] = (task.channel(last.found, source_of(source, joint)), last.found)
    lines = [(t.problem.budget, f.bound, f.multiplier) for t, (_, f) in ((tasks[i], made[i]) for i in order)]
    points = []
    for i, task in enumerate(tasks):
        channel, budget = made[i][0], task.problem.budget
        least = max(bound + lam / np.log(2) * (at - budget) for at, bound, lam in lines)
        told = channel.pushed(task.joint)
        points.append(
            Trade(budget, channel.leakage(task.joint), float(least), 1.0 - float(told.max(0).sum()), channel)
        )
    return points


def _guessed(task: Task, source: str, tolerance: float) -> Channel:
    from . import bayes

    problem = task.problem
    found = bayes.solve(problem.joint, problem.cost, problem.budget, tolerance=min(tolerance, 1e-6))
    table = task.table(found.K, found.columns)
    pushed = problem.joint @ table.entries
    least = bayes.gain_bound(
        found.gains, problem.mass, problem.cost, problem.budget, found.strategy, found.multiplier
    )
    arrays = task.statement() | {
        "multiplier": np.asarray(found.multiplier),
        "strategy": found.strategy,
    }
    proof = Certificate("bayes", 1.0 - float(pushed.max(0).sum()), 1.0 - least, "probability", arrays)
    return task.made(table, proof, None, source, {"leakage": "bayes", "steps": found.steps})


def _promised(
    task: Task,
    leakage: str,
    secrets: Secrets | Graph | None,
    epsilon: Number | None,
    epsilon_per: Number | None,
    source: str,
    tolerance: float,
) -> Channel:
    """With ε along pairs besides: all rows are in the program, and the repair keeps the pairs exactly."""
    from . import joint_program
    from .repair import repaired

    if epsilon is None:
        raise SpecificationError("least_leaking: secrets or epsilon_per without epsilon; state epsilon=.")
    if leakage == "bayes":
        raise Unsupported('least_leaking: epsilon goes with leakage="information".')
    bounds: Bounds = bounds_of(task.domain, epsilon, secrets, epsilon_per)
    budget = task.problem.budget
    cost = distances(task.measure, task.domain, task.outputs)
    joint = task.joint[task.kept]
    for share in (0.0, 1e-6, 1e-5, 1e-4):
        found = joint_program.solve(
            joint, cost, budget * (1 - share), bounds.dense(task.domain.size), min(tolerance, 1e-5)
        )
        table = repaired(found.K, bounds, found.columns, task.outputs.size)
        if table.expected(joint.sum(0), cost, Geometry(task.domain)) <= budget:
            break
    bound = joint_program.joint_bound(
        joint, cost, budget, found.log_ratio, found.multiplier,
        found.first, found.second, found.exponents, found.multipliers,
    )  # fmt: skip
    from ..leakage.measures import information

    arrays = {
        "joint": joint,
        "rows": np.arange(task.domain.size),
        "cost": cost,
        "budget": np.asarray(budget),
        "multiplier": np.asarray(found.multiplier),
        "log_ratio": found.log_ratio,
        "first": found.first,
        "second": found.second,
        "exponents": found.exponents,
        "multipliers": found.multipliers,
    }
    proof = Certificate("information", float(information(table.push(joint))), max(bound, 0.0), "bits", arrays)
    asked = Asked(positive(epsilon, "epsilon"), None if epsilon_per is None else str(epsilon_per))
    return task.made(table, proof, asked, source, {"leakage": "information", "steps": found.steps})
