r"""What no channel leaks less than: the lower bound of ``lower_bound``, for outputs anywhere.

    I ≥ Σ_w π_w min_z [ Σ_x p(x | w) ln( q(x | z)/p(x) ) + λ d(w, z) ] − λ L      for every classifier q and every λ ≥ 0.

The least over all places z is taken over boxes: q is constant in each, and d(w, z) is replaced by the distance from w to the
nearest place of the box, which is where the bound gives away a little (at most λ times the boxes' size). Places outside the
box of all values need no look: moving them onto it brings them nearer to every value and, being post-processing, raises no
leakage. q is the classifier of the best channel over boxes for a part of the rows; the bound is for all of them. Boxes are made
smaller where that channel's rows have their least.

In more than three dimensions boxes are too many. There the places are the channel's own output points, and the bound is one
for channels with these outputs. Derived.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from ...threads import one_thread
from .. import leaking_search
from ..geometry import Floats
from ..lower_bound import LN2, MARGIN, Problem, gains, normalised
from .samples import Samples, apart

FIRST = 900  # boxes of a first look
FINER = (1700, 2500)
NEAR = 0.03  # nats within which a box is nearly a row's least
ROWS = 700  # that q is worked out for
TOLERANCE = 1e-3
SECONDS = 30.0
CHUNK = 1 << 22
Boxes = tuple[Floats, Floats]  # low and high corners
MOST_AXES = 3
FACTORS = np.array([0.9, 0.94, 0.97, 1.0, 1.03])  # of the part's multiplier, of which the best is kept


@dataclass(frozen=True)
class Bounded:
    """A lower bound on what any channel within the distortion leaks about these rows.

    Attributes:
        bits: the bound.
        outputs: "anywhere", or "points" where it is one for the channel's own output points.
        boxes: how many boxes, or points.
    """

    bits: float
    outputs: str
    boxes: int


def bounded(
    samples: Samples, budget: float, metric: str, points: Floats, rng: np.random.Generator
) -> Bounded:
    """The bound for these rows; all in scaled coordinates."""
    with one_thread():
        return _bounded(samples, budget, metric, points, rng)


def _bounded(
    samples: Samples, budget: float, metric: str, points: Floats, rng: np.random.Generator
) -> Bounded:
    part = samples.at_most(ROWS, rng)
    if samples.values.shape[1] > MOST_AXES:
        boxes = points, points
        log_ratio, multiplier = _solved(part, boxes, metric, budget)
    else:
        boxes = _boxes(samples.values, FIRST)
        log_ratio, multiplier = _solved(part, boxes, metric, budget)
        for most in FINER:
            boxes = _split(boxes, _looked_at(part, boxes, metric, log_ratio, multiplier), most)
            log_ratio, multiplier = _solved(part, boxes, metric, budget)
    best = _worth(samples, boxes, metric, log_ratio, FACTORS * multiplier, budget)
    outputs = "points" if samples.values.shape[1] > MOST_AXES else "anywhere"
    return Bounded(max(best - MARGIN, 0.0) / LN2, outputs, len(boxes[0]))


def _solved(part: Samples, boxes: Boxes, metric: str, budget: float) -> tuple[Floats, float]:
    """Classifier and multiplier of the least leaking channel over the boxes' centres."""
    rows, joint = part.distinct
    cost = apart(rows, (boxes[0] + boxes[1]) / 2, metric)
    asked = max(budget, float(joint.sum(axis=0) @ cost.min(axis=1)) * (1 + 1e-9))
    problem = Problem.of(joint, cost, asked)
    made = leaking_search.search(problem, None, np.arange(len(rows)), TOLERANCE, SECONDS)
    return normalised(problem, np.maximum(made.log_ratio, -50.0)), made.multiplier


