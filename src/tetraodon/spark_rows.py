"""Rows of a Spark table through channels: drawn by Spark's own Python workers, written once, read back.

Every worker draws from its own operating system's randomness (``noise``). Spark runs a task again where it failed, seemed slow,
or its result was lost, and each attempt draws afresh; two draws of one row must never both leave. So

* what is drawn is written by one job, as parquet files, into a folder of its own, which Spark moves into place task by task and
  reads nothing of before the job is done; an attempt that failed, or came second, leaves nothing there;
* everything that follows reads these files, and never asks for the draw again;
* each attempt signs its rows, and files in which a partition bears two signatures, or in which there are more or fewer rows than
  in the table, are refused.

The folder lies where the session's setting ``spark.tetraodon.staging`` says, which all workers must be able to write to and nobody
else to read: its files hold what is about to be published, still in the order of the table. On one machine a private temporary folder
does. It is deleted when the rows have been read back.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .counting import coded, refusal
from .domain import Domain
from .errors import EngineError, Unsupported
from .files import Source, sealed
from .noise import fresh_name
from .spark import as_bytes

STAGING = "spark.tetraodon.staging"
NO_STAGE = (
    f"rows: name a folder that all of Spark's workers can write to, as the session's setting {STAGING}; what is drawn is "
    "written there once before it is published."
)
SIGNED = ("part", "attempt")


class Drawing(Protocol):
    """What a worker does to the cells of a batch: one array for each output, row by row. It travels to the workers."""

    def drawn(self, cells: NDArray[Any]) -> list[NDArray[Any]]: ...


@dataclass(frozen=True)
class _Worker:
    """Runs in Spark's Python workers, once for each attempt at a partition."""

    drawing: Drawing

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        task = TaskContext.get()
        part, attempt = (0 if task is None else task.partitionId()), int(fresh_name(8), 16) >> 1
        for batch in batches:
            cells = batch.column("code").to_numpy()
            # A worker's failure is written to logs: nothing of the cells may be in it.
            drawn = sealed("table", "drawing", self.drawing.drawn, cells)
            columns = {f"o{i}": pa.array(each) for i, each in enumerate(drawn)}
            columns |= {n: batch.column(n) for n in batch.schema.names if n != "code"}
            columns["part"] = pa.array(np.full(len(cells), part, np.int32))
            columns["attempt"] = pa.array(np.full(len(cells), attempt, np.int64))
            yield pa.record_batch(columns)


def check_stage(source: Source) -> None:
    """Whether there is a place for what will be drawn; before anything is charged.

    Raises:
        Unsupported: there is none, or the session is one of Spark Connect, which shows too little of what its tasks wrote.
    """
    with source.opened() as (backend, _):
        sealed(source.where, "opening", _place, backend.session)


def spread(
    source: Source,
    domain: Domain,
    null: Sequence[str],
    keep: Sequence[str],
    drawing: Drawing,
    kinds: Sequence[type[np.signedinteger[Any]]],
) -> Iterator[tuple[list[NDArray[Any]], tuple[Any, ...]]]:
    """What is drawn for every row of a Spark table, once, and the kept columns beside it, batch by batch.

    Nothing may leave before the last batch was given: only then is it known that each row was drawn once.

    Args:
        keep: columns of the source that come as they are.
        drawing: what the workers do.
        kinds: the integers that each of its outputs is made of.

    Raises:
        DataError: as ``counting.grouped``; nothing was drawn.
        Unsupported: as ``check_stage``.
        EngineError: Spark failed, or did not write each row once.
    """
    import pyarrow as pa

    places = [f"c{source.columns.index(c)}" for c in keep]
    with source.opened() as (backend, table):
        codes = sealed(
            source.where, "planning", coded, source, table, domain, null, list(dict.fromkeys(places))
        )
        told = codes.aggregate(n=codes.count(), bad=codes.code.isnull().cast("int64").sum())
        counted = sealed(source.where, "reading", lambda: told.to_pyarrow().to_pylist()[0])
        if not counted["bad"]:
            with _stage(source, backend.session) as stage:
                sealed(source.where, "drawing", _write, backend, codes, drawing, kinds, stage)
                yield from _read(source, backend.session, stage, len(kinds), places, counted["n"])
        if not counted["n"]:  # columns have types all the same
            types = [source.types[source.columns.index(c)].to_pyarrow() for c in keep]
            yield [np.empty(0, kind) for kind in kinds], tuple(pa.array([], t) for t in types)
    if counted["bad"]:
        raise refusal(source, domain, null)


