"""What the comparisons share: the instances, timing in processes of their own with a limit, tables of results."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import multiprocessing
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tetraodon as td
from benchmarks.data import source
from tetraodon.channels.geometry import Geometry

RESULTS = Path(__file__).parent / "results"
ENOUGH = 0.5  # seconds
PARIS = ((48.8286, 48.8798), (2.2855, 2.3909))


@dataclass(frozen=True)
class Instance:
    """Secrets, their values on a grid, and how far outputs lie: what every solver is given.

    Attributes:
        joint: P(secret, value), shape (secrets, cells).
        held: cells that some secret takes; peers are given these rows alone, as ours are.
    """

    name: str
    domain: td.Domain
    joint: np.ndarray
    held: np.ndarray

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The joint table of the rows with mass, and their distances from all cells, in metres."""
        every = np.arange(self.domain.size)
        return self.joint[:, self.held], Geometry(self.domain).between(None, self.held[:, None], every)


def _instance(name: str, domain: td.Domain, joint: np.ndarray) -> Instance:
    return Instance(name, domain, joint, np.flatnonzero(joint.sum(axis=0)))


def square(n: int) -> Instance:
    """Four users, one about each corner of a square of 300 m, each even over a disc of radius 45 m, on n × n cells."""
    side, radius, fine = 300.0, 45.0, 64
    cell = (side + 2 * radius) / n
    middle = -radius + cell * (np.arange(n)[:, None] + (np.arange(fine) + 0.5) / fine)
    joint = np.zeros((4, n * n))
    for user, (x, y) in enumerate([(0, 0), (0, side), (side, 0), (side, side)]):
        inside = (middle[:, None, :, None] - x) ** 2 + (middle[None, :, None, :] - y) ** 2 <= radius**2
        joint[user] = inside.mean(axis=(2, 3)).ravel()
    joint /= 4 * joint.sum(axis=1, keepdims=True)
    box = ((-45, 345), (-45, 345))
    at = td.Point("x", "y", box=box, cell=f"{cell:.10g}", metric="planar", unit="m")
    return _instance(f"{n}×{n}", td.Domain(at=at), joint)


def paris(cell: int) -> Instance:
    """The six heaviest users of Gowalla's Paris, equally likely, by their check-ins' frequencies.

    Args:
        cell: 482 m makes 12 × 16 cells, 241 m 24 × 32.

    Raises:
        FileNotFoundError: no data; names the file.
    """
    path = source("gowalla", "gowalla_paris_checkins.tsv")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    (south, north), (west, east) = PARIS
    told = [(r[0], float(r[2]), float(r[3])) for r in rows]
    told = [r for r in told if south <= r[1] <= north and west <= r[2] <= east]
    heavy = [user for user, _ in Counter(r[0] for r in told).most_common(6)]
    at = td.Point("lat", "lon", box=PARIS, cell=cell)
    joint = np.zeros((6, at.n_values))
    told = [r for r in told if r[0] in heavy]
    cells = np.asarray(at.cells(np.array([r[1:] for r in told])))
    np.add.at(joint, ([heavy.index(r[0]) for r in told], cells), 1)
    joint /= 6 * joint.sum(axis=1, keepdims=True)
    return _instance(f"Paris {at.shape[1]}×{at.shape[0]}", td.Domain(at=at), joint)


def unit_grid(n: int) -> td.Domain:
    """n × n cells of 1 km."""
    return td.Domain(at=td.Point("x", "y", box=((0, n), (0, n)), cell=1, metric="planar", unit="km"))


# ----------------------------------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class Solver:
    """One of those compared.

    Attributes:
        solve: returns its numbers by name.
        needs: a package without which it is skipped.
    """

    name: str
    solve: Callable[[], dict[str, Any]]
    needs: str | None = None


