"""One law after another: what is done to outputs alone cannot undo their protection (post-processing)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from ..errors import SpecificationError, Unsupported
from .geometry import Floats, Geometry, distances
from .law import Law
from .table import CHUNK

# Rows of a relabelled law are sums of doubles; what they lose in digits does not touch the law that is drawn from.
LARGEST = 2**26


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Outputs renamed by a fixed rule, as a remap does.

    Attributes:
        first: the law whose outputs are renamed.
        names: int64, shape (first.n_outputs,): the new output of each old one.
        n_outputs: how many new outputs there are.
    """

    first: Law
    names: Ints
    n_outputs: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.first.n_inputs

    def rows(self, cells: Ints) -> Floats:
        return self._renamed(self.first.rows(cells))

    def push(self, joint: Floats) -> Floats:
        return self._renamed(self.first.push(joint))

    def _renamed(self, told: Floats) -> Floats:
        found = np.zeros((len(told), self.n_outputs))
        np.add.at(found.T, self.names, told.T)
        return found

    def losses(self, a: Ints, b: Ints) -> Floats:
        # Post-processing loses nothing more, whatever digits its own rows lose.
        return self.first.losses(a, b)

    def expected(self, prior: Floats, metric: object, place: Geometry) -> float:
        return _expected(self, prior, metric, place)

    def draw(self, cells: Ints) -> Ints:
        return np.asarray(self.names[self.first.draw(cells)], dtype=np.int64)

    def spec(self) -> dict[str, Any]:
        return {"law": "relabelled", "outputs": self.n_outputs, "first": self.first.spec()}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"names": self.names} | {f"first.{n}": a for n, a in self.first.arrays().items()}


@dataclass(frozen=True, eq=False)
class Then:
    """A second law applied to the outputs of a first one."""

    first: Law
    second: Law

    def __post_init__(self) -> None:
        if self.first.n_outputs != self.second.n_inputs:
            raise SpecificationError(
                f"channel.then: {self.first.n_outputs} outputs cannot enter a channel of {self.second.n_inputs} inputs."
            )

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.first.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.second.n_outputs

    def rows(self, cells: Ints) -> Floats:
        told = self.first.rows(cells)
        if self.second.n_inputs * self.second.n_outputs > LARGEST:
            return self.second.push(told)
        # Sums of positive products lose no digits of small entries, as a Fourier transform would.
        return told @ self.second.rows(np.arange(self.second.n_inputs))

    def push(self, joint: Floats) -> Floats:
        return self.second.push(self.first.push(joint))

    def losses(self, a: Ints, b: Ints) -> Floats:
        # Post-processing loses nothing more, whatever digits its own rows lose.
        return self.first.losses(a, b)

    def expected(self, prior: Floats, metric: object, place: Geometry) -> float:
        return _expected(self, prior, metric, place)

    def draw(self, cells: Ints) -> Ints:
        return self.second.draw(self.first.draw(cells))

    def spec(self) -> dict[str, Any]:
        return {"law": "then", "first": self.first.spec(), "second": self.second.spec()}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {
            f"{which}.{name}": array
            for which, law in (("first", self.first), ("second", self.second))
            for name, array in law.arrays().items()
        }


def _expected(law: Law, prior: Floats, metric: object, place: Geometry) -> float:
    if law.n_inputs * law.n_outputs > LARGEST:
        raise Unsupported(
            "distortion: of a channel after a channel, up to 8,192 cells; declare coarser ones."
        )
    held = np.flatnonzero(prior)
    total, step = 0.0, max(1, CHUNK // law.n_outputs)
    outputs = np.arange(law.n_outputs)
    table = metric if isinstance(metric, np.ndarray) else None
    if table is not None and table.shape[1] == place.domain.size:
        table = distances(table, place.domain)
    for at in range(0, len(held), step):
        cells = held[at : at + step]
        cost = (
            table[cells] if table is not None else place.between(metric, cells[:, None], outputs[None, :])  # type: ignore[arg-type]
        )
        total += float(np.einsum("w,wz,wz->", prior[cells], law.rows(cells), cost))
    return total
