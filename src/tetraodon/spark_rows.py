"""Rows of a Spark table through channels: drawn by Spark's own Python workers, written once, read back.

Every worker draws from its own operating system's randomness (``noise``). Spark runs a task again where it failed, seemed slow,
or its result was lost, and each attempt draws afresh; two draws of one row must never both leave. So

* what is drawn is written by one job, as parquet files, into a folder of its own, which Spark moves into place task by task and
  reads nothing of before the job is done; an attempt that failed, or came second, leaves nothing there. A row of these files
  holds many rows of the table as bytes of Arrow, which costs less to write and to read back than their columns do;
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
from pathlib import Path
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
WRITTEN = "batch binary, part int, attempt long"
# What a worker holds before it writes a row of the stage.
PACKED_ROWS = 1 << 18
PACKED_BYTES = 1 << 22
MOST_LOOKS = 256  # tasks that look for this package


class Drawing(Protocol):
    """What a worker does to the cells of a batch: one array for each output, row by row. It travels to the workers."""

    def drawn(self, cells: NDArray[Any]) -> list[NDArray[Any]]: ...


@dataclass(frozen=True)
class _Worker:
    """Runs in Spark's Python workers, once for each attempt at a partition."""

    drawing: Drawing

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        part, attempt = (0 if task is None else task.partitionId()), int(fresh_name(8), 16) >> 1
        held: list[Any] = []
        for batch in batches:
            held.append(self.of(batch))
            if sum(b.num_rows for b in held) >= PACKED_ROWS or sum(b.nbytes for b in held) >= PACKED_BYTES:
                yield _packed(held, part, attempt)
                held = []
        if held:
            yield _packed(held, part, attempt)

    def of(self, batch: Any) -> Any:
        """What is drawn for a batch, with its kept columns."""
        import pyarrow as pa

        cells = batch.column("code").to_numpy()
        # A worker's failure is written to logs: nothing of the cells may be in it.
        drawn = sealed("table", "drawing", self.drawing.drawn, cells)
        columns = {f"o{i}": pa.array(each) for i, each in enumerate(drawn)}
        return pa.record_batch(columns | {n: batch.column(n) for n in batch.schema.names if n != "code"})


def _packed(batches: Sequence[Any], part: int, attempt: int) -> Any:
    """Batches as one row: their bytes as Arrow has them, so that no file format changes a kept value, and the signature."""
    import pyarrow as pa

    [whole] = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    told = {
        "batch": pa.array([as_bytes(whole)], pa.binary()),
        "part": pa.array([part], pa.int32()),
        "attempt": pa.array([attempt], pa.int64()),
    }
    return pa.record_batch(told)


def check_stage(source: Source) -> None:
    """Whether there is a place for what will be drawn, and workers that can draw it; before anything is charged.

    Raises:
        Unsupported: there is none, the workers lack this package, or the session is one of Spark Connect, which shows too little
            of what its tasks wrote.
    """
    with source.opened() as (backend, _):
        sealed(source.where, "opening", _place, backend.session)
        _check_workers(source.where, backend.session)


def _check_workers(where: str, session: Any) -> None:
    """Looks for this package with as many tasks as run side by side, which reach most of the machines."""
    from . import __version__

    def versions() -> set[str]:
        count = min(session.sparkContext.defaultParallelism, MOST_LOOKS)
        rows = session.range(0, count, 1, count).mapInArrow(_version, "version string").collect()
        return {row.version for row in rows}

    try:
        found = sealed(where, "opening", versions)
    except EngineError:
        found = set()
    if found != {__version__}:
        other = "" if not found else f"; there is {', '.join(sorted(found))}"
        raise Unsupported(
            f"rows: the Python of Spark's workers needs tetraodon {__version__}, as here{other}. Install it where they run, and let "
            "spark.pyspark.python or PYSPARK_PYTHON name that Python."
        )


def _version(batches: Iterator[Any]) -> Iterator[Any]:
    """Which version of this package there is; runs in Spark's Python workers, which find this function in the package itself."""
    import pyarrow as pa

    from . import __version__

    for batch in batches:
        yield pa.record_batch({"version": pa.array([__version__] * batch.num_rows)})


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
                _drawn(source, backend, codes, drawing, stage)
                yield from _read(source, backend.session, stage, len(kinds), places, counted["n"])
        if not counted["n"]:  # columns have types all the same
            types = [source.types[source.columns.index(c)].to_pyarrow() for c in keep]
            yield [np.empty(0, kind) for kind in kinds], tuple(pa.array([], t) for t in types)
    if counted["bad"]:
        raise refusal(source, domain, null)


def _drawn(source: Source, backend: Any, codes: Any, drawing: Drawing, stage: str) -> None:
    """Runs ``_write``. If it fails, and workers without this package explain it, that is said."""
    try:
        sealed(source.where, "drawing", _write, backend, codes, drawing, stage)
        return
    except EngineError as error:
        failure = error
    _check_workers(source.where, backend.session)
    raise failure


def _write(backend: Any, codes: Any, drawing: Drawing, stage: str) -> None:
    """The one job that draws."""
    told = {
        # The second algorithm moves the files of tasks into place before the job is known to succeed.
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "compression": "none",  # what is written is compressed already
        "parquet.enable.dictionary": "false",
        "parquet.page.size.row.check.min": "1",  # rows are megabytes, so that a hundred unlooked at are too many
    }
    worker = _Worker(drawing)
    backend.frame(codes).mapInArrow(worker.__call__, WRITTEN).write.options(**told).parquet(stage)


def _read(
    source: Source, session: Any, stage: str, count: int, places: Sequence[str], expected: int
) -> Iterator[tuple[list[NDArray[Any]], tuple[Any, ...]]]:
    import pyarrow as pa

    signed: set[tuple[int, int]] = set()
    rows = 0
    packs = sealed(source.where, "reading", _staged, session, stage)
    while (pack := sealed(source.where, "reading", next, packs, None)) is not None:
        told, part, attempt = pack
        signed.add((part, attempt))
        batch = pa.ipc.open_stream(told).read_next_batch()
        rows += batch.num_rows
        outputs = [batch.column(f"o{i}").to_numpy() for i in range(count)]
        yield outputs, tuple(batch.column(c) for c in places)
    if rows != expected or len({part for part, _ in signed}) < len(signed):
        raise EngineError(
            f"{source.where}: Spark did not write each row exactly once; nothing is published. Let {STAGING} name a folder of a "
            "file system that Spark's writers can commit to."
        )


def _staged(session: Any, stage: str) -> Iterator[tuple[Any, int, int]]:
    """The rows of the stage: straight from the files, where they are this machine's, else by Spark."""
    import pyarrow.parquet as pq

    path = session._jvm.org.apache.hadoop.fs.Path(stage)
    place = path.getFileSystem(session._jsc.hadoopConfiguration()).makeQualified(path).toUri()
    if place.getScheme() != "file":
        for row in session.read.parquet(stage).toLocalIterator():
            yield row.batch, row.part, row.attempt
        return
    folder = Path(place.getPath())
    for file in sorted(folder.rglob("*.parquet")):
        if not any(name.startswith(("_", ".")) for name in file.relative_to(folder).parts):  # as Spark reads
            with pq.ParquetFile(file) as held:
                for batch in held.iter_batches(batch_size=1, columns=["batch", "part", "attempt"]):
                    [row] = batch.to_pylist()
                    yield row["batch"], row["part"], row["attempt"]


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
