"""Saved files and learned channels against C01, C02, C07, C14, C15, C31, C35 and C37: what is written, and what a file can do to whoever reads it."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon import noise
from tetraodon.channels.learned import LearnedChannel
from tetraodon.channels.learned_noise import LearnedNoise
from tetraodon.channels.learning.atoms import Atoms
from tetraodon.channels.learning.samples import Samples, Scale
from tetraodon.channels.learning.watching import Checkpoint, Look
from tetraodon.channels.permanent import Permanent
from tetraodon.errors import DataError, TetraodonError
from tetraodon.ledger import Ledger, verify
from tetraodon.publish import publish
from tetraodon.report import render

FOUR = td.Domain(v=td.Integer(0, 3))


def channel() -> td.Channel:
    return td.channels.randomised_response(FOUR, "1/2")


def learned(source: Any = "public") -> LearnedChannel:
    """A learned channel over one dimension, put together by hand."""
    layers = ((np.array([[-20.0, 20.0]]), np.zeros(2)),)
    offsets = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.2]])
    atoms = Atoms(
        np.array([[-1.0], [0.0], [1.0]]), offsets, 4.0, (np.zeros(1), np.eye(1)), layers, "euclidean"
    )
    return LearnedChannel(atoms, Scale(np.array([10.0]), 2.0), ("a", "b"), 2.0, source)


def checkpoint(path: Path) -> Checkpoint:
    return Checkpoint.of(path, Samples.of(["a", "b"], [[0.0], [1.0]]), {"steps": 1})


def write_checkpoint(path: Path) -> None:
    checkpoint(path).save(1, [np.zeros(3)], [Look(1, 0.5, 0.5, 0.5)])


# ---------- what is written ----------


def test_c01_published_numbers_are_whole_millionths(tmp_path: Path) -> None:
    """Every number of every kind of answer, in text and in parquet, with its interval: a public grid, and the same in both."""
    import pyarrow.parquet as pq

    domain = td.Domain(x=td.Numeric(0, 1, cells=7), g=td.Categorical(["a", "b"]))
    policy = td.Policy(domain, td.Full())
    s = td.Session(td.Table({"x": np.linspace(0, 1, 50), "g": ["a", "b"] * 25}, domain), policy, 100)
    queries = [td.Histogram("x"), td.CDF("x", by="g"), td.Sum("x"), td.Mean("x", by="g"), td.Marginals(2), td.Ranges("x", "all"), td.Linear([[1, -1]], "g")]  # fmt: skip
    made = [s.release(q, epsilon="1/3", name=f"r{i}") for i, q in enumerate(queries)]
    publish(tmp_path, [(m, ("csv", "parquet")) for m in made], s.context)
    seen = 0
    for i in range(len(queries)):
        stored = pq.read_table(tmp_path / f"r{i}.parquet")
        with (tmp_path / f"r{i}.csv").open(encoding="utf-8-sig", newline="") as file:
            for line, row in zip(csv.DictReader(file), stored.to_pylist(), strict=True):
                for name in ("value", "lower", "upper"):
                    told = float(line[name]) if line[name] else None
                    assert told == row[name]
                    if told is not None and np.isfinite(told):
                        assert abs(Fraction(told) * 10**6 - round(Fraction(told) * 10**6)) < Fraction(1, 1000)
                        seen += 1
    assert seen > 100


def test_c14_no_file_says_where_when_or_on_which_machine_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, manifest and page are functions of the release, and hold no folder, machine, process or seed; the ledger has times."""
    work = tmp_path / "CANARYFOLDER"
    work.mkdir()
    monkeypatch.chdir(work)
    domain = td.Domain(v=td.Integer(0, 3), g=td.Categorical(["a", "b"]))
    td.Table({"v": [1], "g": ["a"]}, domain)
    policy = td.Policy(domain, td.AttributeWise(v=td.Full()))
    path = work / "rows.csv"
    path.write_text("v,g\n" + "1,a\n2,b\n" * 20)
    s = td.Session(td.Table(path, domain), policy, 9, ledger=work / "x.ledger")
    channel().save(work / "c.npz")
    kind = {"kind": "file", "path": str(work / "c.npz")}
    rows = s.release(td.Rows("v", keep=["g"], channel=kind), epsilon=1, name="rows")
    cells = s.release(td.Histogram("v"), epsilon=1, name="cells")
    bytes_of = []
    for folder in ("one", "two"):
        publish(work / folder, [(rows, ("csv", "parquet")), (cells, ("csv",))], s.context, report=True)
        os.utime(work / folder, (0, 0))
        bytes_of.append(
            {
                p.name: p.read_bytes()
                for p in (work / folder).iterdir()
                if p.suffix in (".csv", ".parquet", ".npz")
            }
        )
    assert bytes_of[0] == bytes_of[1] and len(bytes_of[0]) == 4
    told = b"".join(p.read_bytes() for p in (work / "one").iterdir()) + (work / "x.ledger").read_bytes()
    hidden = [
        b"CANARYFOLDER",
        str(tmp_path).encode(),
        f'"pid": {os.getpid()}'.encode(),
        b'"seed"',
        b"MT19937",
        b"PCG64",
        b"BitGenerator",
    ]
    hidden += [socket.gethostname().encode()] if len(socket.gethostname()) > 5 else []
    assert not [h for h in hidden if h in told]


