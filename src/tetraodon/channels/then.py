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
from .table import CHUNK, MARGIN

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
        return _processed(self, self.first, a, b)

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
        return _processed(self, self.first, a, b)

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


def _processed(law: Law, first: Law, a: Ints, b: Ints) -> Floats:
    """The first law's losses, or the smaller ones of the whole where its rows are worth working out."""
    bound = first.losses(a, b)
    if isinstance(law, Then) and not _is_safe(law):
        return bound
    cells = np.unique(np.concatenate([a, b]))
    if len(cells) * law.n_outputs > LARGEST or len(a) * law.n_outputs > 64 * LARGEST:
        return bound
    table = law.rows(cells)
    if ((table > 0) & (table < 1e-280)).any():
        return bound
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    x, y = np.searchsorted(cells, a), np.searchsorted(cells, b)
    found, step = np.zeros(len(bound)), max(1, CHUNK // law.n_outputs)
    for at in range(0, len(bound), step):
        with np.errstate(invalid="ignore"):
            apart = np.abs(logs[x[at : at + step]] - logs[y[at : at + step]])
        found[at : at + step] = np.where(np.isnan(apart), 0.0, apart).max(axis=1)
    # Sums of up to 2^22 positive doubles are right to 2^-30.
    return np.minimum(bound, found + MARGIN + 2.0**-30)


def _is_safe(law: Then) -> bool:
    """Whether products of entries are worth working out: not where they could vanish, or come from a Fourier transform."""
    first, second = law.first, law.second
    if max(first.n_inputs * first.n_outputs, second.n_inputs * second.n_outputs) > LARGEST:
        return False
    if (isinstance(first, Then) and not _is_safe(first)) or (
        isinstance(second, Then) and not _is_safe(second)
    ):
        return False
    least = 1.0
    for each in (first, second):
        told = each.rows(np.arange(each.n_inputs))
        least *= float(told[told > 0].min())
    return least > 1e-280


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
