"""A policy: what the domain is, what is secret, what everybody knows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .axes import Bools
from .binding import bind, complete, secrets_from_spec
from .binning import mask
from .constraints import Constraint, Known, bind_constraints, constraint_from_spec
from .domain import Domain
from .errors import SpecificationError, Unsupported, unknown
from .exact import exact
from .explain import explanation
from .graphs import AttributeWise, Full, Graph, Secrets
from .marginals.asked import ask
from .marginals.query import Marginals
from .marginals.strategy import every_part, joint_move
from .people import ONE_RECORD, People, people_from_spec
from .phrases import between, named, thawed
from .queries import Query
from .reading import kind_of, listed
from .sensitivity import Neighbourhood, Sensitivity, describe, largest_move, query_layers
from .sensitivity.classes import check_answers, classes_of
from .sensitivity.edges_reading import edges_only
from .terminal import text_of
from .workload import Rows, resolve

if TYPE_CHECKING:
    from .compare import Comparison


@dataclass(frozen=True)
class Policy:
    """A promise: between tables in which one person differs, values moved along edges, no answer's odds differ by more than e^ε.

    Args:
        domain: the declared domain.
        secrets: a secret graph; ``AttributeWise()`` if left out would be a guess, so it is required.
        constraints: exact facts that everybody knows: ``CountConstraint`` and ``MarginalConstraint``. They make neighbours
            move several records and so raise costs (docs/sensitivity.md); data that violate one are refused.
        presence: "public": who is in the table is known, and so is the number of records. "secret": that somebody is in it
            is a secret too, and no total is public.
        exempt: values of an attribute, no secret itself, that mark people who agreed to publication: ``{"agreed": ["yes"]}``.
            Questions about them alone cost nothing and are answered exactly; in all others they count, and cost, like
            everybody.
        people: what one person adds to the table; ``Session`` takes it from the table.

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
    exempt: tuple[tuple[str, Any], ...] = ()
    people: People = ONE_RECORD

    def __init__(
        self,
        domain: Domain,
        secrets: Secrets,
        constraints: Sequence[Any] = (),
        presence: str = "public",
        exempt: Mapping[str, Any] | None = None,
        people: People | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise SpecificationError(f"policy.domain: a td.Domain, not {type(domain).__name__}.")
        told = listed(constraints, "policy.constraints", "a list of CountConstraint and MarginalConstraint")
        declared = tuple(constraint_from_spec(c, f"policy.constraint.{i + 1}") for i, c in enumerate(told))
        if presence not in ("public", "secret"):
            raise SpecificationError('policy.presence: "public" or "secret".')
        if people is not None and not isinstance(people, People):
            raise SpecificationError(f"policy.people: a People, not {kind_of(people)}.")
        for name, value in (
            ("domain", domain),
            ("secrets", secrets),
            ("constraints", declared),
            ("presence", presence),
            ("exempt", named(exempt, "policy.exempt")),
            ("people", ONE_RECORD if people is None else people),
        ):
            object.__setattr__(self, name, value)
        _check_together(self)
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
        people = self.people
        graph = complete(self.domain) if people.displaces else self.graph
        gone = self.presence == "secret" or people.rows_vanish
        plain = Neighbourhood(graph, None, None, gone, people, self._exempt_cells)
        if not self.known:
            return plain
        classes = classes_of(self.known, self.domain)
        check_answers(classes)
        return replace(plain, classes=classes, records=classes.records)

    @cached_property
    def _exempt_cells(self) -> tuple[tuple[str, Bools], ...]:
        found = []
        for name, told in self.exempt:
            where = f"policy.exempt.{name}"
            attribute = self.domain.attribute(name, "policy.exempt")
            if self.graph.project([name]).has_edges:
                raise SpecificationError(
                    f"{where}: is a secret of this policy; who is exempt has to be public. Leave {name} out of the secrets."
                )
            found.append((name, mask(attribute, told, where)))
        return tuple(found)

    def with_people(self, people: People) -> Policy:
        """The same policy for tables to which one person adds this.

        Raises:
            SpecificationError: it was made for others.
        """
        if self.people == people:
            return self
        if not self.people.is_plain:
            raise SpecificationError(
                "policy.people: differs from what the table declares of ids and weights; leave it out."
            )
        return self._made(self.secrets, people)

    def under(self, secrets: Secrets) -> Policy:
        """The same policy with other secrets."""
        return self._made(secrets, self.people)

    def _made(self, secrets: Secrets, people: People) -> Policy:
        exempt = exempt_of({name: thawed(told) for name, told in self.exempt})
        return Policy(self.domain, secrets, self.constraints, self.presence, exempt, people)

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
            hood = replace(hood, records=int(told))
        if isinstance(query, Marginals):
            if reading == "edges" and not hood.is_plain:
                raise Unsupported('reading="edges": for one table at a time; ask for its Histogram.')
            asked = ask(query, self.domain)
            return describe(joint_move(asked, every_part(asked), hood, power), 1 / self.people.grain**power)
        resolved = resolve(query, self.domain)
        layers = query_layers(resolved, power)
        if reading == "edges" and not hood.is_plain:
            move = edges_only(resolved, hood, layers, power)
        else:
            move = largest_move(resolved, hood, layers, power)
        denominator = resolved.workload.denominator if isinstance(resolved.workload, Rows) else 1
        return describe(move, (denominator / self.people.grain) ** power)

    def explain(self, epsilon: Any = None, rho: Any = None) -> str:
        """The policy in plain words: what is not protected first.

        Args:
            epsilon: a budget to express the odds for; or ``rho``.
        """
        return text_of(explanation(self, epsilon, rho))

    def compare(
        self, policies: Mapping[str, Any], query: Query, epsilon: Any = None, rho: Any = None
    ) -> Comparison:
        """Policies side by side for one question at one loss. Reads and spends nothing.

        Args:
            policies: by name; secrets stand for this policy with these in place of its own (facts, people and presence stay).
            epsilon: what the release would be charged, or ``rho``.

        Returns:
            For each policy its sensitivity, the mechanism that a plan would choose with its ±, what is no longer protected
            beside the strongest of the list, and what that buys.

        Raises:
            SpecificationError: no policies, another domain, a question without a ±, no loss or two.
            PolicyError: a policy under which the query has no price; the message names it.

        >>> from tetraodon import CDF, Domain, Integer, Within
        >>> policy = Policy(Domain(loss=Integer(0, 4356, unit="USD")), secrets=Full())
        >>> policy.compare({"full": Full(), "within 100": Within(100)}, CDF("loss"), epsilon=1).rows[1].gives_up
        ('loss: two values more than 100 USD apart cost more, d USD up to ⌈d/100⌉·ε; 0 and 4356 up to 44·ε.',)
        """
        from .compare import compare

        return compare(self, policies, query, epsilon, rho)

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``Policy.from_spec`` is its inverse."""
        spec: dict[str, Any] = {
            "domain": self.domain.to_spec(),
            "order": list(self.domain.names),  # cells are numbered by it, and canonical JSON sorts keys
            "secrets": self.secrets.to_spec(),
            "presence": self.presence,
        }
        if self.known:
            spec["constraints"] = [k.to_spec() for k in self.known]
        if self.exempt:
            spec["exempt"] = {name: thawed(told) for name, told in self.exempt}
        if not self.people.is_plain:
            spec["people"] = self.people.to_spec()
        return spec

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Policy:
        """The policy that ``to_spec`` wrote."""
        known = ("domain", "secrets", "order", "constraints", "presence", "exempt", "people")
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
        people = people_from_spec(spec["people"], "policy.people") if "people" in spec else None
        exempt = exempt_of(spec["exempt"]) if "exempt" in spec else None
        presence = spec.get("presence", "public")
        return Policy(domain, secrets, spec.get("constraints", ()), presence, exempt, people)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical specification."""
        return digest(self.to_spec())

    @cached_property
    def domain_hash(self) -> str:
        """SHA-256 of the domain's specification and order."""
        return digest([self.domain.to_spec(), list(self.domain.names)])


def exempt_of(told: Any) -> dict[str, Any]:
    """``exempt`` of a settings file or a specification, for ``Policy``."""
    where = "policy.exempt"
    if not isinstance(told, Mapping):
        raise SpecificationError(f'{where}: a table such as {{ agreed = ["yes"] }}, not {kind_of(told)}.')
    return {str(name): between(value, f"{where}.{name}") for name, value in told.items()}


def _check_together(policy: Policy) -> None:
    """Refuse declarations for which no rule says what a change of one person may cost."""
    people = policy.people
    several = people.max_rows > 1 or people.displaces or people.weight is not None
    if policy.constraints and (policy.presence == "secret" or several):
        which = "presence = 'secret'" if policy.presence == "secret" else "ids of several rows, or weights"
        raise Unsupported(
            f"policy.constraints: known counts together with {which} have no price: when one person changes, no rule says who "
            "makes up for it. Leave out one of the two."
        )
    check_exempt(policy, people.max_rows > 1)
    if policy.exempt and people.displaces:
        raise Unsupported(
            "policy.exempt: rows that are kept without a key, or whose number is secret, may become any other; declare keep_by "
            'and row_counts = "public", or exempt nobody.'
        )


def check_exempt(policy: Policy, has_ids: bool) -> None:
    """Refuse to hide whether somebody with several rows is there, of whom some may be exempt: taking away all of them would
    change the tables of the exempt, which go out exactly.

    Args:
        has_ids: whether a person may have several rows in the source.
    """
    if policy.exempt and policy.presence == "secret" and has_ids:
        raise Unsupported(
            'policy.exempt: beside presence = "secret" only where every row is another person; leave out data.id, or exempt nobody.'
        )


def check_chosen(policy: Policy, where: Mapping[str, Any] | None, weight: str | None = None) -> None:
    """Refuse rows chosen by a value that may change between neighbours: who is chosen is public. Also where presence is a secret: a
    record that comes and goes with its value loses on top of what other tables lose along its edge (docs/people.md).

    Args:
        where: of the table, by column.
        weight: column of weights, where there is one.
    """
    for name, attribute in policy.domain.items():
        columns = [c for c in attribute.columns(name) if c in (where or ())]
        if columns and policy.graph.project([name]).has_edges:
            raise SpecificationError(
                f"where.{columns[0]}: decides by {name!r}, a secret of this policy, which rows are there at all, and that would be "
                "public. Filter in the query (its where is priced)."
            )
    if weight in (where or ()) and policy.people.weights_change:
        raise SpecificationError(
            f'where.{weight}: decides by secret weights which rows are there at all; declare weights = "public", or leave it out.'
        )


def digest(spec: Any) -> str:
    """SHA-256 of a specification in canonical JSON."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["AttributeWise", "Full", "Policy", "digest"]