@pytest.mark.parametrize("save", [lambda p: channel().save(p), lambda p: learned().save(p), write_checkpoint], ids=["channel", "learned", "checkpoint"])  # fmt: skip
def test_c15_a_saved_file_is_arrays_of_numbers_without_time_or_generator(
    save: Callable[[Path], None], tmp_path: Path
) -> None:
    for name in ("a.npz", "b.npz"):
        save(tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as file:
        for part in file.infolist():
            assert part.date_time == (1980, 1, 1, 0, 0, 0) and not part.extra.replace(b"\0", b"").strip(
                b"\x01\x10"
            )
            array = np.lib.format.read_array(io.BytesIO(file.read(part)), allow_pickle=False)
            assert array.dtype.kind in "biuf"
        spec = file.read("spec.npy")
    assert not [w for w in (b"seed", b"state", b"bit_generator", b"rng") if w in spec]


# ---------- files that act ----------


class Acts:
    """What a pickle would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (str(self.path), "w"))


def with_part(path: Path, name: str, content: bytes) -> None:
    """Replace or add one part of a saved file."""
    with zipfile.ZipFile(path) as old:
        parts = {n: old.read(n) for n in old.namelist()}
    parts[name] = content
    with zipfile.ZipFile(path, "w") as new:
        for n, told in parts.items():
            new.writestr(n, told)


def acting(path: Path) -> bytes:
    held = io.BytesIO()
    array = np.empty(1, dtype=object)
    array[0] = Acts(path)
    np.save(held, array, allow_pickle=True)
    return held.getvalue()


LOADERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "channel": (lambda p: channel().save(p), td.Channel.load),
    "learned": (lambda p: learned().save(p), LearnedChannel.load),
    "noise": (lambda p: learned().save(p), LearnedNoise.load),
    "checkpoint": (write_checkpoint, lambda p: checkpoint(p).load()),
    "settings": (
        lambda p: channel().save(p),
        lambda p: td.Rows("v", channel={"kind": "file", "path": str(p)}),
    ),
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("part", ["every", "spec.npy", "more.npy", "../../escaped.npy"])
def test_c37_nothing_in_a_saved_file_is_run_and_nothing_in_it_is_unpacked(
    loader: str, part: str, tmp_path: Path
) -> None:
    save, load = LOADERS[loader]
    (tmp_path / "in").mkdir()
    path, witness = tmp_path / "in" / "a.npz", tmp_path / "acted"
    save(path)
    with zipfile.ZipFile(path) as file:
        names = file.namelist() if part == "every" else [part]
    for name in names:
        with_part(path, name, acting(witness))
    try:
        load(path)
    except TetraodonError as error:
        assert error.__cause__ is None and "acted" not in str(error)
    assert (
        not witness.exists()
        and sorted(os.listdir(tmp_path)) == ["in"]
        and os.listdir(tmp_path / "in") == ["a.npz"]
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5, 1.5, 2.0, -1e-300], ids=str)
def test_c31_a_saved_channel_with_entries_that_are_no_law_is_refused_or_is_exact(
    value: float, tmp_path: Path
) -> None:
    """Whatever number is put into a file: no row that does not sum to one, no ε below that of the rows drawn from."""
    channel().save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as file:
        parts = {
            n: np.lib.format.read_array(io.BytesIO(file.read(n))) for n in file.namelist() if n != "spec.npy"
        }
    floats = {n: a for n, a in parts.items() if a.dtype.kind == "f" and a.size}
    assert floats
    for name, array in floats.items():
        for at in range(min(array.size, 4)):
            changed, held = array.copy(), io.BytesIO()
            changed.flat[at] = value
            np.save(held, changed)
            channel().save(tmp_path / "b.npz")
            with_part(tmp_path / "b.npz", name, held.getvalue())
            try:
                found = td.Channel.load(tmp_path / "b.npz")
            except DataError:
                continue
            matrix = found.matrix
            assert (matrix >= 0).all() and np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
            with np.errstate(divide="ignore"):
                gaps = np.abs(np.log(matrix)[:, None] - np.log(matrix)[None])
            assert float(found.epsilon(td.Full())) >= np.nan_to_num(gaps, nan=0.0, posinf=np.inf).max() - 1e-9


MANIFESTS = [
    b"", b"[]", b"null", b"{}", b'{"format": 1}', b'{"format": 1, "releases": 5}', b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe\x00", b'{"releases": [null]}',
    b'{"format": 1, "releases": [{"files": {"csv": {"path": "/etc/passwd", "sha256": "0"}}}]}', b'{"format": 1e999, "releases": []}', b"1" * 50_000,
]  # fmt: skip


def test_c37_a_manifest_that_is_none_is_refused_and_named(tmp_path: Path) -> None:
    """By the page, and by a check of the ledger."""
    s = td.Session(td.Table({"v": [1]}, FOUR), td.Policy(FOUR, td.Full()), 1, ledger=tmp_path / "a.ledger")
    s.release(td.Histogram("v"), epsilon=1)
    for content in MANIFESTS:
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(TetraodonError) as caught:
            render(tmp_path / "manifest.json")
        assert caught.value.__cause__ is None and "passwd:" not in str(caught.value)
        found = verify(tmp_path / "a.ledger", [tmp_path / "manifest.json"])
        assert not found.ok and "cannot be read" in found.problems[0]


@pytest.mark.parametrize(
    "content", [MANIFESTS[4], MANIFESTS[6], MANIFESTS[10]], ids=["short", "deep", "elsewhere"]
)
def test_c37_a_manifest_that_is_none_stops_or_is_replaced_by_the_next_release(
    content: bytes, settings: Callable[..., Path], run: Any
) -> None:
    path = settings()
    folder = path.parent / "published"
    folder.mkdir()
    (folder / "manifest.json").write_bytes(content)
    code, _, err = run("release", path, "--only", "ages")
    assert code in (0, 1) and "unexpected" not in err
    assert ((folder / "manifest.json").read_bytes() == content) == (code == 1)


@pytest.mark.parametrize("kind", ["text", "database", "pickle", "folder", "link"])
def test_c37_a_store_or_ledger_that_is_something_else_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "b")
        (tmp_path / "b").write_bytes(b"PRIVATE")
        (tmp_path / "b").chmod(0o600)
    elif kind == "database":
        with closing(sqlite3.connect(path)) as file:
            file.execute("CREATE TABLE ledger (x)")
            file.execute("CREATE TRIGGER t AFTER INSERT ON ledger BEGIN SELECT 1; END")
            file.commit()
    else:
        path.write_bytes(b"PRIVATE" if kind == "text" else b"cos\nsystem\n(S'true'\ntR.")
    if path.is_file():
        path.chmod(0o600)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(TetraodonError):
        Permanent.open(path)
    with pytest.raises(TetraodonError):
        Ledger.read(path)
    with pytest.raises(TetraodonError):
        s = td.Session(td.Table({"v": [1]}, FOUR), td.Policy(FOUR, td.Full()), 1, ledger=path)
        s.release(td.Histogram("v"), epsilon=1)
    assert before is None or path.read_bytes() == before


def test_c38_an_attacker_reads_our_own_csv_as_it_was_published(tmp_path: Path) -> None:
    """The apostrophe in front of a formula would make names and values others than those of the original: an attacker who learnt
    on clean rows would seem worse than he is."""
    made = np.random.default_rng(4)
    young = made.random(300) < 0.5
    rows = {
        "age": np.where(young, made.integers(18, 30, 300), made.integers(60, 90, 300)).tolist(),
        "=job": np.where(young, "=student", "@retired").tolist(),
    }
    domain = td.Domain({"age": td.Integer(18, 90), "=job": td.Categorical(["=student", "@retired"])})
    query = td.Rows("age", keep=["=job"], channel={"kind": "exponential"})
    s = td.Session(td.Table(rows, domain), td.Policy(domain, td.AttributeWise(age=td.Within(1))), 100)
    s.release(query, epsilon=100, name="r").save(tmp_path, ("csv", "parquet"))
    told = {"model": "logistic", "scenario": "I", "features": ["=job"]}
    one, two = (
        td.leakage.attack(
            tmp_path / "r.parquet", tmp_path / f"r.{form}", "age", rng=np.random.default_rng(1), **told
        )
        for form in ("parquet", "csv")
    )
    assert one.success == two.success < one.baseline / 10


# ---------- learned channels ----------


def test_c02_learned_outputs_are_drawn_by_the_noise_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel that training shaped is drawn from like any other: no generator of numpy's is asked."""
    words: list[int] = []
    real = noise._entropy
    monkeypatch.setattr(noise, "_entropy", lambda count: (words.append(count), real(count))[1])

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("a generator was asked")

    for name in ("default_rng", "Generator", "RandomState", "random", "choice"):
        monkeypatch.setattr(np.random, name, never)
    own = learned()
    one, two = own.sample(np.full((200, 1), 10.0)), own.sample(np.full((200, 1), 10.0))
    assert sum(words) >= 400 and (one != two).any() and set(np.unique(one)) <= set(own.points.ravel())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_c15_a_fork_does_not_share_the_draws_of_a_learned_channel() -> None:
    own, values = learned(), np.full((300, 1), 11.0)
    own.sample(values)
    read, write = os.pipe()
    child = os.fork()
    found = own.sample(values).tobytes()
    if child == 0:  # pragma: no cover (in the child)
        os.write(write, found)
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 1 << 16)
    os.close(read)
    os.close(write)
    assert len(told) == len(found) and told != found


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, None, "8472.25x", 8472j])
def test_c07_values_that_a_learned_channel_cannot_place_are_refused_without_a_word_of_them(
    value: Any,
) -> None:
    own = learned()
    for asked in ([[8472.25], [value]], [[value]] * 3):
        with pytest.raises(TetraodonError) as caught:
            own.sample(
                np.array(asked, dtype=object) if isinstance(value, str | complex | None.__class__) else asked
            )
        assert "8472" not in str(caught.value) and caught.value.__cause__ is None
    # Signed zeros are one value, and the largest that can be placed comes out on a point.
    assert np.array_equal(own.law([[0.0]]), own.law([[-0.0]]))
    assert set(own.sample([[1e12]]).ravel()) <= set(own.points.ravel())


