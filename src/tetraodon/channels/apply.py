"""Rows through channels: each is read as its cell, drawn in this process, shuffled, and nothing else leaves.

Whatever reads the rows turns each into the number of its cell and knows nothing of channels: an engine that drew would draw
once for all rows that share a dictionary entry or a constant column. Every row is drawn for itself here. Then the rows are
put into a random order, so that the place of a row says nothing, and the cells become columns of the values that they stand
for, dictionary-encoded over *all* declared outputs in declared order: neither a dictionary nor its order tells anything of
the data. Columns kept beside them are rebuilt without their dictionaries and leave as they are, outside any guarantee.

*Memory.* The source is read out of core, a million rows at a time, of which at most two batches are held. What is held of
each row until all are read is its output (1, 2 or 4 bytes for each channel, by the number of outputs) and its kept columns;
the random order takes 16 bytes more (benchmarks/channels/apply.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Point
from ..axes import Ints
from ..domain import Domain, attribute_from_spec
from ..errors import DataError, SpecificationError, unknown
from ..noise import shuffled
from ..table import Table
from .channel import Channel
from .outputs import Output, narrow, taken
from .permanent import Permanent, fingerprint

if TYPE_CHECKING:
    import pyarrow

# Rows drawn at a time: what a law works with on the way then stays in the second cache.
CHUNK = 1 << 15
WORKERS = 4


@dataclass(frozen=True)
class Target:
    """A channel and the attributes of a table whose values it replaces.

    Attributes:
        channel: takes cells of these attributes, side by side in this order.
        names: attributes of the table's domain.
    """

    channel: Channel
    names: tuple[str, ...]

    def check(self, domain: Domain) -> None:
        """Refuses attributes that the channel was not made for; columns may be named otherwise.

        Raises:
            SpecificationError: an attribute that is not declared, or declared otherwise than the channel's.
        """
        told = [domain.attribute(name, "channel") for name in self.names]
        wanted = list(self.channel.domain.values())
        if len(told) != len(wanted) or any(
            _cells_of(a) != _cells_of(b) for a, b in zip(told, wanted, strict=True)
        ):
            raise SpecificationError(
                f"channel: {' and '.join(map(repr, self.names))} of the table is declared otherwise than the channel's "
                f"{' and '.join(map(repr, self.channel.domain))}."
            )

    def outputs(self, domain: Domain) -> list[Output]:
        """The columns that the channel fills: those of the table, where an output has the name of the value it replaces."""
        columns = {
            own: domain[name].columns(name) for own, name in zip(self.channel.domain, self.names, strict=True)
        }
        made = []
        for at, (own, attribute) in enumerate(self.channel.outputs.items()):
            named = attribute.columns(own)
            beside = columns.get(own, named)
            made.append(Output(attribute, beside if len(beside) == len(named) else named, at))
        return made


@dataclass(frozen=True)
class Lasting:
    """Answers that last: the first answer of an id in an epoch is its answer for the whole epoch.

    Attributes:
        store: what is remembered.
        ident: the column of ids.
        epoch: the name of the time in which one answer lasts, such as "2025".
        mark: what the account knows this use of the store by.
    """

    store: Permanent
    ident: str
    epoch: str
    mark: str = ""


@dataclass(frozen=True)
class Second:
    """What is done to the outputs of all rows before they leave, such as a channel that is learned from them.

    Attributes:
        beside: attributes of which it sees the cell of every row besides; they do not leave.
        run: takes the outputs of each target and those cells, and gives other outputs of each target, row by row.
    """

    beside: tuple[str, ...]
    run: Callable[[Sequence[NDArray[Any]], Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]


def apply(
    channel: Channel, source: object, on: Mapping[str, str] | None = None, keep: Sequence[str] = ()
) -> pyarrow.Table:
    """The rows of a source with the channel's values replaced (``Channel.apply``).

    Args:
        source: whatever ``Table`` reads, or a ``Table``.
        on: the source's column for each attribute (for each coordinate of a ``Point``, by its own name).
        keep: columns that leave as they are.

    Raises:
        SpecificationError: ``on`` names what the channel does not have; a kept column that the channel replaces.
        DataError: a missing column, or a value where none may be missing; shows no value.
        EngineError: the engine failed; its own message is withheld.

    >>> from ..attributes import Categorical
    >>> vote = Domain(vote=Categorical(["no", "yes"]))
    >>> swap = Channel.of_matrix([[0, 1], [1, 0]], vote)
    >>> rows = {"answer": ["yes", "no", "no"], "region": ["a", "b", "b"], "name": ["x", "y", "z"]}
    >>> apply(swap, rows, {"vote": "answer"}, ["region"]).sort_by("region").to_pydict()
    {'answer': ['no', 'yes', 'yes'], 'region': ['a', 'b', 'b']}
    """
    domain = placed(channel.domain, {} if on is None else on)
    table = source.declared(domain) if isinstance(source, Table) else Table(source, domain)
    return applied(table, [Target(channel, domain.names)], keep)


def placed(domain: Domain, on: Mapping[str, str]) -> Domain:
    """The domain with its columns renamed.

    >>> from ..attributes import Integer
    >>> placed(Domain(age=Integer(0, 9)), {"age": "years"})["age"].columns("age")
    ('years',)
    """
    if not isinstance(on, Mapping) or not all(isinstance(c, str) and c for c in on.values()):
        raise SpecificationError("on: a mapping from the channel's names to the table's columns.")
    known = [n for name, a in domain.items() for n in (a.columns(name) if isinstance(a, Point) else (name,))]
    for name in on:
        if name not in known:
            raise unknown("on", "name", name, known)
    made = {}
    for name, attribute in domain.items():
        spec = attribute.to_spec()
        if isinstance(attribute, Point):
            spec["point"] = [on.get(c, c) for c in attribute.columns(name)]
        elif name in on:
            spec["column"] = on[name]
        made[name] = attribute_from_spec(name, spec)
    return Domain(made)


def applied(
    table: Table,
    targets: Sequence[Target],
    keep: Sequence[str] = (),
    lasting: Lasting | None = None,
    shown: Sequence[str] = (),
    second: Second | None = None,
) -> pyarrow.Table:
    """The rows of a table, each target's values replaced by independent draws of its channel; rows shuffled.

    It charges nothing and looks at no budget.

    Args:
        keep: columns of the source, declared or not, that leave as they are.
        lasting: give each id one answer for the whole epoch, whatever its rows hold; see ``permanent``.
        shown: attributes that leave unchanged, as the values of their declared cells, so that none that is not declared can.
        second: what is done to the outputs of all rows; it goes without ``lasting``.
    Returns:
        The targets' columns (a ``Point``'s two, as the middle of the output's cell; a number's middle; whole numbers where
        cells are single ones; a category's text), null for ``missing``, then the columns shown in the same way, then the kept
        ones. No statistics, no metadata.
    Raises:
        SpecificationError: targets that are declared otherwise, overlap, or write to one column; kept columns among them.
        DataError: as ``Table.rows``; nothing leaves.
        EngineError: the engine failed.
    """
    outputs = checked(table, targets, keep, lasting, shown)
    try:
        return _applied(table, targets, keep, lasting, shown, second, outputs)
    except BaseException as error:
        # Frames further in hold private rows, which tools that record local variables would show.
        error.__cause__ = error.__context__ = None
        raise error.with_traceback(None) from None


def _applied(
    table: Table,
    targets: Sequence[Target],
    keep: Sequence[str],
    lasting: Lasting | None,
    shown: Sequence[str],
    second: Second | None,
    outputs: Sequence[Sequence[Output]],
) -> pyarrow.Table:
    beside = () if second is None else second.beside
    names = dict.fromkeys([*(name for target in targets for name in target.names), *shown, *beside])
    run = Run(table.domain.select(*names), tuple(targets), (*shown, *beside))
    if lasting is None and table.is_spread:
        cells, kept = _spread(run, table.spread(names, keep, run, run.kinds), len(keep))
    else:
        read = table.rows(*names, keep=keep, ident=None if lasting is None else lasting.ident)
        cells, kept = (
            _drawn(run, read, len(keep)) if lasting is None else _lasting(run, read, len(keep), lasting)
        )
    if second is not None:
        count, left = len(targets), len(cells) - len(beside)
        cells = [*second.run(cells[:count], cells[left:]), *cells[count:left]]
    order = [np.arange(len(cells[0]))] if keep else []
    cells = shuffled(*cells, *order)
    columns = columns_of(table, targets, shown, outputs, cells)
    columns |= {name: taken(parts, cells[-1]) for name, parts in zip(keep, kept, strict=True)}
    import pyarrow as pa

    return pa.table(columns)


def columns_of(
    table: Table,
    targets: Sequence[Target],
    shown: Sequence[str],
    outputs: Sequence[Sequence[Output]],
    cells: Sequence[NDArray[Any]],
) -> dict[str, Any]:
    """Arrow columns by name, for the outputs of each target and the cells of each attribute shown.

    Args:
        outputs: as ``checked`` says.
    """
    columns: dict[str, Any] = {}
    domains = [
        *(target.channel.outputs for target in targets),
        *(table.domain.select(name) for name in shown),
    ]
    for domain, drawn, told in zip(domains, cells, outputs, strict=False):
        each = domain.decode(drawn) if len(told) > 1 else (drawn,)
        for output in told:
            columns |= output.arrays(each[output.place])
    return columns


def _cells_of(attribute: Attribute) -> dict[str, Any]:
    """What an attribute's cells are, whatever its columns are called."""
    spec = attribute.to_spec()
    if isinstance(attribute, Point):
        spec["point"] = None
    return {key: value for key, value in spec.items() if key != "column"}


