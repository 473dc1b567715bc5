"""Files that somebody spoilt: saved channels, permanent answers, ledgers, manifests, settings, codes, tables.

Whatever their bytes are, they are read or refused with an exception of the package; nothing in them is run, and a small file
makes no large allocation.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from fuzz_documents import CANARY, document, spoilt
from fuzz_watch import command, no_canary, watching, without_report
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tetraodon as td
from tetraodon.channels.learned import LearnedChannel
from tetraodon.channels.learned_noise import LearnedNoise
from tetraodon.channels.learning.atoms import Atoms
from tetraodon.channels.learning.noising import Noising
from tetraodon.channels.learning.samples import Scale
from tetraodon.channels.permanent import Permanent
from tetraodon.errors import TetraodonError
from tetraodon.ledger import Ledger, verify
from tetraodon.report import render
from tetraodon.spec import load

MEMORY = 64 << 20  # Python's own; files here have a few kilobytes

# ---------- spoiling bytes ----------

EXTREME = (
    b"\x00" * 8,
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    b"\x00\x00\x00\x80",
    b"999999999999",
    b"\r\n",
    b'"',
    b"\xfe\xff",
    b"\xed\xa0\x80",
)


@st.composite
def spoilt_bytes(draw: Any, content: bytes, most: int = 4) -> bytes:
    """The bytes with a few things changed: a byte, a cut, a stretch dropped, doubled or written over."""
    told = bytearray(content)
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, max(len(told) - 1, 0)))
        to = min(len(told), at + draw(st.integers(0, 64)))
        way = draw(st.sampled_from(("byte", "byte", "bit", "cut", "drop", "double", "over", "insert")))
        if way == "byte" and told:
            told[at] = draw(st.integers(0, 255))
        elif way == "bit" and told:
            told[at] ^= 1 << draw(st.integers(0, 7))
        elif way == "cut":
            del told[at:]
        elif way == "drop":
            del told[at:to]
        elif way == "double":
            told[to:to] = told[at:to]
        else:
            piece = draw(st.sampled_from(EXTREME))
            told[at : at + len(piece) * (way == "over")] = piece
    return bytes(told)


def as_json(value: Any) -> Any:
    """What JSON can hold of a spoilt document."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own, removed in the end."""
    where = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        yield where
    finally:
        shutil.rmtree(where)


def refused_in_our_words(action: Callable[[], object]) -> str | None:
    """Do it; the text of our own exception if it was refused. Anything else fails, and so does a large allocation."""
    tracemalloc.start()
    try:
        with np.errstate(all="ignore"):  # that numbers overflow is no news of a file that was spoilt
            action()
        return None
    except TetraodonError as error:
        return str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MEMORY, f"{peak:,} bytes"


# ---------- saved channels ----------


@lru_cache(maxsize=1)
def saved() -> dict[str, bytes]:
    """Channels of every law that is saved, and learned ones, as files."""
    vote = td.Domain(vote=td.Categorical(["no", "yes", "none"]))
    grid = td.Domain(x=td.Numeric(0, 5, cells=5), y=td.Numeric(0, 5, cells=5))
    line = td.Domain(n=td.Integer(0, 3))
    planar = td.channels.planar_geometric(grid, epsilon=1, epsilon_per=1)
    swap = td.channels.randomised_response(vote, epsilon=1)
    inputs = np.zeros(1), np.eye(1)
    blind = ((np.array([[-200.0, 200.0]]), np.zeros(2)),)
    atoms = Atoms(np.array([[-1.0], [0.0], [1.0]]), np.zeros((2, 3)), 4.0, inputs, blind, "euclidean")
    scale = Scale(np.array([10.0]), 2.0)
    noising = Noising(1.0, inputs, ((np.zeros((2, 1)), np.zeros(1)),), "euclidean")
    made: dict[str, Any] = {
        "table": swap,
        "then": swap.then(swap),
        "shift": planar,
        "relabelled": planar.remap("uniform", td.L2()),
        "certified": td.channels.least_distortion(
            "uniform", td.L1(), secrets=td.Full(), epsilon=1, domain=line
        ),
        "learned": LearnedChannel(atoms, scale, ("a", "b"), 2.0, "public"),
        "noise": LearnedNoise(noising, scale, ("a", "b"), 2.0, "public"),
    }
    with folder() as where:
        for name, channel in made.items():
            channel.save(where / name)
        return {name: (where / name).read_bytes() for name in made}


