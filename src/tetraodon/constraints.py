"""What the adversary already knows exactly: counts and whole tables that are public.

A known count makes neighbours move several records at once, so it raises what a release costs (``sensitivity``). The
answers themselves are needed to release, never to plan: the cost depends on *what* is known, not on the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import Ints
from .binning import mask
from .domain import Domain
from .errors import SpecificationError, Unsupported, unknown
from .exact import exact
from .listings import called, columns_of
from .phrases import Frozen, attribute_names, between, named, thawed
from .reading import kind_of, listed, table, under

if TYPE_CHECKING:
    from .table import Counts

MAX_CONSTRAINTS = 1000
MAX_CELLS = 2**22
MAX_ANSWER = 2**53

Answers = tuple[tuple[Any, int], ...] | tuple[int, ...]


@dataclass(frozen=True)
class CountConstraint:
    """The number of records that fulfil a condition is public.

    Args:
        where: the condition, as a query's filter: attribute → list of values, or a pair (low, high), ends included;
            several attributes are joined by "and".
        answer: the number; needed to release, not to plan.

    >>> CountConstraint({"sex": ["Male"]}, answer=32650).to_spec()
    {'where': {'sex': ['Male']}, 'answer': 32650}
    """

    where: Frozen
    answer: int | None = None

    def __init__(self, where: Mapping[str, Any], answer: int | None = None) -> None:
        told = named(where, "CountConstraint.where")
        if not told:
            raise SpecificationError("CountConstraint.where: a condition on at least one attribute.")
        object.__setattr__(self, "where", told)
        object.__setattr__(
            self, "answer", None if answer is None else _count(answer, "CountConstraint.answer")
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.where)

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"where": {n: thawed(v) for n, v in self.where}}
        return spec if self.answer is None else spec | {"answer": self.answer}


@dataclass(frozen=True)
class MarginalConstraint:
    """The whole table of counts of some attributes is public.

    Args:
        attributes: whose table it is.
        answers: the count of every cell: a mapping from the value (from a tuple of values, for several attributes), or
            a list in cell order, the last attribute running fastest; needed to release, not to plan.

    >>> MarginalConstraint("sex", answers={"Female": 16192, "Male": 32650}).to_spec()
    {'marginal': ['sex'], 'answers': [['Female', 16192], ['Male', 32650]]}
    """

    attributes: tuple[str, ...]
    answers: Answers | None = None
    is_mapping: bool = False

    def __init__(self, *attributes: str, answers: Mapping[Any, int] | Sequence[int] | None = None) -> None:
        told = attribute_names(attributes, "MarginalConstraint")
        if not told:
            raise SpecificationError("MarginalConstraint: name at least one attribute.")
        where = "MarginalConstraint.answers"
        kept: Any = None
        if isinstance(answers, Mapping):
            kept = tuple((_key(k), _count(v, where)) for k, v in answers.items())
        elif answers is not None:
            kept = tuple(
                _count(v, where) for v in listed(answers, where, "a mapping, or a list in cell order")
            )
        object.__setattr__(self, "attributes", told)
        object.__setattr__(self, "answers", kept)
        object.__setattr__(self, "is_mapping", isinstance(answers, Mapping))

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"marginal": list(self.attributes)}
        if self.answers is None:
            return spec
        if not self.is_mapping:
            return spec | {"answers": list(self.answers)}
        pairs = [[list(k) if isinstance(k, tuple) else k, v] for k, v in self.answers]  # type: ignore[misc]
        return spec | {"answers": pairs}


Constraint = CountConstraint | MarginalConstraint


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


def _count(value: object, where: str) -> int:
    number = exact(value, where)
    if number.denominator != 1 or number < 0:
        raise SpecificationError(f"{where}: a count is a whole number of at least 0.")
    if number > MAX_ANSWER:
        raise SpecificationError(f"{where}: counts up to 2^53.")
    return int(number)


def constraint_from_spec(spec: Any, where: str = "policy.constraint") -> Constraint:
    """The constraint that ``to_spec`` wrote, or one ``[[policy.constraint]]`` of a settings file.

    >>> constraint_from_spec({"marginal": ["sex"]})
    MarginalConstraint(attributes=('sex',), answers=None, is_mapping=False)
    """
    if isinstance(spec, CountConstraint | MarginalConstraint):
        return spec
    told = table(spec, where, "a table such as { marginal = ['sex'], answers = … }")
    with under(where):
        if "marginal" in told:
            names, answers = told.pop("marginal"), told.pop("answers", None)
            for key in told:
                raise unknown("marginal", "key", key, ["marginal", "answers"])
            return MarginalConstraint(*attribute_names(names, "marginal"), answers=_listed_answers(answers))
        if "where" in told:
            condition, answer = told.pop("where"), told.pop("answer", None)
            for key in told:
                raise unknown("where", "key", key, ["where", "answer"])
            inner = table(condition, "where", "a mapping from attributes to values")
            return CountConstraint({n: between(v, f"where.{n}") for n, v in inner.items()}, answer)
    raise SpecificationError(f"{where}: one of marginal, where in a table.")


def _listed_answers(answers: Any) -> Any:
    """A list in cell order, a mapping, or [value, count] pairs."""
    if isinstance(answers, list | tuple) and answers and isinstance(answers[0], list | tuple):
        pairs = [listed(p, "answers", "[value, count] pairs") for p in answers]
        if any(len(p) != 2 for p in pairs):
            raise SpecificationError("answers: [value, count] pairs.")
        keys = [_key(p[0]) for p in pairs]
        if len(set(keys)) != len(keys):
            raise SpecificationError("answers: a cell is listed twice.")
        return dict(zip(keys, (p[1] for p in pairs), strict=True))
    return answers


def answers_file(path: Path, names: Sequence[str], where: str) -> dict[Any, int]:
    """The counts of a public table: a CSV file with a column for each attribute and a column ``count``."""
    found: dict[Any, int] = {}
    for line, (*cell, count) in columns_of(path, [*names, "count"], where):
        key = tuple(cell) if len(cell) > 1 else cell[0]
        place = f"{where}: {called(path)}, line {line}"
        if key in found:
            raise SpecificationError(f"{place}: a count for a cell that has one already.")
        found[key] = _count(count, place)
    if not found:
        raise SpecificationError(f"{where}: {called(path)}: no cell has a count.")
    return found


@dataclass(frozen=True, eq=False)
class Known:
    """A constraint over a domain: every cell of its attributes has a label, and the count of each label is public.

    Attributes:
        declared: where it came from.
        domain: of its attributes, in declared order.
        labels: shape (domain.size,): for a marginal the cell itself; for a count 1 where the condition holds, else 0.
        answers: the count of every label; None where it was not given. Of a count only that of label 1 is known.
        title: what it says, in words.
    """

    declared: Constraint
    domain: Domain
    labels: Ints
    answers: tuple[int, ...] | None
    title: str

    @property
    def n_labels(self) -> int:
        return self.domain.size if isinstance(self.declared, MarginalConstraint) else 2

    @property
    def first(self) -> int:
        """The first label whose count is known."""
        return 0 if isinstance(self.declared, MarginalConstraint) else 1

    @property
    def records(self) -> int | None:
        """The number of all records, where it follows."""
        is_whole = isinstance(self.declared, MarginalConstraint) and self.answers is not None
        return sum(self.answers or ()) if is_whole else None

    def is_broken(self, counts: Counts) -> bool:
        """Whether a table, counted on ``domain``, violates it."""
        if self.answers is None:
            raise SpecificationError(
                f"policy.constraints: {self.title}: no answer is stated; releases need it."
            )
        found = np.zeros(self.n_labels, dtype=np.int64)
        for codes, numbers in counts.items():
            np.add.at(found, self.labels[codes], numbers)
        return bool(found[self.first :].tolist() != list(self.answers))

    def to_spec(self) -> dict[str, Any]:
        """As declared, with answers in cell order."""
        if isinstance(self.declared, CountConstraint):
            return self.declared.to_spec()
        spec: dict[str, Any] = {"marginal": list(self.domain.names)}
        return spec if self.answers is None else spec | {"answers": list(self.answers)}


def bind_constraints(constraints: Sequence[Any], domain: Domain) -> tuple[Known, ...]:
    """Constraints over a domain.

    Raises:
        SpecificationError: too many, an unknown attribute, a condition that holds for all values or for none, answers
            that do not fit the cells.
    """
    told = listed(constraints, "policy.constraints", "a list of CountConstraint and MarginalConstraint")
    if len(told) > MAX_CONSTRAINTS:
        raise SpecificationError(
            f"policy.constraints: {len(told):,} are declared, {MAX_CONSTRAINTS:,} are offered; "
            "declare whole tables as MarginalConstraint."
        )
    return tuple(_bound(c, domain, f"policy.constraint.{i + 1}") for i, c in enumerate(told))


def _bound(constraint: Any, domain: Domain, where: str) -> Known:
    if not isinstance(constraint, CountConstraint | MarginalConstraint):
        raise SpecificationError(
            f"{where}: CountConstraint or MarginalConstraint, not {kind_of(constraint)}."
        )
    for name in constraint.attributes:
        domain.attribute(name, where)
    small = domain.select(*constraint.attributes)
    if small.size > MAX_CELLS:
        raise Unsupported(f"{where}: known tables of more than 2^22 cells; declare coarser attributes.")
    codes = np.arange(small.size, dtype=np.int64)
    if isinstance(constraint, MarginalConstraint):
        if small.size < 2:
            raise SpecificationError(f"{where}: says nothing; its attributes have a single cell.")
        title = f"the table of {', '.join(small.names)}"
        return Known(constraint, small, codes, _answers(constraint, small, where), title)
    held = np.ones(small.size, dtype=bool)
    cells = dict(zip(small.names, small.decode(codes), strict=True))
    for name, value in constraint.where:
        held &= mask(domain[name], value, f"{where}.where.{name}")[cells[name]]
    if held.all() or not held.any():
        raise SpecificationError(f"{where}.where: holds for {'every value' if held.any() else 'no value'}.")
    answers = None if constraint.answer is None else (constraint.answer,)
    return Known(
        constraint, small, held.astype(np.int64), answers, f"the number of records with {_said(constraint)}"
    )


def _said(constraint: CountConstraint) -> str:
    parts = []
    for name, value in constraint.to_spec()["where"].items():
        if isinstance(value, dict):
            low, high = value["between"]
            parts.append(f"{name} from {low} to {high}")
        else:
            shown = [str(v) for v in (value if isinstance(value, list) else [value])]
            more = f" or {len(shown) - 4} others" if len(shown) > 5 else ""
            parts.append(f"{name} = {' or '.join(shown[:4] if more else shown)}{more}")
    return " and ".join(parts)


def _answers(constraint: MarginalConstraint, small: Domain, where: str) -> tuple[int, ...] | None:
    told = constraint.answers
    if told is None:
        return None
    if not constraint.is_mapping:
        if len(told) != small.size:
            raise SpecificationError(
                f"{where}.answers: {small.size} cells are declared, {len(told)} counts given."
            )
        if tuple(n for n in constraint.attributes) != small.names:
            raise SpecificationError(
                f"{where}.answers: a list goes by the domain's order ({', '.join(small.names)}); name the attributes so."
            )
        return told  # type: ignore[return-value]
    found: dict[int, int] = {}
    for key, count in told:  # type: ignore[misc]
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(constraint.attributes):
            raise SpecificationError(f"{where}.answers: tuples of {len(constraint.attributes)} values.")
        named_parts = dict(zip(constraint.attributes, parts, strict=True))
        cells = [small[n].cell(named_parts[n], f"{where}.answers") for n in small.names]
        if found.setdefault(int(small.encode(cells)), count) != count:
            raise SpecificationError(f"{where}.answers: two counts for one cell.")
    lacking = next((c for c in range(small.size) if c not in found), None)
    if lacking is not None:
        shown = ", ".join(small.labels(lacking))
        raise SpecificationError(
            f"{where}.answers: no count for ({shown}); a public table states every cell."
        )
    return tuple(found[c] for c in range(small.size))
