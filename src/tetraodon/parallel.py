"""Releases about different people do not add up: a session for the records of every value of a public attribute.

What an edge cannot change splits the people of a table once and for all, so the losses of releases about different parts
never meet on one edge (He, Machanavajjhala, Ding 2014, theorem 4.2); the ledger sees that from the filters alone. Who is in which
part may differ from edition to edition, so this holds within one edition; losses of several editions add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .attributes import Attribute, Categorical, Integer, Numeric
from .composition import InForce
from .constraints import Known
from .errors import PolicyError, SpecificationError, Unsupported
from .exact import Number, show
from .graphs import Graph
from .loss import Loss
from .queries import Query, query_from_spec

if TYPE_CHECKING:
    from .plans import Plan
    from .release import Release
    from .session import Session

MOST_PARTS = 10_000


@dataclass(frozen=True, eq=False)
class Part:
    """The records with one value of an attribute that no edge changes, released from as if they were a table.

    Attributes:
        by: the attribute.
        value: as a filter takes it.
        cell: its cell.
    """

    session: Session
    by: str
    value: Any
    cell: int

    def plan(self, query: Query, epsilon: Number | None = None, rho: Number | None = None) -> Plan:
        """``Session.plan`` for these records."""
        found: Plan = self.session.plan(self._about(query), epsilon, rho)
        return found

    def release(
        self,
        query: Query,
        epsilon: Number | None = None,
        mechanism: Any = "auto",
        name: str | None = None,
        again: bool = False,
        rho: Number | None = None,
    ) -> Release:
        """``Session.release`` for these records; by default named after the query and the value."""
        told = self._about(query)
        own = re.sub(r"[^\w .+=-]", "_", f"{query.title}-{self.by}={self.value}")
        made: Release = self.session.release(told, epsilon, mechanism, name or own, again, rho)
        return made

    @property
    def remaining(self) -> Loss:
        """What releases from this edition about these records may still cost."""
        ledger, edition = self.session.ledger, self.session.table.edition
        return Loss(
            ledger.unit,
            max(
                Fraction(0),
                ledger.remaining_within(
                    {self.by: self.cell}, edition, self.session.table.choice.get("reading", "")
                ),
            ),
        )

    def _about(self, query: Query) -> Query:
        if not isinstance(query, Query):
            raise SpecificationError('split: a query such as td.CDF("age").')
        if query.word in ("rows", "hybrid"):
            raise Unsupported("split: rows go out whole; release them from the session itself.")
        spec = query.to_spec()
        where = dict(spec.get("where", {}))
        if self.by in where:
            raise SpecificationError(f"split: the query filters {self.by} itself; leave that to the part.")
        return query_from_spec(spec | {"where": where | {self.by: [self.value]}})

    def __repr__(self) -> str:
        return f"{self.session!r} where {self.by} = {self.value}"


def parts(session: Session, by: str) -> dict[Any, Part]:
    """A part for every value of ``by``, in the attribute's order, special cells last.

    Raises:
        SpecificationError: an unknown attribute, or one of more than 10,000 cells.
        PolicyError: an edge of a policy in force changes the attribute, or breaks a known count; names the two values.
    """
    attribute = session.policy.domain.attribute(by, "split.by")
    if attribute.size > MOST_PARTS:
        raise SpecificationError(f"split.by: {by} has more than 10,000 values; declare coarser cells.")
    check_split(session.ledger.policies, by)
    values = [_value(attribute, cell) for cell in range(attribute.size)]
    return {value: Part(session, by, value, cell) for cell, value in enumerate(values)}


def check_split(policies: Iterable[InForce], by: str) -> None:
    """Refuse to split by what an edge changes, or under known counts that an edge breaks."""
    for each in policies:
        policy = each.policy
        crossing = _first_edge(policy.neighbourhood.graph.project([by]))
        if crossing is not None:
            raise PolicyError(
                f"session.split: {crossing} is a secret pair under {each.title}: a record may have either value, so the parts "
                f"are not different people and their losses add up. Filter with where={{{by!r}: …}} instead; such releases are "
                "priced for records that come and go."
            )
        if policy.neighbourhood.is_plain:
            continue
        for known in policy.known:
            pair = _first_edge(policy.neighbourhood.graph.project(known.domain.names), known)
            if pair is not None:
                raise PolicyError(
                    f"session.split: {known.title} is known under {each.title}, and the secret pair {pair} changes it: then a "
                    "record of another part may have to change back, so losses of different parts add up. Release from the "
                    "whole table, or declare secrets whose pairs leave the known counts as they are."
                )


def _first_edge(graph: Graph, known: Known | None = None) -> str | None:
    """An edge in words: any, or one whose ends a known count tells apart."""
    if not graph.has_edges:
        return None
    for a, b in graph.edges():
        hit = known.labels[a] != known.labels[b] if known is not None else a != b
        if hit.any():
            at = int(hit.argmax())
            ends = [zip(graph.domain.names, graph.domain.labels(int(c)), strict=True) for c in (a[at], b[at])]
            return " – ".join(f"({', '.join(f'{n} = {v}' for n, v in end)})" for end in ends)
    return None


def _value(attribute: Attribute, cell: int) -> Any:
    """A cell as filters name it."""
    if cell < attribute.n_values:
        if isinstance(attribute, Categorical):
            return attribute.values[cell]
        if isinstance(attribute, Integer):
            return attribute.low + cell * attribute.step
        if isinstance(attribute, Numeric):
            return show(attribute.low + cell * attribute.width)
    return attribute.label(cell)
