"""Which rows of a source are read, and what each of them counts: chosen rows, a bound on the rows of a person, weights.

It is done once, where a source is opened, so that every way of reading sees the same rows. In this order:

1. Rows that ``where`` does not choose, or of which it meets a null, are as if they were not there.
2. Of each person's rows, those ``most`` are kept whose marks are least. The **mark** of a row is the SHA-256, in hexadecimal
   digits, of ``<name>:<id>:<key>``: the SHA-256 of the data's name, the id and the row's key, as text. It looks at no declared
   attribute, so that no change of a value changes which rows are kept; and it is the same for every edition and engine.
3. A weight counts as many steps as boundaries (k − ½)·step, k = 1, 2, …, each rounded once to the nearest double, do not lie
   above it: it is rounded half up, and 0.35 makes four steps of 0.1.

What breaks the declaration (no id, no key, two rows of a person with one key, a weight out of bounds) is a *flaw*: the table
is refused whenever it is read, before anything is charged. The message names columns, never a row or how many.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from . import postgres
from .attributes import MAX_EXACT, Categorical, Numeric
from .counting import check_ids
from .domain import Domain
from .engine import cells_expression, is_listed, person_of, without
from .errors import SpecificationError, Unsupported
from .exact import exact, show
from .files import Connection, Source
from .number_cells import as_number, is_between
from .people import Weight
from .phrases import between
from .readable import check_readable
from .reading import listed, table, under

NO_ID, NO_KEY, SAME_KEY, BAD_WEIGHT = range(4)


@dataclass(frozen=True)
class Condition:
    """What a column must hold for a row to be read: one of the listed values, or a number between two, ends included.

    Attributes:
        values: the listed values, compared as a ``Categorical`` compares them.
        ends: the two numbers, each rounded once to the nearest double.
    """

    column: str
    values: Categorical | None
    ends: tuple[Fraction, Fraction] | None

    def to_spec(self) -> Any:
        """What stands beside the column in a settings file."""
        if self.values is not None:
            return list(self.values.values)
        assert self.ends is not None
        return {"between": [int(e) if e.denominator == 1 else show(e) for e in self.ends]}


def conditions(where: object) -> tuple[Condition, ...]:
    """The conditions that ``where`` of ``Table``, or of ``[data]``, states; all of them hold of a row that is read.

    Raises:
        SpecificationError: names the column.

    >>> conditions({"region": ["north", "east"], "age": {"between": [18, 64]}})[1].to_spec()
    {'between': [18, 64]}
    """
    if where is None:
        return ()
    found = []
    for column, told in table(where, "where", "a table from columns to the values that are read").items():
        if not isinstance(column, str) or not column:
            raise SpecificationError("where: columns are named by texts.")
        with under(f"where.{column}"):
            found.append(_condition(column, between(told, "values")))
    if not found:
        raise SpecificationError("where: at least one column; leave it out to read every row.")
    return tuple(found)


def _condition(column: str, told: Any) -> Condition:
    if isinstance(told, tuple):
        if len(told) != 2:
            raise SpecificationError("between: two numbers, [low, high]; several values are a list.")
        low, high = (exact(v, "between") for v in told)
        if low > high:
            raise SpecificationError("between: the low end first.")
        if max(abs(low.numerator), abs(high.numerator), low.denominator, high.denominator) > MAX_EXACT:
            raise SpecificationError("between: needs more than 53 bits; use rounder numbers.")
        return Condition(column, None, (low, high))
    values = Categorical(listed(told, "values", "a list of values, or { between = [low, high] }"))
    if any(isinstance(v, str) and "\0" in v for v in values.values):
        raise SpecificationError("values: none with a NUL character.")
    return Condition(column, values, None)


@dataclass(frozen=True)
class Selection:
    """Which rows are read and what each counts, checked against the domain.

    Attributes:
        where: conditions that hold of every row that is read.
        person: column that tells who is who; None where one row is one person.
        most: how many rows of a person are read.
        key: column of the keys by which these are chosen.
        beside: columns by which they are chosen where there is no key.
        salt: digest of the data's name, with which marks begin.
        weight: column of weights; None where a row counts 1.
        low, high: bounds of a weight.
        steps: the attribute whose cell is the number of steps of a weight.
        null: texts that count as null.
    """

    where: tuple[Condition, ...]
    person: str | None
    most: int
    key: str | None
    beside: tuple[str, ...]
    salt: str
    weight: str | None
    low: Fraction
    high: Fraction
    steps: Numeric | None
    null: tuple[str, ...]

    @property
    def is_listed(self) -> bool:
        """Whether rows are chosen by lists of values."""
        return any(condition.values is not None for condition in self.where)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at, beside those of the domain."""
        told = (*(c.column for c in self.where), self.person, self.key, self.weight)
        return tuple(dict.fromkeys(c for c in told if c is not None))


