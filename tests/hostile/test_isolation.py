"""C37: nothing that is read is run, nothing is written through a link or outside its folder, private files are their owner's."""

from __future__ import annotations

import ast
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sources import SOURCE, nodes

import tetraodon as td
from tetraodon.channels.permanent import Permanent
from tetraodon.errors import OutputError
from tetraodon.publish import publish

HOME = td.Domain(home=td.Point("lat", "lon", box=((0, 4), (0, 4)), cell=1, metric="planar", unit="km"), k=td.Categorical(["a", "b"]))  # fmt: skip
NEAR = td.Policy(HOME, td.AttributeWise(home=td.Within("1 km")))
ROWS = {"lat": [0.5, 1.5, 3.5], "lon": [0.5, 2.5, 3.5], "k": ["a", "b", "a"], "id": ["p", "q", "r"]}


def session(folder: Path | None = None, **options: Any) -> Any:
    ledger = None if folder is None else folder / "home.ledger"
    return td.Session(td.Table(ROWS, HOME, name="home", **options), NEAR, 9, ledger=ledger)


# ---------- the package's own text ----------

# Modules that run what they read, start programs or speak to a network.
FORBIDDEN = frozenset((
    "pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "ruamel",
    "jsonpickle", "subprocess", "pty", "code", "codeop", "runpy", "socket", "socketserver", "http",
    "ftplib", "smtplib", "telnetlib", "xmlrpc", "webbrowser", "asyncio", "requests", "httpx", "aiohttp",
    "ctypes", "cffi",
))  # fmt: skip
CALLS = frozenset(["eval", "exec", "compile", "__import__", "input", "breakpoint"])
OF_OS = frozenset((
    "system", "popen", "fork", "forkpty", "startfile", "posix_spawn", "posix_spawnp", "execl", "execle",
    "execlp", "execlpe", "execv", "execve", "execvp", "execvpe", "spawnl", "spawnv",
))  # fmt: skip
READERS = frozenset(["read_pickle", "read_hdf", "from_pickle", "load_pickle", "read_sql", "unpackb"])


def found_in(module: Iterable[ast.AST]) -> list[str]:
    """What runs, or fetches, what it reads in a module."""
    found = []
    for node in module:
        if isinstance(node, ast.Import | ast.ImportFrom):
            told = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            local = isinstance(node, ast.ImportFrom) and node.level > 0
            found += [
                n for n in told if not local and (n.partition(".")[0] in FORBIDDEN or n == "urllib.request")
            ]
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            found.append(node.func.id)
        if isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if (owner == "os" and node.func.attr in OF_OS) or node.func.attr in READERS:
                found.append(f"{owner}.{node.func.attr}")
            if owner in ("np", "numpy") and node.func.attr in ("load", "fromregex", "genfromtxt", "loadtxt"):
                safe = any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)
                found += [] if node.func.attr == "load" and safe else [f"{owner}.{node.func.attr}"]
        told = {k.arg: ast.unparse(k.value) for k in node.keywords}
        found += [k for k in ("shell", "allow_pickle") if told.get(k, "False") != "False"]
    return found


def test_c37_nothing_in_the_package_runs_what_it_reads() -> None:
    told = {name: found_in(module) for name, module in nodes().items()}
    assert len(told) > 100 and not {k: v for k, v in told.items() if v}


@pytest.mark.parametrize(
    "text",
    ["import pickle", "from os import path\nimport yaml.nodes", "from subprocess import run", "eval('1')", "os.system(x)", "np.load(f)", "read_array(f, allow_pickle=flag)",
     "np.load(f, allow_pickle=True)", "pd.read_pickle(f)", "import urllib.request", "run(x, shell=True)", "exec(compile(a, b, c))"],
)  # fmt: skip
def test_the_search_for_such_calls_finds_them(text: str) -> None:
    assert found_in(ast.walk(ast.parse(text)))
    plain = "import json, re\nfrom .pickle import x\nre.compile('a')\nnp.load(f, allow_pickle=False)\n"
    assert not found_in(ast.walk(ast.parse(plain)))


# ---------- links and folders ----------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A private file of somebody's, which links in the published folder lead to."""
    (tmp_path / "private").mkdir()
    path = tmp_path / "private" / "rows.parquet"
    path.write_bytes(b"PRIVATE")
    return path


