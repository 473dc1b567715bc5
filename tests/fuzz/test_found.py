"""What the fuzz tests found, each by itself."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fuzz_documents import document
from test_fuzz_files import claiming, members, refused_in_our_words, zipped
from test_fuzz_files import saved as saved_channels

import tetraodon as td
from tetraodon.channels import archives
from tetraodon.channels.certificate import Certificate
from tetraodon.channels.learned import LearnedChannel
from tetraodon.channels.permanent import Permanent, fingerprint
from tetraodon.errors import DataError, LedgerError, OutputError, SpecificationError
from tetraodon.ledger import Ledger
from tetraodon.loss import Loss
from tetraodon.people import Weight
from tetraodon.planning import plan_text, planned
from tetraodon.publish import publish
from tetraodon.report import render
from tetraodon.report.keys import real
from tetraodon.report.reading_rows import signed
from tetraodon.spec import load
from tetraodon.verification import verify

DEEP = "[" * 100_000


def skewed(*names: str) -> td.Channel:
    """A channel on two attributes of different sizes, every row of it another one."""
    sizes = {"x": 2, "y": 3}
    domain = td.Domain({name: td.Integer(0, sizes[name] - 1) for name in names})
    matrix = np.arange(1.0, 37.0).reshape(6, 6)
    return td.Channel.of_matrix(matrix / matrix.sum(axis=1, keepdims=True), domain)


def test_a_saved_channel_keeps_the_order_of_its_attributes(tmp_path: Path) -> None:
    """What a cell means depends on it: sorted names would give every row of the matrix to another cell."""
    channel = skewed("y", "x")
    channel.save(tmp_path / "k")
    again = td.Channel.load(tmp_path / "k")
    assert again.domain.names == again.outputs.names == ("y", "x") and again.domain == channel.domain
    assert np.array_equal(again.matrix, channel.matrix) and again.digest == channel.digest


def test_two_orders_of_attributes_are_two_laws_to_a_store() -> None:
    assert fingerprint([skewed("y", "x")]) != fingerprint([skewed("x", "y")])


def saved(path: Path) -> bytes:
    skewed("x", "y").save(path)
    return path.read_bytes()


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(1000000, 1000000)", "(-1,)", "(37,)", "(35,)"])
def test_a_header_that_claims_other_bytes_than_there_are_is_refused(tmp_path: Path, shape: str) -> None:
    parts = members(saved(tmp_path / "k"))
    (tmp_path / "k").write_bytes(zipped(parts | {"law.entries.npy": claiming(shape)}))
    with pytest.raises(DataError, match="k: is no channel that save wrote"):
        td.Channel.load(tmp_path / "k")


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = saved(tmp_path / "k")
    size = sum(len(part) for part in members(content).values())
    monkeypatch.setattr(archives, "RATIO", 0)
    monkeypatch.setattr(archives, "UNPACKED", size)
    td.Channel.load(tmp_path / "k")
    monkeypatch.setattr(archives, "UNPACKED", size - 1)
    monkeypatch.setattr(archives, "_array", None)  # nothing is unpacked
    with pytest.raises(DataError):
        td.Channel.load(tmp_path / "k")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_kinds_of_compression_are_refused(tmp_path: Path, method: int) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as file:
        for name, content in members(saved(tmp_path / "k")).items():
            file.writestr(name, content)
    (tmp_path / "k").write_bytes(held.getvalue())
    with pytest.raises(DataError):
        td.Channel.load(tmp_path / "k")


@pytest.mark.parametrize("kind", [np.complex128, "U8", "M8[s]"])
def test_arrays_of_other_things_than_numbers_are_refused(tmp_path: Path, kind: object) -> None:
    held = io.BytesIO()
    np.save(held, np.zeros(36).astype(kind).reshape(6, 6))
    parts = members(saved(tmp_path / "k")) | {"law.entries.npy": held.getvalue()}
    (tmp_path / "k").write_bytes(zipped(parts))
    with pytest.raises(DataError):
        td.Channel.load(tmp_path / "k")


def test_a_learned_channel_has_one_law_for_one_value(tmp_path: Path) -> None:
    """Offsets of three rows, which numpy adds to a row all the same."""
    path = tmp_path / "learned"
    path.write_bytes(saved_channels()["learned"])
    LearnedChannel.load(path)
    parts = members(path.read_bytes())
    held = io.BytesIO()
    np.save(held, np.zeros((3, 2)))
    path.write_bytes(zipped(parts | {"layer.0.offsets.npy": held.getvalue()}))
    with pytest.raises(DataError, match="learned: is no learned channel that save wrote"):
        LearnedChannel.load(path)


@pytest.mark.parametrize("spoilt", [{"value": {}}, {"bound": "0.3"}, {"bound": float("nan")}, {"unit": 3}])
def test_a_certificate_is_of_numbers(spoilt: dict[str, object]) -> None:
    told: dict[str, object] = {"kind": "bayes", "value": 0.5, "bound": 0.6, "unit": "bits"}
    with pytest.raises(SpecificationError, match="certificate: "):
        Certificate(**(told | spoilt))  # type: ignore[arg-type]


def test_settings_of_a_saved_channel_are_a_table(tmp_path: Path) -> None:
    parts = members(saved(tmp_path / "k"))
    told = json.loads(np.load(io.BytesIO(parts["spec.npy"])).tobytes()) | {"settings": "x"}
    held = io.BytesIO()
    np.save(held, np.frombuffer(json.dumps(told).encode(), np.uint8))
    (tmp_path / "k").write_bytes(zipped(parts | {"spec.npy": held.getvalue()}))
    with pytest.raises(DataError):
        td.Channel.load(tmp_path / "k")


@pytest.mark.parametrize(
    "change",
    ["about SET key = 'x'", f"about SET key = '{'x' * 32}'", "about SET key = 7", "about SET format = 'x'"],
)
def test_a_store_with_another_kind_of_key_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "answers"
    Permanent.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {change}")
    connection.close()
    with pytest.raises(DataError, match="answers: permanent answers of another version"):
        Permanent.open(path)


@pytest.mark.parametrize("answer", ["nan", -1, 1.5, b"1"])
def test_an_answer_of_another_kind_is_refused(tmp_path: Path, answer: object) -> None:
    path = tmp_path / "answers"

    def ask() -> None:
        with Permanent.open(path) as store:
            store.settled("2025", "laws", ["anna"], np.zeros_like)

    ask()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET answer = ?", (answer,))
    connection.close()
    with pytest.raises(DataError, match="answers: is damaged"):
        ask()


def test_an_answer_that_no_channel_gives_is_refused(tmp_path: Path) -> None:
    domain = td.Domain(vote=td.Categorical(["no", "yes"]))
    rows = {"vote": ["no", "yes"], "person": ["anna", "bob"]}
    wanted = td.Rows(
        "vote", channel={"kind": "randomised-response"}, permanent={"id": "person", "epoch": "2025", "store": str(tmp_path / "answers")}
    )  # fmt: skip

    def ask() -> None:
        td.Session(td.Table(rows, domain), td.Policy(domain, td.Full()), 9).release(wanted, 1, name="votes")

    ask()
    with sqlite3.connect(tmp_path / "answers") as connection:
        connection.execute("UPDATE answers SET answer = 2")
    connection.close()
    with pytest.raises(DataError, match="permanent: the store is damaged"):
        ask()


def test_a_ledger_whose_columns_are_worked_out_is_refused_unread(tmp_path: Path) -> None:
    """A file of a few kilobytes could ask for any amount of memory."""
    path = tmp_path / "people.ledger"
    domain = td.Domain(a=td.Integer(0, 3))
    td.Session(td.Table({"a": [1]}, domain), td.Policy(domain, td.Full()), 1, ledger=path)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE ledger RENAME TO old")
        connection.execute(
            "CREATE TABLE ledger (seq INTEGER PRIMARY KEY AUTOINCREMENT, prev TEXT NOT NULL, hash TEXT NOT NULL, "
            "body TEXT AS (hex(zeroblob(50000000))))"
        )
        connection.execute("INSERT INTO ledger (seq, prev, hash) SELECT seq, prev, hash FROM old")
        connection.execute("DROP TABLE old")
    connection.close()
    told = refused_in_our_words(lambda: Ledger.read(path))
    assert told is not None and "not a Tetraodon ledger" in told


@pytest.mark.parametrize(
    "text",
    [f"a = {'9' * 5000}", f"a = {DEEP}", "a = 1e99999999999999999999", f"a = {'{a=' * 5000}"],
    ids=["long", "deep", "far", "tables"],
)
def test_numbers_and_nestings_that_nothing_can_read_are_refused(
    tmp_path: Path, text: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "release.toml").write_text(text)
    with pytest.raises(SpecificationError, match=r"release\.toml: "):
        load(tmp_path / "release.toml")
    code, _, said = run("plan", tmp_path / "release.toml")
    assert code == 2 and "unexpected" not in said


def test_nested_policies_of_the_command_line_are_refused(
    settings: Callable[..., Path], run: Callable[..., tuple[int, str, str]]
) -> None:
    for told in ("{ a = " + "[" * 20_000, "{ a = " + "9" * 5000 + " }", "{ a = 1e99999999999999999999 }"):
        code, _, said = run("plan", settings(), "--compare", told)
        assert code == 2 and "--compare" in said and "unexpected" not in said


def test_a_plan_of_clusters_without_a_bound_says_so(tmp_path: Path) -> None:
    told = {
        "data": {"source": "people.parquet", "weight": "w", "weight_bounds": [0, 3], "weight_step": "0.5"},
        "domain": {"a": {"integer": [0, 899_999], "step": 300_000, "missing": "secret"}},
        "policy": {"secrets": "full", "presence": "secret"},
        "budget": {"epsilon": 1},
        "release": [
            {
                "name": "r",
                "query": {"kmeans": ["a"], "k": 2, "iterations": 2, "records": 12},
                "epsilon": "1/8",
            }
        ],
    }
    (tmp_path / "release.toml").write_text(document(told))
    assert "unbounded" in plan_text(planned(load(tmp_path / "release.toml")))


def test_a_nested_manifest_in_the_folder_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(DEEP)
    domain = td.Domain(a=td.Integer(0, 3))
    session = td.Session(td.Table({"a": [1]}, domain), td.Policy(domain, td.Full()), 1)
    with pytest.raises(OutputError, match=r"manifest\.json: is there already"):
        publish(tmp_path, [(session.release(td.Histogram("a"), "1/2"), ("csv",))], session.context)


@pytest.mark.parametrize("word", ["1e999", "NaN", "-Infinity"])
def test_a_manifest_of_numbers_that_cannot_be_written_again_is_none_of_ours(
    tmp_path: Path, word: str
) -> None:
    """Found only after the charge, as the releases of an earlier run were written again beside the new one."""
    domain = td.Domain(a=td.Integer(0, 3))
    session = td.Session(td.Table({"a": [1]}, domain), td.Policy(domain, td.Full()), 1)
    asked = [(session.release(td.Histogram("a"), "1/4", name="first"), ("csv",))]
    publish(tmp_path, asked, session.context)
    manifest = tmp_path / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    told["releases"][0]["half_width"] = "HERE"
    manifest.write_text(json.dumps(told).replace('"HERE"', word), encoding="utf-8")
    with pytest.raises(OutputError, match="is there already"):
        publish(tmp_path, [(session.release(td.Histogram("a"), "1/4"), ("csv",))], session.context)
    with pytest.raises(SpecificationError, match="half_width: a finite number"):
        render(manifest)


def test_a_whole_number_that_no_double_holds_is_refused(tmp_path: Path) -> None:
    for check in (real, signed):
        with pytest.raises(SpecificationError, match="distortion: a finite number"):
            check(10**400, "distortion")


@pytest.mark.parametrize("kind", ["answers", "ledger"])
def test_a_message_of_sqlite_that_is_no_text_stays_inside(tmp_path: Path, kind: str) -> None:
    """It quotes the damaged words of a schema, byte by byte, and then cannot be read itself."""
    path = tmp_path / kind
    if kind == "answers":
        Permanent.open(path).close()
    else:
        account = {"data": "d", "domain_hash": "d", "policy": {}, "policy_hash": "p"}
        Ledger.open(path, **account, total=Loss("epsilon", Fraction(1)))
    content = path.read_bytes()
    assert b"CREATE TABLE" in content
    path.write_bytes(content.replace(b"CREATE TABLE", b"CREATE \x80ABLE"))
    with pytest.raises((DataError, LedgerError), match="damaged") as caught:
        Permanent.open(path) if kind == "answers" else Ledger.read(path)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("amount", ['"1e400"', "1" + "0" * 400, '"1e303"'])
def test_a_loss_that_no_double_holds_is_refused(tmp_path: Path, amount: str) -> None:
    for key in ("budget", "release"):
        told = {"budget": 1, "release": '"1/2"'} | {key: amount}
        (tmp_path / "release.toml").write_text(
            f'[data]\nsource = "p.csv"\n[domain.a]\ninteger = [0, 3]\n[policy.secrets]\na = "full"\n'
            f"[budget]\nepsilon = {told['budget']}\n"
            f'[[release]]\nname = "r"\nepsilon = {told["release"]}\nquery = {{ histogram = ["a"] }}\n'
        )
        with pytest.raises(SpecificationError, match=r"epsilon: beyond ±10\^302"):
            load(tmp_path / "release.toml")


def test_weights_beyond_whole_doubles_are_refused() -> None:
    with pytest.raises(SpecificationError, match=r"weight_bounds: .* at most 2\^53"):
        Weight(Fraction(0), Fraction(10**200), Fraction(10**200), "secret")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", "\ud800"), ("ledger_row", [1]), ("ledger_row", True), ("ledger_row", 1), ("records", [1]), ("disclosed_exactly", None),
        ("disclosed_exactly", [[1]]),
    ],
)  # fmt: skip
def test_entries_of_an_old_manifest_that_cannot_stand_beside_a_new_one_are_left_out(
    tmp_path: Path, key: str, value: object
) -> None:
    """Each of them ended a run after its charge. Half a letter cannot be written at all, so that its manifest is none of ours."""
    domain = td.Domain(a=td.Integer(0, 3))
    session = td.Session(td.Table({"a": [1]}, domain), td.Policy(domain, td.Full()), 1)
    publish(tmp_path, [(session.release(td.Histogram("a"), "1/4", name="first"), ("csv",))], session.context)
    manifest = tmp_path / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    told["releases"][0][key] = value
    manifest.write_text(json.dumps(told), encoding="utf-8")
    asked = [(session.release(td.Histogram("a"), "1/4", name="second"), ("csv",))]
    if key == "title":
        with pytest.raises(OutputError, match="is there already"):
            publish(tmp_path, asked, session.context)
    else:
        publish(tmp_path, asked, session.context)
        assert [r["name"] for r in json.loads(manifest.read_text(encoding="utf-8"))["releases"]] == ["second"]


def test_a_manifest_whose_files_cannot_be_looked_at_is_a_problem(tmp_path: Path) -> None:
    domain = td.Domain(a=td.Integer(0, 3))
    session = td.Session(td.Table({"a": [1]}, domain), td.Policy(domain, td.Full()), 1, ledger=tmp_path / "l")
    session.release(td.Histogram("a"), "1/4").save(tmp_path / "out", ("csv",))
    manifest = tmp_path / "out" / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    told["releases"][0]["files"]["csv"]["path"] = "x" * 300
    manifest.write_text(json.dumps(told), encoding="utf-8")
    [problem] = verify(tmp_path / "l", [manifest]).problems
    assert "cannot be read" in problem
