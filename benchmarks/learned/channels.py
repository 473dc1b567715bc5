"""Learned channels beside planar Laplace noise, the paper's game and the certified optimum of a grid.

    python -m benchmarks.learned.channels [--only relaxed square paris features] [--out FOLDER] [--game]

Bits and Bayes error of rows that were not learned from: by quadrature over the discs (square), of the check-ins themselves (Paris),
of fresh rows (features). Of channels with output points they are exact for these rows; of noise that was learned they are what the
strongest fresh attacker finds. Seconds are of the processor, on however many cores there are, compilation included.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import tetraodon as td
from benchmarks.channels.common import Results
from benchmarks.channels.common import paris as on_grid
from benchmarks.channels.common import square as square_on_grid

from .common import People, features, laplace, paris, square, timed

RESULTS = Path(__file__).parent / "results"
COLUMNS = [
    "people",
    "distortion",
    "channel",
    "bits",
    "Bayes error",
    "distortion kept",
    "certified bound",
    "seconds",
]
GROUPS = ("relaxed", "square", "paris", "features")
TEXT = (
    "Learned channels. Bits and Bayes error of rows that were not learned from (Paris: of the rows themselves); certified bound: no "
    "channel within the distortion leaks less of the rows learned from. Device: {device}. Processor seconds, compilation included."
)


def device() -> str:
    """What JAX computes on."""
    import jax

    return str(jax.devices()[0])


def learned(results: Results, people: People, budget: float, **more: Any) -> Any:
    """A channel with output points."""
    made, cpu, _ = timed(lambda: td.channels.learn(people.secrets, people.values, distortion=budget, **more))
    told = (
        made.leakage_of(*people.truth),
        made.bayes_error_of(*people.truth),
        made.distortion_of(*people.truth),
    )
    results.add(people.name, budget, "learned", *told, None if made.bound is None else made.bound.bits, cpu)
    return made


def game(results: Results, people: People, budget: float, objective: str, **more: Any) -> None:
    """Noise learned in the adversarial game."""
    made, cpu, _ = timed(
        lambda: td.channels.learn(
            people.secrets, people.values, distortion=budget, generator="noise", objective=objective, bound=False, **more
        )
    )  # fmt: skip
    judged = made.judge(*people.truth, beside=False, rng=np.random.default_rng(0))
    found = judged.most_shown(), judged.strongest()
    results.add(
        people.name, budget, f"game, {objective}", max(found[0].leakage, 0.0), found[1].error, made.distortion_of(*people.truth), None, cpu
    )  # fmt: skip


def grid(results: Results, people: People, budget: float, cells: list[Any]) -> None:
    """The exact optimum on grids."""
    for instance in cells:
        made, cpu, _ = timed(
            lambda i=instance: td.channels.least_leaking(
                i.joint, distortion=budget, domain=i.domain, source="public"
            )
        )
        told = made.certificate
        spent = made.distortion(instance.joint.sum(axis=0))
        results.add(
            people.name, budget, f"exact, {instance.name}", told.value, made.bayes_error(instance.joint), spent, told.bound, cpu
        )  # fmt: skip


def run(results: Results, group: str, with_game: bool) -> None:
    if group in ("relaxed", "square"):
        people = square(30_000)
        for budget in (270.0,) if group == "relaxed" else (90.0, 173.0):
            results.add(people.name, budget, "planar Laplace", *laplace(people, budget), budget, None, None)
            if with_game:
                for objective in ("paper", "posterior"):
                    noise = 288.54 if group == "relaxed" else None
                    game(results, square(2000), budget, objective, noise=noise)
            made = learned(results, people, budget)
            if group == "square":
                drawing(made, people, budget, results.path.parent)
                grid(results, people, budget, [square_on_grid(20), square_on_grid(40)])
    elif group == "paris":
        people = paris()
        for budget in (150.0, 300.0, 518.0, 1150.0):
            results.add(people.name, budget, "planar Laplace", *laplace(people, budget), budget, None, None)
            learned(results, people, budget, outputs=192, held_out=0)
            grid(results, people, budget, [on_grid(482), on_grid(241)])
    else:
        people = features(500)
        for budget in (4.0, 6.0, 8.0):
            results.add(
                people.name, budget, "spherical Laplace", *laplace(people, budget), budget, None, None
            )
            learned(results, people, budget, outputs=256, confidence=0.9)


def drawing(made: Any, people: People, budget: float, folder: Path) -> None:
    """A map: where the rows are, and the output points, as large as they are common and as dark as they betray a user."""
    import altair as alt
    import pandas as pd

    joint = made.joint(*people.truth)
    mass = joint.sum(axis=0)
    told = pd.DataFrame(
        {"east": made.points[:, 0], "north": made.points[:, 1], "share": mass, "best guess": joint.max(axis=0) / np.maximum(mass, 1e-12)}
    )  # fmt: skip
    told = told[told["share"] > 1e-4]
    some = np.random.default_rng(0).choice(len(people.secrets), 2000, replace=False)
    rows = pd.DataFrame({"east": people.values[some, 0], "north": people.values[some, 1]})
    axis = alt.Scale(domain=[-60, 360])
    east, north = alt.X("east:Q", scale=axis, title="m"), alt.Y("north:Q", scale=axis, title="m")
    below = alt.Chart(rows).mark_circle(size=5, color="#bbb").encode(x=east, y=north)
    above = alt.Chart(told).mark_circle(opacity=0.9).encode(
        x=east, y=north, size=alt.Size("share:Q", title="share of outputs"),
        color=alt.Color("best guess:Q", title="chance of the best guess", scale=alt.Scale(domain=[0.25, 1], scheme="blues")),
    )  # fmt: skip
    chart = (below + above).properties(
        width=420, height=420, title=f"Outputs at {budget:g} m: {made.leakage:.3f} bits"
    )
    chart.save(folder / f"square-{budget:g}.png", scale_factor=1.5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(GROUPS), choices=GROUPS, help="these people alone")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    parser.add_argument("--game", action="store_true", help="the adversarial game as well; takes minutes")
    told = parser.parse_args()
    for group in told.only:
        results = Results(group, TEXT.format(device=device()), COLUMNS, told.out)
        try:
            run(results, group, told.game)
        except FileNotFoundError as error:
            print(error)
            continue
        results.keep()


if __name__ == "__main__":
    main()