@pytest.mark.parametrize(
    ("name", "leads"),
    [("cells.parquet", True), ("cells.csv", False), ("manifest.json", True), ("report.html", False)],
)
def test_c37_a_link_in_the_folder_is_refused_where_nothing_of_ours_stood(
    name: str, leads: bool, outside: Path, settings: Callable[..., Path], run: Callable[..., Any]
) -> None:
    """Before anything is charged, and without following it."""
    path = settings()
    folder = path.parent / "published"
    folder.mkdir()
    (folder / name).symlink_to(outside if leads else outside.with_name("new"))
    code, out, err = run("release", path)
    assert code == 1 and name in err and not out
    assert outside.read_bytes() == b"PRIVATE" and os.listdir(outside.parent) == ["rows.parquet"]
    assert os.listdir(folder) == [name] and not (path.parent / "people.ledger").exists()


def test_c37_links_put_in_place_of_published_files_are_replaced_not_followed(
    tmp_path: Path, settings: Callable[..., Path], run: Callable[..., Any]
) -> None:
    """Somebody who may write into the folder makes the next release write, or take in, nothing elsewhere."""
    path = settings()
    folder, private = path.parent / "published", tmp_path / "private"
    private.mkdir()
    assert run("release", path, "--only", "cells")[0] == 0
    kept = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert set(kept) == {"cells.parquet", "cells.csv", "manifest.json", "report.html"}
    for name, content in kept.items():
        # A manifest is read before it is replaced.
        (private / name).write_bytes(content if name == "manifest.json" else b"PRIVATE")
        (folder / name).unlink()
        (folder / name).symlink_to(private / name)
    before = {p.name: p.read_bytes() for p in private.iterdir()}
    assert run("release", path, "--only", "cells", "--again")[0] == 0
    assert {p.name: p.read_bytes() for p in private.iterdir()} == before
    assert not [p for p in folder.iterdir() if p.is_symlink() or p.read_bytes() == kept[p.name]]
    told = json.loads((folder / "manifest.json").read_text())
    assert [entry["name"] for entry in told["releases"]] == ["cells"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("cells", "CELLS"), 1), (("K", "\u212a"), 1), (("\u1e9e", "ß"), 1), (("é", "e\u0301"), 2)],
)
def test_c37_names_that_are_one_file_to_some_disks_are_refused_before_a_charge(
    names: tuple[str, str], expected: int, settings: Callable[..., Path], run: Callable[..., Any]
) -> None:
    """Letter case, and letters that are composed of two, which no name has: the second would replace the first."""
    path = settings(('name = "cells"', f'name = "{names[0]}"'), ('name = "ages"', f'name = "{names[1]}"'))
    code, _, err = run("release", path)
    assert code == expected and ("one file on some disks" if expected == 1 else "Release name") in err
    assert not (path.parent / "people.ledger").exists() and not (path.parent / "published").exists()


def test_c37_init_writes_through_no_link(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "release.toml").symlink_to(tmp_path / "elsewhere")
    code, _, err = run("init", "--out", tmp_path / "release.toml")
    assert code == 1 and "exists already" in err and not (tmp_path / "elsewhere").exists()


def test_c37_a_demo_removes_nothing_behind_a_link(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "rows.parquet").write_bytes(b"PRIVATE")
    (tmp_path / "demo").mkdir()
    template = (SOURCE / "data" / "demo.toml").read_bytes()
    (tmp_path / "demo" / "release.toml").write_bytes(template)
    (tmp_path / "demo" / "published").symlink_to(tmp_path / "private")
    assert run("demo", "--out", tmp_path / "demo")[0] == 1
    assert (tmp_path / "private" / "rows.parquet").read_bytes() == b"PRIVATE"


def test_c37_a_saved_channel_replaces_a_link_and_not_what_it_leads_to(outside: Path, tmp_path: Path) -> None:
    channel = td.channels.randomised_response(td.Domain(v=td.Integer(0, 3)), 1)
    (tmp_path / "a.npz").symlink_to(outside)
    channel.save(tmp_path / "a.npz")
    assert outside.read_bytes() == b"PRIVATE" and td.Channel.load(tmp_path / "a.npz").matrix.shape == (4, 4)


