"""What all releases of a ledger lose together under one policy, and which policies are in force.

The loss of a sequence of releases between two neighbouring tables is the sum of their losses between these two tables, also
where later releases were chosen by what earlier ones showed (He, Machanavajjhala, Ding 2014, theorem 4.1; derived for
different policies, docs/composition.md). So the account under a policy is the largest *sum* over its neighbours, not the
sum of the largest: releases that no single change of a record touches together do not add up.

That holds within one edition of the data. In another edition the same person has another record, whose value changes along
another edge of the same secret: over editions the joint losses of each add up, secret by secret (docs/composition.md). Where a person
may have several rows, also if one of them is kept, each edition may show another one, which changes in another attribute: the
largest losses add up. So they do over choices of rows (``where``, ``sql``), which show other rows of the same people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .axes import Bools, Ints
from .chain import canonical
from .charges import (
    Keyed,
    Losses,
    alone,
    chosen_by,
    is_repeated,
    kept_rows,
    key_of,
    largest,
    losses_of,
    other_rows,
    reading_of,
    rows_of,
    stated_by,
)
from .constraints import Constraint, constraint_from_spec
from .contexts import contexts, filtered
from .entries import Charge
from .errors import PolicyError, SpecificationError, Unsupported
from .exact import show
from .graphs import Graph
from .loss import Unit
from .phrases import thawed
from .policy import Policy, exempt_of
from .sensitivity import Neighbourhood, stacked
from .sensitivity.stack import Term, joint_domain
from .zcdp import of_pure

BY_SECRET = "sums along the edges of each attribute"
TOGETHER = "all releases together, change by change"
EDITIONS = "the joint loss of each edition, summed over editions"
SMALL_WORK = 1_000_000
ANSWERS = ("answer", "answers")


@dataclass(frozen=True, eq=False)
class Composed:
    """The joint loss of some releases under one policy, or a proved bound of it.

    Attributes:
        by_secret: for the changes of each attribute; "any" for changes of several attributes or records at once.
        rule: which rule gave it.
    """

    by_secret: Losses
    rule: str

    @property
    def value(self) -> Fraction:
        return max(self.by_secret.values(), default=Fraction(0))

    @property
    def secret(self) -> str:
        """The attribute whose changes lose most."""
        return max(self.by_secret, key=lambda name: self.by_secret[name], default="any")


@dataclass(frozen=True, eq=False)
class InForce:
    """A policy that the account must hold under.

    Attributes:
        row: the ledger row that brought it.
        is_union: whether it joins the secrets of one declared policy with the known counts of others.
    """

    policy: Policy
    row: int
    is_union: bool

    @property
    def title(self) -> str:
        return f"policy {self.policy.hash[:12]}" + (" (with all known counts)" if self.is_union else "")


def in_force(declared: Sequence[tuple[int, Policy]]) -> tuple[InForce, ...]:
    """The declared policies, and each with all counts known at any time since: constraints belong to the table.

    A policy never leaves force: a count that becomes known may lower a true loss, and the account gives no refunds. Where
    editions have other answers, what is known is joined without them, which never costs less.

    Args:
        declared: (row, policy), oldest first, over one domain.

    Raises:
        PolicyError: known counts that cannot be priced together.
    """
    found = {policy.hash: InForce(policy, row, False) for row, policy in declared}
    known: dict[str, Constraint] = {}
    agree = True
    for at, (row, policy) in enumerate(declared):
        for constraint in policy.constraints:
            agree &= _join(known, constraint)
        for _, earlier in declared[: at + 1]:
            joined = _knowing(earlier, known, agree)
            found.setdefault(joined.hash, InForce(joined, row, True))
    return tuple(found.values())


def _join(known: dict[str, Constraint], constraint: Constraint) -> bool:
    """Add a known count, with its answer if one is stated; whether the answer is the one of earlier policies."""
    spec = dict(constraint.to_spec())
    answer = {key: spec.pop(key) for key in ANSWERS if key in spec}
    key = canonical("constraint", spec)
    before = known.get(key)
    stated = {} if before is None else {k: v for k, v in before.to_spec().items() if k in ANSWERS}
    if before is None or (answer and not stated):
        known[key] = constraint
    return not answer or not stated or answer == stated


def _knowing(policy: Policy, known: Mapping[str, Constraint], agree: bool) -> Policy:
    """A policy with these counts known, without their answers where these contradict each other."""
    try:
        if agree:
            return _with_counts(policy, tuple(known.values()))
    except (
        SpecificationError
    ):  # answers of several editions, or counts that have no price together: told apart below
        pass
    try:
        return _with_counts(policy, _without_answers(tuple(known.values())))
    except SpecificationError as error:
        raise PolicyError(f"known counts of several policies together: {error}") from None


def _with_counts(policy: Policy, constraints: Sequence[Constraint]) -> Policy:
    exempt = exempt_of({name: thawed(told) for name, told in policy.exempt})
    return Policy(policy.domain, policy.secrets, constraints, policy.presence, exempt, policy.people)


def _without_answers(constraints: Sequence[Constraint]) -> list[Constraint]:
    """The same counts, of which it is known that they are known, and not what they are."""
    specs = ({k: v for k, v in each.to_spec().items() if k not in ANSWERS} for each in constraints)
    return [constraint_from_spec(spec, "policy.constraints") for spec in specs]


@lru_cache(maxsize=64)
def _unanswered(policy: Policy) -> Policy:
    return _with_counts(policy, _without_answers(policy.constraints))


def loss_under(
    policy: Policy,
    charges: Sequence[Charge],
    unit: Unit = "epsilon",
    declared: Mapping[str, Policy] | None = None,
    within: Mapping[str, int] | None = None,
    edition: str = "",
    reading: str = "",
) -> Composed:
    """A bound on the joint loss of ``charges`` under ``policy``, exact where the changes can be gone through.

    It covers whoever is in every edition: changes of one table within an edition, and one of each edition together, all of
    the same attribute where an edge changes one attribute.

    Args:
        unit: of the account. In ρ, a pure release of ε enters as ε²/2 and Gaussian ones add squared moves.
        declared: policies by hash, for releases whose rows are not kept.
        within: of ``edition`` and ``reading`` (``Table.choice``), only changes of records that have this cell of each named attribute, which no edge may
            change. The same people may have other cells in other editions, all of whose losses count.

    Raises:
        PolicyError: something went out exactly that this policy holds secret, or a release cannot be priced under it.
    """
    if any(charge.loss.unit == "rho" for charge in charges) and unit == "epsilon":
        raise PolicyError(
            "a release with Gaussian noise has no loss in epsilon; use an account in rho and delta."
        )
    if policy.known and _other_choices(charges):
        raise PolicyError(
            "known counts of a table say nothing of other choices of its rows (where, sql), and releases from both have no price "
            "together; keep a ledger for each choice."
        )
    paid = {charge.edition for charge in charges if charge.flag == "row" and not charge.loss.is_zero}
    if policy.known and any(is_repeated(c) and c.edition not in paid for c in charges):
        raise PolicyError(
            "permanent answers that another edition paid for have no price under known counts: whoever makes up for a change there "
            "is asked for the first time. Use another epoch, which is charged."
        )
    tables: dict[tuple[str, str], list[Charge]] = {}
    for charge in charges:
        tables.setdefault((charge.edition, reading_of(charge)), []).append(charge)
    held = {table[0]: policy for table in tables}
    if policy.known and policy.neighbourhood.records is not None:
        # How many records there are is known of an edition only if its own releases were made with these counts.
        stating = {
            policy.hash,
            *(k for k, p in (declared or {}).items() if p.constraints == policy.constraints),
        }
        stated = {charge.edition for charge in charges if charge.policy_hash in stating}
        held = {name: policy if name in stated else _unanswered(policy) for name in held}
    found = [
        _of_one_table(held[table[0]], own, unit, declared, within if table == (edition, reading) else None)
        for table, own in tables.items()
    ]
    if len(found) == 1:
        return Composed(_told(found[0].by_secret), found[0].rule)
    apart: list[Losses] = []
    for ((name, _), own), each in zip(tables.items(), found, strict=True):
        # Different rows of a person may change in different attributes.
        rows = (
            policy.people.max_rows > 1
            or sum(other == name for other, _ in tables) > 1
            or any(map(other_rows, own))
        )
        apart.append(each.by_secret if not rows else {"any": each.value} if each.value else {})
    summed = _summed(apart, np.ones((1, len(found)), dtype=bool))
    return Composed(_told(summed), EDITIONS if found else BY_SECRET)


def _of_one_table(
    policy: Policy,
    charges: Sequence[Charge],
    unit: Unit,
    declared: Mapping[str, Policy] | None,
    within: Mapping[str, int] | None,
) -> Composed:
    """The joint loss of releases from one and the same table, where one change of a record meets them all."""
    held = Keyed(policy.hash, policy)
    keyed = [Keyed(key_of(charge), charge) for charge in charges]
    parts = [_entering(alone(each, held, _own(each.held, declared)), each.held, unit) for each in keyed]
    # Under known counts one change may move records that different filters see.
    one = np.ones((1, len(keyed)), dtype=bool)
    seen = contexts(keyed, policy, within) if policy.neighbourhood.is_plain else one
    summed = _summed(parts, seen)
    if within is not None or len(charges) < 2:
        return Composed(summed, BY_SECRET)
    joint = _joint(keyed, parts, held, unit)
    if joint is None:
        return Composed(summed, BY_SECRET)
    if set(_told(joint)) == set(_told(summed)):
        joint = {name: min(_of(joint, name), _of(summed, name)) for name in {**joint, **summed}}
    return Composed(joint, TOGETHER) if largest(joint) <= largest(summed) else Composed(summed, BY_SECRET)


def _other_choices(charges: Sequence[Charge]) -> bool:
    """Whether releases of one edition saw different choices of its rows."""
    seen = {(charge.edition, rows_of(charge)) for charge in charges}
    return len(seen) > len({edition for edition, _ in seen})


def plain_losses(charges: Sequence[Charge], unit: Unit) -> Losses | None:
    """The sums of what the charges state for the one policy that they were all priced under; None where filters could
    lower them, where rows were chosen, or where several tables may show different rows of a person, whose losses do not add
    up secret by secret."""
    if any(filtered(charge) or reading_of(charge) or chosen_by(charge) for charge in charges):
        return None
    if len({charge.edition for charge in charges}) > 1 and any(map(other_rows, charges)):
        return None
    if _other_choices(charges):
        return None
    parts = [_entering(stated_by(charge), charge, unit) for charge in charges]
    return _told(_summed(parts, np.ones((1, len(charges)), dtype=bool)))


def _own(charge: Charge, declared: Mapping[str, Policy] | None) -> Keyed | None:
    own = (declared or {}).get(charge.policy_hash)
    return None if own is None else Keyed(own.hash, own)


def _entering(losses: Losses, charge: Charge, unit: Unit) -> Losses:
    """Losses in the account's unit."""
    if unit == "rho" and charge.loss.unit == "epsilon":
        return {name: of_pure(value) for name, value in losses.items()}
    return losses