def _write(
    backend: Any, codes: Any, drawing: Drawing, kinds: Sequence[type[np.signedinteger[Any]]], stage: str
) -> None:
    """The one job that draws."""
    from pyspark.sql import types

    spelt = {1: types.ByteType(), 2: types.ShortType(), 4: types.IntegerType(), 8: types.LongType()}
    frame = backend.frame(codes)
    fields = [types.StructField(f"o{i}", spelt[np.dtype(kind).itemsize]) for i, kind in enumerate(kinds)]
    fields += [types.StructField(f.name, f.dataType) for f in frame.schema.fields if f.name != "code"]
    fields += [
        types.StructField("part", types.IntegerType()),
        types.StructField("attempt", types.LongType()),
    ]
    # The second algorithm moves the files of tasks into place before the job is known to succeed.
    told = {"mapreduce.fileoutputcommitter.algorithm.version": "1", "compression": "zstd"}
    frame.mapInArrow(_Worker(drawing).__call__, types.StructType(fields)).write.options(**told).parquet(stage)


def _read(
    source: Source, session: Any, stage: str, count: int, places: Sequence[str], expected: int
) -> Iterator[tuple[list[NDArray[Any]], tuple[Any, ...]]]:
    import pyarrow as pa

    signed: set[tuple[int, int]] = set()
    rows = 0
    packs = sealed(
        source.where,
        "reading",
        lambda: (
            session.read.parquet(stage)
            .mapInArrow(_told, "batch binary, parts array<int>, attempts array<long>")
            .toLocalIterator()
        ),
    )
    while (pack := sealed(source.where, "reading", next, packs, None)) is not None:
        signed |= set(zip(pack.parts, pack.attempts, strict=True))
        batch = pa.ipc.open_stream(pack.batch).read_next_batch()
        rows += batch.num_rows
        outputs = [batch.column(f"o{i}").to_numpy() for i in range(count)]
        yield outputs, tuple(batch.column(c) for c in places)
    if rows != expected or len({part for part, _ in signed}) < len(signed):
        raise EngineError(
            f"{source.where}: Spark did not write each row exactly once; nothing is published. Let {STAGING} name a folder of a "
            "file system that Spark's writers can commit to."
        )


def _told(batches: Iterator[Any]) -> Iterator[Any]:
    """Each Arrow batch as one row: its bytes without the signatures, and which these were; runs in Spark's Python workers."""
    import pyarrow as pa

    for batch in batches:
        pairs = pa.table(batch.select(list(SIGNED)).columns, SIGNED).group_by(list(SIGNED)).aggregate([])
        parts, attempts = (pairs.column(c).to_pylist() for c in SIGNED)
        yield pa.record_batch(
            {
                "batch": pa.array(
                    [as_bytes(batch.select([n for n in batch.schema.names if n not in SIGNED]))], pa.binary()
                ),
                "parts": pa.array([parts], pa.list_(pa.int32())),
                "attempts": pa.array([attempts], pa.list_(pa.int64())),
            }
        )


def _place(session: Any) -> str | None:
    """The folder that the session names; None for a temporary one on this machine."""
    if getattr(session, "_jvm", None) is None:
        raise Unsupported(
            "rows: Spark Connect does not show what its tasks wrote; give a table of a classic Spark session."
        )
    told: str | None = session.conf.get(STAGING, None)
    if told is None and not session.sparkContext.master.startswith("local"):
        raise Unsupported(NO_STAGE)
    return told


@contextlib.contextmanager
def _stage(source: Source, session: Any) -> Iterator[str]:
    """The name of a folder that is not there yet, and is gone when the block ends."""
    place = sealed(source.where, "opening", _place, session)
    if place is None:
        own = tempfile.mkdtemp(prefix="tetraodon-")
        try:
            yield f"file://{own}/rows"
        finally:
            shutil.rmtree(own, ignore_errors=True)
        return
    stage = f"{place.rstrip('/')}/rows-{fresh_name(8)}"
    try:
        yield stage
    finally:
        path = session._jvm.org.apache.hadoop.fs.Path(stage)
        files = path.getFileSystem(session._jsc.hadoopConfiguration())
        sealed(source.where, "closing", files.delete, path, True)
