"""The report: one self-contained, printable HTML page, rendered from a manifest and the published files beside it alone."""

from __future__ import annotations

from pathlib import Path

from .page import page
from .reading import read


def render(manifest: Path) -> str:
    """The report of a release as one HTML page.

    The same manifest and files give the same bytes. The page loads nothing and runs nothing; it was made from what was
    published and holds nothing else.

    Args:
        manifest: path of a ``manifest.json``; the files that it names lie beside it.

    Raises:
        OutputError: the manifest or a published file cannot be read, or a file's SHA-256 is not the manifest's.
        SpecificationError: not a manifest of a format that this version reads; the message names the key.

    >>> render(Path("nowhere") / "manifest.json")
    Traceback (most recent call last):
    tetraodon.errors.OutputError: nowhere/manifest.json: cannot be read (No such file or directory); name the manifest.json of a release.
    """
    manifest = Path(manifest)
    return page(read(manifest), manifest.name)


__all__ = ["render"]
