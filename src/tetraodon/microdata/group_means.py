"""What is known of the mean distances between the clusters of one group, and which private values are its members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError
from .distances import Floats, Ints

How = Literal["exact", "bounded", "sampled"]


@dataclass(frozen=True, eq=False, repr=False)
class Divergence:
    """Mean distances between the clusters of one group.

    Attributes:
        mean: shape (clusters, targets), in the metric's unit; NaN where a cluster has no member.
        upper: the same where exact or bounded; where sampled, above the true mean with 99 % confidence, simultaneously over
            the entries of this group (not over all groups that were ever asked for).
        how: "exact", "bounded" or "sampled".
    """

    mean: Floats
    upper: Floats
    how: How

    @property
    def exact(self) -> bool:
        """Whether ``mean`` is the mean itself, up to rounding."""
        return self.how == "exact"

    def __repr__(self) -> str:
        return f"Divergence({' × '.join(map(str, self.mean.shape))} clusters, {self.how})"


def membership(class_: int, members: Ints, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """For each value whether it is a member.

    Raises:
        SpecificationError: no such class, or a value that is none.
    """
    at = np.asarray(members)
    if not 0 <= class_ < shape[0]:
        raise SpecificationError(f"divergences: a class from 0 to {shape[0] - 1}.")
    if at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= shape[1]):
        raise SpecificationError(f"divergences: members are codes of private values, 0 to {shape[1] - 1}.")
    member = np.zeros(shape[1], dtype=np.bool_)
    member[at.astype(np.int64)] = True
    return member
