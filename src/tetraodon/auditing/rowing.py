"""What a row release gives out for made-up records, many times: the records are rows of a made-up table that is released.

Rows are replaced independently of each other, so that a table of n equal rows gives n outputs of that row. Several rows of a
person, or of partners under known counts, stay beside each other here, as if it were known whose they are; a real release
shuffles them, which can only hide more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from ..attributes import Attribute, Categorical, Integer, Numeric, Point
from ..axes import Ints
from ..channels.apply import Target, applied
from ..channels.channel import Channel
from ..channels.table import Table as Exactly
from ..domain import Domain
from ..rows.strategy import RowStrategy
from ..table import Table
from .bounds import Floats
from .losses import log_ratio
from .neighbours import Pair, pairs

JOINT = 2**12
WIDE = 64
LEAST = -690.0
FEW = 2**12


def finished(strategy: RowStrategy) -> RowStrategy:
    """The strategy with its channels made; where a prior is an answer that is not drawn yet, for a uniform one."""
    made = []
    for part in strategy.parts:
        if part.channel is None and part.declared is not None:
            answers = dict.fromkeys(part.declared.needs, "uniform")
            part = replace(
                part, channel=part.declared.build(part.domain, part.epsilon, part.secrets, answers)
            )
        made.append(part)
    return replace(strategy, parts=tuple(made))


def row_pairs(strategy: RowStrategy, count: int) -> list[Pair]:
    """Neighbouring tables between whose records the channels seem to lose most."""
    names = strategy.query.attributes
    domain = strategy.policy.domain.select(*names)

    def rows(cells: Ints) -> Floats:
        told = dict(zip(domain.names, domain.decode(cells), strict=True))
        found = []
        for part in strategy.parts:
            assert part.channel is not None
            law = part.channel.rows(part.domain.encode([told[n] for n in part.domain.names]))
            with np.errstate(divide="ignore"):
                found.append(np.maximum(np.log(law), LEAST))
        return np.concatenate(found, axis=1)

    widths = [p.channel.outputs.size for p in strategy.parts if p.channel is not None]
    splits = tuple(int(v) for v in np.cumsum([0, *widths[:-1]]))
    return pairs(strategy.policy, names, rows, power=0, count=count, weighs=False, splits=splits)


def outputs(strategy: RowStrategy, records: Sequence[tuple[int, int]], domain: Domain, draws: int) -> Floats:
    """Shape (draws, numbers): what leaves for these records, as a release draws it.

    Args:
        records: (cell of ``domain``, how many rows).
    """
    cells = [cell for cell, n in records for _ in range(n * strategy.query.rows_per_person)]
    parts: list[Ints] = []
    sizes: list[int] = []
    for cell in cells:
        for codes, size in _of_record(strategy, cell, domain, draws):
            parts.append(codes)
            sizes.append(size)
    if len(parts) > 1 and prod(sizes) <= JOINT:
        joint = np.zeros(draws, dtype=np.int64)
        for codes, size in zip(parts, sizes, strict=True):
            joint = joint * size + codes
        parts.append(joint)
    return np.stack(parts[-WIDE:], axis=1).astype(np.float64)


def _of_record(strategy: RowStrategy, cell: int, domain: Domain, draws: int) -> list[tuple[Ints, int]]:
    """(codes, how many there are) of every column that leaves, for one record drawn anew each time."""
    names = strategy.query.attributes
    told = dict(zip(domain.names, (int(v) for v in domain.decode(cell)), strict=True))
    small = strategy.policy.domain.select(*names)
    columns: dict[str, Any] = {}
    for name, attribute in small.items():
        for column, value in zip(attribute.columns(name), _values(attribute, told[name]), strict=True):
            columns[column] = [value] * draws
    targets = [Target(p.channel, p.names) for p in strategy.parts if p.channel is not None]
    made = applied(Table(_arrow(columns, small), small), targets)
    found = []
    for column in made.itercolumns():
        coded = column.combine_chunks()
        size = len(coded.dictionary) + 1
        found.append((coded.indices.fill_null(size - 1).to_numpy().astype(np.int64), size))
    return found


def _arrow(columns: dict[str, Any], domain: Domain) -> Any:
    import pyarrow as pa

    kinds = {}
    for name, attribute in domain.items():
        for column in attribute.columns(name):
            is_text = isinstance(attribute, Categorical) and not attribute.of_integers
            kinds[column] = (
                pa.string()
                if is_text
                else pa.float64()
                if isinstance(attribute, Numeric | Point)
                else pa.int64()
            )
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def _values(attribute: Attribute, cell: int) -> tuple[Any, ...]:
    """A value that lies in a cell, column by column."""
    if cell == attribute.missing_cell:
        return (None, None) if isinstance(attribute, Point) else (None,)
    if isinstance(attribute, Point):
        row, column = divmod(cell, attribute.shape[1])
        return tuple(_values(s, c)[0] for s, c in zip(attribute.sides, (row, column), strict=True))
    if isinstance(attribute, Integer):
        return (attribute.low + attribute.step * cell,)
    if isinstance(attribute, Numeric):
        return (float(attribute.low + attribute.width * (cell + Fraction(1, 2))),)
    if cell < attribute.n_values:
        return (attribute.values[cell],)
    if attribute.of_integers:
        return (max(int(v) for v in attribute.values) + 1,)
    return ("".join(str(v) for v in attribute.values) + " ",)  # longer than any that is declared


def exact_loss(strategy: RowStrategy, pair: Pair) -> float | None:
    """The exact loss between two tables, record by record; None where a law is not held as a small table."""
    total = 0.0
    for (x, n), (y, _) in zip(pair.before, pair.after, strict=True):
        for part in strategy.parts:
            channel = part.channel
            assert channel is not None
            told = [dict(zip(pair.domain.names, pair.domain.decode(c), strict=True)) for c in (x, y)]
            one, two = (int(part.domain.encode([t[k] for k in part.domain.names])) for t in told)
            found = _channel_loss(channel, one, two)
            if found is None:
                return None
            total += found * n * strategy.query.rows_per_person
    return total


def _channel_loss(channel: Channel, one: int, two: int) -> float | None:
    if one == two:
        return 0.0
    law = channel.law
    if not isinstance(law, Exactly) or len(law.columns) > FEW:
        return None
    first, second = (law.exact_row(int(law.row_of[c])) for c in (one, two))
    found = log_ratio(first, second)
    return float("inf") if found is None else found
