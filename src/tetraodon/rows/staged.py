"""Rows that are drawn in parts and kept in a private folder until they are published: in bounded memory, and so that a run that was
killed goes on where it stopped.

*Drawing.* The table is read in the order of its files and cut into parts of so many rows. A part is drawn, each row for itself, and
committed whole; only then is the next one begun. A part that was not committed was seen by nobody and is drawn anew; one that was is
never drawn again.

*Why the table must be the same.* Had a person moved from a part that was drawn to one that was not, going on would draw that person
twice, and publish both: twice the charge. So the bytes of all files are compared before the first row is read and after the last
one, and every part keeps a keyed digest of the cells that it was drawn for, which is compared when the table is read again.

*Order.* Each row of a part goes to one of B buckets, drawn evenly and for itself. When all parts are there, each bucket is put into a
random order, and the buckets follow one another. Every order of the n rows then has the same probability. For given sizes
n_1 + … + n_B = n of the buckets an order of the rows says which row went where, so its probability is B^-n · Π 1/n_j!, and over all
sizes that is B^-n · Σ Π 1/n_j! = B^-n · B^n/n! = 1/n!. How many parts and buckets there are follows from the number of rows, which is
public. (Scattering, then shuffling: Rao 1961, Sandelius 1962.) A bucket in its order is committed as well, so that whatever
is written from here on is the same however often it is written.

*Memory.* One part, or one bucket, at a time; not all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..channels.apply import CHUNK, WORKERS, Run, Target, checked, columns_of
from ..channels.outputs import Output, narrow
from ..errors import DataError, OutputError, TetraodonError
from ..files import sealed, sha256
from ..noise import below, shuffled
from .folder import STATE, Folder, Stored, damaged

if TYPE_CHECKING:
    import pyarrow

    from ..table import Table

PART = 1 << 20  # rows that are drawn at once
BUCKET = 1 << 20  # rows that are shuffled at once, as many as a row group of a published file has
SETTLED = "settled.json"


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows that were drawn all at once."""

    rows: pyarrow.Table

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.rows.num_rows)

    @property
    def columns(self) -> list[str]:
        """The names of their columns."""
        return list(self.rows.column_names)

    def whole(self) -> pyarrow.Table:
        """All of them."""
        return self.rows

    def pieces(self) -> Iterator[pyarrow.Table]:
        """All of them, some at a time."""
        yield self.rows


