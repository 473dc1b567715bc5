"""The request for microdata: which column is generalised, which are exchanged, within which limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..errors import SpecificationError, unknown
from ..exact import exact
from ..phrases import attribute_names
from ..queries import Query
from ..reading import kind_of, table, under
from .requirements import Requirements

METHODS = ("optimal", "alternating")
METRICS = ("gower", "jensen-shannon", "euclidean", "hamming")
BUDGETS = ("shared", "group")
PUBLISHED = ("donors", "prototypes")
ALL = "all"
LARGEST = 10**100
LEAST_SAMPLE = 100
SHAPES = ("auto", "intervals", "tree", "rectangles", "curve", "correspondence")
KEYS = (
    "private", "insensitive", "k", "l", "alpha", "beta", "variety", "groups", "coarseness", "distortion", "metric", "clusters",
    "method", "budget", "invariant", "publish", "donors", "quasi_identifiers", "class_size", "generalise", "sample",
)  # fmt: skip


@dataclass(frozen=True)
class Hybrid(Query):
    """Whole rows: private columns generalised, the others exchanged between similar people of one group.

    The leakage I(private; published) is least for the stated distortion among all generalisations of the stated shape
    (method "optimal"), or what alternating steps come to ("alternating"). Nothing about ε is promised: the guarantee of
    such a release is *measured*.

    Args:
        private: the column that is generalised; a list of names for several, whose joint value is then the secret.
        insensitive: the columns that are exchanged, as a list of names or as {"prefix": "q_"}; "all" for all that have no other
            part. Their values leave as they are, in other rows, ids and names too, so that they have to be named.
        distortion: the largest expected distance between a row's columns and what is published in their place.
        k, alpha: rows of a group, at least and at most (uniqueness); without ``alpha`` there is no upper end.
        l, beta: values of the private column in a group, at least and at most (variety).
        variety: "count" of different values for ``l``, or "entropy": exp(H) ≥ l of the values' law in the group.
        groups: how many groups, exactly.
        coarseness: price of coarse groups, in bits for a group as wide as the whole range.
        metric: "gower" (mixed columns), "jensen-shannon" (counts), "euclidean" or "hamming".
        clusters: number of clusters of the exchanged columns.
        method: "optimal", or "alternating".
        budget: the distortion is "shared" by all rows, or holds in each "group".
        invariant: keep every cluster's share within a group as it was.
        publish: the columns of real "donors", or "prototypes" of clusters.
        donors: a row's columns come from at least so many possible donors.
        quasi_identifiers: columns that leave in classes of at least ``class_size`` rows; exchange stays within a class.
        generalise: "intervals" of an ordered column, cuts of a "tree", "rectangles" of places, intervals along a "curve" through
            places or along the first axis of "correspondence" with the clusters; "auto" picks by the kind of the column.

        sample: of tables of more rows than this, groups and clusters are found on so many rows, drawn at random; channels are
            solved, and everything is tested, on all rows.

    Raises:
        SpecificationError: a setting of the wrong kind; none of ``groups``, ``alpha``, ``beta`` and ``coarseness``, without
            which one single group is best.
    Source: HyObscure (Han et al. 2021); docs/microdata.md.

    >>> Hybrid("age", ["hours"], distortion="0.1", groups=4).to_spec()
    {'hybrid': {'private': ['age'], 'insensitive': ['hours'], 'distortion': '0.1', 'groups': 4}}
    """

    word = "hybrid"
    private: tuple[str, ...] = ()
    insensitive: tuple[str, ...] = ()
    prefix: str | None = None
    distortion: float = 0.0
    requirements: Requirements = field(default_factory=Requirements)
    groups: int | None = None
    coarseness: float = 0.0
    metric: str = "gower"
    clusters: int = 20
    method: str = "optimal"
    budget: str = "shared"
    is_invariant: bool = False
    published: str = "donors"
    donors: int = 5
    quasi_identifiers: tuple[str, ...] = ()
    class_size: int = 5
    generalise: str = "auto"
    sample: int | None = None
    told: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        private: str | Sequence[str],
        insensitive: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        distortion: Any = None,
        k: Any = 2,
        l: Any = 1,  # noqa: E741
        alpha: Any = None,
        beta: Any = None,
        variety: str = "count",
        groups: Any = None,
        coarseness: Any = None,
        metric: str = "gower",
        clusters: Any = 20,
        method: str = "optimal",
        budget: str = "shared",
        invariant: bool = False,
        publish: str = "donors",
        donors: Any = 5,
        quasi_identifiers: Sequence[str] | str = (),
        class_size: Any = 5,
        generalise: str = "auto",
        sample: Any = None,
    ) -> None:
        if not private:
            raise SpecificationError("hybrid.private: name the column that is generalised.")
        names, prefix = _insensitive(insensitive)
        if distortion is None:
            raise SpecificationError(
                "hybrid.distortion: is missing; state the largest expected distance between a row and what is published for it."
            )
        limit = exact(distortion, "hybrid.distortion")
        if not 0 <= limit <= LARGEST:
            raise SpecificationError("hybrid.distortion: a number from 0 to 10^100.")
        coarse = 0 if coarseness is None else exact(coarseness, "hybrid.coarseness")
        if not 0 <= coarse <= LARGEST:
            raise SpecificationError("hybrid.coarseness: a number from 0 to 10^100.")
        if not isinstance(invariant, bool):
            raise SpecificationError(f"hybrid.invariant: true or false, not {kind_of(invariant)}.")
        with under("hybrid"):
            bounds = {
                key: _number(v, key) for key, v in (("k", k), ("l", l), ("alpha", alpha), ("beta", beta))
            }
            required = Requirements(**bounds, variety=variety)  # type: ignore[arg-type]
        number = None if groups is None else _whole(groups, "groups")
        if number is None and alpha is None and beta is None and not coarse:
            raise SpecificationError(
                "hybrid: one of groups, alpha, beta and coarseness is needed; without any, one single group of everybody mostly "
                "leaks least, and the published column would say nothing."
            )
        given = {
            "private": private, "insensitive": insensitive, "distortion": distortion, "k": k, "l": l, "alpha": alpha, "beta": beta,
            "variety": variety, "groups": groups, "coarseness": coarseness, "metric": metric, "clusters": clusters,
            "method": method, "budget": budget, "invariant": invariant, "publish": publish, "donors": donors,
            "quasi_identifiers": quasi_identifiers, "class_size": class_size, "generalise": generalise,
            "sample": sample,
        }  # fmt: skip
        self._set(
            (), None, None,
            private=attribute_names(private, "hybrid.private"),
            insensitive=names,
            prefix=prefix,
            distortion=float(limit),
            requirements=required,
            groups=number,
            coarseness=float(coarse),
            metric=_one_of(metric, "metric", METRICS),
            clusters=_whole(clusters, "clusters"),
            method=_one_of(method, "method", METHODS),
            budget=_one_of(budget, "budget", BUDGETS),
            is_invariant=invariant,
            published=_one_of(publish, "publish", PUBLISHED),
            donors=_whole(donors, "donors"),
            quasi_identifiers=attribute_names(quasi_identifiers, "hybrid.quasi_identifiers") if quasi_identifiers else (),
            class_size=_whole(class_size, "class_size"),
            generalise=_one_of(generalise, "generalise", SHAPES),
            sample=None if sample is None else _whole(sample, "sample"),
            told=_changed(given),
        )  # fmt: skip
        self._check_columns()

    def _check_columns(self) -> None:
        if self.method == "alternating" and len(self.private) > 1:
            raise SpecificationError(
                "hybrid.method: 'alternating' has one private column; use 'optimal' for several."
            )
        for key, given in (("coarseness", self.coarseness > 0), ("invariant", self.is_invariant)):
            if given and self.method == "alternating":
                raise SpecificationError(
                    f"hybrid.{key}: 'alternating' does not look at it; leave it out, or use method 'optimal'."
                )
        if self.is_invariant and self.donors > 1:
            raise SpecificationError(
                "hybrid.invariant: keeps every cluster's share, that of single people too, so that no number of donors can be asked for; "
                "state donors = 1 with it, or give up invariance."
            )
        self._check_sample()
        for key, names in (
            ("insensitive", self.insensitive),
            ("quasi_identifiers", self.quasi_identifiers),
        ):
            for name in names:
                if name in self.private or (key == "quasi_identifiers" and name in self.insensitive):
                    raise SpecificationError(
                        f"hybrid.{key}: {name!r} has another part already; a column has one."
                    )

    def _check_sample(self) -> None:
        if self.sample is None:
            return
        if self.sample < LEAST_SAMPLE:
            raise SpecificationError(f"hybrid.sample: at least {LEAST_SAMPLE} rows.")
        for given, why in (
            (self.method == "alternating", "method 'alternating' looks at all rows"),
            (self.published == "prototypes", "prototypes are means of all rows of a cluster"),
            (bool(self.quasi_identifiers), "classes of quasi-identifiers are as small as class_size, of which a sample has few rows or none"),
        ):  # fmt: skip
            if given:
                raise SpecificationError(f"hybrid.sample: {why}; leave sample out.")

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.private

    def named(self, columns: Sequence[str]) -> Hybrid:
        """The same with the exchanged columns by name.

        Args:
            columns: all there are.

        Raises:
            SpecificationError: a column that is not there, or none with the prefix.
        """
        taken = {*self.private, *self.quasi_identifiers}
        names = self.insensitive
        if self.prefix is not None:
            names = tuple(c for c in columns if c.startswith(self.prefix) and c not in taken)
            if not names:
                begins = f" begins with {self.prefix!r}" if self.prefix else " is left beside the others"
                raise SpecificationError(
                    f"hybrid.insensitive: no column{begins}; there are {len(columns)} columns."
                )
        for key, given in (
            ("private", self.private),
            ("insensitive", names),
            ("quasi_identifiers", self.quasi_identifiers),
        ):
            for name in given:
                if name not in columns:
                    raise unknown(f"hybrid.{key}", "column", name, list(columns))
        told = dict(self.told) | {"insensitive": names}
        return Hybrid(**told)

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``hybrid_from_spec`` is its inverse."""
        return {"hybrid": {key: _plain(value) for key, value in self.told}}


