"""Shared pieces: a small settings file with its data, and the path of real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

from tetraodon.cli import main

# `make test` draws the same examples everywhere, so that it fails for what was changed alone; `make test-slow` draws new ones.
settings.register_profile("steady", derandomize=True)
if not os.environ.get("TETRAODON_RANDOM"):
    settings.load_profile("steady")

SETTINGS = """
[data]
name = "people"
source = "people.parquet"
edition = "2025"

[domain.age]
integer = [0, 9]
unit = "years"
[domain.sex]
categorical = ["f", "m"]

[policy.secrets]
age = { within = 2 }

[budget]
epsilon = 1
ledger = "people.ledger"

[[release]]
name = "ages"
epsilon = "0.5"
query = { cdf = "age", by = ["sex"] }

[[release]]
name = "cells"
epsilon = "0.25"
query = { histogram = ["age"] }
"""


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Path]:
    """Write release.toml (with replacements) and people.parquet; returns the path of the settings."""

    def write(*replaced: tuple[str, str], rows: dict[str, list[object]] | None = None) -> Path:
        text = SETTINGS
        for old, new in replaced:
            assert old in text, old
            text = text.replace(old, new)
        told = rows or {"age": [1, 2, 2, 7, 9, 40], "sex": ["f", "m", "m", "f", "f", "m"]}
        pq.write_table(pa.table(told), tmp_path / "people.parquet")
        path = tmp_path / "release.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: its exit code, what it printed, and what it said besides."""

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            main([str(a) for a in arguments])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def real_data() -> Path:
    """The folder of real data, or skip."""
    told = os.environ.get("TETRAODON_DATA")
    if told is None:
        pytest.skip("TETRAODON_DATA is not set")
    return Path(told)
