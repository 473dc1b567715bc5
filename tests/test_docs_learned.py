"""docs/learned.md: its figures are those of the benchmarks, its example runs, and what it says of the form is so."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "learned.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "learned" / "results"


def test_the_figures_are_those_of_the_benchmarks() -> None:
    held: list[str] = []
    for name in ("relaxed", "square", "paris", "features"):
        with (RESULTS / f"{name}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                bound = f"{float(row['certified bound']):.3f}" if row["certified bound"] else ""
                numbers = f"{float(row['bits']):.3f} | {float(row['Bayes error']):.3f}"
                held.append(
                    f"| {row['people']} | {row['distortion']} | {row['channel']} | {numbers} | {bound} |"
                )
    shown = re.findall(r"^\| (?:square|Paris|8 dimensions).*$", TEXT, flags=re.MULTILINE)
    assert len(shown) >= 12
    for line in shown:
        assert line in held, line


def test_swapping_is_what_the_page_says() -> None:
    with (RESULTS / "rounds.csv").open(encoding="utf-8") as file:
        *_, last = csv.DictReader(file)
    assert float(last["cross-entropy, best answers"]) > 1.6
    assert float(last["information, steps"]) == pytest.approx(0.6484, abs=1e-3)


def test_mirror_descent_keeps_the_form() -> None:
    """From an even start, ln P(z | w) − ln P(z' | w) is Σ_x p(x | w) (a[x, z] − a[x, z']) − Λ (d(w, z) − d(w, z')) after every step."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(18)).reshape(3, 6)
    given, cost = joint / joint.sum(axis=0), rng.uniform(size=(6, 5))
    P = np.full((6, 5), 0.2)
    lam = 0.7
    for _ in range(20):
        J = joint @ P
        gain = given.T @ np.log(J / J.sum(axis=0) / joint.sum(axis=1, keepdims=True))
        P = P * np.exp(-1.3 * (gain + lam * cost))
        P /= P.sum(axis=1, keepdims=True)
    logs = np.log(P) - np.log(P)[:, :1]
    away = cost - cost[:, :1]
    # Unknown: a[x, z] − a[x, 0] for each secret and output, and one Λ for all.
    design = np.concatenate([np.kron(given.T, np.eye(5)), -away.reshape(-1, 1)], axis=1)
    found, *_ = np.linalg.lstsq(design, logs.ravel(), rcond=None)
    assert design @ found == pytest.approx(logs.ravel(), abs=1e-9)
    assert found[-1] == pytest.approx(20 * 1.3 * lam, rel=1e-6)


@pytest.mark.learn
@pytest.mark.slow
def test_the_example_runs() -> None:
    pytest.importorskip("jax")
    [block] = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    held: dict[str, object] = {}
    exec(block, held)
    moved = held["moved"]
    assert isinstance(moved, np.ndarray) and moved.shape == (1500, 8)