@dataclass(frozen=True, eq=False)
class Staged:
    """Rows in a folder. Whoever reads them first draws what was not drawn yet.

    Attributes:
        name: of the release.
        table: what they are drawn from.
        targets, shown: as ``channels.apply.applied``.
        folder: where they are kept, held by this process.
    """

    name: str
    table: Table
    targets: tuple[Target, ...]
    shown: tuple[str, ...]
    folder: Folder

    @cached_property
    def state(self) -> dict[str, Any]:
        """What was fixed before anything was charged."""
        return self.folder.read(STATE)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.state["rows"])

    @property
    def columns(self) -> list[str]:
        """The names of their columns."""
        return [column for told in self._outputs for output in told for column in output.columns]

    @cached_property
    def _outputs(self) -> list[list[Output]]:
        return checked(self.table, self.targets, shown=self.shown)

    @cached_property
    def _run(self) -> Run:
        names = dict.fromkeys([*(name for target in self.targets for name in target.names), *self.shown])
        return Run(self.table.domain.select(*names), self.targets, self.shown)

    def whole(self) -> pyarrow.Table:
        """All of them, in memory."""
        import pyarrow as pa

        return pa.concat_tables(self.pieces())

    def pieces(self) -> Iterator[pyarrow.Table]:
        """All of them in their final order, as many at a time as a bucket has on average.

        Raises:
            OutputError: they were published, and the folder is gone.
            DataError: what is in the folder is not what was written there.
        """
        self.draw()
        digests = self._settled()["buckets"]
        buckets = (self._bucket(at, digest) for at, digest in enumerate(digests))
        for cells in _pieces(buckets, BUCKET):
            yield self._columns(cells)

    def _columns(self, cells: Sequence[NDArray[Any]]) -> pyarrow.Table:
        import pyarrow as pa

        return pa.table(columns_of(self.table, self.targets, self.shown, self._outputs, cells))

    # Drawing

    def draw(self) -> None:
        """Draw the parts that are not there, and put all of them into a random order.

        Raises:
            DataError: the table is not the one that the release began with, or the folder is damaged.
            EngineError: the engine failed.
            OutputError: the folder cannot be written, or is gone.
        """
        if not self.folder.has(STATE):
            raise OutputError(
                f"release {self.name!r}: it was published, and what it was made of is gone; read the published files."
            )
        if self.folder.has(SETTLED):
            return
        failure: BaseException | None = None
        try:
            self._draw_parts()
            check_files(self.table, self.state)
            self._settle()
        except TetraodonError as error:
            failure = type(error)(
                f"release {self.name!r}: {error} It was charged already; what was drawn is kept in {self.folder.path.name}, and "
                "nothing of it is published. --resume (resume=True) goes on with it and charges nothing more."
            )
        except BaseException as error:
            failure = error
        if failure is not None:
            # Frames further in hold private rows, which tools that record local variables would show.
            failure.__cause__ = failure.__context__ = None
            raise failure.with_traceback(None)

    def _draw_parts(self) -> None:
        token, rows, size = self.state["token"], self.count, int(self.state["part"])
        read = (batch.cells for batch in self.table.rows(*self._run.domain.names, ordered=True))
        seen = 0
        with ThreadPoolExecutor(WORKERS) as pool:
            for at, cells in enumerate(_parts(read, size)):
                seen += len(cells)
                if seen > rows:
                    break
                told = {"token": token, "part": at, "of": _mark(cells, token)}
                if self.folder.has(part_name(at)):
                    _same(self.folder.get(part_name(at)), told)
                    continue
                arrays, ends = scattered(self._drawn(cells, pool), int(self.state["buckets"]))
                self.folder.put(part_name(at), told, [ends, *arrays])
        if seen != rows:
            raise DataError("the table has more or fewer rows than when it was counted; restore it.")

    def _drawn(self, cells: NDArray[Any], pool: ThreadPoolExecutor) -> list[NDArray[Any]]:
        run = self._run
        room = [np.empty(len(cells), dtype=narrow(size)) for size in run.sizes]
        for done in [pool.submit(run.fill, room, cells, start) for start in range(0, len(cells), CHUNK)]:
            done.result()
        return [*room, *run.beside(cells)]

    def _settle(self) -> None:
        """Put each bucket into a random order, once and for all."""
        token = self.state["token"]
        parts = [self.folder.get(part_name(at)) for at in range(-(-self.count // int(self.state["part"])))]
        for at, part in enumerate(parts):
            if part.told.get("token") != token or part.told.get("part") != at:
                raise damaged(part.path)
            part.check()
        ends = [part.array(0) for part in parts]
        digests = []
        for at in range(int(self.state["buckets"])):
            told = {"token": token, "bucket": at}
            if not self.folder.has(bucket_name(at)):
                held = [
                    [
                        part.array(1 + place, int(told[at]), int(told[at + 1]))
                        for part, told in zip(parts, ends, strict=True)
                    ]
                    for place in range(len(self._run.kinds))
                ]
                empty = [np.empty(0, kind) for kind in self._run.kinds]
                whole = [np.concatenate([none, *pieces]) for none, pieces in zip(empty, held, strict=True)]
                self.folder.put(bucket_name(at), told, shuffled(*whole))
            bucket = self.folder.get(bucket_name(at))
            _same(bucket, told)
            digests.append(bucket.told["sha256"])
        self.folder.write(SETTLED, {"token": token, "buckets": digests})

    def _settled(self) -> dict[str, Any]:
        told = self.folder.read(SETTLED)
        if told.get("token") != self.state["token"]:
            raise damaged(self.folder.path / SETTLED)
        return told

    def _bucket(self, at: int, digest: str) -> list[NDArray[Any]]:
        stored = self.folder.get(bucket_name(at))
        if stored.told["sha256"] != digest:
            raise damaged(stored.path)
        return stored.arrays

    # Publishing

    def finish(self) -> None:
        """Delete the folder; the rows are published."""
        self.folder.remove()


# Parts and buckets


def part_name(at: int) -> str:
    """The file of a part."""
    return f"part-{at:06d}.rows"


def bucket_name(at: int) -> str:
    """The file of a bucket."""
    return f"bucket-{at:06d}.rows"


def bucket_count(rows: int) -> int:
    """How many buckets so many rows are scattered to.

    >>> bucket_count(0), bucket_count(1 << 20), bucket_count((1 << 20) + 1)
    (1, 1, 2)
    """
    return max(1, -(-rows // BUCKET))


def _parts(read: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Cells of consecutive rows, so many at a time, however they are read."""
    for [cells] in _pieces(([batch.astype(np.int64, copy=False)] for batch in read), size):
        if len(cells):
            yield cells


def _pieces(read: Iterable[Sequence[NDArray[Any]]], size: int) -> Iterator[list[NDArray[Any]]]:
    """Equally long arrays side by side, so many rows at a time; one piece of none where there are no rows.

    >>> [piece[0].tolist() for piece in _pieces([[np.arange(2)], [np.arange(5)]], 3)]
    [[0, 1, 0], [1, 2, 3], [4]]
    """
    held: list[Sequence[NDArray[Any]]] = []
    count, given = 0, False
    for arrays in read:
        held.append(arrays)
        count += len(arrays[0])
        while count >= size:
            whole = [np.concatenate(each) for each in zip(*held, strict=True)]
            yield [each[:size] for each in whole]
            held, count, given = [[each[size:] for each in whole]], count - size, True
    if count or (held and not given):
        yield [np.concatenate(each) for each in zip(*held, strict=True)]


def scattered(arrays: Sequence[NDArray[Any]], buckets: int) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Rows in the order of buckets, drawn for each of them, and where each bucket begins."""
    chosen = below(np.full(len(arrays[0]), buckets, dtype=np.int64)).astype(narrow(buckets))
    order = np.argsort(chosen, kind="stable")
    ends = np.zeros(buckets + 1, dtype=np.int64)
    np.cumsum(np.bincount(chosen, minlength=buckets), out=ends[1:])
    return [array[order] for array in arrays], ends


def _mark(cells: NDArray[Any], token: str) -> str:
    """A digest of cells that only the token's owner can make."""
    plain = np.ascontiguousarray(cells, dtype="<i8")
    return hashlib.blake2b(plain.data, key=bytes.fromhex(token), digest_size=32).hexdigest()


def _same(stored: Stored, told: Mapping[str, Any]) -> None:
    """Refuse a file of another release or another place, or a part that was drawn for other rows."""
    found = {key: stored.told.get(key) for key in told}
    if found == dict(told):
        return
    if {**found, "of": ""} == {**told, "of": ""}:
        raise DataError(
            "the rows do not come as they did when they were first drawn, so that going on could draw a person twice and publish "
            "both; restore the table, and the version of DuckDB."
        )
    raise damaged(stored.path)


# The table


def digests_of(table: Table) -> list[list[str]]:
    """Name and SHA-256 of every file of a table, in the order in which they are read; no digest of one that is not there."""
    told = [(file, file.exists()) for file in table.files]
    return [[file.name, sealed(file.name, "reading", sha256, file) if there else ""] for file, there in told]


def check_files(table: Table, state: Mapping[str, Any]) -> None:
    """Refuse a table whose files are not those that a release began with.

    Raises:
        DataError: names the first file that differs.
    """
    now, then = digests_of(table), [list(each) for each in state["files"]]
    if now == then:
        return
    names = [name for name, _ in then]
    if [name for name, _ in now] != names:
        raise DataError(f"the table was read from {', '.join(names[:6])}, and is not now; restore its files.")
    changed = next(a[0] for a, b in zip(now, then, strict=True) if a != b)
    raise DataError(
        f"{changed} is not the file that the release began with: a person whose row was drawn may stand elsewhere now, would be drawn "
        "again, and lose twice what was charged. Restore the file."
    )
