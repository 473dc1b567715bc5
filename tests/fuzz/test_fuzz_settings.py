"""Whole settings files through the command line, sound and spoilt ones, on tables with canaries in their rows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_documents import CANARIES, Rows, document, documents, spoilt
from fuzz_watch import command, no_canary, no_canary_in_files, without_report
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from tetraodon.ledger import Ledger


@contextmanager
def folder_of(told: dict[str, Any], rows: Rows) -> Iterator[Path]:
    """A folder with the settings and their table; removed in the end."""
    where = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        pq.write_table(
            pa.table({name: pa.array(values) for name, values in rows.items()}), where / "people.parquet"
        )
        (where / "release.toml").write_text(document(told), encoding="utf-8")
        yield where
    finally:
        shutil.rmtree(where)


def spent(path: Path) -> object:
    """What a ledger has spent, nothing where there is none."""
    return Ledger.read(path).spent if path.exists() else 0


def is_declared(canary: str, told: dict[str, Any]) -> bool:
    """Whether it is one of the whole numbers that an attribute has, as it can be once the attribute's step was taken away."""
    attributes = told.get("domain")
    for each in attributes.values() if isinstance(attributes, dict) else ():
        ends, step = (each.get("integer"), each.get("step", 1)) if isinstance(each, dict) else (None, 1)
        numbers = [*ends, step] if isinstance(ends, list) and len(ends) == 2 else []
        is_read = bool(numbers) and all(type(n) is int for n in numbers) and step > 0
        if is_read and canary.lstrip("-").isdigit() and int(canary) in range(ends[0], ends[1] + 1, step):
            return True
    return False


def go_through(told: dict[str, Any], rows: Rows, commands: tuple[str, ...]) -> list[int]:
    """The commands on a settings file, one after another; their exit codes."""
    # What the settings say may be said again; what stands in the rows alone may not.
    allowed = [c for c in CANARIES if c in document(told) or is_declared(c, told)]
    codes = []
    with folder_of(told, rows) as where:
        path, ledger = where / "release.toml", where / "people.ledger"
        for name in commands:
            before = spent(ledger)
            seen = command(name, path, *(["--json"] if len(codes) % 2 else []))
            codes.append(seen.code)
            no_canary(seen.text, name, allowed)
            if seen.code == 2 or (seen.code == 1 and "Nothing was spent" in seen.err):
                assert spent(ledger) == before, seen.err
        if ledger.exists():
            for name in ("show", "verify"):
                seen = command("ledger", name, ledger)
                assert seen.code == 0, seen.err
                no_canary(seen.text, name, allowed)
        no_canary_in_files(where, ("people.parquet", "release.toml"), allowed)
    return codes


def check_sound(data: Any) -> None:
    told, rows = data.draw(documents())
    with without_report():
        go_through(
            told,
            rows,
            data.draw(st.sampled_from((("release", "release"), ("plan", "release"), ("explain", "release")))),
        )


def check_reported(data: Any) -> None:
    go_through(*data.draw(documents()), ("release",))


def check_spoilt(data: Any) -> None:
    told, rows = data.draw(documents())
    with without_report():
        go_through(data.draw(spoilt(told)), rows, ("plan", "release"))


CHECKS: dict[str, tuple[Callable[[Any], None], int, int]] = {
    # what, examples in the fast tier, in the slow one
    "sound": (check_sound, 10, 800),
    "with their reports": (check_reported, 2, 100),
    "spoilt": (check_spoilt, 30, 2800),
}


@pytest.mark.parametrize("name", CHECKS)
def test_settings_end_in_our_own_words_and_leak_nothing(name: str) -> None:
    check, few, _ = CHECKS[name]
    given(st.data())(examples(few)(lambda data: check(data)))()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_many_settings_end_in_our_own_words_and_leak_nothing(name: str) -> None:
    check, _, many = CHECKS[name]
    given(st.data())(examples(many)(lambda data: check(data)))()