def hybrid_from_spec(spec: Mapping[str, Any], where: str) -> Hybrid:
    """The request that ``to_spec`` wrote, or ``[release.hybrid]`` of a settings file."""
    told = table(spec, where, "a table of settings")
    for key in told:
        if key not in KEYS:
            raise unknown(where, "key", key, list(KEYS))
    if "private" not in told:
        raise SpecificationError(f"{where}.private: is missing; add it.")
    return Hybrid(**told)


def _changed(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What is not as it is by default, in an immutable form."""
    usual: dict[str, Any] = {
        "k": 2, "l": 1, "alpha": None, "beta": None, "variety": "count", "groups": None, "coarseness": None, "metric": "gower",
        "clusters": 20, "method": "optimal", "budget": "shared", "invariant": False, "publish": "donors", "donors": 5,
        "quasi_identifiers": (), "class_size": 5, "generalise": "auto", "sample": None,
    }  # fmt: skip
    found = []
    for key, value in given.items():
        if key in ("private", "quasi_identifiers") or (
            key == "insensitive" and value != ALL and not isinstance(value, Mapping)
        ):
            value = (value,) if isinstance(value, str) else tuple(value)
        if isinstance(value, Mapping):
            value = tuple(value.items())
        if isinstance(value, float | Decimal | Fraction):
            value = str(value)  # as a ledger gives it back
        if key not in usual or value != usual[key]:
            found.append((key, value))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value and all(isinstance(v, tuple) for v in value):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (bool, int, str)) or value is None else str(value)


def _insensitive(told: str | Sequence[str] | Mapping[str, str] | None) -> tuple[tuple[str, ...], str | None]:
    if told is None:
        raise SpecificationError(
            'hybrid.insensitive: is missing; name the columns that are exchanged, whose values leave as they are ("all" for all others).'
        )
    if isinstance(told, str) and told == ALL:
        return (), ""
    if isinstance(told, tuple) and len(told) == 1 and isinstance(told[0], tuple):
        told = dict([told[0]])
    if isinstance(told, Mapping):
        if list(told) != ["prefix"] or not isinstance(told["prefix"], str) or not told["prefix"]:
            raise SpecificationError(
                "hybrid.insensitive: a list of columns, or a table with a prefix and nothing else."
            )
        return (), told["prefix"]
    names = attribute_names(told, "hybrid.insensitive")
    if not names:
        raise SpecificationError("hybrid.insensitive: name at least one column.")
    if len(set(names)) != len(names):
        raise SpecificationError("hybrid.insensitive: a column stands there twice.")
    return names, None


def _number(value: Any, key: str) -> Any:
    """A bound as a plain number, whatever it was written as; what is no number is left for its own message."""
    if value is None or isinstance(value, bool | float):
        return value
    number = exact(value, key)
    return int(number) if number.denominator == 1 else float(number)


def _whole(value: Any, key: str) -> int:
    number = exact(value, f"hybrid.{key}")
    if number.denominator != 1 or not 1 <= number <= LARGEST:
        raise SpecificationError(f"hybrid.{key}: a whole number of at least 1.")
    return int(number)


def _one_of(value: Any, key: str, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        told = f"{value!r}" if isinstance(value, str) else kind_of(value)
        raise SpecificationError(f"hybrid.{key}: one of {', '.join(known)}, not {told}.")
    return value
