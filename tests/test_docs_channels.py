"""docs/channels.md: its settings are read, its twenty lines prove what they say, and its figures are those of the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon import spec

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "channels.md").read_text(encoding="utf-8")

AROUND = """
[data]
source = "people.csv"

[domain.home]
point = ["lat", "lon"]
box = [[48.82, 48.90], [2.28, 2.41]]
cell = "500 m"

[domain.region]
categorical = ["n", "s"]

[policy.secrets]
home = { within = 1 }

[budget]
epsilon = 4
"""


def _recheck() -> Any:
    """The function of the page, with numpy and json and nothing else."""
    [block] = [b for b in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL) if "def recheck" in b]
    lines = [line[4:] for line in block.splitlines() if line.startswith((">>> def recheck", "... "))]
    body = lines[: next(i for i, line in enumerate(lines) if "return ((total.min" in line) + 1]
    assert len(body) <= 20
    assert "td." not in "\n".join(body)
    assert "tetraodon" not in "\n".join(body)
    import json

    held: dict[str, Any] = {"np": np, "json": json}
    exec("\n".join(body), held)
    return held["recheck"]


def _channels() -> list[td.Channel]:
    grid = td.Domain(at=td.Point("x", "y", box=((0, 4), (0, 4)), cell=1, metric="planar", unit="km"))
    rng = np.random.default_rng(7)
    joint = rng.random((3, 16)) * (rng.random((3, 16)) < 0.6)
    make = td.channels.least_leaking
    return [
        td.channels.least_distortion(
            rng.random(16), epsilon=1, epsilon_per="km", domain=grid, source="public"
        ),
        td.channels.least_distortion(rng.random(16), secrets=td.Within(1), epsilon=1, domain=grid),
        make(joint, distortion=0.2, domain=grid, source="public"),
        make(joint, distortion=0.3, domain=grid, epsilon=4, epsilon_per="km", source="public"),
        make(joint, distortion=0.2, domain=grid, source="public", leakage="bayes"),
        td.channels.blahut_arimoto(rng.random(16), domain=grid, distortion=0.8, source="public"),
    ]


def test_twenty_lines_find_every_bound_again(tmp_path: Path) -> None:
    recheck = _recheck()
    for channel in _channels():
        channel.save(tmp_path / "channel.npz")
        told = channel.certificate
        assert told is not None
        assert recheck(tmp_path / "channel.npz") == pytest.approx(told.bound, abs=1e-6)
        assert told.bound > 0.05


def test_what_they_find_in_a_spoilt_file_is_still_a_bound(tmp_path: Path) -> None:
    """Multipliers and classifiers at will: a poorer bound, never a false one."""
    recheck, rng = _recheck(), np.random.default_rng(8)
    for channel in _channels():
        path = tmp_path / "channel.npz"
        channel.save(path)
        with np.load(path) as file:
            held = {name: file[name] for name in file.files}
        best = td.Channel.load(path).certificate
        assert best is not None
        for _ in range(5):
            spoilt = dict(held)
            for name in ("multiplier", "multipliers", "strategy"):
                if f"certificate.{name}" in held:
                    now = held[f"certificate.{name}"]
                    spoilt[f"certificate.{name}"] = now * rng.uniform(0, 2, now.shape)
            if "certificate.log_ratio" in held:
                now = held["certificate.log_ratio"]
                spoilt["certificate.log_ratio"] = now + rng.normal(0, 0.3, now.shape)
            np.savez(path, **spoilt)
            found = recheck(path)
            if best.kind == "bayes":
                assert found >= best.value - 1e-9
            else:
                assert found <= best.value + 1e-9


def test_the_releases_of_the_page_are_read(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        path = tmp_path / "release.toml"
        path.write_text(AROUND + "\n" + block, encoding="utf-8")
        document = spec.load(path)
        assert [r.query.word for r in document.requests] == ["rows"]


def test_the_page_names_every_construction() -> None:
    for name in td.channels.__all__:
        if name not in ("Channel", "Certificate", "learn"):
            assert f"`{name}" in TEXT or f"channels.{name}(" in TEXT, name
