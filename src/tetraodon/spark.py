"""Spark as a source: a DataFrame, a table of Ibis's PySpark backend, or a ``pyspark://`` URL.

Counts are one GROUP BY of the encoded code, run by Spark's own SQL and collected as Arrow. Rows come as Arrow batches, one
partition after another, so that the driver holds no more than one. For as long as a source is open

* its columns are shown, by place and compared letter by letter, as a temporary view with a name that nobody else has;
* the session's SQL settings that could change what our query means are held at fixed values, and set back afterwards;
* the driver's logs are silent, since Spark logs failures with the values that caused them. What the executors of a cluster
  write to logs of their own is for whoever runs the cluster.

A session that somebody else started is never stopped, nor is one that a URL started: Spark ends with the process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from .errors import DataError, SpecificationError, Unsupported
from .files import Connection, Source, finish, positions, sealed
from .noise import fresh_name

__all__ = ["as_bytes", "from_frame", "from_ibis", "from_url", "packed", "quiet", "unpacked"]

Frame = Any  # of pyspark, classic or Connect

NO_PYSPARK = "pyspark: install tetraodon[spark] to read from it (Python's part of Spark; Spark itself needs Java 17 or later)."
NO_JAVA = (
    "pyspark: Spark needs Java 17 or later, which is not found: install it, or let JAVA_HOME name its folder."
)

# What a query of ours means must not hang on how a session is set, nor how fast it is.
HELD = {
    "spark.sql.ansi.enabled": "true",  # a sum that overflows fails, and does not wrap
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # "${…}" in a declared text is that text
    "spark.sql.codegen.hugeMethodLimit": "8000",  # Java compiles no longer method: cells of many columns took twice as long
}
# Of sessions that a URL starts; the URL's own settings come after them.
STARTED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


def from_frame(frame: Frame, wanted: Sequence[str]) -> Source:
    """A Spark DataFrame.

    Raises:
        DataError: no such column, or one of a type that cannot be read.
        Unsupported: a stream, or rows that are drawn at random whenever they are read.
        EngineError: Spark failed; its own message is withheld.
    """
    return _source("table", lambda: frame.sparkSession, lambda _: frame, wanted)


def from_ibis(table: Any, wanted: Sequence[str]) -> Source:
    """A table of Ibis's PySpark backend.

    Raises:
        DataError, Unsupported, EngineError: as ``from_frame``.
    """

    backend = table.get_backend()

    def frame(_: object) -> Frame:
        backend._run_pre_execute_hooks(table)
        return backend.raw_sql(backend.compile(table))

    return _source("table", lambda: backend._session, frame, wanted)


def from_url(rest: str, wanted: Sequence[str], table: str | None, query: str | None) -> Source:
    """A table, or a query, of the session that a URL describes: ``pyspark://`` and settings of Spark after a ``?``.

    Where the process has a session already, that one is used and its settings stand. ``pyspark://?spark.master=local[4]``
    starts one on this machine; files need no catalogue: ``sql="SELECT * FROM parquet.`people.parquet`"``.

    Args:
        rest: what follows ``pyspark://``: the folder of the warehouse, if any, and settings.

    Raises:
        Unsupported: pyspark or Java is not installed.
        SpecificationError: a setting that is none of Spark's.
        DataError, EngineError: as ``from_frame``.
    """
    folder, _, told = rest.partition("?")
    settings = dict(parse_qsl(told))
    if folder.strip("/"):
        settings.setdefault("spark.sql.warehouse.dir", os.path.abspath(unquote(folder)))
    for name in settings:
        if not name.startswith("spark."):
            raise SpecificationError(
                "source: after the ? of pyspark://, only settings of Spark, spark.…=…, between &."
            )

    def frame(session: Any) -> Frame:
        return session.table(table) if query is None else session.sql(query)

    where = f"pyspark:{'sql' if query is not None else table}"
    return _source(where, lambda: _session(settings), frame, wanted)


def _session(settings: dict[str, str]) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unsupported(NO_PYSPARK) from None
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    is_remote = "spark.remote" in settings or "SPARK_REMOTE" in os.environ
    if not is_remote and not has_java():
        raise Unsupported(NO_JAVA)
    builder = SparkSession.builder
    for name, value in {**({} if is_remote else STARTED), **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not is_remote:
        session.sparkContext.setLogLevel("ERROR")
        _choose_python(session.sparkContext, settings.get("spark.pyspark.python"))
    return session


def _choose_python(context: Any, told: str | None) -> None:
    """Which Python the workers run: the setting, which Spark itself heeds only where its own launcher starts the program; else
    what PYSPARK_PYTHON says; else, on this machine, the one that runs here and not the first of the path."""
    if told is not None:
        context.pythonExec = told
    elif "PYSPARK_PYTHON" not in os.environ and context.master.startswith("local"):
        context.pythonExec = sys.executable


def has_java() -> bool:
    """Whether a Java is where Spark looks for one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java" if home is None else os.path.join(home, "bin", "java")) is not None


