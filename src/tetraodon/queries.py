"""Queries: the words of published tables. A query knows its attributes and its workload, and nothing of mechanisms.

Every query takes ``by`` (attributes that split the table into groups), ``where`` (a filter on declared attributes) and
``bins`` (coarser cells). ``where`` values are a list of values, or a pair (low, high) as a tuple, both ends included.
``bins`` values are a width in the attribute's unit, a list of lower ends, or, for a ``Categorical``, a mapping from
new names to lists of values; for a ``Point`` a whole number k (blocks of k × k cells) or two lists (the first row of every
run of rows, the first column of every run of columns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from .errors import SpecificationError, unknown
from .exact import exact, show
from .phrases import Frozen, attribute_names, between, frozen, named, thawed, without_pairs
from .reading import integers, kind_of, listed, under


@dataclass(frozen=True)
class Query:
    """What all queries share. Use ``Histogram``, ``CDF``, ``Ranges``, ``Quantiles``, ``Sum``, ``Mean``, ``Linear`` or ``Marginals``."""

    word: ClassVar[str] = ""
    by: tuple[str, ...] = field(default=(), kw_only=True)
    where: Frozen = field(default=(), kw_only=True)
    bins: Frozen = field(default=(), kw_only=True)

    def _set(self, by: Any, where: Any, bins: Any, **fields: Any) -> None:
        word = self.word
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "by", attribute_names(by, f"{word}.by"))
        object.__setattr__(self, "where", named(where, f"{word}.where"))
        object.__setattr__(self, "bins", named(without_pairs(bins), f"{word}.bins"))
        for name in self.attributes:
            if not isinstance(name, str):
                raise SpecificationError(f"{word}: the name of one attribute, as text, not {kind_of(name)}.")
        if not self.attributes:
            raise SpecificationError(f"{word}: name at least one attribute.")
        shown = self.by + self.attributes
        if len(set(shown)) != len(shown):
            raise SpecificationError(
                f"{word}: an attribute stands twice among those counted and those in by."
            )
        for name, _ in self.bins:
            if name not in shown:
                raise unknown(f"{word}.bins", "attribute in this query", name, shown)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that are counted or summed (without ``by`` and ``where``)."""
        raise AssertionError

    @property
    def used(self) -> tuple[str, ...]:
        """Every attribute that the answer depends on."""
        return tuple(dict.fromkeys(self.by + self.attributes + tuple(n for n, _ in self.where)))

    @property
    def title(self) -> str:
        """A name for files and reports, from the query alone."""
        parts = [self.word, *self.attributes]
        if self.by:
            parts += ["by", *self.by]
        return "-".join(parts)

    def _body(self) -> Any:
        return self.attributes[0]

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``query_from_spec`` is its inverse."""
        spec: dict[str, Any] = {self.word: self._body()}
        if self.by:
            spec["by"] = list(self.by)
        if self.where:
            spec["where"] = {n: thawed(v) for n, v in self.where}
        if self.bins:
            spec["bins"] = {n: thawed(v) for n, v in self.bins}
        return spec


@dataclass(frozen=True)
class Histogram(Query):
    """Number of records in every cell of some attributes, empty cells included.

    >>> Histogram("sex", "age", bins={"age": 5}).to_spec()
    {'histogram': ['sex', 'age'], 'bins': {'age': 5}}
    """

    word = "histogram"
    columns: tuple[str, ...] = ()

    def __init__(
        self,
        *attributes: str,
        by: Sequence[str] | str = (),
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:
        self._set(by, where, bins, columns=attribute_names(attributes, "histogram"))

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.columns

    def _body(self) -> Any:
        return list(self.columns)


@dataclass(frozen=True)
class _OneAttribute(Query):
    attribute: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)


def _levels(told: Any, where: str) -> tuple[Fraction, ...]:
    """Levels of quantiles, at least one."""
    found = tuple(exact(q, where) for q in listed(told, where, "a list of numbers from 0 to 1"))
    if not found or not all(0 <= q <= 1 for q in found):
        raise SpecificationError(f"{where}: numbers from 0 to 1.")
    return found


@dataclass(frozen=True)
class CDF(_OneAttribute):
    """Number of records at or below every value of one ordered attribute.

    Special cells (``other``, ``missing``) come after the last value, in that order.

    Args:
        quantiles: levels of quantiles that are read off the same noisy counts, beside them and at no further cost.

    >>> CDF("capital_loss", by=["sex"], quantiles=[0.5]).to_spec()
    {'cdf': 'capital_loss', 'by': ['sex'], 'quantiles': ['0.5']}
    """

    word = "cdf"
    quantiles: tuple[Fraction, ...] = ()

    def __init__(
        self,
        attribute: str,
        *,
        by: Sequence[str] | str = (),
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
        quantiles: Sequence[Any] = (),
    ) -> None:
        levels = () if isinstance(quantiles, tuple) and not quantiles else _levels(quantiles, "cdf.quantiles")
        self._set(by, where, bins, attribute=attribute, quantiles=levels)

    def to_spec(self) -> dict[str, Any]:
        beside = {"quantiles": [show(q) for q in self.quantiles]} if self.quantiles else {}
        return super().to_spec() | beside


@dataclass(frozen=True)
class Ranges(_OneAttribute):
    """Number of records in ranges of one ordered attribute: "all" of them, or a list of (low, high), ends included.

    >>> Ranges("age", [(18, 64), (65, 90)]).to_spec()
    {'ranges': 'age', 'of': [[18, 64], [65, 90]]}
    """

    word = "ranges"
    of: tuple[tuple[Any, Any], ...] | str = "all"

    def __init__(
        self,
        attribute: str,
        of: str | Sequence[tuple[Any, Any]] = "all",
        *,
        by: Sequence[str] | str = (),
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(of, str):
            if of != "all":
                raise SpecificationError('ranges: "all", or a list of (low, high) pairs.')
            told: Any = of
        else:
            expected = '"all", or a list of (low, high) pairs'
            pairs = [listed(pair, "ranges.of", expected) for pair in listed(of, "ranges.of", expected)]
            told = tuple(tuple(frozen(v, "ranges.of") for v in pair) for pair in pairs)
            if not told or any(len(pair) != 2 for pair in told):
                raise SpecificationError("ranges: a non-empty list of (low, high) pairs.")
        self._set(by, where, bins, attribute=attribute, of=told)

    def to_spec(self) -> dict[str, Any]:
        return super().to_spec() | {
            "of": self.of if isinstance(self.of, str) else [list(map(thawed, p)) for p in self.of]
        }


@dataclass(frozen=True)
class Quantiles(_OneAttribute):
    """Values below which given shares of the records lie (special cells aside), read off a private CDF.

    >>> Quantiles("age", [0.1, 0.5]).to_spec()
    {'quantiles': 'age', 'levels': ['0.1', '0.5']}
    """

    word = "quantiles"
    levels: tuple[Fraction, ...] = ()

    def __init__(
        self,
        attribute: str,
        levels: Sequence[Any] = ("0.25", "0.5", "0.75"),
        *,
        by: Sequence[str] | str = (),
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:
        told = _levels(levels, "quantiles.levels")
        self._set(by, where, bins, attribute=attribute, levels=told)

    def to_spec(self) -> dict[str, Any]:
        return super().to_spec() | {"levels": [show(q) for q in self.levels]}


@dataclass(frozen=True)
class Sum(_OneAttribute):
    """Total of one attribute. Values are clipped to the declared bounds; in coarser cells each counts as the middle of
    its cell; special cells count as 0.

    >>> Sum("hours", by="sex").to_spec()
    {'sum': 'hours', 'by': ['sex']}
    """

    word = "sum"

    def __init__(
        self, attribute: str, *, by: Sequence[str] | str = (), where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._set(by, where, bins, attribute=attribute)
        if any(n == attribute for n, _ in self.bins):
            raise SpecificationError(f"{self.word}.bins: the attribute that is summed is not binned.")


@dataclass(frozen=True)
class Mean(_OneAttribute):
    """``Sum`` divided by the number of records outside the special cells.

    Where that number is no secret (it does not change along any edge) it is used exactly; otherwise it is noised too.

    >>> Mean("hours").to_spec()
    {'mean': 'hours'}
    """

    word = "mean"

    def __init__(
        self, attribute: str, *, by: Sequence[str] | str = (), where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._set(by, where, bins, attribute=attribute)
        if any(n == attribute for n, _ in self.bins):
            raise SpecificationError(f"{self.word}.bins: the attribute that is averaged is not binned.")


@dataclass(frozen=True)
class Linear(_OneAttribute):
    """Integer combinations of the cell counts of one attribute: answer r is Σ_x matrix[r, x]·count[x].

    Args:
        matrix: integers, shape (answers, cells of the attribute, special ones included).

    >>> Linear([[1, 1, 0]], "size").to_spec()
    {'linear': 'size', 'matrix': [[1, 1, 0]]}
    """

    word = "linear"
    matrix: tuple[tuple[int, ...], ...] = ()

    def __init__(
        self,
        matrix: Any,
        attribute: str,
        *,
        by: Sequence[str] | str = (),
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:
        self._set(by, where, bins, attribute=attribute, matrix=integers(matrix, "linear.matrix"))

    def to_spec(self) -> dict[str, Any]:
        return super().to_spec() | {"matrix": [list(row) for row in self.matrix]}


WORDS: dict[str, Any] = {c.word: c for c in (Histogram, CDF, Ranges, Quantiles, Sum, Mean, Linear)}


def query_from_spec(spec: Mapping[str, Any], where: str = "query") -> Query:
    """The query that ``to_spec`` wrote, or the ``query`` table of a settings file.

    >>> query_from_spec({"cdf": "age", "by": ["sex"]})
    CDF(by=('sex',), where=(), bins=(), attribute='age', quantiles=())
    """
    if not isinstance(spec, Mapping):
        raise SpecificationError(
            f'{where}: a table such as {{ cdf = "age", by = ["sex"] }}, not {kind_of(spec)}.'
        )
    rest = dict(spec)
    if "marginals" in rest:
        from .marginals.query import marginals_from_spec

        return marginals_from_spec(rest, where)
    if "rows" in rest:
        from .rows.query import rows_from_spec

        return rows_from_spec(rest, where)
    if "hybrid" in rest:
        from .microdata.settings import hybrid_from_spec

        if len(rest) > 1:
            raise SpecificationError(f"{where}.hybrid: a table of settings, and nothing beside it.")
        return hybrid_from_spec(rest["hybrid"], f"{where}.hybrid")
    if "kmeans" in rest:
        from .clustering.query import kmeans_from_spec

        return kmeans_from_spec(rest, where)
    words = [w for w in WORDS if w in rest and not (w == "quantiles" and "cdf" in rest)]
    if len(words) != 1:
        raise SpecificationError(f"{where}: exactly one of {', '.join(WORDS)}, marginals, kmeans.")
    word = words[0]
    body = rest.pop(word)
    common = {k: rest.pop(k) for k in ("by", "where", "bins") if k in rest}
    if isinstance(common.get("where"), Mapping):
        common["where"] = {n: between(v, f"{where}.{word}.where.{n}") for n, v in common["where"].items()}
    extra = {"cdf": "quantiles", "ranges": "of", "quantiles": "levels", "linear": "matrix"}.get(word)
    given = {extra: rest.pop(extra)} if extra is not None and extra in rest else {}
    for key in rest:
        raise unknown(where, "key", key, ["by", "where", "bins", *([extra] if extra else [])])
    with under(where):
        if word == "histogram":
            return Histogram(*attribute_names(body, word), **common)
        if not isinstance(body, str):
            raise SpecificationError(f"{word}: the name of one attribute, as text, not {kind_of(body)}.")
        if word == "linear":
            return Linear(given.get("matrix"), body, **common)
        built: Query = WORDS[word](body, **given, **common)
        return built