def test_c35_nothing_that_a_learned_channel_says_shows_a_row() -> None:
    """Its repr, settings, and the line that training prints."""
    own = learned("private")
    shown = repr(own) + repr(own.atoms) + repr(own.scale) + str(own.settings)
    assert "array(" not in shown and "0.5, 0" not in shown and own.guarantee == "measured" and own.is_private
    samples = Samples.of(["CANARY", "b"], [[8472.25], [1.0]])
    assert "8472" not in repr(samples) and "CANARY" not in repr(samples)


def test_c03_training_sees_the_same_counts_whatever_the_order_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows reach training as joint counts of declared cells, in declared order."""
    domain = td.Domain(x=td.Integer(0, 4), g=td.Categorical(["a", "b"]))
    policy = td.Policy(domain, td.AttributeWise(x=td.Full()))
    seen: list[Any] = []

    def stop(*told: Any, **more: Any) -> Any:
        seen.append([np.asarray(t).tolist() for t in told if isinstance(t, np.ndarray)])
        raise td.errors.Refused("stopped")

    monkeypatch.setattr("tetraodon.rows.declared.learned", stop)
    monkeypatch.setattr("tetraodon.rows.learned.find_spec", lambda name: True)
    x, g = [0, 4, 2, 2, 1, 3, 3], ["a", "b", "a", "b", "b", "a", "a"]
    query = td.Rows("x", channel={"kind": "learned", "secret": "g", "distortion": 1})
    for order in (range(7), [6, 2, 0, 4, 1, 5, 3]):
        s = td.Session(td.Table({"x": [x[i] for i in order], "g": [g[i] for i in order]}, domain), policy, 1)
        with pytest.raises(TetraodonError):
            s.release(query, guarantee="measured")
    assert len(seen) == 2 and seen[0] == seen[1] and seen[0]
    assert json.dumps(seen)  # plain numbers, no rows
