"""Test problems: four users in the corners of a square, and six people of Paris."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tetraodon as td

Floats = NDArray[np.float64]


def square(n: int, dense: float = 0.0) -> tuple[Floats, td.Domain]:
    """P(user, cell) on n × n cells of the box [−45, 345]², and the grid.

    User x is uniform on the disc of radius 45 m about corner x of a square of side 300 m (overlap by 64 × 64 midpoints of each
    cell); ``dense`` of his mass is spread over the whole box.
    """
    side, radius, fine = 300.0, 45.0, 64
    cell = (side + 2 * radius) / n
    low = -radius + cell * np.arange(n)
    within = low[:, None] + cell * (np.arange(fine) + 0.5) / fine
    joint = np.zeros((4, n, n))
    for user, (x, y) in enumerate([(0.0, 0.0), (side, 0.0), (0.0, side), (side, side)]):
        across = (within - x).ravel()[None, :] ** 2
        for row in range(n):
            inside = (within[row] - y)[:, None] ** 2 + across <= radius**2
            joint[user, row] = inside.sum(0).reshape(n, fine).sum(1)
        joint[user] /= joint[user].sum()
    joint = (1 - dense) * joint + dense / n**2
    return 0.25 * joint.reshape(4, -1), plane(n, n, (-45, 345), (-45, 345))


def plane(rows: int, columns: int, north: tuple[float, float], east: tuple[float, float]) -> td.Domain:
    """A grid of metres: cells in rows from low y."""
    return td.Domain(y=td.Numeric(*north, cells=rows, unit="m"), x=td.Numeric(*east, cells=columns, unit="m"))


def paris(data: Path, columns: int, rows: int, users: int = 6) -> tuple[Floats, Floats]:
    """P(user, cell) of the people with the most check-ins in 8 × 6 km of Paris, equally likely, and distances in metres."""
    south, north, west, east = 48.8286, 48.8798, 2.2855, 2.3909
    found = []
    for line in (data / "gowalla" / "gowalla_paris_checkins.tsv").read_text(encoding="utf-8").splitlines():
        told = line.split("\t")
        lat, lon = float(told[2]), float(told[3])
        if south <= lat <= north and west <= lon <= east:
            found.append((told[0], lat, lon))
    heaviest = [user for user, _ in Counter(row[0] for row in found).most_common(users)]
    joint = np.zeros((users, rows * columns))
    for user, lat, lon in found:
        if user in heaviest:
            i = min(rows - 1, int((lat - south) / (north - south) * rows))
            j = min(columns - 1, int((lon - west) / (east - west) * columns))
            joint[heaviest.index(user), i * columns + j] += 1
    joint /= joint.sum(1, keepdims=True) * users
    radius = 6371008.8
    width = np.radians(east - west) * radius * np.cos(np.radians((south + north) / 2)) / columns
    height = np.radians(north - south) * radius / rows
    i, j = np.divmod(np.arange(rows * columns), columns)
    apart = np.hypot((i[:, None] - i) * height, (j[:, None] - j) * width)
    return joint, apart


def recomputed(arrays: dict[str, Any]) -> float:
    """The bound of an "information" certificate, in bits, from its arrays alone (a stranger's twenty lines)."""
    P, d, L = np.array(arrays["joint"]), np.array(arrays["cost"]), np.asarray(arrays["budget"]).item()
    lam, R = np.asarray(arrays["multiplier"]).item(), np.array(arrays["log_ratio"])
    assert lam >= 0
    P = P / P.sum()
    prior, mass = P.sum(1), P.sum(0)
    R = R - np.maximum(np.log((prior[:, None] * np.exp(R)).sum(0)), 0)
    total = 0.0
    for w in range(P.shape[1]):
        if mass[w] == 0:
            continue
        row = lam * d[w]
        for x in range(P.shape[0]):
            if P[x, w] > 0:
                row = row + P[x, w] / mass[w] * R[x]
        total += mass[w] * row.min()
    return float((total - lam * L) / np.log(2))