@pytest.mark.parametrize("where", ["published", "published/deep", "link"])
def test_c37_a_store_of_permanent_answers_is_not_published(where: str, tmp_path: Path) -> None:
    """It tells whoever guesses an id which answer is that person's; a link into the folder is the folder."""
    published = tmp_path / "published"
    (published / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(published)
    told = {"id": "id", "epoch": "1", "store": str(tmp_path / where / "a.permanent")}
    made = session().release(td.Rows("home", channel={"kind": "planar-geometric"}, permanent=told), epsilon=1)
    with pytest.raises(OutputError, match=r"a\.permanent: lies in a folder that is published"):
        made.save(published)
    assert not list(published.glob("*.parquet"))
    made.save(tmp_path / "other")


def test_c37_such_a_store_is_refused_before_anything_is_charged(
    settings: Callable[..., Path], run: Callable[..., Any]
) -> None:
    path = settings(
        ('query = { histogram = ["age"] }', 'rows = ["age"]\npermanent = { id = "who", epoch = "1", store = "published/a.permanent" }\n'
         'channel = { kind = "exponential" }'),
        rows={"age": [1, 2, 3], "sex": ["f", "m", "f"], "who": ["a", "b", "c"]},
    )  # fmt: skip
    code, out, err = run("release", path)
    assert code == 1 and "a.permanent" in err and "Nothing was spent" in err and not out
    assert not (path.parent / "people.ledger").exists()


# ---------- modes and temporary files ----------


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """A process whose new files others may read and write, if nobody says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_private_files_are_their_owners_whatever_the_mask(
    open_to_all: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store, ledger, audit, and the folder that releases are written in, under a mask of 0; nothing stays behind."""
    work, seen = tmp_path / "temporary", list[int]()
    work.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    from tetraodon import publish as module

    real = module.write_tables

    def spy(tables: Any, path: Path) -> None:
        seen.append(mode(path.parent))
        real(tables, path)

    monkeypatch.setattr(module, "write_tables", spy)
    told = {"id": "id", "epoch": "1", "store": str(tmp_path / "a.permanent")}
    s = session(tmp_path)
    made = s.release(td.Rows("home", channel={"kind": "planar-geometric"}, permanent=told), epsilon=1)
    made.save(tmp_path / "out")
    from microdata_people import asked
    from microdata_people import session as people

    people().release(asked(), guarantee="measured", audit=tmp_path / "audit.csv")
    assert seen == [0o700]
    for private in ("a.permanent", "audit.csv", "home.ledger"):
        assert mode(tmp_path / private) == 0o600, private
    assert not os.listdir(work)
    assert sorted(os.listdir(tmp_path)) == ["a.permanent", "audit.csv", "home.ledger", "out", "temporary"]
    assert not [p for p in (tmp_path / "out").iterdir() if p.name.startswith(".")]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_what_waits_in_a_store_is_private_while_it_is_written(open_to_all: None, tmp_path: Path) -> None:
    """SQLite's journal holds the pages of the store."""
    with Permanent.open(tmp_path / "a.permanent") as store:

        def draw(places: Any) -> Any:
            found.update({p.name: mode(p) for p in tmp_path.iterdir()})
            return places * 0

        found: dict[str, int] = {}
        store.settled("1", "laws", [f"id{i}" for i in range(3)], draw)
    assert set(found) > {"a.permanent"} and set(found.values()) == {0o600}


def test_a_failure_while_writing_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session().release(td.Histogram("k"), epsilon=1, name="k")
    real = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).name == "report.html":
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match="the answers and the manifest were published"):
        publish(tmp_path, [(made, ("csv",))], made.context, report=True)
    assert sorted(os.listdir(tmp_path)) == ["k.csv", "manifest.json"]


# ---------- the page ----------

EVIL = "\"><img src=x onerror=alert(1)><script>alert(1)</script>'--></title></style>{{1}}"


