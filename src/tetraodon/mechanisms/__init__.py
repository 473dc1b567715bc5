"""Mechanisms by name. Each turns a query, a policy and ε into a priced ``Strategy``; ``select`` ranks them.

``Identity`` noises every cell, ``Ordered`` every prefix sum, ``Hierarchical`` a tree of ranges, ``OrderedHierarchical``
prefix sums of blocks with a tree inside each (He, Machanavajjhala, Ding 2014, section 7, with the repaired budget), and
``Direct`` the query's own rows (totals, means, linear queries), ``Tables`` whole tables (``Marginals``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from ..clustering.declared import NAMES as CLUSTERING
from ..clustering.declared import Clustering
from ..errors import SpecificationError, Unsupported, unknown
from ..exact import Number, exact, show
from ..marginals.mechanism import Tables
from ..reading import table

Levels = Literal["uniform", "geometric", "optimal"]
MAX_SIZE = 2**40  # no axis is longer


def _check(fanout: int, levels: str, where: str) -> None:
    if isinstance(fanout, bool) or not isinstance(fanout, int) or fanout < 2:
        raise SpecificationError(f"{where}.fanout: a whole number of at least 2.")
    if fanout > MAX_SIZE:
        raise SpecificationError(f"{where}.fanout: at most 2^40.")
    if levels not in ("uniform", "geometric", "optimal"):
        raise SpecificationError(f'{where}.levels: "uniform", "geometric" or "optimal".')


@dataclass(frozen=True)
class Identity:
    """Noise on every cell.

    >>> Identity().to_spec()
    {'identity': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"identity": {}}


@dataclass(frozen=True)
class Ordered:
    """Noise on every prefix sum: error independent of the number of cells when secrets are local.

    >>> Ordered().to_spec()
    {'ordered': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"ordered": {}}


@dataclass(frozen=True)
class Hierarchical:
    """Noise on a tree of ranges.

    Args:
        fanout: children of a piece.
        levels: budget of the levels: "uniform", "geometric" (∝ fanout^(depth/3), Cormode et al. 2012) or "optimal"
            (least exact error of the stated workload).

    >>> Hierarchical(4).to_spec()
    {'hierarchical': {'fanout': 4, 'levels': 'uniform'}}
    """

    fanout: int = 16
    levels: Levels = "uniform"

    def __post_init__(self) -> None:
        _check(self.fanout, self.levels, "Hierarchical")

    def to_spec(self) -> dict[str, Any]:
        return {"hierarchical": {"fanout": self.fanout, "levels": self.levels}}


@dataclass(frozen=True)
class OrderedHierarchical:
    """Prefix sums at the ends of blocks, and a tree inside each block.

    The published budget breaks its promise (its cost exceeds ε); here every block is treated alike and the cost is
    computed, then scaled to ε.

    Args:
        fanout: children of a piece.
        levels: budget of the levels inside a block, as for ``Hierarchical``.
        block: positions in a block; None = the largest distance along the axis that the policy protects.
        split: share of ε for the chain; None = that of least exact error.

    >>> OrderedHierarchical(16).to_spec()
    {'ordered-hierarchical': {'fanout': 16, 'levels': 'uniform'}}
    """

    fanout: int = 16
    levels: Levels = "uniform"
    block: int | None = None
    split: Fraction | None = None

    def __init__(
        self,
        fanout: int = 16,
        levels: Levels = "uniform",
        block: int | None = None,
        split: Number | None = None,
    ) -> None:
        _check(fanout, levels, "OrderedHierarchical")
        if block is not None and (isinstance(block, bool) or not isinstance(block, int) or block < 1):
            raise SpecificationError("OrderedHierarchical.block: a whole number of at least 1.")
        if block is not None and block > MAX_SIZE:
            raise SpecificationError("OrderedHierarchical.block: at most 2^40.")
        share = None if split is None else exact(split, "OrderedHierarchical.split")
        if share is not None and not 0 < share < 1:
            raise SpecificationError("OrderedHierarchical.split: between 0 and 1.")
        for name, value in (("fanout", fanout), ("levels", levels), ("block", block), ("split", share)):
            object.__setattr__(self, name, value)

    def to_spec(self) -> dict[str, Any]:
        inner: dict[str, Any] = {"fanout": self.fanout, "levels": self.levels}
        if self.block is not None:
            inner["block"] = self.block
        if self.split is not None:
            inner["split"] = show(self.split)
        return {"ordered-hierarchical": inner}


@dataclass(frozen=True)
class Direct:
    """Noise on the query's own rows (``Sum``, ``Mean``, ``Linear``).

    >>> Direct().to_spec()
    {'direct': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"direct": {}}


@dataclass(frozen=True)
class Optimised:
    """Rows optimised for the workload and the policy: for Gaussian noise certified to 1 % of the best possible, for Laplace
    noise the best that a descent from the named mechanisms and other fixed starts finds.

    >>> Optimised().to_spec()
    {'optimised': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"optimised": {}}


@dataclass(frozen=True)
class Kronecker:
    """Products of one matrix per attribute, optimised together: rows that join the groups of a query. For histograms, and CDFs
    and all ranges of groups, under secrets that change one attribute at a time.

    >>> Kronecker().to_spec()
    {'kronecker': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"kronecker": {}}


Mechanism = (
    Identity
    | Ordered
    | Hierarchical
    | OrderedHierarchical
    | Optimised
    | Kronecker
    | Direct
    | Tables
    | Clustering
)

NAMES: dict[str, Any] = {
    "identity": Identity,
    "ordered": Ordered,
    "hierarchical": Hierarchical,
    "ordered-hierarchical": OrderedHierarchical,
    "direct": Direct,
    "tables": Tables,
    **CLUSTERING,
    "optimised": Optimised,
    "kronecker": Kronecker,
}


def mechanism_from_spec(spec: Any, where: str = "mechanism") -> Mechanism:
    """A mechanism from its name or the table that ``to_spec`` wrote.

    >>> mechanism_from_spec("ordered")
    Ordered()
    """
    if isinstance(spec, Mechanism):
        return spec
    told = (
        {spec: {}}
        if isinstance(spec, str)
        else table(spec, where, "the name of a mechanism or a table of one")
    )
    if len(told) != 1:
        raise SpecificationError(f"{where}: exactly one mechanism in the table, not {len(told)}.")
    [(name, inner)] = told.items()
    if name not in NAMES:
        raise unknown(where, "mechanism", name, ["auto", *NAMES])
    options = table(inner, f"{where}.{name}", "a table of options (it may be empty)")
    known = [f.name for f in fields(NAMES[name])]
    for key in options:
        if key not in known:
            raise unknown(f"{where}.{name}", "option", key, known)
    try:
        built: Mechanism = NAMES[name](**options)
    except TypeError:
        raise SpecificationError(f"{where}.{name}: needs {', '.join(known)}.") from None
    except SpecificationError as error:
        key = str(error).partition(".")[2]
        raise (
            error if isinstance(error, Unsupported) else SpecificationError(f"{where}.{name}.{key}")
        ) from None
    return built
