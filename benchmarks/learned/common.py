"""What the tables of learned channels share: the people, planar Laplace noise worked out, and time without compilation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.channels.common import PARIS
from benchmarks.data import source
from tetraodon.channels.learning.rivals import Laplace, known_law
from tetraodon.channels.learning.samples import Samples

SIDE, RADIUS = 300.0, 45.0
CORNERS = SIDE * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
METRES = 111_195.0  # of a degree of latitude
HEAVIEST = 6


@dataclass(frozen=True, eq=False)
class People:
    """Rows to learn from, and rows that stand for the truth.

    Attributes:
        secrets, values: to learn from.
        truth: secrets and values that a channel is scored on: a quadrature, fresh rows, or the same rows.
    """

    name: str
    secrets: Any
    values: Any
    truth: tuple[Any, Any]


def square(rows: int, seed: int = 1) -> People:
    """Four users, one about each corner of a square of 300 m, each even over a disc of 45 m; scored by quadrature."""
    rng = np.random.default_rng(seed)
    radius, turn = RADIUS * np.sqrt(rng.uniform(size=(4, rows))), rng.uniform(0, 2 * np.pi, (4, rows))
    at = CORNERS[:, None] + np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=-1)
    rings, turns = 60, 240
    far = RADIUS * np.sqrt((np.arange(rings) + 0.5) / rings)
    angle = (np.arange(turns) + 0.5) * 2 * np.pi / turns
    disc = np.stack([np.outer(far, np.cos(angle)), np.outer(far, np.sin(angle))], axis=-1).reshape(-1, 2)
    places = CORNERS[:, None] + disc
    truth = np.repeat(np.arange(4), places.shape[1]), places.reshape(-1, 2)
    return People("square", np.repeat(np.arange(4), rows), at.reshape(-1, 2), truth)


def paris() -> People:
    """The six heaviest users of Gowalla's Paris in metres, by their check-ins; scored on the same rows.

    Raises:
        FileNotFoundError: no data; names the file.
    """
    path = source("gowalla", "gowalla_paris_checkins.tsv")
    told = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    (south, north), (west, east) = PARIS
    kept = [(r[0], float(r[2]), float(r[3])) for r in told]
    kept = [r for r in kept if south <= r[1] <= north and west <= r[2] <= east]
    heavy = [user for user, _ in Counter(r[0] for r in kept).most_common(HEAVIEST)]
    kept = [r for r in kept if r[0] in heavy]
    middle = (south + north) / 2
    at = np.array([[(lon - west) * np.cos(np.radians(middle)), lat - south] for _, lat, lon in kept]) * METRES
    secrets = np.array([r[0] for r in kept])
    return People("Paris", secrets, at, (secrets, at))


def features(rows: int, users: int = 20, axes: int = 8, seed: int = 3) -> People:
    """Users with habits in eight dimensions: each a mixture of two places of his own; scored on fresh rows."""
    rng = np.random.default_rng(seed)
    homes = 2.0 * rng.normal(size=(users, 2, axes))

    def drawn(count: int) -> tuple[Any, Any]:
        secrets = np.repeat(np.arange(users), count)
        which = (rng.uniform(size=len(secrets)) < 0.3).astype(int)
        return secrets, homes[secrets, which] + rng.normal(size=(len(secrets), axes))

    secrets, values = drawn(rows)
    return People(f"{axes} dimensions, {users} secrets", secrets, values, drawn(rows))


def laplace(people: People, distortion: float) -> tuple[float, float]:
    """Bits and Bayes error of spherical Laplace noise of this expected distance, of the rows that count as the truth."""
    rng = np.random.default_rng(0)
    truth = Samples.of(*people.truth)
    told = known_law(Laplace.of(distortion, truth.values.shape[1], "euclidean", rng), truth, 0.99)
    return told.bits, told.error


def timed(make: Callable[[], Any]) -> tuple[Any, float, float]:
    """What comes of it, with processor seconds and seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = make()
    return found, time.process_time() - cpu, time.perf_counter() - wall
