"""The documents: examples run, links lead somewhere, promises are kept in the tree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(block.strip().splitlines()) <= 11
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert "NOT protected: sex" in capsys.readouterr().out
    assert (tmp_path / "published" / "manifest.json").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_names_what_make_offers() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(
        r"(?m)(?:^    |`)make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8")
    ):
        assert re.search(rf"^{target}:", made, flags=re.MULTILINE), target


def test_caps_on_versions_have_their_reason_beside_them() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if re.match(r'\s*"[a-z].*<', line):
            assert "#" in line, line
    assert tomllib.loads("\n".join(lines))["project"]["license"] == "Apache-2.0"
