"""Releases that are killed at statements of their own path, from outside of the product.

``python killed.py kill FOLDER PLACE NUMBER`` counts by which statements the release of FOLDER comes, and then runs it NUMBER times, each in a
copy of FOLDER of its own inside PLACE, killed (SIGKILL) as it is about to run one of them. It prints, one a line, the
copy's name, how its process ended and the statement. ``python killed.py again FOLDER …`` releases again what the folders' accounts
were charged for, and prints how each ended. A child is forked for each once everything is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb  # noqa: F401
import ibis  # noqa: F401
import pyarrow.parquet  # noqa: F401

import tetraodon
from tetraodon import planning, report, shared_chain, spec  # noqa: F401
from tetraodon.channels import apply  # noqa: F401
from tetraodon.cli import main

HOME = Path(tetraodon.__file__).parent
# What runs between the decision to release and the last file: every statement of these is a place to be killed at.
WATCHED = {
    "session", "ledger", "chain", "shared_chain", "stores", "staged", "publish", "planning", "admission", "requests",
    "manifest", "entries", "verification", "rows/release", "rows/publishing", "rows/lasting", "channels/apply",
}  # fmt: skip
FILES = {str(HOME / f"{name}.py") for name in WATCHED}


class Watch:
    """Counts the statements of the watched modules, and ends the process at one of them."""

    def __init__(self, turn: int = -1) -> None:
        self.turn, self.now = turn, 0
        self.first: dict[tuple[str, int], int] = {}
        self.last: dict[tuple[str, int], int] = {}

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.step if frame.f_code.co_filename in FILES else None

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            if self.now == self.turn:
                os.kill(os.getpid(), signal.SIGKILL)
            place = (frame.f_code.co_filename, frame.f_lineno)
            self.first.setdefault(place, self.now)
            self.last[place] = self.now
            self.now += 1
        return self.step


def release(folder: str, *arguments: str) -> int:
    os.chdir(folder)
    quiet = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        main(["release", "release.toml", *arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def forked(run: Any) -> int:
    """How a child that does this ends."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = run()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def watched(folder: str, turn: int) -> int:
    """Release under watch; told of no turn it says by which statements it came, and what it loaded."""
    watch = Watch(turn)
    sys.settrace(watch.enter)
    code = release(folder)
    sys.settrace(None)
    if turn < 0:
        places = [(place, watch.first[place], watch.last[place]) for place in watch.first]
        Path("seen.json").write_text(json.dumps({"places": places, "modules": sorted(sys.modules)}))
    return code


def copied(folder: Path, copy: Path) -> Path:
    """A copy of a job; a ledger in a database, which no copy of a folder copies, has the copy's name in the place of EACH."""
    shutil.copytree(folder, copy)
    settings = copy / "release.toml"
    settings.write_text(settings.read_text().replace("EACH", copy.name))
    return copy


def kill(folder: Path, place: Path, number: int) -> None:
    counted = copied(folder, place / "counted")
    assert forked(lambda: watched(str(counted), -1)) == 0, (counted / "out.txt").read_text()
    seen = json.loads((counted / "seen.json").read_text())
    for name in seen["modules"]:
        with suppress(Exception):  # parts of modules that are none by themselves
            importlib.import_module(name)
    places = seen["places"]
    for i in range(number):
        (file, line), *turns = places[(2 * i + 1) * len(places) // (2 * number)]
        copy = copied(folder, place / f"killed{i}")
        code = forked(lambda copy=copy, turn=turns[i % 2]: watched(str(copy), turn))
        print(copy.name, code, f"{Path(file).name}:{line}")


if __name__ == "__main__":
    report.render = lambda manifest: "a page"  # drawn from what is published, and slow
    if sys.argv[1] == "kill":
        kill(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        for folder in sys.argv[2:]:
            print(forked(lambda folder=folder: release(folder, "--again")))
