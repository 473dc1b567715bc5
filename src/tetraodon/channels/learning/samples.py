"""The rows that a channel is learned from: secrets, values and weights, checked and put into one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from ...axes import Ints
from ...errors import DataError, SpecificationError
from ...reading import kind_of
from ..geometry import Floats

FARTHEST = 1e100  # squares of distances must stay finite
MOST_SECRETS = 400
FEW = 30  # different values held out of a secret, below which all of its values count
GRID = (
    2.0**-20
)  # of the budget: outputs are whole multiples, so that their low digits tell nothing of private means
METRICS = ("euclidean", "manhattan", "squared")


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Rows with their share of all. Private.

    Attributes:
        names: the secrets, in order.
        secrets: code of each row's secret, shape (rows,).
        values: shape (rows, dimensions).
        weights: positive, summing to 1; by the prior each secret has its share.
    """

    names: tuple[Any, ...]
    secrets: Ints
    values: Floats
    weights: Floats

    @staticmethod
    def of(
        secrets: object,
        values: object,
        weights: object = None,
        prior: str | Mapping[Any, float] = "equal",
    ) -> Samples:
        """Check the rows.

        Args:
            secrets: one for each row: numbers or texts.
            values: numbers, shape (rows,) or (rows, dimensions).
            weights: of rows, not negative; 1 each by default.
            prior: "equal" for every secret, "rows" for their shares of the weights, or a probability for each secret.

        Raises:
            DataError: values that are no finite numbers, or secrets that are missing.
            SpecificationError: other shapes, one secret only, a prior that fits no secrets.

        >>> Samples.of(["a", "a", "b"], [1.0, 2.0, 9.0]).weights.tolist()
        [0.25, 0.25, 0.5]
        """
        told = _numbers(values)
        labels = _labels(secrets, len(told))
        share = _weights(weights, len(told))
        kept = share > 0
        names, codes = np.unique(labels[kept], return_inverse=True)
        if len(names) < 2:
            raise SpecificationError("learn.secrets: one secret only, so that there is nothing to hide.")
        if len(names) > MOST_SECRETS:
            raise SpecificationError(f"learn.secrets: more than {MOST_SECRETS:,} secrets; group them.")
        share = share[kept] / share.sum()
        own = np.asarray(np.bincount(codes, share), dtype=np.float64)
        share = share * (_prior(prior, names, own) / own)[codes]
        return Samples(tuple(names.tolist()), codes.astype(np.int64), told[kept], _fixed(share / share.sum()))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.secrets)

    @property
    def n_secrets(self) -> int:
        """How many secrets there are."""
        return len(self.names)

    @cached_property
    def prior(self) -> Floats:
        """Share of each secret."""
        return np.asarray(np.bincount(self.secrets, self.weights, minlength=self.n_secrets), dtype=np.float64)

    @cached_property
    def distinct(self) -> tuple[Floats, Floats]:
        """Different values, shape (values, dimensions), and the joint law of secrets and values, shape (secrets, values)."""
        found, at = np.unique(self.values, axis=0, return_inverse=True)
        joint = np.zeros((self.n_secrets, len(found)))
        np.add.at(joint, (self.secrets, np.ravel(at)), self.weights)
        return found, joint

    def only(self, rows: Ints) -> Samples:
        """These rows alone, each secret with the share that it has among all."""
        share = self.weights[rows]
        own = np.bincount(self.secrets[rows], share, minlength=self.n_secrets)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(own > 0, self.prior / own, 0.0)
        share = share * factor[self.secrets[rows]]
        return Samples(self.names, self.secrets[rows], self.values[rows], _fixed(share / share.sum()))

    def split(self, share: float, rng: np.random.Generator) -> tuple[Samples, Samples]:
        """Rows to learn from, and rows held out: of every secret the stated share, but at least one row stays to learn from.

        Equal values are on one side.
        """
        _, value = np.unique(self.values, axis=0, return_inverse=True)
        value = np.ravel(value)
        out = np.zeros(self.rows, dtype=bool)
        chance = rng.permutation(int(value.max()) + 1)[value] / (int(value.max()) + 1)
        for secret in range(self.n_secrets):
            own = np.flatnonzero(self.secrets == secret)
            out[own] = chance[own] < share
        for secret in range(self.n_secrets):
            own = np.flatnonzero(self.secrets == secret)
            if out[own].all():  # the value goes back with all of its rows
                out[value == value[own[np.argmax(chance[own])]]] = False
        if not out.any():
            return self, self
        return self.only(np.flatnonzero(~out)), self.only(np.flatnonzero(out))

    def told_enough(self, train: Samples, fresh: Samples) -> Samples:
        """The rows by which a distortion is judged: those held out; of secrets with few different values among them, all."""
        few = [
            secret
            for secret in range(self.n_secrets)
            if len(np.unique(fresh.values[fresh.secrets == secret], axis=0)) < FEW
        ]
        if not few:
            return fresh
        kept = [part for part in (train, fresh) if part.rows]
        values = np.concatenate([p.values for p in kept])
        secrets = np.concatenate([p.secrets for p in kept])
        weights = np.concatenate([p.weights for p in kept])
        is_fresh = np.repeat([p is fresh for p in kept], [p.rows for p in kept])
        which = np.flatnonzero(is_fresh | np.isin(secrets, few))
        own = np.bincount(secrets[which], weights[which], minlength=self.n_secrets)
        share = weights[which] * (self.prior / own)[secrets[which]]
        return Samples(self.names, secrets[which], values[which], _fixed(share / share.sum()))

    def at_most(self, rows: int, rng: np.random.Generator) -> Samples:
        """A part of the rows: of each secret as many as its share allows, but one at least; the heaviest, by lot among equals."""
        if self.rows <= rows:
            return self
        order = rng.permutation(self.rows)
        heavy = order[np.argsort(-self.weights[order], kind="stable")]
        turn = np.empty(self.rows)
        for secret, share in enumerate(self.prior.tolist()):
            own = heavy[self.secrets[heavy] == secret]
            turn[own] = np.arange(len(own)) / share
        first = np.lexsort((order, turn))[:rows]
        return self.only(np.sort(first))