def _boxes(values: Floats, most: int) -> Boxes:
    """Low and high corners of equal boxes that cover all values."""
    start, end = values.min(axis=0), values.max(axis=0)
    axes = values.shape[1]
    width = end - start
    long = width > 0
    if not long.any():
        return start[None], end[None]
    side = (np.prod(width[long]) / most) ** (1 / long.sum())
    counts = np.where(long, np.maximum(1, np.floor(width / side)), 1).astype(int)
    while counts.prod() > most:  # where one side is much shorter than the others
        counts[counts.argmax()] -= 1
    edges = [start[a] + width[a] * np.arange(counts[a] + 1) / counts[a] for a in range(axes)]
    lows = np.stack(np.meshgrid(*[e[:-1] for e in edges], indexing="ij"), axis=-1).reshape(-1, axes)
    highs = np.stack(np.meshgrid(*[e[1:] for e in edges], indexing="ij"), axis=-1).reshape(-1, axes)
    return lows, highs


def _looked_at(part: Samples, boxes: Boxes, metric: str, log_ratio: Floats, multiplier: float) -> Floats:
    """How much of the rows' mass has its least in each box, or nearly: there the boxes' size costs the bound most."""
    values, joint = part.distinct
    mass = joint.sum(axis=0)
    priced = gains(joint / mass, log_ratio) + multiplier * nearest(values, *boxes, metric)
    near = np.exp(-(priced - priced.min(axis=1, keepdims=True)) / NEAR)
    return np.asarray(mass @ (near / near.sum(axis=1, keepdims=True)))


def _split(boxes: Boxes, looks: Floats, most: int) -> Boxes:
    """The boxes that matter most, by looks times longest side, cut in two across it, over and over, until there are so many."""
    held = list(zip(*boxes, looks.tolist(), strict=True))
    waiting = [(-look * float((high - low).max()), at) for at, (low, high, look) in enumerate(held)]
    heapq.heapify(waiting)
    while len(held) < most and waiting[0][0] < 0:
        _, at = heapq.heappop(waiting)
        low, high, look = held[at]
        axis = int((high - low).argmax())
        end, start = high.copy(), low.copy()
        end[axis] = start[axis] = (low[axis] + high[axis]) / 2
        held[at] = low, end, look / 2
        held.append((start, high, look / 2))
        for place in (at, len(held) - 1):
            one, other, half = held[place]
            heapq.heappush(waiting, (-half * float((other - one).max()), place))
    return np.array([low for low, _, _ in held]), np.array([high for _, high, _ in held])


def nearest(values: Floats, low: Floats, high: Floats, metric: str) -> Floats:
    """Distance from each value to the nearest place of each box, shape (values, boxes).

    >>> nearest(np.array([[0.0]]), np.array([[-1.0], [2.0]]), np.array([[1.0], [3.0]]), "euclidean").tolist()
    [[0.0, 2.0]]
    """
    found = np.zeros((len(values), len(low)))
    for axis in range(values.shape[1]):
        at = values[:, axis, None]
        gap = np.maximum(np.maximum(low[None, :, axis] - at, at - high[None, :, axis]), 0.0)
        found += gap if metric == "manhattan" else gap * gap
    return np.sqrt(found, out=found) if metric == "euclidean" else found


def _worth(
    samples: Samples,
    boxes: Boxes,
    metric: str,
    log_ratio: Floats,
    multipliers: Floats,
    budget: float,
) -> float:
    """The bound in nats with one classifier and the best of these multipliers."""
    values, joint = samples.distinct
    mass = joint.sum(axis=0)
    given = joint / mass
    # q is scaled for the prior of the part; for that of all rows it may sum to a little more, which is taken off.
    total = np.log((samples.prior[:, None] * np.exp(log_ratio)).sum(axis=0))
    log_ratio = log_ratio - np.maximum(total, 0.0)
    rows = max(1, CHUNK // len(boxes[0]))
    found = -multipliers * budget
    for start in range(0, len(values), rows):
        part = slice(start, start + rows)
        worth, away = gains(given[:, part], log_ratio), nearest(values[part], *boxes, metric)
        for i, lam in enumerate(multipliers.tolist()):
            found[i] += mass[part] @ (worth + lam * away).min(axis=1)
    return float(found.max())
