"""The query ``KMeans``: where records gather."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import SpecificationError, unknown
from ..phrases import attribute_names, between
from ..queries import Query
from ..reading import kind_of, under

MOST_CLUSTERS, MOST_ROUNDS = 256, 100
MOST_RECORDS = 2**40


@dataclass(frozen=True)
class KMeans(Query):
    """Centres of k clusters of records, each with a noisy number of records: those that make Σ squared distance small.

    Distances are Euclidean, in the attributes' own units (declare comparable ones); for a ``Point``, in its unit of length.
    Special cells (``other``, ``missing``) belong to no cluster. Starting centroids come from the declared box alone.

    Args:
        attributes: one ``Point``, or one or more ``Integer`` or ``Numeric`` attributes.
        k: number of clusters.
        iterations: the most rounds that a mechanism working in rounds may take.
        records: about how many records there are. Ways to cluster are compared by simulation on public synthetic data of
            this size; it changes nothing else.
        where: only records with these values.

    Raises:
        SpecificationError: no attribute, or numbers out of range.

    >>> KMeans("home", k=6).to_spec()
    {'kmeans': ['home'], 'k': 6}
    """

    word = "kmeans"
    columns: tuple[str, ...] = ()
    k: int = 2
    iterations: int = 10
    records: int = 10_000

    def __init__(
        self,
        *attributes: str,
        k: int,
        iterations: int = 10,
        records: int = 10_000,
        where: Mapping[str, Any] | None = None,
    ) -> None:
        told = {
            "k": (k, MOST_CLUSTERS),
            "iterations": (iterations, MOST_ROUNDS),
            "records": (records, MOST_RECORDS),
        }
        for name, (value, most) in told.items():
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise SpecificationError(f"kmeans.{name}: a whole number from 1 to {most:,}.")
        columns = attribute_names(attributes, "kmeans")
        self._set((), where, None, columns=columns, k=k, iterations=iterations, records=records)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.columns

    def _body(self) -> Any:
        return list(self.columns)

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``query_from_spec`` is its inverse."""
        spec = super().to_spec()
        told: dict[str, Any] = {"kmeans": spec.pop("kmeans"), "k": self.k}
        if self.iterations != 10:
            told["iterations"] = self.iterations
        if self.records != 10_000:
            told["records"] = self.records
        return told | spec


def kmeans_from_spec(spec: Mapping[str, Any], where: str = "query") -> KMeans:
    """The query that ``to_spec`` wrote, or the ``query`` table of a settings file.

    >>> kmeans_from_spec({"kmeans": "home", "k": 6})
    KMeans(by=(), where=(), bins=(), columns=('home',), k=6, iterations=10, records=10000)
    """
    rest = dict(spec)
    body = rest.pop("kmeans")
    known = ["k", "iterations", "records", "where"]
    for key in rest:
        if key not in known:
            raise unknown(where, "key", key, known)
    if "k" not in rest:
        raise SpecificationError(f"{where}.k: required, the number of clusters.")
    if isinstance(rest.get("where"), Mapping):
        rest["where"] = {n: between(v, f"{where}.kmeans.where.{n}") for n, v in rest["where"].items()}
    with under(where):
        if not isinstance(body, str | list | tuple):
            raise SpecificationError(f"kmeans: a list of names of attributes, not {kind_of(body)}.")
        return KMeans(*attribute_names(body, "kmeans"), **rest)