def checked(
    table: Table,
    targets: Sequence[Target],
    keep: Sequence[str] = (),
    lasting: Lasting | None = None,
    shown: Sequence[str] = (),
) -> list[list[Output]]:
    """The columns that each target fills, then those of each attribute shown.

    Raises:
        SpecificationError: as ``applied``.
    """
    if not targets:
        raise SpecificationError("channel: at least one attribute to replace.")
    if isinstance(keep, str) or not all(isinstance(c, str) for c in keep):
        raise SpecificationError("keep: a list of columns.")
    for target in targets:
        target.check(table.domain)
    names = [name for target in targets for name in target.names]
    if len({*names, *shown}) < len(names) + len(shown):
        raise SpecificationError("channel: an attribute is named twice; name it once.")
    replaced = {c for name in names for c in table.domain[name].columns(name)}
    for column in keep:
        if column in replaced:
            raise SpecificationError(
                f"keep: {column!r} is what the channel replaces; it cannot leave as it is."
            )
    outputs = [target.outputs(table.domain) for target in targets]
    for name in shown:
        attribute = table.domain.attribute(name, "channel")
        outputs.append([Output(attribute, attribute.columns(name), 0)])
    written = [*(c for told in outputs for output in told for c in output.columns), *keep]
    for column in written:
        if written.count(column) > 1:
            raise SpecificationError(f"channel: two columns of the result would be named {column!r}.")
    if lasting is not None and lasting.ident in replaced:
        raise SpecificationError(f"id: {lasting.ident!r} is what the channel replaces.")
    return outputs