@dataclass(frozen=True, repr=False)
class Scale:
    """Affine coordinates in which a distortion of the budget is a distance of about 1.

    Attributes:
        centre: shape (dimensions,).
        unit: length.
    """

    centre: Floats
    unit: float

    def to(self, values: Floats) -> Floats:
        """In scaled coordinates."""
        return (values - self.centre) / self.unit

    def rows(self, samples: Samples) -> Samples:
        """The same rows in scaled coordinates."""
        return replace(samples, values=self.to(samples.values))

    def length(self, scaled: float, metric: str) -> float:
        """A distance between scaled values in the values' own unit (of its square for "squared")."""
        return scaled * (self.unit**2 if metric == "squared" else self.unit)

    def back(self, scaled: Floats) -> Floats:
        """In the values' own, as whole multiples of a public length."""
        step = 2.0 ** np.floor(np.log2(self.unit * GRID))
        return np.asarray(np.round((scaled * self.unit + self.centre) / step) * step)


def chance(number: int) -> np.random.Generator:
    """What a training takes its starts and parts from: the same for the same number. No release draws by it.

    >>> bool(chance(3).integers(1000) == chance(3).integers(1000))
    True
    """
    return np.random.default_rng(number)


def places_of(values: object, axes: int) -> Floats:
    """Values that a channel of so many dimensions is applied to, shape (values, dimensions).

    Raises:
        SpecificationError: values of other dimensions.
        DataError: values that are no finite numbers.
    """
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError("channel.values: numbers, one row for each record.") from None
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or found.shape[1] != axes:
        raise SpecificationError(f"channel.values: numbers of {axes} dimensions, one row for each record.")
    if not np.isfinite(found).all() or (np.abs(found) > FARTHEST).any():
        raise DataError(
            "channel.values: every value must be a finite number, none beyond 10^100; leave such rows out."
        )
    return found