def selection_of(
    domain: Domain,
    *,
    name: str,
    null: tuple[str, ...],
    where: tuple[Condition, ...],
    id: str | None,
    most: int,
    keep_by: str | None,
    weight: str | None,
    weights: Weight | None,
) -> Selection:
    """The selection that a table's arguments make.

    Raises:
        SpecificationError: a column of ids or keys that an attribute reads, since what is kept would change with its values;
            public weights that an attribute reads; weights of a step that doubles cannot tell apart.
    """
    read = {c: n for n, a in domain.items() for c in a.columns(n)}
    for what, column in (("id", id), ("keep_by", keep_by)):
        if column in read:
            raise SpecificationError(
                f"{what}: attribute {read[column]!r} is read from column {column!r}; which rows of a person are kept must not "
                f"depend on a declared attribute. Name a column of its own, or leave the attribute out of the domain."
            )
    if weights is not None and weights.weights == "public" and weight in read:
        raise SpecificationError(
            f"weights: attribute {read[weight]!r} is read from column {weight!r}, so the weight changes with it; "
            'say weights="secret".'
        )
    beside = tuple(dict.fromkeys([*read, *(c.column for c in where), *([weight] if weight else [])]))
    return Selection(
        where, id, most, keep_by, beside, hashlib.sha256(name.encode("utf-8", "replace")).hexdigest(), weight,
        Fraction(0) if weights is None else weights.low, Fraction(0) if weights is None else weights.high,
        None if weights is None else steps_of(weights), null,
    )  # fmt: skip


def steps_of(weights: Weight) -> Numeric:
    """The attribute whose cell is the number of steps of a weight.

    >>> steps_of(Weight(Fraction(0), Fraction(5), Fraction(1, 10), "secret")).cells([0, 0.34, 0.35, 5]).tolist()
    [0, 3, 4, 50]
    """
    half = weights.step / 2
    try:
        return Numeric(-half, weights.high + half, width=weights.step, missing="secret")
    except SpecificationError:
        raise SpecificationError(
            "weight_step: doubles cannot tell such weights apart; use rounder or fewer steps."
        ) from None


def check_types(selection: Selection, source: Source) -> None:
    """Refuses columns of types that the selection cannot be read from; no row is looked at.

    Raises:
        DataError: names the column and its type.
    """
    types = dict(zip(source.columns, source.types, strict=True))
    for condition in selection.where:
        column = condition.column
        read = condition.values or Numeric(0, 1, cells=1)
        check_readable(read, types[column], source.where, column)
    for named in (selection.person, selection.key):
        if named is not None:
            check_ids(source, named)
    if selection.weight is not None and selection.steps is not None:
        check_readable(selection.steps, types[selection.weight], source.where, selection.weight)


def selected(source: Source, selection: Selection, *, is_placed: bool = False) -> Source:
    """The source with the selected rows alone.

    Its tables have a column ``flaw`` besides where something can break the declaration (a place in ``Source.flaws``, null where
    nothing does), ``steps`` where rows have weights, and ``place`` where that is asked for.

    Args:
        is_placed: whether rows tell where they stand in a file or a frame.
    """
    if not selection.columns and not is_placed:
        return source

    def connect() -> Connection:
        backend, rows, close = source.connect()
        try:
            return backend, _rows(source, selection, rows, is_placed), close
        except BaseException:
            close()
            raise

    is_declared = selection.person is not None or selection.weight is not None
    flaws = _flaws(source.where, selection) if is_declared else ()
    return replace(
        source, connect=connect, flaws=flaws, is_weighted=selection.weight is not None, is_placed=is_placed
    )


def _flaws(where: str, selection: Selection) -> tuple[str, ...]:
    id, key, weight = selection.person, selection.key, selection.weight
    return (
        f"{where}: column {id!r} holds a null, an empty text, or what is no text or number; every row needs the id of its person.",
        f"{where}: column {key!r} holds a null; every row needs a key by which rows of a person are kept.",
        f"{where}: two rows of one person, by column {id!r}, have one key in column {key!r}, so which of them is kept would depend "
        "on their order; name a column in keep_by that tells a person's rows apart.",
        f"{where}: column {weight!r} holds a weight that is null, not a number, or outside weight_bounds, "
        f"{show(selection.low)} to {show(selection.high)}; correct the bounds or the weights.",
    )  # fmt: skip