def used(path: Path) -> None:
    """Everything that a loaded channel is asked for."""
    again = path.with_name("again")
    if path.name in ("learned", "noise"):
        kind: Any = LearnedChannel if path.name == "learned" else LearnedNoise
        learned = kind.load(path)
        assert len(learned.sample([[0.5]])) == 1 and repr(learned) and str(learned.bound)
        learned.save(again)
        kind.load(again)
        return
    channel = td.Channel.load(path)
    cells = np.arange(channel.domain.size, dtype=np.int64)
    assert len(channel.sample(cells)) == len(cells) and repr(channel) and str(channel.certificate)
    channel.epsilon(td.Full())
    channel.save(again)
    assert td.Channel.load(again).domain == channel.domain


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(parts: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return held.getvalue()


def array(value: Any) -> bytes:
    held = io.BytesIO()
    np.lib.format.write_array(held, value, allow_pickle=True)
    return held.getvalue()


def claiming(shape: str, descr: str = "<f8") -> bytes:
    """An array's header with a shape of its own, and little behind it."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64


ODD = st.sampled_from((
    np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0**-1074, 1e308, 0.5, 2.0**62,
))  # fmt: skip


@st.composite
def spoilt_archives(draw: Any, content: bytes) -> bytes:
    """A saved channel with its description, or one of its arrays, changed."""
    parts = members(content)
    name = draw(st.sampled_from(sorted(parts)))
    way = draw(
        st.sampled_from(
            ("spec", "spec", "values", "values", "shape", "kind", "drop", "claim", "bytes", "object")
        )
    )
    if way == "spec":
        told = json.loads(np.load(io.BytesIO(parts["spec.npy"])).tobytes().decode())
        told = as_json(draw(spoilt(told, 2)))
        parts["spec.npy"] = array(np.frombuffer(json.dumps(told).encode(), np.uint8))
    elif way == "drop":
        del parts[name]
    elif way == "claim":
        parts[name] = claiming(
            draw(
                st.sampled_from(
                    ("(1000000000000,)", "(4000000000,)", "(1000000, 1000000)", "(-1,)", "(1,)", "()", "(0,)")
                )
            )
        )
    elif way == "bytes":
        parts[name] = draw(spoilt_bytes(parts[name]))
    elif way == "object":
        parts[name] = array(np.array([Ellipsis], dtype=object))
    else:
        told = np.load(io.BytesIO(parts[name])).copy()
        if way == "kind":
            told = told.astype(
                draw(st.sampled_from(("<i4", "<f4", "<c16", "|b1", "<U8", "|S4", "<M8[s]", "<u8")))
            )
        elif way == "shape":
            told = draw(
                st.sampled_from(
                    (told.ravel(), told[:0], told[None], np.repeat(told, 2, axis=0) if told.ndim else told)
                )
            )
        elif told.size:
            with np.errstate(all="ignore"):
                told.ravel()[draw(st.integers(0, told.size - 1))] = np.array(draw(ODD)).astype(told.dtype)
        parts[name] = array(told)
    return zipped(parts)


def check_channel(data: Any) -> None:
    name = data.draw(st.sampled_from(sorted(saved())))
    content = data.draw(st.one_of(spoilt_bytes(saved()[name]), spoilt_archives(saved()[name])))
    with folder() as where:
        (where / name).write_bytes(content)
        refused_in_our_words(lambda: used(where / name))


@lru_cache(maxsize=1)
def kept() -> bytes:
    """A store of permanent answers."""
    with folder() as where:
        with Permanent.open(where / "answers") as store:
            store.settled(
                "2025", "laws", ["anna", "bob"], lambda new: np.arange(len(new), dtype=np.int64), "mark"
            )
        return (where / "answers").read_bytes()


def _statements(draw: Any, content: bytes, table: str, columns: tuple[str, ...]) -> bytes:
    """A SQLite file with one value of a table replaced by one of another kind."""
    value = draw(
        st.sampled_from(
            (
                None,
                "x" * 32,
                "",
                b"\x00",
                b"\xff" * 32,
                -1,
                2**62,
                1.5,
                "1/0",
                "nan",
                "[" * 5000,
                '{"kind": 1}',
                "ab" * 32,
            )
        )
    )
    column = draw(st.sampled_from(columns))
    with folder() as where:
        (where / "file").write_bytes(content)
        connection = sqlite3.connect(where / "file", isolation_level=None)
        try:
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
        except sqlite3.Error:
            pass  # the schema does not take it
        finally:
            connection.close()
        return (where / "file").read_bytes()


def settle(path: Path) -> None:
    path.chmod(0o600)
    with Permanent.open(path) as store:
        assert isinstance(store.epochs, tuple) and store.identity and repr(store)
        store.has("mark")
        found = store.settled(
            "2025", "laws", ["anna", "bob", "eve"], lambda new: np.arange(len(new), dtype=np.int64), "again"
        )
        assert found.shape == (3,) and found.min() >= 0


def check_permanent(data: Any) -> None:
    if data.draw(st.booleans()):
        content = data.draw(spoilt_bytes(kept(), 8))
    else:
        table = data.draw(st.sampled_from(("about", "epochs", "answers", "marks")))
        columns = {
            "about": ("format", "key"),
            "epochs": ("epoch", "channels"),
            "answers": ("epoch", "who", "answer"),
            "marks": ("mark",),
        }
        content = _statements(data.draw, kept(), table, columns[table])
    with folder() as where:
        (where / "answers").write_bytes(content)
        refused_in_our_words(lambda: settle(where / "answers"))


DOCUMENT: dict[str, Any] = {
    "data": {"name": "people", "source": "people.parquet"},
    "domain": {"a": {"integer": [0, 9]}, "s": {"categorical": ["f", "m"], "other": "x"}},
    "policy": {"secrets": {"a": {"within": 2}}},
    "budget": {"epsilon": 2, "ledger": "people.ledger"},
    "release": [
        {"name": "r0", "epsilon": "1/2", "query": {"cdf": "a", "by": ["s"], "quantiles": ["0.5"]}},
        {"name": "r1", "epsilon": "1/4", "rows": ["a"], "keep": ["s"], "channel": {"kind": "exponential"}},
    ],
}  # fmt: skip
ROWS = {"a": [1, 2, 7, 987654321], "s": ["f", "m", "m", CANARY]}


@lru_cache(maxsize=1)
def published() -> dict[str, bytes]:
    """A folder after a release, as bytes by name."""
    with folder() as where:
        (where / "release.toml").write_text(document(DOCUMENT), encoding="utf-8")
        pq.write_table(pa.table(ROWS), where / "people.parquet")
        assert command("release", where / "release.toml").code == 0
        return {
            str(path.relative_to(where)): path.read_bytes() for path in where.rglob("*") if path.is_file()
        }


@contextmanager
def again() -> Iterator[Path]:
    """The same folder on the disk."""
    with folder() as where:
        for name, content in published().items():
            (where / name).parent.mkdir(exist_ok=True)
            (where / name).write_bytes(content)
        yield where


def check_ledger(data: Any) -> None:
    content = published()["people.ledger"]
    if data.draw(st.booleans()):
        content = data.draw(spoilt_bytes(content, 8))
    else:
        content = _statements(data.draw, content, "ledger", ("seq", "prev", "body", "hash"))
    with folder() as where:
        path = where / "people.ledger"
        path.write_bytes(content)
        told = refused_in_our_words(lambda: str(Ledger.read(path).remaining))
        refused_in_our_words(lambda: verify(path))
        command("ledger", "show", path)
        if told is not None:  # it takes no charge either
            head = path.read_bytes()
            assert refused_in_our_words(lambda: Ledger.existing(path).raise_total("9", "a test")) is not None
            assert path.read_bytes() == head


def check_manifest(data: Any) -> None:
    content = published()["published/manifest.json"]
    if data.draw(st.integers(0, 2)):
        told = as_json(data.draw(spoilt(json.loads(content))))
        content = json.dumps(told).encode()
    else:
        content = data.draw(spoilt_bytes(content))
    with again() as where:
        path = where / "published" / "manifest.json"
        path.write_bytes(content)
        page: list[str] = []
        refused_in_our_words(lambda: page.append(render(path)))
        assert "<script>alert" not in "".join(page)
        assert command("ledger", "verify", where / "people.ledger", path).code in (0, 1)
        if data.draw(st.integers(0, 4)) == 0:
            with without_report():
                command("release", where / "release.toml", "--only", "r0", "--again")


def check_toml(data: Any) -> None:
    content = data.draw(spoilt_bytes(document(DOCUMENT).encode(), 6))
    with folder() as where:
        (where / "release.toml").write_bytes(content)
        refused_in_our_words(lambda: load(where / "release.toml"))
        command("explain", where / "release.toml")


def _listed(kind: str) -> dict[str, Any]:
    """A settings file that reads a small file beside it."""
    told = json.loads(json.dumps(DOCUMENT))
    told["release"] = told["release"][:1]
    if kind == "codes":
        told["domain"]["s"] = {"categorical": "side.csv"}
    elif kind == "hierarchy":
        told["domain"]["s"] = {"categorical": ["f", "m"], "hierarchy": "side.csv"}
    elif kind == "answers":
        told["policy"]["constraint"] = [{"marginal": ["s"], "answers": "side.csv"}]
    elif kind == "prior":
        channel = {"kind": "least-distortion", "prior": "side.csv", "source": "public"}
        told["release"] = [{"name": "r", "epsilon": 1, "rows": ["a"], "channel": channel}]
    else:
        told["release"] = [
            {"name": "r", "epsilon": 1, "rows": ["s"], "channel": {"kind": "file", "path": "side.csv"}}
        ]
    return told


SIDE = {
    "codes": b"code,label\nf,Female\nm,Male\n",
    "hierarchy": b"code,parent\nf,all\nm,all\nall,\n",
    "answers": b"s,count\nf,1\nm,2\nx,1\n",
    "prior": b"\n".join(b"%d" % n for n in range(1, 11)),
    "channel": b"PK",
}


def check_side(data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(SIDE)))
    with folder() as where:
        (where / "release.toml").write_text(document(_listed(kind)), encoding="utf-8")
        (where / "side.csv").write_bytes(data.draw(spoilt_bytes(SIDE[kind])))
        seen = command("plan", where / "release.toml")
        no_canary(seen.text, kind)


@lru_cache(maxsize=1)
def tables() -> dict[str, bytes]:
    """A table with canaries as a file of every format."""
    told = pa.table({"a": [1, 2, 7, 987654321, 3], "s": ["f", "m", "m", CANARY, "f"]})
    with folder() as where:
        pq.write_table(told, where / "t.parquet")
        pq.write_table(told, where / "plain.parquet", compression="none", use_dictionary=False)
        pyarrow.csv.write_csv(told, where / "t.csv")
        pyarrow.feather.write_feather(told, where / "t.arrow", compression="uncompressed")
        pyarrow.feather.write_feather(told, where / "packed.arrow", compression="lz4")
        with duckdb.connect(str(where / "t.duckdb")) as base:
            base.execute("CREATE TABLE people AS SELECT * FROM read_csv(?)", [str(where / "t.csv")])
        with sqlite3.connect(where / "t.db") as light:
            light.execute("CREATE TABLE people (a, s)")
            light.executemany(
                "INSERT INTO people VALUES (?, ?)", [tuple(row.values()) for row in told.to_pylist()]
            )
        light.close()
        (where / "t.csv.gz").write_bytes(gzip.compress((where / "t.csv").read_bytes()))
        return {path.name: path.read_bytes() for path in where.iterdir()}


DOMAIN = td.Domain(
    a=td.Integer(0, 9, missing="secret"), s=td.Categorical(["f", "m"], other="x", missing="secret")
)


def counted(path: Path) -> None:
    source: Any = path
    options: dict[str, Any] = {}
    if path.suffix in (".duckdb", ".db"):
        source, options = (
            f"{'duckdb' if path.suffix == '.duckdb' else 'sqlite'}://{path}",
            {"table": "people"},
        )
    table = td.Table(source, DOMAIN, **options)
    assert repr(table) and table.counts().total >= 0 and table.n_rows >= 0


def check_table(data: Any) -> None:
    name = data.draw(st.sampled_from(sorted(tables())))
    content = data.draw(spoilt_bytes(tables()[name], 6))
    with folder() as where:
        (where / name).write_bytes(content)
        with watching() as seen:
            told = refused_in_our_words(lambda: counted(where / name))
        no_canary(seen.text, name)
        no_canary(told or "", name)


CHECKS: dict[str, tuple[Callable[[Any], None], int, int]] = {
    # what, examples in the fast tier, in the slow one
    "channels": (check_channel, 12, 1500),
    "permanent answers": (check_permanent, 8, 800),
    "ledgers": (check_ledger, 8, 700),
    "manifests": (check_manifest, 3, 300),
    "settings": (check_toml, 8, 1500),
    "small files": (check_side, 6, 800),
    "tables": (check_table, 8, 700),
}


@pytest.mark.parametrize("name", CHECKS)
def test_spoilt_files_are_read_or_refused(name: str) -> None:
    check, few, _ = CHECKS[name]
    given(st.data())(examples(few)(lambda data: check(data)))()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_many_spoilt_files_are_read_or_refused(name: str) -> None:
    check, _, many = CHECKS[name]
    given(st.data())(examples(many)(lambda data: check(data)))()