# Drawing


@dataclass(frozen=True)
class Run:
    """Channels side by side, and the attributes shown beside them: from the cell of a row to what is drawn, and kept of it."""

    domain: Domain
    targets: tuple[Target, ...]
    shown: tuple[str, ...]

    @cached_property
    def _is_plain(self) -> bool:
        return not self.shown and len(self.targets) == 1 and self.targets[0].names == self.domain.names

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many outputs each channel has."""
        return tuple(target.channel.outputs.size for target in self.targets)

    def draw(self, cells: NDArray[Any]) -> list[Ints]:
        """The outputs of each channel for cells of the whole domain."""
        if self._is_plain:
            return [self.targets[0].channel.law.draw(cells)]
        each = dict(zip(self.domain, self.domain.decode(cells), strict=True))
        return [t.channel.law.draw(t.channel.domain.encode([each[n] for n in t.names])) for t in self.targets]

    def fill(self, room: Sequence[NDArray[Any]], cells: NDArray[Any], start: int) -> None:
        """Draw for the next few rows, into the place of each channel."""
        for held, found in zip(room, self.draw(cells[start : start + CHUNK]), strict=True):
            held[start : start + CHUNK] = found

    @property
    def kinds(self) -> tuple[type[np.signedinteger[Any]], ...]:
        """The integers that ``drawn`` is made of."""
        return tuple(narrow(n) for n in (*self.sizes, *(self.domain[name].size for name in self.shown)))

    def drawn(self, cells: NDArray[Any]) -> list[NDArray[Any]]:
        """The outputs of each channel and the cells beside them, for cells of the whole domain."""
        outputs = zip(self.draw(cells), self.kinds, strict=False)
        return [*(each.astype(kind) for each, kind in outputs), *self.beside(cells)]

    def beside(self, cells: NDArray[Any]) -> list[NDArray[Any]]:
        """The cells of each attribute that is shown."""
        if not self.shown:
            return []
        each = dict(zip(self.domain, self.domain.decode(cells), strict=True))
        return [each[name].astype(narrow(self.domain[name].size)) for name in self.shown]


def _drawn(run: Run, read: Iterable[Any], kept: int) -> tuple[list[NDArray[Any]], list[list[Any]]]:
    """An independent draw for each row."""
    cells: list[list[NDArray[Any]]] = [[] for _ in (*run.targets, *run.shown)]
    beside: list[list[Any]] = [[] for _ in range(kept)]
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting: list[Future[None]] = []
        for part in read:
            room = [np.empty(len(part.cells), dtype=narrow(size)) for size in run.sizes]
            # While a batch is drawn the next one is read, but not the one after it.
            behind = waiting
            waiting = [
                pool.submit(run.fill, room, part.cells, start) for start in range(0, len(part.cells), CHUNK)
            ]
            for each in behind:
                each.result()
            _collect(cells, [*room, *run.beside(part.cells)])
            _collect(beside, part.kept)
        for each in waiting:
            each.result()
    return [np.concatenate(parts) for parts in cells], beside


def _spread(run: Run, read: Iterable[Any], kept: int) -> tuple[list[NDArray[Any]], list[list[Any]]]:
    """What the workers of an engine drew."""
    cells: list[list[NDArray[Any]]] = [[] for _ in run.kinds]
    beside: list[list[Any]] = [[] for _ in range(kept)]
    for outputs, others in read:
        _collect(cells, outputs)
        _collect(beside, others)
    return [np.concatenate(parts) for parts in cells], beside


def _lasting(
    run: Run, read: Iterable[Any], kept: int, lasting: Lasting
) -> tuple[list[NDArray[Any]], list[list[Any]]]:
    """One answer for all rows of an id. Which of its rows is asked is drawn by lot: by their order it could depend on values."""
    import pyarrow as pa

    if prod(run.sizes) >= 1 << 63:
        raise SpecificationError(
            "permanent: the channels have more than 2^63 outputs together; release fewer at once."
        )
    told: list[Any] = []
    who: list[Any] = []
    beside: list[list[Any]] = [[] for _ in range(kept)]
    for part in read:
        told.append(part.cells)
        who.append(part.ids)
        _collect(beside, part.kept)
    cells = np.concatenate(told)
    coded = pa.chunked_array(who).dictionary_encode().combine_chunks()
    ids, person = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    asked = np.empty(len(ids), dtype=np.int64)
    order, by_lot = shuffled(person, cells)
    asked[order] = by_lot  # of several rows the last one

    def draw(new: Ints) -> Ints:
        return np.asarray(np.ravel_multi_index(tuple(run.draw(asked[new])), run.sizes), dtype=np.int64)

    laws = fingerprint([target.channel for target in run.targets], lasting.ident)
    joint = lasting.store.settled(lasting.epoch, laws, ids, draw, lasting.mark)
    if int(joint.max(initial=0)) >= prod(run.sizes):
        raise DataError("permanent: the store is damaged; restore it from a copy.")
    parts = zip(np.unravel_index(joint, run.sizes), run.sizes, strict=True)
    return [*(part.astype(narrow(size))[person] for part, size in parts), *run.beside(cells)], beside


def _collect(lists: Sequence[list[Any]], parts: Iterable[Any]) -> None:
    for held, part in zip(lists, parts, strict=True):
        held.append(part)
