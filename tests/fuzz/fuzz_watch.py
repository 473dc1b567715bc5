"""Watching what reaches a user: streams, logs, warnings, files. No traceback, and nothing that stands in the rows alone."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
from fuzz_documents import CANARIES

from tetraodon.cli import main
from tetraodon.publish import publish


class _Terminal(io.StringIO):
    """A stream that passes for a terminal, so that progress is shown."""

    def isatty(self) -> bool:
        return True


class Watched:
    """What was seen, as one text."""

    def __init__(self) -> None:
        self.code, self.out, self.err, self.more = 0, "", "", list[str]()

    @property
    def text(self) -> str:
        return "\n".join([self.out, self.err, *self.more])


@contextmanager
def watching() -> Iterator[Watched]:
    """Everything that is printed, logged or warned of inside the block; the streams pass for terminals."""
    seen, out, err = Watched(), _Terminal(), _Terminal()
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: seen.more.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(out), redirect_stderr(err):
            warnings.simplefilter("always")
            yield seen
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        seen.out, seen.err = out.getvalue(), err.getvalue()
        seen.more += [str(w.message) for w in warned]


def command(*arguments: object) -> Watched:
    """The command line, watched.

    Raises:
        AssertionError: a traceback, an exception that is not the package's own, or an exit code that means nothing.
    """
    with watching() as seen:
        try:
            main([str(a) for a in arguments])
        except SystemExit as end:
            seen.code = end.code if isinstance(end.code, int) else 0 if end.code is None else 99
    told = f"{arguments}: {seen.text}"
    assert seen.code in (0, 1, 2), told
    assert "unexpected" not in seen.err and "Traceback" not in seen.text, told
    assert (
        seen.code == 0 or "tetraodon: " in seen.err or "PROBLEM: " in seen.out or '"problems"' in seen.out
    ), told
    return seen


def no_canary(text: str, where: str, allowed: Sequence[str] = ()) -> None:
    """Refuse a text that holds a value of the rows."""
    for canary in CANARIES:
        if canary not in allowed:
            assert not re.search(rf"(?<![0-9.]){re.escape(canary)}", text), (
                f"{canary} in {where}: {text[:4000]}"
            )


def no_canary_in_files(folder: Path, private: Sequence[str], allowed: Sequence[str] = ()) -> None:
    """Refuse any file, but those that are private by their nature, that holds a value of the rows."""
    for path in folder.rglob("*"):
        if not path.is_file() or path.name in private:
            continue
        no_canary(path.read_bytes().decode("latin-1"), path.name, allowed)
        if path.suffix == ".parquet":
            no_canary(str(pq.read_table(path).to_pydict()), path.name, allowed)


def _unreported(folder: Path, made: Any, context: Any, *, report: bool, **others: Any) -> Path:
    assert report
    return publish(folder, made, context, **others)


@contextmanager
def without_report() -> Iterator[None]:
    """Releases without drawing the report, which takes most of the time of a small one; short searches for strategies."""
    with (
        patch("tetraodon.planning.publish", _unreported),
        patch("tetraodon.mechanisms.descent.MOST_STEPS", 50),
    ):
        yield
