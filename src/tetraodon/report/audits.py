"""What a report says of audits: releases that were put to the test on made-up tables before they were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..auditing.settings import figures
from ..errors import SpecificationError
from .document import AuditText
from .keys import amount, mapping, number_or_none, real, text, texts, whole
from .parts import unit_of
from .words import sentence


def audit_of(spec: Any, where: str) -> AuditText | None:
    """The audit that an entry of a manifest tells of; None if it was not put to the test.

    Raises:
        SpecificationError: names the key; an audit that contradicts its claim, which is never released.
    """
    if spec is None:
        return None
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    if text(spec, "guarantee", where) != "measured":
        raise SpecificationError(f"{where}.guarantee: an audit is measured.")
    if spec.get("contradicted") is not False:
        raise SpecificationError(f"{where}.contradicted: no release whose claim is contradicted is made.")
    claim = mapping(spec, "claim", where)
    unit_of(claim, f"{where}.claim")
    amount(claim, "amount", f"{where}.claim")
    for key in ("at_least", "error"):
        real(spec.get(key), f"{where}.{key}")
    for key in ("draws", "pairs"):
        whole(spec, key, where)
    for key in ("exact", "resolution"):
        number_or_none(spec, key, where)
    text(spec, "change", where)
    texts(spec, "notes", where)
    return AuditText(tuple(figures(spec)), text(spec, "verdict", where))


def audit_words(told: AuditText) -> str:
    """An audit as HTML."""
    lines = "".join(f"<li>{sentence(line)}</li>" for line in told.figures)
    return (
        f"<b>Measured</b>, on made-up neighbouring tables: {sentence(told.verdict)} It can contradict the claim, and proves nothing."
        f"<ul>{lines}</ul>"
    )
