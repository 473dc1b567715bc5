"""Cases C02, C13–C17, C35 and C37: what leaves the process, and what it is drawn from."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pricing import epsilon

import tetraodon as td
from tetraodon.cli import main
from tetraodon.publish import file_name, publish, write_table

SOURCE = Path(td.__file__).parent
CANARY = "CANARY-8472"


def _modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages([str(SOURCE)], "tetraodon.")]


def _release(ages: list[int], folder: Path, fields: str = "age") -> Path:
    domain = td.Domain(age=td.Integer(0, 20))
    policy = td.Policy(domain, secrets=td.Within(1))
    session = td.Session(td.Table({"age": ages}, domain, name="people"), policy, 1)
    return session.release(td.Histogram(fields), "0.5").save(folder, ("parquet", "csv"))


# Modules that simulate plans on public synthetic data, start searches, cluster what was released already, or split and
# resample a sample with a generator of the caller's.
SIMULATION = (
    "tetraodon.clustering.",
    "tetraodon.mechanisms.descent",
    "tetraodon.leakage",
    "tetraodon.channels.estimate",
    # Training of channels; what they draw comes from ``channels.learning.drawing``, which is not among these.
    "tetraodon.channels.learned",
    "tetraodon.channels.learning.asked",
    "tetraodon.channels.learning.bounding",
    "tetraodon.channels.learning.game",
    "tetraodon.channels.learning.judging",
    "tetraodon.channels.learning.attackers",
    "tetraodon.channels.learning.mine",
    "tetraodon.channels.learning.networks",
    "tetraodon.channels.learning.noising",
    "tetraodon.channels.learning.rivals",
    "tetraodon.channels.learning.samples",
    "tetraodon.channels.learning.starting",
    "tetraodon.channels.learning.training",
    # Where a search for groups starts, pairs of rows that distances are estimated from, attackers; never what is drawn.
    "tetraodon.microdata.alternating",
    "tetraodon.microdata.clusters",
    "tetraodon.microdata.divergence",
    "tetraodon.microdata.evidence",
    "tetraodon.microdata.fit",
    "tetraodon.microdata.kmeans",
    "tetraodon.microdata.sampled",
    "tetraodon.microdata.training",
)


def test_c02_there_is_no_other_sampler() -> None:
    """All noise comes from one module, which offers the exact discrete law and no floating-point Laplace."""
    for name in _modules():
        text = Path(inspect.getfile(import_module(name))).read_text(encoding="utf-8")
        if name in ("tetraodon.noise", "tetraodon._tables", "tetraodon._gaussian"):
            continue
        forbidden = r"import random|urandom|import secrets\b|\bMersenne"
        forbidden += "" if name.startswith(SIMULATION) else r"|np\.random|default_rng"
        assert not re.search(forbidden, text), name
    assert not [n for n in dir(td.noise) if "uniform" in n or n in ("laplace", "gaussian")]


def test_c13_an_empty_cell_and_an_absent_one_look_alike(tmp_path: Path) -> None:
    """Every declared cell is published, in declared order, whether anybody is in it or not."""
    one = pq.read_table(_release([3] * 50, tmp_path / "a").parent / "histogram-age.parquet")
    two = pq.read_table(_release(list(range(20)), tmp_path / "b").parent / "histogram-age.parquet")
    assert one["age"].to_pylist() == two["age"].to_pylist() == list(range(21))
    assert one.schema == two.schema and one.num_rows == two.num_rows


def test_c14_files_hold_the_published_numbers_and_nothing_else(tmp_path: Path) -> None:
    """No statistics, no foreign metadata, one row group; the same table gives the same bytes whatever it came from."""
    folder = _release([3, 4, 4], tmp_path / "a").parent
    stored = pq.ParquetFile(folder / "histogram-age.parquet")
    assert stored.metadata.num_row_groups == 1 and not (stored.metadata.metadata or {}).keys() - {
        b"ARROW:schema"
    }
    for column in range(stored.metadata.num_columns):
        assert stored.metadata.row_group(0).column(column).statistics is None
    table = stored.read()
    dressed = table.replace_schema_metadata({"pandas": "index of the private frame"})
    for suffix in ("parquet", "csv"):
        write_table(table, tmp_path / f"one.{suffix}")
        write_table(dressed, tmp_path / f"two.{suffix}")
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()
    header = (folder / "histogram-age.csv").read_text().splitlines()
    assert header[0] == '"age","value","lower","upper"' or header[0] == "age,value,lower,upper"
    assert len(header) == 22


def test_c14_row_order_does_not_reach_the_counts() -> None:
    """A permuted table gives the same counts, so the same law of outputs."""
    domain = td.Domain(age=td.Integer(0, 20))
    ages = [5, 1, 20, 5, 7]
    a, b = (td.Table({"age": rows}, domain).counts("age").dense for rows in (ages, ages[::-1]))
    assert a is not None and b is not None and a.tolist() == b.tolist()


def test_c15_no_seed_and_no_two_releases_alike(tmp_path: Path) -> None:
    """The same request twice draws different noise, and no manifest holds a seed or a state."""
    people = 50 * list(range(21))  # where one cell holds them all, what is published is nearly settled
    a = json.loads(_release(people, tmp_path / "a").read_text())
    _release(people, tmp_path / "b")
    one, two = (pq.read_table(tmp_path / f / "histogram-age.parquet")["value"].to_pylist() for f in "ab")
    assert one != two  # equal with probability far below 10^-9
    assert "seed" not in json.dumps(a) and "state" not in json.dumps(a)


def test_c15_a_fork_does_not_share_the_noise(tmp_path: Path) -> None:
    """Parent and child of a fork release different noise."""
    domain = td.Domain(age=td.Integer(0, 40))
    policy = td.Policy(domain, secrets=td.Within(1))
    read, write = os.pipe()
    child = os.fork()
    session = td.Session(td.Table({"age": [1]}, domain), policy, 1)
    values = session.release(td.CDF("age"), "0.1").answers.raw_prefix
    if child == 0:  # pragma: no cover (in the child)
        os.write(write, json.dumps(np.asarray(values).tolist()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = json.loads(os.read(read, 1 << 20))
    os.close(read)
    os.close(write)
    assert told != np.asarray(values).tolist()


def test_c16_no_release_path_accepts_a_generator() -> None:
    """No public signature has a seed, a generator or a random state."""
    for name in _modules():
        module = import_module(name)
        for _, thing in inspect.getmembers(module, lambda v: inspect.isfunction(v) or inspect.isclass(v)):
            if thing.__module__.startswith("tetraodon.") and thing.__module__ != name:
                continue  # looked at where it is defined
            try:
                found = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                continue
            names = {
                n for n, p in found.items() if p.annotation not in (str, "str")
            }  # a generator network, by name
            told = names & {"seed", "rng", "random_state", "generator"}
            assert not told - {"rng"}, (name, thing)
            # Simulations and searches over public numbers take a Generator; they can be given no table.
            if "rng" in told:
                assert name.startswith(SIMULATION), (name, thing)
                if name.startswith("tetraodon.microdata."):
                    continue  # searches on private rows, of which nothing is proved; drawing is not among them
                assert not names & {"table", "counts", "session", "reserve", "noisy"}, (name, thing)


def test_c17_noise_is_reserved_before_the_data_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of a release: reserve entropy, read counts, charge, draw."""
    seen: list[str] = []
    domain = td.Domain(age=td.Integer(0, 9))
    table = td.Table({"age": [1]}, domain)
    session = td.Session(table, td.Policy(domain, secrets=td.Within(1)), 1)
    from tetraodon import noise
    from tetraodon.mechanisms.strategy import Strategy

    def spy(owner: object, name: str, word: str) -> None:
        real = getattr(owner, name)

        def wrapped(*a: object, **k: object) -> object:
            seen.append(word)
            return real(*a, **k)

        monkeypatch.setattr(owner, name, wrapped)

    spy(noise, "reserve", "reserve")
    spy(td.Table, "counts", "read")
    spy(type(session.ledger), "charge_all", "charge")
    spy(Strategy, "observe", "draw")
    session.release(td.CDF("age"), "0.5")
    assert seen == ["reserve", "read", "charge", "draw"]


