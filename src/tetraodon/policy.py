"""A policy: what the domain is, what is secret, what everybody knows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .binding import bind, secrets_from_spec
from .constraints import Constraint, Known, bind_constraints, constraint_from_spec
from .domain import Domain
from .errors import SpecificationError, Unsupported, unknown
from .exact import exact
from .explain import explanation
from .graphs import AttributeWise, Full, Graph, Secrets
from .marginals.asked import ask
from .marginals.query import Marginals
from .marginals.strategy import every_part, joint_move
from .queries import Query
from .reading import listed
from .sensitivity import Neighbourhood, Sensitivity, describe, largest_move, query_layers
from .sensitivity.classes import check_answers, classes_of
from .sensitivity.edges_reading import edges_only
from .workload import Rows, resolve


@dataclass(frozen=True)
class Policy:
    """A promise in the bounded model: the number of records is public, one record's value moves along one edge.

    Args:
        domain: the declared domain.
        secrets: a secret graph; ``AttributeWise()`` if left out would be a guess, so it is required.
        constraints: exact facts that everybody knows: ``CountConstraint`` and ``MarginalConstraint``. They make neighbours
            move several records and so raise costs (docs/sensitivity.md); data that violate one are refused.
        presence: "public": who is in the table is known. "secret" is not available in this version.

    (ε, P)-Blowfish: for every edge x – y and every set of outputs S, replacing one record's x by y changes the
    probability of S by a factor of at most e^ε. Source: He, Machanavajjhala, Ding 2014, definition 4.2.

    >>> from tetraodon import CDF, Domain, Integer, Within
    >>> policy = Policy(Domain(loss=Integer(0, 4356)), secrets=Within(100))
    >>> policy.sensitivity(CDF("loss")).value
    Fraction(100, 1)
    """

    domain: Domain
    secrets: Secrets
    constraints: tuple[Constraint, ...] = ()
    presence: str = "public"

    def __init__(
        self, domain: Domain, secrets: Secrets, constraints: Sequence[Any] = (), presence: str = "public"
    ) -> None:
        if not isinstance(domain, Domain):
            raise SpecificationError(f"policy.domain: a td.Domain, not {type(domain).__name__}.")
        told = listed(constraints, "policy.constraints", "a list of CountConstraint and MarginalConstraint")
        declared = tuple(constraint_from_spec(c, f"policy.constraints[{i}]") for i, c in enumerate(told))
        if presence == "secret":
            raise Unsupported('policy.presence: "secret" is not available in this version.')
        if presence != "public":
            raise SpecificationError('policy.presence: "public".')
        for name, value in (
            ("domain", domain),
            ("secrets", secrets),
            ("constraints", declared),
            ("presence", presence),
        ):
            object.__setattr__(self, name, value)
        _ = self.neighbourhood  # a wrong declaration is reported here, not at the first release

    @cached_property
    def graph(self) -> Graph:
        """The secret graph over the whole domain."""
        return bind(self.secrets, self.domain)

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """The constraints over the domain."""
        return bind_constraints(self.constraints, self.domain)

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """What neighbouring tables are."""
        if not self.known:
            return Neighbourhood(self.graph)
        classes = classes_of(self.known, self.domain)
        check_answers(classes)
        return Neighbourhood(self.graph, classes, classes.records)

    def sensitivity(
        self, query: Query, reading: str = "both", norm: str = "l1", records: int | None = None
    ) -> Sensitivity:
        """Largest change of the query's exact answers over all neighbours, with an edge that attains it.

        Args:
            reading: how constraints are read. "both" (and "literal", for which the same bound is used): other records may
                move along no edge where a constraint forces them to. "edges": every record that moves does so along an
                edge, a weaker promise. Without constraints all readings agree.
            norm: "l1", or "l2" for the *square* of the Euclidean norm.
            records: the number of records, where it is public; the value holds for any number without it.

        Raises:
            SpecificationError: the query does not fit the domain.
            PolicyError: known counts for which no useful bound is known (the message names those to drop), or a secret
                that the edges reading would not protect.
            Unsupported: an explicit graph with too many edges.
        """
        if reading not in ("both", "edges", "literal"):
            raise SpecificationError('reading: "both", "edges" or "literal".')
        if norm not in ("l1", "l2"):
            raise SpecificationError('norm: "l1" or "l2".')
        hood, power = self.neighbourhood, 1 if norm == "l1" else 2
        if records is not None:
            told = exact(records, "records")
            if told.denominator != 1 or told < 1 or (hood.records is not None and hood.records != told):
                raise SpecificationError("records: the number of records, as the constraints have it.")
            hood = Neighbourhood(hood.graph, hood.classes, int(told))
        if isinstance(query, Marginals):
            if reading == "edges" and not hood.is_plain:
                raise Unsupported('reading="edges": for one table at a time; ask for its Histogram.')
            asked = ask(query, self.domain)
            return describe(joint_move(asked, every_part(asked), hood, power))
        resolved = resolve(query, self.domain)
        layers = query_layers(resolved, power)
        if reading == "edges" and not hood.is_plain:
            move = edges_only(resolved, hood, layers, power)
        else:
            move = largest_move(resolved, hood, layers, power)
        denominator = resolved.workload.denominator if isinstance(resolved.workload, Rows) else 1
        return describe(move, denominator**power)

    def explain(self, epsilon: Any = None, rho: Any = None) -> str:
        """The policy in plain words: what is not protected first.

        Args:
            epsilon: a budget to express the odds for; or ``rho``.
        """
        return "\n".join(explanation(self.domain, self.secrets, self.neighbourhood, epsilon, rho))

    def compare(self, *args: object, **kwargs: object) -> None:
        """Side-by-side policies. Not available in this version."""
        raise Unsupported("policy.compare: not available in this version.")

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``Policy.from_spec`` is its inverse."""
        spec: dict[str, Any] = {
            "domain": self.domain.to_spec(),
            "order": list(self.domain.names),  # cells are numbered by it, and canonical JSON sorts keys
            "secrets": self.secrets.to_spec(),
            "presence": self.presence,
        }
        return spec | {"constraints": [k.to_spec() for k in self.known]} if self.known else spec

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Policy:
        """The policy that ``to_spec`` wrote."""
        known = ("domain", "secrets", "order", "constraints", "presence")
        if not isinstance(spec, Mapping):
            raise SpecificationError(f"policy: a table of {', '.join(known)}.")
        for key in spec:
            if key not in known:
                raise unknown("policy", "key", key, known)
        for key in known[:2]:
            if key not in spec:
                raise SpecificationError(f"policy.{key}: required.")
        told, order = spec["domain"], spec.get("order")
        if order is not None:
            if not isinstance(order, list) or not isinstance(told, Mapping) or sorted(order) != sorted(told):
                raise SpecificationError("policy.order: the attributes of the domain, each once.")
            told = {name: told[name] for name in order}
        domain, secrets = Domain.from_spec(told), secrets_from_spec(spec["secrets"])
        return Policy(domain, secrets, spec.get("constraints", ()), spec.get("presence", "public"))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical specification."""
        return digest(self.to_spec())

    @cached_property
    def domain_hash(self) -> str:
        """SHA-256 of the domain's specification and order."""
        return digest([self.domain.to_spec(), list(self.domain.names)])


def digest(spec: Any) -> str:
    """SHA-256 of a specification in canonical JSON."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["AttributeWise", "Full", "Policy", "digest"]