def _summed(parts: Sequence[Losses], contexts: Bools) -> dict[str, Fraction]:
    """For every secret the largest sum over the contexts; a loss of "any" change counts for every secret.

    "any" stays beside the names, for sums with parts that name other secrets.
    """
    patterns, group = np.unique(contexts, axis=1, return_inverse=True)
    group = np.ravel(group)
    found = {}
    for secret in dict.fromkeys(n for part in parts for n in part):
        totals = [Fraction(0)] * patterns.shape[1]
        for at, part in zip(group.tolist(), parts, strict=True):
            totals[at] += _of(part, secret)
        sums = (
            sum((t for t, here in zip(totals, row, strict=True) if here), Fraction(0)) for row in patterns
        )
        found[secret] = max(sums, default=Fraction(0))
    return found


def _of(losses: Losses, secret: str) -> Fraction:
    """The loss for changes of one secret."""
    return losses.get(secret, losses.get("any", Fraction(0)))


def _told(losses: Losses) -> Losses:
    """Losses without the one of any change, where those of named secrets cover it."""
    named = {name: loss for name, loss in losses.items() if name != "any"}
    return named if named and largest(named) >= losses.get("any", 0) else losses


def _joint(
    charges: Sequence[Keyed], parts: Sequence[Losses], policy: Keyed, unit: Unit
) -> dict[str, Fraction] | None:
    """The releases whose rows are kept, change by change, and the others added on; None where that is too much work."""
    plain = policy.held.neighbourhood.is_plain
    kept = [
        isinstance(each.held.cost, Mapping)
        and "terms" in each.held.cost
        and (each.held.loss.unit == unit or plain)
        for each in charges
    ]
    rest = [part for part, here in zip(parts, kept, strict=True) if not here]
    chosen = [each for each, here in zip(charges, kept, strict=True) if here]
    chunks = _chunks(chosen, policy)
    if all(len(chunk) < 2 for chunk in chunks):
        return None
    found = [_together(chunk, policy, unit) for chunk in chunks]
    return _summed([*found, *rest], np.ones((1, len(found) + len(rest)), dtype=bool))


