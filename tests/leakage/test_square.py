"""Information and Bayes error of planar Laplace noise for four users round the corners of a square of 300 m, by quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tetraodon import leakage


def densities(rate: float, step: float, reach: float) -> np.ndarray:
    """P(user, square of ``step`` metres), shape (4, n, n), on the plane up to ``reach`` metres from the square's centre.

    Each user is uniform on the disc of 45 m about a corner; squares have the centre of the big square as a corner, and
    their mass is taken at their middle.
    """
    half = math.ceil(reach / step)
    middle = (np.arange(-half, half) + 0.5) * step
    ring, turns = np.polynomial.legendre.leggauss(4)[0], 12
    radius = 45 * np.sqrt((ring + 1) / 2)  # equal areas, by Gauss's rule in r²
    share = np.polynomial.legendre.leggauss(4)[1] / 2 / turns
    one = np.zeros((2 * half, 2 * half))
    for r, weight in zip(radius, share, strict=True):
        for angle in 2 * np.pi * (np.arange(turns) + 0.5) / turns:
            x, y = -150 + r * math.cos(angle), -150 + r * math.sin(angle)
            one += weight * np.exp(-rate * np.sqrt((middle - x)[:, None] ** 2 + (middle - y) ** 2))
    one *= rate**2 / (2 * np.pi) * step**2 / 4
    return np.stack([one, one[::-1], one[:, ::-1], one[::-1, ::-1]])


def table(users: np.ndarray) -> np.ndarray:
    return leakage.normalised(users.reshape(4, -1))


def cells(users: np.ndarray, side: int) -> np.ndarray:
    """Squares of ``side`` steps with one of them centred on the middle of the plane."""
    n = users.shape[1]
    number = np.floor_divide(np.arange(n) - n // 2 + side // 2, side)
    number -= number.min()
    across = np.eye(number.max() + 1)[number]
    return np.einsum("uij,ia,jb->uab", users, across, across, optimize=True)


@pytest.mark.parametrize(
    ("rate", "step", "reach", "bits", "error", "tolerance"),
    [
        (math.log(2) / 100, 10, 2800, 0.5330, 0.4025, 2e-4),
        (math.log(2) / 60, 5, 1700, 1.0349, 0.2413, 2e-4),
        (2 / 60, 3, 700, 1.9243, 0.0172, 5e-4),
        (2 / 90, 4, 950, 1.7088, 0.0674, 5e-4),
        (2 / 150, 5, 1500, 1.1975, 0.1963, 2e-4),
        (2 / 212, 8, 2100, 0.8155, 0.3067, 2e-4),
    ],
)
def test_without_binning(
    rate: float, step: float, reach: float, bits: float, error: float, tolerance: float
) -> None:
    users = densities(rate, step, reach)
    assert users.sum() == pytest.approx(1, abs=5e-3)
    joint = table(users)
    assert leakage.information(joint) == pytest.approx(bits, abs=3 * tolerance)
    assert leakage.bayes_error(joint) == pytest.approx(error, abs=tolerance)


def test_cells_that_straddle_the_axes_cost_the_attacker() -> None:
    users = densities(math.log(2) / 60, 5, 1700)
    golden = {50: 0.2479, 100: 0.2676, 150: 0.3003, 200: 0.3451, 300: 0.4588}
    for side, error in golden.items():
        assert leakage.bayes_error(table(cells(users, side // 5))) == pytest.approx(error, abs=3e-4)
    users = densities(math.log(2) / 100, 10, 2800)
    for side, error in {100: 0.4156, 200: 0.4530, 300: 0.5068}.items():
        assert leakage.bayes_error(table(cells(users, side // 10))) == pytest.approx(error, abs=3e-4)


def test_cells_cut_by_the_axes_lose_nothing() -> None:
    """Each such cell lies on one user's side."""
    users = densities(math.log(2) / 100, 10, 2800)
    merged = users.reshape(4, 56, 10, 56, 10).sum(axis=(2, 4))
    assert leakage.bayes_error(table(merged)) == pytest.approx(leakage.bayes_error(table(users)), abs=1e-12)
