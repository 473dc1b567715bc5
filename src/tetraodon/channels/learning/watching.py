"""What a training tells while it runs, and where it goes on after an interruption."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ...errors import DataError
from ..archives import DAMAGED, no_such, read, write
from .samples import Samples

WIDTH = 24


@dataclass(frozen=True)
class Look:
    """Where training stands.

    Attributes:
        step: steps made.
        leak: of the rows learned from, in bits; ``held_out`` of the others.
        distortion: of rows held out, as a share of the budget.
    """

    step: int
    leak: float
    held_out: float
    distortion: float

    def words(self, bound: float | None) -> str:
        """For the line that is shown."""
        floor = "" if bound is None else f", no channel below {bound:.3f}"
        return (
            f"leakage {self.held_out:.3f} bits{floor}, distortion {100 * self.distortion:.1f} % of the budget"
        )


def bar(steps: int, bound: float | None) -> Callable[[Look], None]:
    """A line on standard error that is written over: steps, leakage, distortion, bound. Private figures, for whoever trains."""

    def shown(look: Look) -> None:
        done = round(WIDTH * look.step / steps)
        end = "\n" if look.step >= steps else ""
        sys.stderr.write(
            f"\r[{'#' * done}{'.' * (WIDTH - done)}] {look.step}/{steps} {look.words(bound)}{end}"
        )
        sys.stderr.flush()

    return shown


def quiet(look: Look) -> None:
    """Tells nothing."""


def clock(seconds: float | None) -> Callable[[], bool]:
    """Whether the time is up."""
    began = perf_counter()
    return lambda: seconds is not None and perf_counter() - began > seconds


@dataclass(frozen=True)
class Checkpoint:
    """A private file that holds the state of one training, so that it can go on where it was stopped.

    Attributes:
        path: the file.
        key: of rows and settings; another training's file is refused.
    """

    path: Path
    key: str

    @staticmethod
    def of(path: str | os.PathLike[str], samples: Samples, settings: object) -> Checkpoint:
        """The checkpoint of a training of these rows with these settings."""
        told = hashlib.sha256(repr(settings).encode())
        for array in (samples.secrets, samples.values, samples.weights):
            told.update(np.ascontiguousarray(array).tobytes())
        return Checkpoint(Path(path), told.hexdigest())

    def save(self, step: int, leaves: Sequence[Any], looks: Sequence[Look]) -> None:
        """Write the state, whole or not at all."""
        spec = {"key": self.key, "step": step, "looks": [list(vars(look).values()) for look in looks]}
        arrays = {f"leaf.{i:03}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        write(self.path, spec, arrays, is_private=True)

    def load(self, kind: type[Any] = Look) -> tuple[int, list[Any], list[Any]] | None:
        """The state that was saved last; None where nothing was.

        Args:
            kind: of the looks that were kept.

        Raises:
            DataError: the file is of another training, or none.
        """
        if not self.path.exists():
            return None
        spec, arrays = read(self.path, "checkpoint")
        if not isinstance(spec, dict) or spec.get("key") != self.key:
            raise DataError(
                f"{self.path.name}: is the checkpoint of other rows or settings; give this training a file of its own."
            )
        try:
            looks = [kind(int(step), *map(float, rest)) for step, *rest in spec["looks"]]
            return int(spec["step"]), [arrays[name] for name in sorted(arrays)], looks
        except DAMAGED:
            raise no_such(self.path.name, "checkpoint") from None