@dataclass
class Timed:
    """Best of some rounds.

    Attributes:
        seconds: processor time; None where it ran into the limit.
        peak: GiB of memory of its process at most.
        numbers: what the solver returned.
        failed: why there is nothing.
    """

    seconds: float | None = None
    peak: float = 0.0
    numbers: dict[str, Any] = field(default_factory=dict)
    failed: str = ""

    def text(self, limit: float) -> str:
        if self.failed:
            return self.failed
        return f"> {limit:g} s" if self.seconds is None else f"{self.seconds:.3g} s"


def interleaved(solvers: Sequence[Solver], rounds: int, limit: float, brief: float = 2.0) -> dict[str, Timed]:
    """Each solver in turn, round by round, each time in a fresh fork of this process; the least processor time of each.

    One that takes longer than ``brief`` seconds is not run again, nor is one that fails or runs into the limit.
    """
    found: dict[str, Timed] = {}
    for solver in solvers:
        if solver.needs is not None and importlib.util.find_spec(solver.needs) is None:
            found[solver.name] = Timed(failed=f"skipped: {solver.needs} is not installed")
    for _ in range(rounds):
        for solver in solvers:
            known = found.get(solver.name)
            if known and (known.failed or known.seconds is None or known.seconds > brief):
                continue
            again = _forked(solver.solve, limit)
            if known is None or (again.seconds or limit) < (known.seconds or limit):
                found[solver.name] = again
    return found


def _forked(solve: Callable[[], dict[str, Any]], limit: float) -> Timed:
    """One call in a fork of this process, with a limit of processor time, and four times that of waiting."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_told, args=(solve, there, limit), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(4 * limit):
            return Timed()
        return here.recv()  # type: ignore[no-any-return]
    except EOFError:
        process.join()
        return Timed() if process.exitcode == -signal.SIGXCPU else Timed(failed="ended without an answer")
    finally:
        process.kill()
        process.join()


def _told(solve: Callable[[], dict[str, Any]], to: Any, limit: float) -> None:
    """What is quick is done again until it has taken half a second, and divided."""
    start, runs = time.process_time(), 0
    most = int(start + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    try:
        while not runs or (time.process_time() - start < ENOUGH and runs < 100):
            numbers, runs = solve(), runs + 1
    except Exception as error:
        to.send(Timed(failed=f"{type(error).__name__}: {str(error)[:80]}"))
        return
    seconds = (time.process_time() - start) / runs
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    to.send(Timed(seconds, peak, numbers))


def ratio(ours: Timed, other: Timed, limit: float) -> str:
    """How many times the other's processor time ours is; a lower bound where the other ran into the limit."""
    if other.failed or ours.seconds is None:
        return ""
    return f"> {limit / ours.seconds:.0f}" if other.seconds is None else f"{other.seconds / ours.seconds:.1f}"


# ----------------------------------------------------------------------------------------------------------------- tables


class Results:
    """Rows of a table, printed as they come and kept as Markdown and CSV."""

    def __init__(self, name: str, text: str, columns: Sequence[str], folder: Path) -> None:
        self.path = folder / name
        self.text, self.columns = text, list(columns)
        self.rows: list[list[str]] = []
        print(text, "\n")
        print(" | ".join(self.columns), flush=True)

    def add(self, *values: object) -> None:
        row = ["" if v is None else f"{v:.7g}" if isinstance(v, float) else str(v) for v in values]
        self.rows.append(row)
        print(" | ".join(row), flush=True)

    def keep(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"| {' | '.join(r)} |" for r in (self.columns, ["---"] * len(self.columns), *self.rows)]
        text = self.text + "\n\n" + "\n".join(lines) + "\n"
        self.path.with_suffix(".md").write_text(text, encoding="utf-8")
        with self.path.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([self.columns, *self.rows])


def options(text: str, sizes: Sequence[str]) -> argparse.ArgumentParser:
    """--only, --rounds, --limit and --out."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=list(sizes), choices=list(sizes), help="these instances alone"
    )
    parser.add_argument("--rounds", type=int, default=3, help="repetitions, the least time counts")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a solver may take")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    return parser