def test_c35_no_value_reaches_an_error_a_log_or_a_repr(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    settings: Callable[..., Path],
) -> None:
    """A string that stands only in the data is looked for in everything that is printed, raised or written."""
    path = settings(rows={"age": [1, 2, 3], "sex": ["f", CANARY, "m"]})
    for command in ("explain", "plan", "release"):
        with pytest.raises(SystemExit):
            main([command, str(path)])
    out, err = capfd.readouterr()
    assert "sex" in err and CANARY not in out + err + caplog.text
    for written in path.parent.rglob("*"):
        if written.is_file() and written.name != "people.parquet":
            assert CANARY.encode() not in written.read_bytes()
    domain = td.Domain(age=td.Integer(0, 9), sex=td.Categorical(["f", "m"], other="x"))
    table = td.Table(pa.table({"age": [1, 2, 987654], "sex": ["f", CANARY, "m"]}), domain)
    session = td.Session(table, td.Policy(domain, secrets=td.Full()), 1)
    found = session.release(td.Histogram("age", "sex"), 1)
    counts = table.counts("age")
    for thing in (table, session, found, counts, session.ledger, session.remaining, found.cost):
        assert CANARY not in repr(thing) and "987654" not in repr(thing)
    assert str(counts.dense) not in repr(counts)


