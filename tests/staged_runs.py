"""Small staged releases that end at a chosen moment: by an exception in this process, or by SIGKILL in a forked one.

A *moment* is before or after something that is durable: a file brought into place, a row of the ledger, a file written out or
deleted. ``python staged_runs.py FOLDER MOMENT …`` forks for each moment a process that is killed there, then one that resumes, and
prints one line of JSON for each; nothing runs in the process that forks, so that no thread of an engine is copied.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tetraodon import planning, publish, resuming
from tetraodon.ledger import Ledger
from tetraodon.rows import resumed, staged
from tetraodon.rows.folder import Folder
from tetraodon.spec import load

ROWS, PART, BUCKET = 230, 64, 90
SETTINGS = f"""
[data]
source = "people.parquet"
edition = "2025"
[domain.age]
integer = [0, 9]
[domain.num]
integer = [0, {ROWS - 1}]
[policy.secrets]
age = "full"
[budget]
epsilon = 2
ledger = "people.ledger"
[[release]]
name = "ages"
epsilon = "1/2"
query = {{ histogram = ["age"] }}
[[release]]
name = "rows"
rows = ["age"]
keep = ["num"]
epsilon = 1
staging = "rows.staging"
present = {{ format = ["parquet", "csv"] }}
[release.channel]
kind = "randomised-response"
"""


class Killed(BaseException):
    """What stands for a kill within this process."""


def prepared(folder: Path, rows: int = ROWS) -> Path:
    """A folder with the settings and their table; returns the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    ages = np.random.default_rng(7).integers(0, 10, rows)
    pq.write_table(
        pa.table({"age": ages, "num": np.arange(rows)}), folder / "people.parquet", row_group_size=50
    )
    (folder / "release.toml").write_text(SETTINGS, encoding="utf-8")
    return folder / "release.toml"


@contextmanager
def small_parts(part: int = PART, bucket: int = BUCKET) -> Iterator[None]:
    """Parts and buckets of so few rows that a small table has several."""
    with mock.patch.object(resumed, "PART", part), mock.patch.object(staged, "BUCKET", bucket):
        yield


@contextmanager
def ending(at: int, end: Callable[[], Any]) -> Iterator[list[str]]:
    """Calls ``end`` at the moment of this number, counted from 1; 0 for never. Gives the names of all moments so far."""
    moments: list[str] = []

    def moment(name: str) -> None:
        moments.append(name)
        if len(moments) == at:
            end()

    def around(owner: Any, method: str, called: Callable[..., str]) -> Any:
        true = getattr(owner, method)

        def wrapped(*args: Any, **more: Any) -> Any:
            moment(f"before {called(*args)}")
            found = true(*args, **more)
            moment(f"after {called(*args)}")
            return found

        return mock.patch.object(owner, method, wrapped)

    with (
        around(os, "replace", lambda source, target: f"moving {Path(target).name}"),
        around(Ledger, "charge_all", lambda *_: "charging"),
        around(Ledger, "published", lambda *_: "recording"),
        around(Folder, "remove", lambda *_: "deleting"),
        around(publish, "write_tables", lambda tables, path: f"writing {path.name}"),
        around(publish, "refresh_report", lambda *_: "report"),
    ):
        yield moments


def released(settings: Path) -> None:
    with small_parts():
        planning.run(load(settings), settings.parent / "published", [], False)


def resume(settings: Path) -> resuming.Resumed:
    with small_parts():
        return resuming.resumed(load(settings), settings.parent / "published", [])


def committed(settings: Path) -> dict[int, int]:
    """The row numbers and outputs of parts that were committed."""
    folder = settings.parent / "rows.staging"
    found: dict[int, int] = {}
    for path in sorted(folder.glob("part-*.rows")):
        _, output, number = Folder(folder, os.open(os.devnull, os.O_RDONLY)).get(path.name).arrays
        found |= dict(zip(number.tolist(), output.tolist(), strict=True))
    return found


def result(settings: Path) -> tuple[dict[int, int], Ledger]:
    """Row numbers with what was published for them, in order, and the ledger; checks that every row is there once."""
    folder = settings.parent
    table = pq.read_table(folder / "published" / "rows.parquet")
    told = dict(zip(table["num"].to_pylist(), table["age"].to_pylist(), strict=True))
    count = pq.read_metadata(folder / "people.parquet").num_rows
    assert table.num_rows == count and sorted(told) == list(range(count))
    return told, Ledger.read(folder / "people.ledger")


def _forked(action: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def _killed_at(settings: Path, at: int) -> None:
    with ending(at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        released(settings)


def main() -> None:
    # Once for all processes that are forked.
    for name in (
        "altair",
        "duckdb",
        "ibis.backends.duckdb",
        "pyarrow.csv",
        "tetraodon.report.page",
        "vl_convert",
    ):
        import_module(name)

    for text in sys.argv[2:]:
        settings = prepared(Path(sys.argv[1]) / text)
        first = _forked(lambda: _killed_at(settings, int(text)))  # noqa: B023
        held = committed(settings)
        then = _forked(lambda: resume(settings))  # noqa: B023
        print(
            json.dumps({"at": int(text), "first": first, "then": then, "held": list(held.items())}),
            flush=True,
        )


if __name__ == "__main__":
    main()
