"""What an adversary is taken to believe beforehand, and where that belief comes from.

A channel that was fitted on the very rows it is applied to is a function of them: whatever its matrix says, the release has
no ε. Two counter-examples (docs/channels.md): one person, a prior that is that person's place, and the best channel always
says that place; ten people, where the best channel never says "y" for 8 : 2 and sometimes does for 7 : 3. So every prior
states its source, and one that is private makes the release *measured*, never *proved*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..domain import Domain, a_domain
from ..errors import SpecificationError
from .geometry import Floats

# From the least to the most that is known of private rows. "none": no prior entered.
SOURCES = ("none", "public", "disjoint", "released", "private")


def source_of(source: object, prior: object, where: str = "source") -> str:
    """Where a prior comes from: as stated, but what needs no rows or was charged already says so itself.

    Raises:
        SpecificationError: an unknown source.

    >>> source_of("private", "uniform"), source_of("disjoint", [0.5, 0.5])
    ('public', 'disjoint')
    """
    if source not in SOURCES[1:]:
        raise SpecificationError(
            f"{where}: 'public', 'released' (from charged answers), 'disjoint' (from other persons) or 'private'."
        )
    if isinstance(prior, str):
        return "public"
    return "released" if _is_release(prior) else str(source)


def worst(*sources: str) -> str:
    """The source of something made from several.

    >>> worst("public", "none", "released")
    'released'
    """
    return max(sources, key=SOURCES.index)


def prior_of(prior: object, domain: Domain, where: str = "prior") -> Floats:
    """A law over the cells of a domain, shape (cells,), summing to 1.

    Args:
        prior: "uniform" (over the ordinary cells), numbers in cell order (counts or probabilities; also in the shape of the
            domain or of its grid), or a charged ``Release`` of a histogram over these attributes, negative counts taken as 0.

    Raises:
        SpecificationError: another shape, a negative number, nothing above 0.

    >>> from ..attributes import Integer
    >>> prior_of([1, 3], Domain(x=Integer(0, 1))).tolist()
    [0.25, 0.75]
    """
    if isinstance(prior, str):
        if prior != "uniform":
            raise SpecificationError(
                f"{where}: 'uniform', numbers in cell order, or a release of a histogram."
            )
        from .geometry import Geometry

        ordinary = Geometry(domain).ordinary
        return ordinary / np.float64(ordinary.sum())
    if _is_release(prior):
        prior = _released(prior, domain, where)
    told = _numbers(prior, where)
    if told.size != a_domain(domain, "domain").size:
        raise SpecificationError(f"{where}: {domain.size} numbers, one for each cell, not {told.size}.")
    return _normalised(told.reshape(-1), where)


def joint_of(joint: object, cells: int, where: str = "joint") -> Floats:
    """P(secret, value), shape (secrets, cells), summing to 1; counts are divided by their sum.

    >>> joint_of([[1, 1], [0, 2]], 2).tolist()
    [[0.25, 0.25], [0.0, 0.5]]
    """
    told = _numbers(joint, where)
    if told.ndim < 2 or told.size % cells or not len(told) or told.reshape(len(told), -1).shape[1] != cells:
        raise SpecificationError(f"{where}: a table of shape (secrets, {cells}), one row for each secret.")
    return _normalised(told.reshape(len(told), -1), where)


def _numbers(value: object, where: str) -> Floats:
    try:
        told: Floats = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError(f"{where}: numbers, one for each cell.") from None
    if not np.isfinite(told).all() or (told < 0).any():
        raise SpecificationError(f"{where}: every number must be finite and not negative.")
    return told


def _normalised(told: Floats, where: str) -> Floats:
    total = told.sum()
    if not 0 < total < np.inf:
        raise SpecificationError(f"{where}: at least one number above 0, and a finite sum.")
    found: Floats = told / total
    return found


def _is_release(prior: object) -> bool:
    return hasattr(prior, "charge") and hasattr(prior, "values") and hasattr(prior, "query")


def _released(prior: Any, domain: Domain, where: str) -> Floats:
    counted = prior.strategy.domain if hasattr(prior, "strategy") else None
    if prior.query.word != "histogram" or counted is None or counted.names != domain.names:
        raise SpecificationError(
            f"{where}: a released histogram of {', '.join(domain.names)}, without bins, groups or filters."
        )
    values: Floats = np.asarray(prior.values, dtype=np.float64)
    if len(values) != domain.size:
        raise SpecificationError(f"{where}: the histogram must have a number for every cell.")
    return np.clip(values, 0.0, None)