def _chunks(charges: Sequence[Keyed], policy: Keyed) -> list[tuple[Keyed, ...]]:
    """Runs of releases that can be gone through together. Later releases leave earlier runs as they are, so that an account
    never jumps because one more release made it too large to go through."""
    found: list[list[Keyed]] = [[]]
    terms: list[Term] = []
    for each in charges:
        own = kept_rows(each, policy)[0]
        if found[-1] and _work([*terms, *own], policy.held.neighbourhood) > SMALL_WORK:
            found.append([])
            terms = []
        found[-1].append(each)
        terms += own
    return [tuple(chunk) for chunk in found if chunk]


def _work(terms: Sequence[Term], hood: Neighbourhood) -> int:
    """How many moves there are to go through, at most."""
    if not terms:
        return 0
    graph = hood.graph
    if not hood.is_plain:
        assert hood.classes is not None
        return len(terms) * joint_domain(graph.domain, terms, *hood.classes.domain.names).size
    domain = joint_domain(graph.domain, terms)
    size = domain.size
    if graph.kind != "cartesian":
        return len(terms) * size * size
    axes = [(graph.axis(name), n) for name, n in zip(domain.names, domain.shape, strict=True)]
    return len(terms) * sum(axis.n_edges * (size // n) for axis, n in axes if axis.has_edges)


@lru_cache(maxsize=1024)
def _together(charges: tuple[Keyed, ...], policy: Keyed, unit: Unit) -> Losses:
    """The joint loss of releases whose rows are kept; of one, what it states where this is its own policy."""
    if len(charges) == 1:
        return _entering(alone(charges[0], policy, None), charges[0].held, unit)
    hood: Neighbourhood = policy.held.neighbourhood
    parts = [(each.held.loss.unit, kept_rows(each, policy)[0]) for each in charges]
    terms = [term for _, own in parts for term in own]
    is_mixed = bool(terms) and any(own != unit for own, _ in parts)
    if is_mixed and hood.is_single and not hood.exempt:
        return _mixed(parts, hood.graph)
    try:
        if not is_mixed:
            return losses_of(stacked(terms, hood, 2 if unit == "rho" else 1), hood)
    except (Unsupported, PolicyError):  # too much together, though each has a price
        pass
    each = [_entering(alone(c, policy, None), c.held, unit) for c in charges]
    return _summed(each, np.ones((1, len(each)), dtype=bool))


def _mixed(parts: Sequence[tuple[Unit, tuple[Term, ...]]], graph: Graph) -> Losses:
    """Gaussian and pure releases in ρ, without known counts: max over edges of Σ (squared moves) + Σ ε(x, y)²/2."""
    told = [(unit, [t.squared() if unit == "rho" else t for t in terms]) for unit, terms in parts]
    every = [term for _, terms in told for term in terms]
    domain = joint_domain(graph.domain, every)
    small = graph.project(domain.names)
    found: dict[str, Fraction] = {}
    for a, b in small.edges():
        moves = np.stack([term.move(a, b, domain) for term in every], axis=1)
        changed = np.stack([x != y for x, y in zip(domain.decode(a), domain.decode(b), strict=True)], axis=1)
        for at, name in enumerate(domain.names if small.kind == "cartesian" else ("any",)):
            own = moves[changed[:, at]] if small.kind == "cartesian" else moves
            if len(own):
                found[name] = max(found.get(name, Fraction(0)), _largest_mixed(own, told))
    return {name: value for name, value in found.items() if value}


def _largest_mixed(moves: Ints, told: Sequence[tuple[Unit, list[Term]]]) -> Fraction:
    """The largest row of moves (edges × terms) in ρ: floats shortlist, fractions decide."""

    def total(row: Any, exactly: bool) -> Any:
        found, at = Fraction(0) if exactly else 0.0, 0
        for unit, terms in told:
            factors = [t.factor if exactly else float(t.factor) for t in terms]
            # From a Fraction on: an integer 0 of a release without noisy rows would be halved to a float.
            zero: Any = Fraction(0) if exactly else 0.0
            loss: Any = sum((row[..., at + i] * f for i, f in enumerate(factors)), zero)
            found, at = found + (loss if unit == "rho" else loss * loss / 2), at + len(terms)
        return found

    rough = total(moves.astype(np.float64), False)
    near = np.unique(moves[rough >= rough.max() * (1 - 1e-9)], axis=0)
    found: Fraction = max(total(row.astype(object), True) for row in near)
    return found


def readable(value: Fraction) -> str:
    """An exact number for the eye: itself where it is short, else four digits.

    >>> readable(Fraction(1, 3)), readable(Fraction(23362289, 116080476))
    ('1/3', '≈ 0.2013')
    """
    text = show(value)
    return text if len(text) <= 9 else f"≈ {float(value):.4g}"


def losses_text(losses: Losses) -> str:
    """Losses by secret in a few words.

    >>> losses_text({"age": Fraction(1, 2), "sex": Fraction(1, 4)}), losses_text({})
    ('age 0.5, sex 0.25', 'nothing')
    """
    told = (f"{'any change' if name == 'any' else name} {readable(value)}" for name, value in losses.items())
    return ", ".join(told) or "nothing"
