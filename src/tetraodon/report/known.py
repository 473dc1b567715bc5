"""The counts that a policy states as public beforehand, with their numbers, as its specification tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..constraints import Known, bind_constraints, constraint_from_spec
from ..domain import Domain
from ..errors import SpecificationError
from .keys import items, mapping, texts

FEW = 12


@dataclass(frozen=True)
class PublicCounts:
    """One public fact: a count, or a whole table of counts.

    Attributes:
        title: what it says, in words.
        cells: how many counts; 1 for a single one.
        counts: name and number of each, where they are stated and few; a single count has no name.
    """

    title: str
    cells: int
    counts: tuple[tuple[str, int], ...]


def public_counts(spec: Mapping[str, Any], where: str) -> tuple[PublicCounts, ...]:
    """What the specification of a policy states as public.

    Raises:
        SpecificationError: constraints that do not fit the domain.

    >>> policy = {"domain": {"sex": {"categorical": ["f", "m"]}}, "order": ["sex"]}
    >>> policy["constraints"] = [{"marginal": ["sex"], "answers": [2, 3]}]
    >>> public_counts(policy, "policy")
    (PublicCounts(title='the table of sex', cells=2, counts=(('f', 2), ('m', 3))),)
    """
    if "constraints" not in spec:
        return ()
    told, order = mapping(spec, "domain", where), texts(spec, "order", where)
    if sorted(order) != sorted(told):
        raise SpecificationError(f"{where}.order: the attributes of the domain, each once.")
    domain = Domain.from_spec({name: told[name] for name in order})
    declared = [
        constraint_from_spec(c, f"{where}.constraints[{i}]")
        for i, c in enumerate(items(spec, "constraints", where))
    ]
    return tuple(_told(known) for known in bind_constraints(declared, domain))


def _told(known: Known) -> PublicCounts:
    if known.first:
        return PublicCounts(known.title, 1, tuple(("", count) for count in known.answers or ()))
    counts = known.answers or () if known.n_labels <= FEW else ()
    named = tuple((" · ".join(known.domain.labels(c)), count) for c, count in enumerate(counts))
    return PublicCounts(known.title, known.n_labels, named)
