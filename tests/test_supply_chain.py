"""What the package is made of: ranges, licences, what an import loads, and the audit that never stops anybody."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED: list[str] = PROJECT["project"]["dependencies"]
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
EVERY = [*NEEDED, *(d for told in EXTRAS.values() for d in told), *PROJECT["build-system"]["requires"]]
PERMISSIVE = {"MIT", "BSD-3-Clause", "Apache-2.0", "MPL-2.0", "LGPL-3.0-only"}
# Words by which packages state these, in one way or another.
STATED = {
    "MIT": "mit", "BSD-3-Clause": "bsd", "Apache-2.0": "apache", "MPL-2.0": "mpl", "LGPL-3.0-only": "lgpl-3.0-only",
}  # fmt: skip


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found, requirement
    return found[0]


def table() -> dict[str, str]:
    """The licences of docs/dependencies.md, by package."""
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| ([a-z0-9, -]+) \| [^|]+ \| ([A-Za-z0-9.-]+) \|$", text)
    return {name.strip(): licence for names, licence in rows[1:] for name in names.split(",")}


@pytest.mark.parametrize("requirement", EVERY)
def test_versions_are_wide_and_come_from_the_registry(requirement: str) -> None:
    """At least some version, no single one, no address; caps have their reason beside them (test_docs)."""
    assert re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?(>=[0-9][0-9.]*)?(,?<[0-9][0-9.]*)?", requirement), (
        requirement
    )
    assert ">=" in requirement or "<" in requirement


@pytest.mark.parametrize("file", ["constraints.txt", "constraints-oldest.txt"])
def test_constraints_pin_versions_and_nothing_else(file: str) -> None:
    lines = [ln.partition("#")[0].strip() for ln in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    told = [ln for ln in lines if ln]
    assert len(told) > 15
    assert not [ln for ln in told if not re.fullmatch(r"[a-z0-9_-]+==[0-9][0-9a-z.]*", ln)]
    if file == "constraints.txt":
        known = {ln.partition("==")[0] for ln in told}
        assert {name_of(d) for d in NEEDED} <= known


def test_every_dependency_has_its_licence_in_the_documents() -> None:
    """And what is installed states the same of itself."""
    told = table()
    wanted = {name_of(d) for d in [*NEEDED, *(d for told_ in EXTRAS.values() for d in told_)]}
    assert set(told) == wanted
    assert set(told.values()) <= PERMISSIVE
    # Not permissive, though harmless: one of an extra, one of tests.
    assert {n for n, licence in told.items() if licence in ("MPL-2.0", "LGPL-3.0-only")} == {
        "psycopg",
        "hypothesis",
    }
    seen = 0
    for name, licence in told.items():
        try:
            stated = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        words = [
            stated.get("License-Expression") or "",
            stated.get("License") or "",
            *(stated.get_all("Classifier") or []),
        ]
        assert STATED[licence] in " ".join(w for w in words if "License" in w or "::" not in w).lower(), name
        seen += 1
    assert seen >= 15
    assert not {name_of(d) for d in NEEDED} & {"psycopg", "hypothesis"}


def test_an_import_loads_nothing_that_was_installed() -> None:
    """Not one package outside of the standard library and our own, whichever are there."""
    program = "import sys\nbefore = set(sys.modules)\nimport tetraodon\nprint(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - set(sys.stdlib_module_names) == {"tetraodon"}


def test_the_audit_of_dependencies_stops_nobody() -> None:
    """A step of its own, in an environment of its own, whose outcome make ignores; no part of what is tested."""
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    [recipe] = re.findall(r"(?m)^audit-deps:.*\n((?:\t.*\n)+)", made)
    assert re.search(r"(?m)^\t-\.venv-audit/bin/pip-audit ", recipe)
    for target in ("test", "test-slow", "lint"):
        [needs] = re.findall(rf"(?m)^{target}:(.*)$", made)
        assert "audit-deps" not in needs
    assert not [d for d in EVERY if "audit" in d]


def test_security_says_what_it_must() -> None:
    """Who is trusted, which side channels are in scope, the three words, rollback, leaks, and how to report."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("Reporting", "Who is trusted", "Side channels", "rolled back", "After a leak", "promise"):
        assert re.search(rf"(?m)^## .*{heading}", text), heading
    for word in (
        "publisher",
        "engine",
        "memory",
        "swap",
        "logs of engines",
        "refusals",
        "reduced, not solved",
        "Measured",
        "Without such a manifest",
    ):
        assert word in text, word
    assert "SECURITY.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
