"""What the figures share: where the data lie, how our mechanisms are run many times, how results are kept."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import tetraodon as td
from benchmarks.data import source
from tetraodon import noise, pricing
from tetraodon.answers import Answers, answers
from tetraodon.loss import Loss
from tetraodon.mechanisms import Mechanism
from tetraodon.queries import Query

RESULTS = Path(__file__).parent / "results"
EPSILONS = [Fraction(k, 10) for k in range(1, 11)]
OURS, EXPECTED, PAPER, AGAIN = "ours, measured", "ours, expected", "paper, read off", "paper, run again"

Row = dict[str, Any]


def columns(path: Path, wanted: Sequence[str]) -> list[np.ndarray]:
    """Numeric columns of a gzipped CSV file, by their names."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        told = np.loadtxt(file, delimiter=",", usecols=[names.index(w) for w in wanted], ndmin=2)
    return list(told.T)


def histogram_1d(name: str) -> np.ndarray:
    """One of the 4,096-bin histograms of DPBench."""
    return columns(source("dpbench", "dpbench_1d_4096.csv.gz"), [name])[0].astype(np.int64)


def histogram_2d(name: str) -> np.ndarray:
    """One of the 256 × 256 arrays of DPBench, (longitude, latitude) for TWITTER, both ascending."""
    with gzip.open(source("dpbench", "dpbench_2d_256x256_nonzero.csv.gz"), "rt", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file if line.startswith(name + ",")]
    cells = np.zeros((256, 256), dtype=np.int64)
    for _, i, j, count in rows:
        cells[int(i), int(j)] = int(count)
    return cells


def planned(query: Query, policy: td.Policy, epsilon: Fraction, mechanism: Mechanism | None = None) -> Any:
    """The strategy of a mechanism (None: the one ``auto`` picks), priced under the policy before any data is read."""
    loss = Loss("epsilon", epsilon)
    if mechanism is not None:
        return pricing.price(mechanism, query, policy, loss)
    return pricing.candidates(query, policy, loss)[0]


def draws(strategy: Any, table: np.ndarray, runs: int) -> Iterator[Answers]:
    """Answers drawn afresh ``runs`` times from exact counts, as a release would draw them, without a ledger.

    Args:
        table: shape (groups, positions), exact.
    """
    for _ in range(runs):
        with noise.reserve(strategy.draws) as held:
            yield answers(strategy, strategy.observe(table, int(table.sum()), held))


def keep(name: str, told: Mapping[str, Any], rows: Sequence[Row], folder: Path) -> Path:
    """Write the numbers of a figure: what was run, and one row a line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    lines = [json.dumps(_short(row), ensure_ascii=False) for row in rows]
    head = json.dumps(dict(told), ensure_ascii=False, indent=1)[:-2]
    path.write_text(head + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n", encoding="utf-8")
    return path


def kept(name: str, folder: Path) -> dict[str, Any]:
    """What ``keep`` wrote."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _short(row: Row) -> Row:
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}


def options(text: str, panels: Sequence[str]) -> argparse.ArgumentParser:
    """--panel, --runs, --out and --draw-only."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panel", choices=[*panels, "all"], default="all")
    parser.add_argument("--runs", type=int, default=50, help="repetitions of every measured point")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the numbers and the drawing")
    parser.add_argument("--draw-only", action="store_true", help="draw again from the numbers kept")
    return parser


def arguments(text: str, panels: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    return options(text, panels).parse_args()