# Opening


def _source(
    where: str, session: Callable[[], Any], frame_of: Callable[[Any], Frame], wanted: Sequence[str]
) -> Source:
    def names() -> list[str]:
        own = session()
        with quiet(own):
            return list(frame_of(own).columns)

    places = positions(where, sealed(where, "opening", names), wanted)

    def connect() -> Connection:
        own = session()
        held = contextlib.ExitStack()
        try:
            held.enter_context(quiet(own))
            frame = frame_of(own)
            _check_frame(frame)
            # Before the settings: what is in the frame means what it meant to whoever made it.
            shown = _columns(where, frame, places, wanted)
            held.enter_context(_settings(own))
            view = f"tetraodon_{fresh_name(8)}"
            shown.createOrReplaceTempView(view)
            held.callback(own.catalog.dropTempView, view)
            backend = _backend()(own)
            held.callback(backend.forget)
            return backend, backend.table(view), held.close
        except BaseException:
            held.close()
            raise

    return replace(finish(where, wanted, connect, False), is_spread=True)


def _check_frame(frame: Frame) -> None:
    """Refuses frames that may hold other rows each time they are read."""
    if frame.isStreaming:
        raise Unsupported("source: a Spark stream has no end; give a table of what it has written.")
    plan = getattr(frame, "_jdf", None)  # Spark Connect does not show it
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise SpecificationError(
            "source: the Spark table draws something at random, or counts its own partitions, so that it may hold other rows "
            "whenever it is read; write it to a table and read that."
        )


def _columns(where: str, frame: Frame, places: Sequence[int], wanted: Sequence[str]) -> Frame:
    """The wanted columns as ``c<i>``, found by place: names may differ in letter case only, hold dots, or be there twice."""
    from ibis.backends.pyspark.datatypes import PySparkType
    from pyspark.sql import functions
    from pyspark.sql.types import StringType

    fields = frame.schema.fields
    placed = frame.toDF(*[f"x{i}" for i in range(len(fields))])
    shown = []
    for i, (place, name) in enumerate(zip(places, wanted, strict=True)):
        kind = fields[place].dataType
        try:
            PySparkType.to_ibis(kind)
        except Exception:  # as Ibis has it, of several kinds
            raise DataError(
                f"{where}: column {name!r} is {kind.typeName()}; give it as numbers or text."
            ) from None
        column = functions.col(f"x{place}")
        if isinstance(kind, StringType) and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
            column = functions.collate(column, "UTF8_BINARY")
        shown.append(column.alias(f"c{i}"))
    return placed.select(*shown)


@contextlib.contextmanager
def _settings(session: Any) -> Iterator[None]:
    """``HELD`` for the length of a ``with`` block, as far as the session can be set at all."""
    before = {}
    try:
        for name, value in HELD.items():
            with contextlib.suppress(Exception):  # managed services refuse some
                before[name] = session.conf.get(name)
                session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            with contextlib.suppress(Exception):
                session.conf.set(name, value)