def apart(one: Floats, other: Floats, metric: str) -> Floats:
    """Distances between all pairs, shape (ones, others).

    >>> apart(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), "euclidean").tolist()
    [[5.0]]
    """
    found = np.zeros((len(one), len(other)))
    for axis in range(one.shape[1]):
        gap = np.subtract.outer(one[:, axis], other[:, axis])
        found += np.abs(gap) if metric == "manhattan" else gap * gap
    return np.sqrt(found, out=found) if metric == "euclidean" else found


def _numbers(values: object) -> Floats:
    try:
        told = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError(
            "learn.values: numbers, one row for each record and one column for each dimension."
        ) from None
    if told.ndim == 1:
        told = told[:, None]
    if told.ndim != 2 or not told.size:
        raise SpecificationError(
            "learn.values: numbers of shape (rows,) or (rows, dimensions), at least one row."
        )
    if not np.isfinite(told).all():
        raise DataError("learn.values: every value must be a finite number; leave such rows out.")
    if (np.abs(told) > FARTHEST).any():
        raise DataError("learn.values: numbers beyond 10^100; state them in a larger unit.")
    return told


def _labels(secrets: object, rows: int) -> Any:
    told = np.asarray(secrets) if hasattr(secrets, "dtype") else _listed(secrets)
    if told.ndim != 1 or len(told) != rows:
        raise SpecificationError("learn.secrets: one for each row of values.")
    if told.dtype.kind == "f" and not np.isfinite(told).all():
        raise DataError("learn.secrets: a secret is missing; leave such rows out.")
    if told.dtype.kind == "O":
        if any(v is None or v != v for v in told.tolist()):
            raise DataError("learn.secrets: a secret is missing; leave such rows out.")
        kinds = {
            "text" if isinstance(v, str) else "number" if isinstance(v, Real) else "other"
            for v in told.tolist()
        }
        if len(kinds) != 1 or "other" in kinds:
            raise SpecificationError("learn.secrets: all numbers, or all texts.")
        told = np.array(told.tolist())
    elif told.dtype.kind not in "biufUS":
        raise SpecificationError(f"learn.secrets: numbers or texts, not {kind_of(secrets)}.")
    return told


def _listed(secrets: object) -> Any:
    """A list as objects, so that nothing in it becomes a text by the way."""
    if isinstance(secrets, str | Mapping) or not isinstance(secrets, Iterable):
        raise SpecificationError(f"learn.secrets: one for each row of values, not {kind_of(secrets)}.")
    held = list(secrets)
    told = np.empty(len(held), dtype=object)
    told[:] = held
    return told


def _weights(weights: object, rows: int) -> Floats:
    if weights is None:
        return np.full(rows, 1.0 / rows)
    try:
        told = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError("learn.weights: a number of 0 or more for each row, not all 0.") from None
    if told.shape == (rows,) and np.isfinite(told).all() and told.max() > 0:
        told = told / told.max()
    if told.shape != (rows,) or not np.isfinite(told).all() or (told < 0).any() or not told.sum() > 0:
        raise SpecificationError("learn.weights: a number of 0 or more for each row, not all 0.")
    return np.asarray(told / told.sum())


def _prior(prior: str | Mapping[Any, float], names: Any, own: Floats) -> Floats:
    if isinstance(prior, Mapping):
        try:
            found = np.array([prior.get(name, -1.0) for name in names.tolist()], dtype=np.float64)
        except (TypeError, ValueError):
            raise SpecificationError(
                "learn.prior: a probability above 0 for each secret that occurs."
            ) from None
        if len(prior) != len(names) or not (found > 0).all() or not np.isfinite(found).all():
            raise SpecificationError("learn.prior: a probability above 0 for each secret that occurs.")
        return np.asarray(found / found.sum())
    if not isinstance(prior, str):
        raise SpecificationError("learn.prior: 'equal', 'rows', or a probability for each secret.")
    if prior == "equal":
        return np.full(len(names), 1.0 / len(names))
    if prior == "rows":
        return own
    raise SpecificationError("learn.prior: 'equal', 'rows', or a probability for each secret.")


def _fixed(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
