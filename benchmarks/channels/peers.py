"""The same programmes given to other packages: cvxpy with Clarabel, and qif. Neither is needed by tetraodon."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

with contextlib.suppress(ImportError):  # loading them is no part of what is timed
    import cvxpy as cp
with contextlib.suppress(ImportError):
    from qif.mechanism import d_privacy, g_vuln, geo_ind


def warm() -> None:
    """The first programme of a process takes longer than all others."""
    two = np.eye(2) / 2
    if "cp" in globals():
        clarabel_least_leaking(two, 1 - np.eye(2), 0.1)
    if "d_privacy" in globals():
        qif_least_distortion(np.full(2, 0.5), 1 - np.eye(2), 1 - np.eye(2))


def clarabel_least_leaking(joint: np.ndarray, cost: np.ndarray, budget: float) -> dict[str, Any]:
    """Least I(X; Z) by exponential cones; joint (secrets, rows), cost (rows, outputs), all rows with mass."""
    mass, prior = joint.sum(axis=0), joint.sum(axis=1)
    K = cp.Variable(cost.shape, nonneg=True)
    together = joint @ K
    apart = prior[:, None] @ cp.reshape(mass @ K, (1, cost.shape[1]), order="C")
    within = cp.sum(cp.multiply(mass[:, None] * cost, K)) <= budget
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(together, apart))), [cp.sum(K, axis=1) == 1, within])
    return {"value": _solved(problem) / np.log(2), "status": problem.status}


def clarabel_least_distortion(prior: np.ndarray, cost: np.ndarray, bounds: np.ndarray) -> dict[str, Any]:
    """Least expected cost with K[a, z] ≤ e^bounds[a, b] K[b, z] for all pairs."""
    K = cp.Variable(cost.shape, nonneg=True)
    a, b = np.nonzero(~np.eye(len(cost), dtype=bool) & np.isfinite(bounds))
    keep = K[a] <= cp.multiply(np.exp(bounds[a, b])[:, None], K[b])
    goal = cp.Minimize(cp.sum(cp.multiply(prior[:, None] * cost, K)))
    problem = cp.Problem(goal, [cp.sum(K, axis=1) == 1, keep])
    return {"value": _solved(problem), "status": problem.status}


def _solved(problem: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says "inaccurate" in its status too
        problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def qif_least_distortion(prior: np.ndarray, cost: np.ndarray, bounds: np.ndarray) -> dict[str, Any]:
    """The same by qif; pairs with an infinite bound are left out."""
    apart, moved, free = bounds.tolist(), cost.tolist(), (~np.isfinite(bounds)).tolist()
    found = d_privacy.min_loss_given_d(
        prior, len(prior), lambda a, b: apart[a][b], lambda w, z: moved[w][z], "all", lambda a, b: free[a][b]
    )
    return {"value": float((prior[:, None] * found * cost).sum()), "epsilon": realised(found, bounds)}


def realised(matrix: np.ndarray, bounds: np.ndarray) -> float:
    """The largest |ln K[a, z] − ln K[b, z]| over its bound: 1 is what was asked."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(matrix, 0.0))
        worst = 0.0
        for a in range(len(logs)):
            apart = np.abs(logs[a] - logs)
            apart[np.isnan(apart)] = 0.0
            worst = max(worst, float(np.nanmax(np.delete(apart.max(axis=1) / bounds[a], a))))
    return worst


def qif_bayes(joint: np.ndarray, cost: np.ndarray, budget: float) -> dict[str, Any]:
    """Largest Bayes error of the secret: least g-vulnerability of the value, gain P(x | w) for the guess x."""
    mass = joint.sum(axis=0)
    gain, moved = (joint / mass).tolist(), cost.tolist()
    found = g_vuln.min_vuln_given_max_loss(
        mass, cost.shape[1], len(joint), budget, lambda g, w: gain[g][w], lambda w, z: moved[w][z]
    )
    return {"value": 1 - float((joint @ found).max(axis=0).sum())}


def qif_tight_constraints(bounds: np.ndarray) -> np.ndarray:
    """qif's tight constraints."""
    apart = bounds.tolist()
    return np.asarray(d_privacy.tight_constraints(len(bounds), lambda a, b: apart[a][b]))


def qif_planar(kind: str, n: int, epsilon: float) -> np.ndarray:
    """qif's planar noise on an n × n grid of unit cells."""
    return np.asarray(getattr(geo_ind, f"planar_{kind}_grid")(n, n, 1.0, epsilon))
