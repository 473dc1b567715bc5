"""C37: a process of its own, without a network, in a hostile environment: nothing is asked of anybody, and no number changes."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sources import SOURCE, nodes

# Every event of the interpreter that would leave the process, or run what was read, ends it.
WATCHED = """
import sys
EVENTS = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile", "pty.", "pickle.",
          "urllib.", "ftplib.", "smtplib.", "http.", "webbrowser.", "telnetlib.", "imaplib.", "poplib.")
def watch(event, arguments):
    if event.startswith(EVENTS):
        print("FORBIDDEN", event, file=sys.stderr, flush=True)
        raise SystemExit(77)
sys.addaudithook(watch)
"""
ODD = {"word": ["ı", "i", "I", "İ", "ß", "SS", None, "é"], "number": ["1,5", "1.5", "1e1", "٣", "3", " 4 ", "", "0x5"], "n": list(range(8))}  # fmt: skip
NUMBERS = """
import json, tetraodon as td
def numbers(ODD):
    word = td.Categorical(["i", "I", "İ", "ı", "ß", "é"], other="else", missing="secret")
    domain = td.Domain(word=word, number=td.Numeric(0, 10, cells=20, missing="secret"), n=td.Integer(0, 7))
    policy = td.Policy(domain, td.AttributeWise(n=td.Within(2), word=td.Full()))
    counts = {name: td.Table(ODD, domain).counts(name).dense.tolist() for name in ("word", "number")}
    prices = [[str(row.cost.value), row.expected_error, row.half_width] for q in (td.CDF("n", by="word"), td.Marginals([("n", "word")]))
              for row in td.Session(td.Table(ODD, domain), policy, 1).plan(q, epsilon="1/3")]
    channel = td.channels.exponential(domain.select("n"), "1/2", epsilon_per=1)
    return [counts, prices, str(channel.epsilon(td.Within(2))), channel.matrix.tolist(), policy.hash, policy.explain("1/2")]
"""
RUN = """
from tetraodon.cli import main
def called(*arguments):
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        assert not end.code, arguments
called(*sys.argv[2:])
"""


def here() -> Any:
    """The same numbers in this process."""
    space: dict[str, Any] = {}
    exec(NUMBERS, space)
    return json.loads(json.dumps(space["numbers"](ODD)))


@cache
def alone() -> list[str]:
    """What a command begins with to run in a network of its own that leads nowhere; nothing where that is not allowed."""
    command = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=60)
    return command if tried.returncode == 0 else []


def ran(program: str, folder: Path, *arguments: object, **environment: str) -> str:
    """Standard output of a program in a fresh interpreter with this environment alone."""
    told = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(folder), **environment}
    program = program.encode(
        "ascii", "backslashreplace"
    ).decode()  # not every locale can pass what is beyond it
    done = subprocess.run(
        [*alone(), sys.executable, "-P", "-c", program, *map(str, arguments)],
        env=told, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_watch_ends_a_process_that_asks_somebody(tmp_path: Path) -> None:
    for body in ("import socket; socket.create_connection(('127.0.0.1', 9))", "import os; os.system('true')", "import pickle; pickle.loads(b'cos\\nsystem\\n.')"):  # fmt: skip
        with pytest.raises(AssertionError, match="FORBIDDEN"):
            ran(f"{WATCHED}\n{body}", tmp_path)


def test_a_release_asks_nobody_and_leaves_nothing_in_home_or_among_temporary_files(
    tmp_path: Path, settings: Callable[..., Path]
) -> None:
    """Importing and releasing with every way out of the process closed, the page drawn and all."""
    home = tmp_path / "home"
    home.mkdir()
    path = settings(("epsilon = 1\nledger", "epsilon = 2\nledger"))
    with path.open("a") as file:
        file.write(
            '[[release]]\nname = "rows"\nepsilon = "0.5"\nrows = ["age"]\nchannel = { kind = "exponential" }\n'
        )
    ran(WATCHED + RUN, home, "", "release", path)
    assert (path.parent / "published" / "report.html").stat().st_size > 20_000
    assert os.listdir(home) == []


HOSTILE = {
    "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "4711",
    "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1", "SOURCE_DATE_EPOCH": "1", "NO_COLOR": "1", "TERM": "dumb",
    "SEED": "7", "NUMPY_SEED": "7", "DUCKDB_MEMORY_LIMIT": "1KB", "IBIS_DEFAULT_BACKEND": "polars", "XDG_CONFIG_HOME": "/nonexistent",
}  # fmt: skip


def test_no_variable_of_the_environment_and_nothing_in_home_changes_a_number(tmp_path: Path) -> None:
    """Counts, prices, errors, a channel, a hash and words: in another locale, time zone and home."""
    home = tmp_path / "home"
    (home / ".config" / "ibis").mkdir(parents=True)
    for name in (".duckdbrc", ".config/ibis/config.toml", "sitecustomize.py", "numpy.py", "release.toml"):
        (home / name).write_text("SET default_null_order = 'nulls_first';\nraise SystemExit(3)\n")
    program = f"{WATCHED}\n{NUMBERS}\nprint(json.dumps(numbers(json.loads(sys.argv[1]))))"
    told = ran(program, home, json.dumps(ODD), **HOSTILE)
    assert json.loads(told) == here()


@pytest.mark.slow
def test_the_demo_runs_without_a_network(tmp_path: Path) -> None:
    out = ran(WATCHED + RUN, tmp_path, "", "demo", "--out", tmp_path / "demo")
    assert "Spent 0.4 of 1" in out and (tmp_path / "demo" / "published" / "report.html").exists()
    assert os.listdir(tmp_path) == ["demo"]


@pytest.mark.slow
def test_no_library_beneath_opens_a_socket(tmp_path: Path) -> None:
    """What compiled code asks of the kernel, which the interpreter does not see."""
    tracer = shutil.which("strace")
    if tracer is None:
        pytest.skip("strace is not here")
    told, program = tmp_path / "calls", f"import sys\n{RUN}"
    command = [tracer, "-f", "-qq", "-e", "trace=connect,bind,listen,sendto,execve", "-o", str(told)]
    done = subprocess.run(
        [*command, sys.executable, "-c", program, "", "demo", "--out", str(tmp_path / "demo")],
        capture_output=True, check=False,
    )  # fmt: skip
    if not told.exists() or not told.read_text():
        pytest.skip("strace may not trace here")
    lines = told.read_text().splitlines()
    assert done.returncode == 0 and sum("execve(" in line for line in lines) == 1
    assert not [line for line in lines if "execve(" not in line and "AF_INET" in line]


def test_only_its_own_names_are_taken_from_the_environment() -> None:
    """The list of what the package reads of it, whatever part reads it."""
    pattern = re.compile(
        r"""os\.environ(?:\.get)?[\[(]\s*["'](\w+)|["'](\w+)["'] (?:not )?in os\.environ|getenv\(\s*["'](\w+)|(os\.environ|getenv)"""
    )
    found = {
        name
        for path in SOURCE.rglob("*.py")
        for told in pattern.findall(path.read_text(encoding="utf-8"))
        for name in told
    }
    known = {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_REMOTE", "PGUSER", "PGPASSWORD", "PGPASSFILE"}
    assert not found - known - {""}


def test_no_assertion_is_a_check() -> None:
    """``python -O`` takes assertions away: they may tell a type checker what is known, and decide nothing."""
    for name, module in nodes().items():
        for node in module:
            if isinstance(node, ast.Assert):
                told = ast.unparse(node.test)
                assert " is not None" in told or "isinstance(" in told or told == "ibis.pyspark", name
