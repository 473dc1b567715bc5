"""The query ``Marginals``: several tables at once under one charge, consistent with each other."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..domain import Domain
from ..errors import SpecificationError, unknown
from ..phrases import attribute_names, between, named, without_pairs
from ..queries import Query
from ..reading import kind_of, listed, under

EXPECTED = 'a whole number k, or a list of tables such as [["sex", "age"], ["education"]]'
LONGEST = 80


@dataclass(frozen=True)
class Marginals(Query):
    """Numbers of records in several tables: all tables of k attributes, or a stated list of tables.

    One charge covers them all, and what they say agrees wherever they speak of the same counts.

    Args:
        tables: how many attributes each table has (all such tables are asked for), or the tables themselves.
        of: the attributes to choose from, for a number; all declared ones if left out.
        where: only records with these values, in every table.
        bins: coarser cells, in every table that has the attribute.

    Raises:
        SpecificationError: no table, a table named twice, or an attribute that is not declared or stands there twice.

    >>> Marginals(2, of=["sex", "age", "education"]).to_spec()
    {'marginals': 2, 'of': ['sex', 'age', 'education']}
    >>> Marginals([("sex", "age"), ("education",)]).to_spec()
    {'marginals': [['sex', 'age'], ['education']]}
    """

    word = "marginals"
    order: int | None = None
    of: tuple[str, ...] = ()
    listed: tuple[tuple[str, ...], ...] = ()

    def __init__(
        self,
        tables: int | Sequence[Sequence[str] | str],
        *,
        of: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        bins: Mapping[str, Any] | None = None,
    ) -> None:
        order: int | None = None
        chosen: tuple[str, ...] = ()
        stated: tuple[tuple[str, ...], ...] = ()
        if isinstance(tables, int) and not isinstance(tables, bool):
            order = tables
            chosen = () if of is None else attribute_names(of, "marginals.of")
            if order < 1 or (of is not None and order > len(chosen)):
                raise SpecificationError(
                    "marginals: at least one attribute in a table, and no more than there are to choose from."
                )
        else:
            if of is not None:
                raise SpecificationError("marginals.of: only beside a number of attributes.")
            stated = tuple(
                attribute_names(t, f"marginals[{i}]")
                for i, t in enumerate(listed(tables, "marginals", EXPECTED))
            )
            if not stated or not all(stated):
                raise SpecificationError("marginals: at least one table, each of at least one attribute.")
            if len({frozenset(t) for t in stated}) < len(stated):
                raise SpecificationError("marginals: a table is asked for twice.")
        fields = {
            "order": order,
            "of": chosen,
            "listed": stated,
            "by": (),
            "where": named(where, "marginals.where"),
            "bins": named(without_pairs(bins), "marginals.bins"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        shown = self.attributes
        for name, _ in self.bins if shown else ():
            if name not in shown:
                raise unknown("marginals.bins", "attribute in these tables", name, shown)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that are named; none where all declared ones are meant."""
        return self.of or tuple(dict.fromkeys(n for t in self.listed for n in t))

    @property
    def title(self) -> str:
        """A name for files and reports, from the query alone."""
        told = "-".join(["marginals", str(self.order), *self.of])
        if self.order is None:
            told = f"marginals-{'+'.join('-'.join(t) for t in self.listed)}"
        if len(told) <= LONGEST:
            return told
        digest = hashlib.sha256(json.dumps(self.to_spec(), sort_keys=True).encode()).hexdigest()[:8]
        return f"marginals-{self.order or len(self.listed)}-{digest}"

    def tables(self, domain: Domain) -> tuple[tuple[str, ...], ...]:
        """The tables over a domain, attributes in its order.

        Raises:
            SpecificationError: an attribute that the domain does not declare, or too few attributes.
        """
        for name in self.used:
            domain.attribute(name, "marginals")
        rank = {n: i for i, n in enumerate(domain.names)}
        if self.order is None:
            return tuple(tuple(sorted(t, key=rank.__getitem__)) for t in self.listed)
        chosen = sorted(self.of, key=rank.__getitem__) if self.of else domain.names
        if self.order > len(chosen):
            raise SpecificationError(
                f"marginals: {self.order} attributes in a table, but {len(chosen)} are declared."
            )
        for name, _ in self.bins:
            if name not in chosen:
                raise unknown("marginals.bins", "attribute in these tables", name, chosen)
        return tuple(itertools.combinations(chosen, self.order))

    def _body(self) -> Any:
        return [list(t) for t in self.listed] if self.order is None else self.order

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``query_from_spec`` is its inverse."""
        spec = super().to_spec()
        return {"marginals": spec.pop("marginals")} | ({"of": list(self.of)} if self.of else {}) | spec


def marginals_from_spec(spec: Mapping[str, Any], where: str = "query") -> Marginals:
    """The query that ``to_spec`` wrote, or the ``query`` table of a settings file.

    >>> marginals_from_spec({"marginals": [["sex", "age"]], "bins": {"age": 5}}).to_spec()
    {'marginals': [['sex', 'age']], 'bins': {'age': 5}}
    """
    rest = dict(spec)
    body = rest.pop("marginals")
    for key in rest:
        if key not in ("of", "where", "bins"):
            raise unknown(where, "key", key, ["of", "where", "bins"])
    if isinstance(rest.get("where"), Mapping):
        rest["where"] = {n: between(v, f"{where}.marginals.where.{n}") for n, v in rest["where"].items()}
    with under(where):
        if isinstance(body, str | bool) or (not isinstance(body, int) and isinstance(body, Mapping)):
            raise SpecificationError(f"marginals: {EXPECTED}, not {kind_of(body)}.")
        return Marginals(body, **rest)
