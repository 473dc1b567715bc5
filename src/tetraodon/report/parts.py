"""What every entry of a manifest has: files with their digests, a guarantee, a loss, and what attains it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import OutputError, SpecificationError
from ..files import sha256
from ..loss import UNITS, Loss, Unit
from ..sensitivity.persons import PRESENCE
from .document import File
from .keys import amount, mapping, text

GUARANTEES = ("proved", "certified", "measured")


def guarantee_of(spec: Mapping[str, Any], where: str) -> str:
    """The kind of guarantee."""
    found = text(spec, "guarantee", where)
    if found not in GUARANTEES:
        raise SpecificationError(f"{where}.guarantee: one of {', '.join(GUARANTEES)}.")
    return found


def loss_of(spec: Mapping[str, Any], where: str) -> Loss:
    """What was charged."""
    spent = mapping(spec, "spent", where)
    return Loss(unit_of(spent, f"{where}.spent"), amount(spent, "amount", f"{where}.spent"))


def unit_of(spec: Mapping[str, Any], where: str) -> Unit:
    """ "epsilon" or "rho"."""
    found = text(spec, "unit", where)
    for unit in UNITS:
        if found == unit:
            return unit
    raise SpecificationError(f"{where}.unit: one of {', '.join(UNITS)}.")


def files_of(spec: Mapping[str, Any], folder: Path, where: str) -> tuple[tuple[File, ...], tuple[str, bytes]]:
    """Every published file, checked, and the content of one (Parquet before CSV: it keeps types)."""
    chosen = [form for form in ("parquet", "csv") if form in spec][:1]
    listed, contents = contents_of(spec, folder, where, chosen)
    return listed, one_of(contents, where)


def one_of(contents: Mapping[str, bytes], where: str, beside: str = "") -> tuple[str, bytes]:
    """The format and the content of one file, or of one beside it."""
    for form in ("parquet", "csv"):
        if beside + form in contents:
            return form, contents[beside + form]
    raise SpecificationError(f"{where}.files: a {beside}parquet or {beside}csv file.")


def contents_of(
    spec: Mapping[str, Any], folder: Path, where: str, wanted: Collection[str] | None = None
) -> tuple[tuple[File, ...], dict[str, bytes]]:
    """Every published file, checked, and their contents by format.

    Args:
        wanted: formats whose contents are given; all by default. Others are checked without being held.
    """
    listed: list[File] = []
    contents: dict[str, bytes] = {}
    for form in spec:
        told = mapping(spec, form, f"{where}.files")
        file = File(
            form, text(told, "path", f"{where}.files.{form}"), text(told, "sha256", f"{where}.files.{form}")
        )
        if file.path in ("", ".", "..") or set(file.path) & {"/", "\\", ":", "\0"}:
            raise SpecificationError(f"{where}.files.{form}.path: the name of a file beside the manifest.")
        try:
            content = (folder / file.path).read_bytes() if wanted is None or form in wanted else None
            digest = sha256(folder / file.path) if content is None else hashlib.sha256(content).hexdigest()
        except OSError as error:
            raise OutputError(f"{file.path}: the published file cannot be read ({error.strerror}).") from None
        if digest != file.sha256:
            raise OutputError(
                f"{file.path}: its sha256 is not the one in the manifest, so it is not the file that was published; "
                "restore that file or release again."
            )
        listed.append(file)
        if content is not None:
            contents[form] = content
    return tuple(listed), contents


def witness_of(spec: Any, where: str) -> tuple[Mapping[str, str], Mapping[str, str]] | None:
    """Two values of one record that attain a cost; None if none is told."""
    if spec is None:
        return None
    fits = isinstance(spec, Sequence) and len(spec) == 2 and all(isinstance(end, Mapping) for end in spec)
    if not fits or (set(spec[0]) != set(spec[1]) and set(spec[1]) != {PRESENCE}):
        raise SpecificationError(f"{where}: two values of the same attributes.")
    first, second = ({name: text(end, name, where) for name in end} for end in spec)
    return first, second
