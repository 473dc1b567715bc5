"""What every law of a channel can do. ``Table`` holds its rows, ``Shift`` only how far it moves, ``Then`` two laws in turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from ..axes import Ints
from .geometry import Floats, Geometry


class Law(Protocol):
    """A row-stochastic law P(output | input), held exactly; floats that it returns are roundings of exact numbers."""

    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...

    def rows(self, cells: Ints) -> Floats:
        """Shape (cells, n_outputs): the law of each of these inputs."""

    def push(self, joint: Floats) -> Floats:
        """Shape (k, n_outputs) from (k, n_inputs): Σ_w joint[x, w] P(z | w)."""

    def losses(self, a: Ints, b: Ints) -> Floats:
        """For each pair of inputs an upper bound, certified, of max_z |ln P(z | a) − ln P(z | b)|; infinite where one of the two
        never gives an output that the other does."""

    def expected(self, prior: Floats, metric: object, place: Geometry) -> float:
        """Σ_w prior[w] Σ_z P(z | w) d(w, z), for a metric or a table of losses."""

    def draw(self, cells: Ints) -> Ints:
        """One output for each input, from the operating system's randomness."""

    def spec(self) -> dict[str, Any]:
        """Its kind and sizes in plain values."""

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The numbers that ``spec`` does not say."""