def test_c35_a_failing_engine_is_quoted_nowhere(
    settings: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """A damaged file makes the engine complain with its content; we say which file it was."""
    path = settings()
    (path.parent / "people.parquet").write_bytes(b"PAR1" + CANARY.encode() * 50 + b"PAR1")
    with pytest.raises(SystemExit) as end:
        main(["release", str(path)])
    out, err = capfd.readouterr()
    assert end.value.code == 1 and "people.parquet" in err and CANARY not in out + err


def test_c35_unexpected_errors_are_not_quoted(
    settings: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even an exception that nobody foresaw shows its type and place only."""

    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr(td.Table, "counts", broken)
    with pytest.raises(SystemExit):
        main(["release", str(settings())])
    out, err = capfd.readouterr()
    assert "unexpected ValueError" in err and CANARY not in out + err


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "a/b", "a\\b", ".hidden", "", "manifest", "report", "x" * 101, "a\nb", "a\0b"],
)
def test_c37_release_names_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(td.errors.SpecificationError):
        file_name(name)


def test_c37_a_manifest_with_paths_outside_is_not_followed(tmp_path: Path) -> None:
    """An earlier manifest in the folder may have been edited: its paths are cut to names, its entries must match files."""
    folder = tmp_path / "out"
    manifest = _release([1], folder)
    told = json.loads(manifest.read_text())
    planted = json.loads(json.dumps(told["releases"][0])) | {"name": "planted"}
    planted["files"]["csv"]["path"] = "../../etc/passwd"
    told["releases"].append(planted)
    manifest.write_text(json.dumps(told))
    later = json.loads(_release([2], folder).read_text())
    assert [r["name"] for r in later["releases"]] == ["histogram-age"]


def test_c37_specifications_are_plain_values() -> None:
    """Nothing is unpickled or evaluated: a policy from a hostile specification is refused or stays text."""
    spec = {
        "domain": {"__import__('os')": {"categorical": ["$(rm)", "'; DROP TABLE x; --"]}},
        "secrets": "full",
        "presence": "public",
    }
    policy = td.Policy.from_spec(spec)
    assert policy.domain.names == ("__import__('os')",)
    for name in _modules():
        text = Path(inspect.getfile(import_module(name))).read_text(encoding="utf-8")
        assert not re.search(r"import (pickle|marshal|shelve)|\b(eval|exec)\(", text), name


def test_c37_attributes_with_hostile_names_run_through(tmp_path: Path) -> None:
    names = ["count", 'a"b', "select * from", "naïve ✓", "<script>alert(1)</script>"]
    domain = td.Domain({n: td.Integer(0, 2) for n in names})
    table = td.Table({n: [0, 1, 2] for n in names}, domain)
    session = td.Session(table, td.Policy(domain, secrets=td.Full()), 10)
    made = [
        session.release(td.CDF(n, by=names[0] if n != names[0] else ()), 1, name=f"r{i}")
        for i, n in enumerate(names)
    ]
    publish(tmp_path, [(m, ("csv", "parquet")) for m in made], session.context, report=True)
    assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_import_is_light() -> None:
    """`import tetraodon` loads numpy at most."""
    code = "import sys, tetraodon; print([m for m in ('ibis', 'duckdb', 'pyarrow', 'scipy', 'pydantic', 'typer', 'altair', 'pandas', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['numpy']")


def test_c20_a_manifest_lists_only_what_its_ledger_charged(settings: Callable[..., Path]) -> None:
    """Without a ledger each run starts a fresh account, so an earlier run's release may not stand beside its total."""
    path = settings(('ledger = "people.ledger"\n', ""), ("epsilon = 1\n", 'epsilon = "0.5"\n'))
    for name in ("ages", "cells"):
        try:
            main(["release", str(path), "--only", name])
        except SystemExit as end:
            assert not end.code
    told = json.loads((path.parent / "published" / "manifest.json").read_text())
    assert [r["name"] for r in told["releases"]] == ["cells"] and told["budget"]["spent"] == "0.25"


def test_a_release_never_replaces_a_file_that_is_not_its_own(
    settings: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    path = settings(('name = "ages"', 'name = "people"'))  # people.parquet is the private table
    before = (path.parent / "people.parquet").read_bytes()
    with pytest.raises(SystemExit) as end:
        main(["release", str(path), "--out", str(path.parent)])
    assert end.value.code == 1 and "people.parquet" in capfd.readouterr().err
    assert (path.parent / "people.parquet").read_bytes() == before
    assert not (path.parent / "people.ledger").exists()


def test_two_orders_of_attributes_are_two_policies() -> None:
    """Edges and block lists are read in the domain's order, so the order is part of what is hashed and stored."""
    a, b = td.Integer(0, 3), td.Integer(0, 3)
    pairs = td.Edges([((i, j), (i + 1, j)) for i in range(3) for j in range(4)])
    one, two = (td.Policy(td.Domain(d), secrets=pairs) for d in ({"a": a, "b": b}, {"b": b, "a": a}))
    assert one.hash != two.hash and one.domain_hash != two.domain_hash
    assert td.Policy.from_spec(json.loads(json.dumps(two.to_spec(), sort_keys=True))).hash == two.hash


def test_the_texts_that_mean_null_are_bound_to_the_ledger(tmp_path: Path) -> None:
    domain = td.Domain(sex=td.Categorical(["f", "m", "?"], missing="public"))
    policy = td.Policy(domain, secrets=td.Full())
    rows = {"sex": ["f", "?", "m"]}
    td.Session(td.Table(rows, domain), policy, 1, ledger=tmp_path / "l").release(td.Histogram("sex"), "0.5")
    with pytest.raises(td.errors.LedgerError):
        td.Session(td.Table(rows, domain, null=["?"]), policy, 1, ledger=tmp_path / "l")


def test_a_price_is_believed_for_its_own_policy_and_requests_only() -> None:
    from tetraodon.session import Request, price_all

    domain = td.Domain(age=td.Integer(0, 9))
    session = td.Session(td.Table({"age": [1]}, domain), td.Policy(domain, secrets=td.Full()), 1)
    wanted = [Request(td.Histogram("age"), epsilon("1/2"), "a")]
    with pytest.raises(td.errors.SpecificationError, match="another policy"):
        session.release_all(wanted, price_all(td.Policy(domain, secrets=td.Nothing()), wanted))
    assert session.ledger.spent == 0


def test_c35_true_counts_are_in_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that record local variables see nothing of the data when a release fails."""
    import traceback

    domain = td.Domain(age=td.Integer(0, 9))
    session = td.Session(td.Table({"age": [3] * 4711}, domain), td.Policy(domain, secrets=td.Full()), 1)

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("tetraodon.session.answers", broken)
    with pytest.raises(RuntimeError) as caught:
        session.release(td.Histogram("age"), "0.5")
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "4711" not in "".join(shown.format()).replace("[3] * 4711", "")


def test_exact_disclosures_say_what_they_are() -> None:
    """Each names its release, attribute and filter, so that no two collapse into one."""
    domain = td.Domain(a=td.Integer(0, 9), b=td.Integer(0, 9))
    session = td.Session(
        td.Table({"a": [7, 1], "b": [1, 2]}, domain), td.Policy(domain, secrets=td.Within(1, on="b")), 1
    )
    session.release(td.Histogram("a", where={"a": [7]}), "0.1", name="sevens")
    session.release(td.Sum("a"), "0.1", name="total")
    session.release(td.Sum("a", where={"a": (0, 5)}), "0.1", name="small")
    told = session.remaining.outside
    assert told == (
        "the number of records with a = 7", "the total of a", "the total of a with a from 0 to 5",
    )  # fmt: skip
