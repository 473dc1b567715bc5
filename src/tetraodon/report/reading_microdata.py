"""Entries of kind "microdata" of a manifest: whole rows that went out generalised and exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import SpecificationError
from .document import Generalised, Microdata
from .keys import items, mapping, take, text, texts, whole
from .parts import files_of, guarantee_of, loss_of


def microdata_of(spec: Mapping[str, Any], folder: Path, where: str) -> Microdata:
    """One release of microdata.

    Raises:
        OutputError: a published file cannot be read, or is not the one that was published.
        SpecificationError: names the key.
    """
    files, content = files_of(mapping(spec, "files", where), folder, where)
    guarantee, rows = guarantee_of(spec, where), whole(spec, "rows", where)
    if guarantee == "proved":
        raise SpecificationError(
            f"{where}.guarantee: nothing is proved of rows that are fitted on themselves."
        )
    attributes, private = texts(spec, "attributes", where), texts(spec, "private", where)
    groups = tuple(
        _column(c, rows, f"{where}.groups[{i}]") for i, c in enumerate(items(spec, "groups", where))
    )
    if not private or [g.column for g in groups] != list(private):
        raise SpecificationError(f"{where}.groups: one list for each private column, in their order.")
    exchanged = texts(spec, "exchanged", where)
    quasi = texts(spec, "quasi_identifiers", where)
    if not {*private, *exchanged, *quasi} <= set(attributes):
        raise SpecificationError(f"{where}.attributes: every private, exchanged and class column.")
    evidence = take(spec, "evidence", where)
    if evidence is not None and not isinstance(evidence, Mapping):
        raise SpecificationError(f"{where}.evidence: a table, or nothing.")
    return Microdata(
        name=text(spec, "name", where),
        guarantee=guarantee,
        loss=loss_of(spec, where),
        mechanism=text(spec, "mechanism_name", where),
        rows=rows,
        attributes=attributes,
        exchanged=exchanged,
        quasi_identifiers=quasi,
        groups=groups,
        requirements=mapping(spec, "requirements", where),
        disclosed=texts(spec, "disclosed_exactly", where),
        words=None if evidence is None else texts(evidence, "words", f"{where}.evidence"),
        evidence=evidence,
        ledger_row=whole(spec, "ledger_row", where),
        files=files,
        content=content,
    )


def _column(spec: Any, rows: int, where: str) -> Generalised:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    groups = []
    for i, group in enumerate(items(spec, "groups", where)):
        if not isinstance(group, Mapping):
            raise SpecificationError(f"{where}.groups[{i}]: a table.")
        groups.append(
            (text(group, "label", f"{where}.groups[{i}]"), whole(group, "rows", f"{where}.groups[{i}]"))
        )
    if sum(n for _, n in groups) != rows:
        raise SpecificationError(f"{where}.groups: rows that add up to those of the release.")
    return Generalised(text(spec, "column", where), tuple(groups))
