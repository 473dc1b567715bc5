"""Line and branch coverage of the code that decides what is private: `make coverage`. Fails below 95 % of any part.

Runs the fast tests that concern it, once, and counts lines and branches together, as coverage.py does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from run import ROOT, TESTS

LEAST = 95.0
PARTS = {
    "noise": ("noise.py", "_laws.py", "_tables.py", "_gaussian.py", "_uniform.py"),
    "ledger": ("ledger.py", "chain.py", "accounts.py", "admission.py", "entries.py", "verification.py"),
    "policy": ("policy.py",),
    "graphs": ("graphs.py",),
    "constraints": ("constraints.py",),
    "sensitivity/": ("sensitivity/",),
    "mechanisms/strategy": ("mechanisms/strategy.py",),
    "channels/channel": ("channels/channel.py",),
    "engine": ("engine.py",),
}


def measured(where: Path) -> None:
    """Run the tests."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not slow", "--cov=tetraodon", "--cov-branch", "--cov-report=", *TESTS,
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(where)}, check=True)


def shares(where: Path) -> dict[str, tuple[float, list[str]]]:
    """Of every part, the share in per cent and what was not executed: file, lines."""
    from coverage import Coverage

    cover = Coverage(data_file=str(where), branch=True)
    cover.load()
    found = {}
    source = next(f for f in cover.get_data().measured_files() if f.endswith("src/tetraodon/__init__.py"))
    folder = Path(source).parent
    for part, names in PARTS.items():
        files = [
            f
            for name in names
            for f in ([folder / name] if name.endswith(".py") else sorted((folder / name).glob("*.py")))
        ]
        done = whole = 0
        missing = []
        for file in files:
            analysis: Any = cover._analyze(str(file))
            numbers = analysis.numbers
            done += numbers.n_executed + numbers.n_executed_branches
            whole += numbers.n_statements + numbers.n_branches
            told = analysis.missing_formatted(branches=True)
            if told:
                missing.append(f"{file.relative_to(folder)}: {told}")
        found[part] = 100 * done / max(whole, 1), missing
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "coverage"
        if not where.exists():
            measured(where)
        found = shares(where)
    for part, (share, missing) in found.items():
        print(f"{part:22} {share:6.2f} %")
        for line in missing:
            print(f"    {line}")
    return int(any(share < LEAST for share, _ in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