class Elements(HTMLParser):
    """Every element and attribute of a page as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes = set[str](), list[tuple[str, str | None]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_c37_names_from_settings_and_data_are_text_in_the_page(tmp_path: Path) -> None:
    """Attributes, categories, units, table, edition, labels, release and epoch, through a session into files and page."""
    domain = td.Domain(
        {
            EVIL: td.Categorical([EVIL, "b</td>"], other=f"o{EVIL}", missing="public"),
            f"n{EVIL}": td.Integer(0, 9, unit=f"u{EVIL}", missing="secret"),
            "kept": td.Categorical([f"k{EVIL}", "x"]),
        }
    )
    policy = td.Policy(domain, td.AttributeWise({EVIL: td.Full(), f"n{EVIL}": td.Within(2)}))
    rows = {EVIL: [EVIL, "b</td>", None], f"n{EVIL}": [1, None, 3], "kept": [f"k{EVIL}", "x", "x"]}
    s = td.Session(td.Table(rows, domain, name=f"t{EVIL}", edition=f"e{EVIL}"), policy, 9)
    labels = {"labels": {EVIL: f"l{EVIL}", "value": f"v{EVIL}"}, "units": {"value": f"w{EVIL}"}}
    answers = s.release(td.Histogram(EVIL, f"n{EVIL}"), epsilon=1, name="cells")
    cumulative = s.release(td.CDF(f"n{EVIL}", by=[EVIL]), epsilon=1, name="curve")
    replaced = s.release(
        td.Rows(EVIL, keep=["kept"], channel={"kind": "randomised-response"}), epsilon=1, name="rows"
    )
    made: list[Any] = [(answers, td_presentation(labels)), (cumulative, ("csv",)), (replaced, ("csv",))]
    publish(tmp_path, made, s.context, report=True)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Elements()
    page.feed(text)
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "input"}
    assert not [a for a, _ in page.attributes if a.startswith("on")]
    places = [
        v or "" for a, v in page.attributes if a in ("src", "href", "action", "srcset", "xlink:href", "data")
    ]
    assert not [v for v in places if not v.startswith("#") and "/" in v] and "alert(1)" in text
    assert "url(http" not in text and "@import" not in text


def td_presentation(told: dict[str, Any]) -> Any:
    from tetraodon.presentation import presentation_from_spec

    return presentation_from_spec(told)


# ---------- spreadsheets ----------

FORMULAS = ["=1+1", "\n=2+2", " +3", "@sum(a)", "-x", "\t=4", "＝5", "'=6", "\ufeff=7", "plain", "-8"]


def test_c37_no_text_of_rows_runs_in_a_spreadsheet(tmp_path: Path) -> None:
    """Names of columns, replaced and kept values; undone, they are what was declared."""
    import csv

    from tetraodon.report import render
    from tetraodon.spreadsheets import unescaped

    domain = td.Domain({"=cmd()": td.Categorical(FORMULAS), "+kept": td.Categorical(FORMULAS)})
    policy = td.Policy(domain, td.AttributeWise({"=cmd()": td.Full()}))
    s = td.Session(td.Table({"=cmd()": FORMULAS, "+kept": FORMULAS}, domain), policy, 60)
    made = s.release(
        td.Rows("=cmd()", keep=["+kept"], channel={"kind": "randomised-response"}), epsilon=50, name="r"
    )
    manifest = made.save(tmp_path, ("csv",))
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    for text in (t for line in lines for t in line):
        bare = text.strip("\ufeff \t\r\n")
        assert bare[:1] not in "=+@＝" and (bare[:1] != "-" or bare == "-8"), text
    assert [unescaped(t) for t in lines[0]] == ["=cmd()", "+kept"]
    assert sorted(unescaped(line[1]) for line in lines[1:]) == sorted(FORMULAS)
    assert "11 rows" in render(manifest) or "11 records" in render(manifest)


def test_c37_no_text_of_microdata_runs_in_a_spreadsheet(tmp_path: Path) -> None:
    """Labels of groups, exchanged values, and the file that says what labels stand for."""
    import csv

    from tetraodon.report import render

    domain = td.Domain(
        {
            "-job": td.Categorical([f"={i}" for i in range(4)]),
            "@likes": td.Categorical(["+a", "=b"]),
            "n": td.Integer(0, 9),
        }
    )
    rows = {"-job": [f"={i % 4}" for i in range(80)], "@likes": [("+a", "=b")[i % 2] for i in range(80)], "n": [i % 10 for i in range(80)]}  # fmt: skip
    policy = td.Policy(domain, td.AttributeWise({"-job": td.Full()}))
    query = td.HybridObscuring("-job", ["@likes", "n"], groups=2, k=5, l=2, clusters=3, distortion="0.5")
    made = td.Session(td.Table(rows, domain), policy, 1).release(query, guarantee="measured", name="m", audit=tmp_path / "audit.csv")  # fmt: skip
    manifest = made.save(tmp_path / "out", ("csv",))
    for path in (tmp_path / "out" / "m.csv", tmp_path / "out" / "m.groups.csv", tmp_path / "audit.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            texts = [t for line in csv.reader(file) for t in line]
        assert any(t.startswith("'") for t in texts)
        assert not [t for t in texts if t[:1] in ("=", "+", "@", "-")], path.name
    assert "=0" in render(manifest)
    assert pa.table(made.to_arrow()).column("@likes").to_pylist()[0] in ("+a", "=b")