def _rows(source: Source, selection: Selection, rows: Any, is_placed: bool) -> Any:
    import ibis

    def column(name: str) -> Any:
        return without(rows[f"c{source.columns.index(name)}"], selection.null)

    if is_placed:
        rows = rows.mutate(place=ibis.row_number())
    for condition in selection.where:
        rows = rows.filter(_holds(condition, column(condition.column)))
    wrong: list[tuple[Any, int]] = []
    if selection.weight is not None and selection.steps is not None:
        weight = column(selection.weight)
        inside = is_between(as_number(weight), selection.low, selection.high)
        rows = rows.mutate(steps=cells_expression(selection.steps, weight), inside=inside)
        wrong.append((~rows.inside.fill_null(False), BAD_WEIGHT))
    if selection.person is None:
        return rows.mutate(flaw=ibis.cases(*wrong)) if wrong else rows
    return _bounded(source, selection, rows, wrong)


def _holds(condition: Condition, column: Any) -> Any:
    if condition.values is not None:
        return is_listed(condition.values, column)
    assert condition.ends is not None
    return is_between(as_number(column), *condition.ends)


def _bounded(source: Source, selection: Selection, rows: Any, wrong: Sequence[tuple[Any, int]]) -> Any:
    """Rows of each person with the least marks, and every row with a flaw."""
    import ibis
    import ibis.expr.operations as ops

    def column(name: str) -> Any:
        return without(rows[f"c{source.columns.index(name)}"], selection.null)

    assert selection.person is not None
    rows = rows.mutate(person=person_of(column(selection.person)))
    found = [(rows.person.isnull(), NO_ID), *wrong]
    if selection.key is None:
        # Any row may be kept, and the price says so. All columns order them, so that every reading of the same attributes keeps
        # the same rows, or equal ones.
        order = [f"c{source.columns.index(name)}" for name in selection.beside]
        rows = rows.mutate(flaw=ibis.cases(*found))
        window = ibis.window(group_by="person", order_by=order)
        rows = rows.mutate(turn=ibis.row_number().over(window))
    else:
        backend = rows.get_backend()
        if backend.name != "postgres" and not backend.has_operation(ops.HexDigest):
            raise Unsupported(
                f"keep_by: {backend.name} cannot compute SHA-256; choose the rows of a person in the source."
            )
        key = column(selection.key).cast("string")
        told = ibis.literal(f"{selection.salt}:") + rows.person + ":" + key
        mark = postgres.sha256_of(told) if backend.name == "postgres" else told.hexdigest("sha256")
        rows = rows.mutate(flaw=ibis.cases(*found[:1], (key.isnull(), NO_KEY), *found[1:]), mark=mark)
        window = ibis.window(group_by="person", order_by="mark")
        rows = rows.mutate(turn=ibis.row_number().over(window), rank=ibis.rank().over(window))
        # Rows of one mark share a rank. Which comes first is the engine's whim and may follow values.
        rows = rows.mutate(flaw=ibis.coalesce(rows.flaw, ibis.cases((rows.turn != rows["rank"], SAME_KEY))))
    return rows.filter((rows.turn < selection.most) | rows.flaw.notnull())


def conditions_spec(where: Sequence[Condition]) -> Mapping[str, Any]:
    """``where`` as a settings file states it.

    >>> conditions_spec(conditions({"age": (18, "64.5")}))
    {'age': {'between': [18, '64.5']}}
    """
    return {c.column: c.to_spec() for c in where}


def choice_of(
    domain: Domain, id: str | None, where: Mapping[str, Any] | None, sql: str | None
) -> dict[str, Any]:
    """What a charge says of the rows that were chosen before they were counted; {} where all are read.

    ``rows``: a digest of the choice, whoever competes: known counts of all rows are none of the chosen ones.
    ``by_id``: true where rows of a person are kept up to a bound; in another edition they may be others.
    ``reading``: a digest of the choice, where another one may show other rows of the same people: what rows of a person compete to be
    kept, or a query that says itself what the rows are.
    ``chosen``: the attributes by whose columns rows were chosen, so that who was is public.

    >>> from tetraodon import Integer
    >>> told = choice_of(Domain(age=Integer(0, 9)), None, {"age": [1], "year": ["2025"]}, None)
    >>> told | {"rows": "…"}
    {'rows': '…', 'chosen': ['age']}
    """
    told = conditions_spec(conditions(where))
    found: dict[str, Any] = {} if id is None else {"by_id": True}
    if sql is not None or told:
        text = json.dumps([dict(told), sql], sort_keys=True, ensure_ascii=False)
        found["rows"] = hashlib.sha256(text.encode()).hexdigest()
    if sql is not None or (id is not None and told):
        found["reading"] = found["rows"]
    chosen = [name for name, a in domain.items() if set(a.columns(name)) & set(told)]
    return found | ({"chosen": chosen} if chosen else {})