@contextlib.contextmanager
def quiet(session: Any) -> Iterator[None]:
    """The driver's logs silent for the length of a ``with`` block; Spark Connect's server has one of its own."""
    from pyspark.logger import PySparkLogger

    with contextlib.ExitStack() as held:
        for name in (
            "SQLQueryContextLogger",
            "DataFrameQueryContextLogger",
        ):  # Python's part of Spark writes there
            logger = PySparkLogger.getLogger(name)
            held.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        java = getattr(session, "_jvm", None)
        if java is not None:
            log4j = java.org.apache.logging.log4j
            set_level = log4j.core.config.Configurator.setRootLevel
            held.callback(set_level, log4j.LogManager.getRootLogger().getLevel())
            set_level(log4j.Level.OFF)
        yield


# What Spark reads and runs for us


@cache
def _backend() -> Any:
    """Ibis's PySpark backend, which goes by way of pandas and loses what pandas cannot hold, over Arrow instead."""
    import ibis
    import ibis.expr.operations as ops
    from ibis.backends.pyspark import Backend
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler

    assert ibis.pyspark  # looking at it makes the backend's options known

    class Compiler(PySparkCompiler):  # type: ignore[misc]
        __slots__ = ()

        def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: Any) -> Any:
            # In Spark's literals \\f is an f and \\v a v, and query text ends at a NUL.
            if dtype.is_string() and any(c < " " or c == "\x7f" for c in value):
                return self.cast(self.f.unhex(value.encode().hex()), dtype)
            return super().visit_NonNullLiteral(op, value=value, dtype=dtype)

    class Spark(Backend):  # type: ignore[misc]
        compiler = Compiler()

        def do_connect(self, session: Any) -> None:
            self._session, self._mode = session, "batch"
            self.session = session
            self.views: list[str] = []

        def forget(self) -> None:
            """Drops what was shown to the session for a join."""
            for name in self.views:
                self._session.catalog.dropTempView(name)

        def _register_in_memory_table(self, op: Any) -> None:
            self.views.append(op.name)
            self._session.createDataFrame(op.data.to_pyarrow(op.schema)).createOrReplaceTempView(op.name)

        def frame(self, expr: Any) -> Frame:
            """What an expression asks for, as a DataFrame."""
            self._run_pre_execute_hooks(expr)
            return self.raw_sql(self.compile(expr.as_table()))

        def to_pyarrow(self, expr: Any, /, **_: Any) -> Any:
            return expr.__pyarrow_result__(self.frame(expr).toArrow())

        def to_pyarrow_batches(self, expr: Any, /, *, chunk_size: int = 1_000_000, **_: Any) -> Any:
            if isinstance(expr.op(), (ops.Aggregate, ops.Limit)):  # few rows, and no Python worker to start
                return self.frame(expr).toArrow().to_batches(chunk_size)
            return unpacked(self.frame(expr))

    def connected(session: Any) -> Any:
        backend = Spark()
        backend.do_connect(session)
        return backend

    return connected


def packed(batches: Iterator[Any]) -> Iterator[Any]:
    """Each Arrow batch as one row that holds its bytes; runs in Spark's Python workers."""
    import pyarrow as pa

    for batch in batches:
        yield pa.record_batch({"batch": pa.array([as_bytes(batch)], pa.binary())})


def as_bytes(batch: Any) -> bytes:
    """An Arrow batch as an Arrow stream, compressed, since the driver's Java holds a partition of them."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def unpacked(frame: Frame) -> Iterator[Any]:
    """The Arrow batches of a frame, one partition after another."""
    import pyarrow as pa

    for row in frame.mapInArrow(packed, "batch binary").toLocalIterator():
        with pa.ipc.open_stream(row.batch) as reader:
            yield from reader
