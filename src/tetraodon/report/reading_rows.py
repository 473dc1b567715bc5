"""Entries of kind "rows" of a manifest: rows that went out with values replaced through channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import SpecificationError
from .audits import audit_of
from .document import Attack, ChannelEvidence, ChannelText, File, Line, Optimum, Origin, RowRelease
from .keys import amount, flag, is_finite, items, mapping, number_or_none, real, take, text, texts, whole
from .parts import files_of, guarantee_of, loss_of, witness_of

SOURCES = ("none", "public", "disjoint", "released", "private")
OVER = 1e-6  # what rounding may have added to a sum, or taken off a difference


def rows_of(spec: Mapping[str, Any], folder: Path, where: str) -> RowRelease:
    """One release of rows.

    Raises:
        OutputError: a published file cannot be read, or is not the one that was published.
        SpecificationError: names the key.
    """
    cost = mapping(spec, "cost", where)
    files, content = files_of(mapping(spec, "files", where), folder, where)
    attributes, kept = texts(spec, "attributes", where), texts(spec, "kept", where)
    channels = tuple(
        _channel(c, attributes, files, f"{where}.channels[{i}]")
        for i, c in enumerate(items(spec, "channels", where))
    )
    guarantee = guarantee_of(spec, where)
    if guarantee == "proved" and any(channel.is_private for channel in channels):
        raise SpecificationError(
            f"{where}.guarantee: nothing is proved of a release through a channel that private rows shaped."
        )
    if not channels:
        raise SpecificationError(f"{where}.channels: at least one.")
    return RowRelease(
        name=text(spec, "name", where),
        guarantee=guarantee,
        loss=loss_of(spec, where),
        rule=text(cost, "rule", f"{where}.cost"),
        witness=witness_of(take(cost, "witness", f"{where}.cost"), f"{where}.cost.witness"),
        mechanism=text(spec, "mechanism_name", where),
        rows=whole(spec, "rows", where),
        attributes=attributes,
        kept=kept,
        disclosed=texts(spec, "disclosed_exactly", where),
        per_person=_per_person(take(spec, "per_person", where), f"{where}.per_person"),
        permanent=_permanent(take(spec, "permanent", where), f"{where}.permanent"),
        ledger_row=whole(spec, "ledger_row", where),
        files=files,
        content=content,
        channels=channels,
        audit=audit_of(spec.get("audit"), f"{where}.audit"),
    )


def _per_person(spec: Any, where: str) -> str | None:
    return None if spec is None else text(_table(spec, where), "text", where)


def _permanent(spec: Any, where: str) -> tuple[str, str] | None:
    return None if spec is None else (text(_table(spec, where), "id", where), text(spec, "epoch", where))


def _channel(spec: Any, published: tuple[str, ...], files: tuple[File, ...], where: str) -> ChannelText:
    _table(spec, where)
    columns = texts(spec, "columns", where)
    if not columns or not set(columns) <= set(published):
        raise SpecificationError(f"{where}.columns: published columns of the release.")
    names = texts(spec, "attributes", where)
    if not names:
        raise SpecificationError(f"{where}.attributes: at least one.")
    source, is_private = text(spec, "source", where), flag(spec, "private", where)
    if source not in SOURCES:
        raise SpecificationError(f"{where}.source: one of {', '.join(SOURCES)}.")
    if is_private != (source == "private"):
        raise SpecificationError(f"{where}.private: true for the source 'private', and for no other.")
    file = _text_or_none(spec, "file", where)
    if file is not None and file not in [f.path for f in files]:
        raise SpecificationError(f"{where}.file: one of the files of the release.")
    cells = whole(spec, "cells", where)
    evidence = take(spec, "evidence", where)
    return ChannelText(
        attributes=names,
        columns=columns,
        kind=text(spec, "kind", where),
        name=text(spec, "name", where),
        asked=_asked(take(spec, "asked", where), f"{where}.asked"),
        realised=number_or_none(spec, "realised", where),
        source=source,
        is_private=is_private,
        cells=cells,
        shape=_shape(take(spec, "shape", where), f"{where}.shape"),
        unit=_text_or_none(spec, "unit", where) or "",
        file=file,
        evidence=None
        if evidence is None
        else _evidence(_table(evidence, f"{where}.evidence"), cells, f"{where}.evidence"),
    )


def _asked(spec: Any, where: str) -> tuple[Any, str | None] | None:
    if spec is None:
        return None
    return amount(_table(spec, where), "epsilon", where), _text_or_none(spec, "per", where)


def _shape(spec: Any, where: str) -> tuple[int, int] | None:
    if spec is None:
        return None
    fits = isinstance(spec, Sequence) and len(spec) == 2 and all(type(n) is int and n > 0 for n in spec)
    if not fits:
        raise SpecificationError(f"{where}: two whole numbers above 0, rows and columns.")
    return spec[0], spec[1]


def _evidence(spec: Mapping[str, Any], cells: int, where: str) -> ChannelEvidence:
    leakage, certificate = take(spec, "leakage", where), take(spec, "certificate", where)
    return ChannelEvidence(
        prior=text(spec, "prior", where),
        distortion=number_or_none(spec, "distortion", where),
        used_outputs=whole(spec, "used_outputs", where),
        attack=None if leakage is None else _attack(_table(leakage, f"{where}.leakage"), f"{where}.leakage"),
        optimum=None
        if certificate is None
        else _optimum(_table(certificate, f"{where}.certificate"), f"{where}.certificate"),
        words=texts(spec, "words", where),
        curve=tuple(line_of(c, f"{where}.curve[{i}]") for i, c in enumerate(items(spec, "curve", where))),
        rows=tuple(_origin(r, cells, f"{where}.rows[{i}]") for i, r in enumerate(items(spec, "rows", where))),
    )


def _attack(spec: Mapping[str, Any], where: str) -> Attack:
    return Attack(
        secret=text(spec, "secret", where),
        bits=_amount(spec, "bits", where),
        prior_bits=_amount(spec, "prior_bits", where),
        plain_bits=_amount(spec, "plain_bits", where),
        bayes_error=_error(spec, "bayes_error", where),
        guessing_error=_error(spec, "guessing_error", where),
        plain_error=_error(spec, "plain_error", where),
        secrets=whole(spec, "secrets", where),
    )


def _optimum(spec: Mapping[str, Any], where: str) -> Optimum:
    bound = take(spec, "bound", where)
    return Optimum(
        kind=text(spec, "kind", where),
        value=_real(spec, "value", where),
        bound=None if bound is None else signed(bound, f"{where}.bound"),
        unit=text(spec, "unit", where),
        gap=number_or_none(spec, "gap", where),
    )


def line_of(spec: Any, where: str) -> Line:
    """Leakage along distances."""
    _table(spec, where)
    distortion, leakage = _reals(spec, "distortion", where), _reals(spec, "leakage", where)
    told = take(spec, "bound", where)
    bound = None if told is None else tuple(signed(v, f"{where}.bound") for v in items(spec, "bound", where))
    if len(leakage) != len(distortion) or len(bound or distortion) != len(distortion):
        raise SpecificationError(f"{where}.leakage: as many numbers as distortion and bound have.")
    return Line(text(spec, "name", where), distortion, leakage, bound)


def _origin(spec: Any, cells: int, where: str) -> Origin:
    _table(spec, where)
    outputs, cell = items(spec, "outputs", where), whole(spec, "cell", where)
    pairs = []
    for pair in outputs:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or type(pair[0]) is not int
            or not 0 <= pair[0] < cells
        ):
            raise SpecificationError(f"{where}.outputs: pairs of a cell and its probability.")
        pairs.append((pair[0], real(pair[1], f"{where}.outputs")))
    if cell >= cells:
        raise SpecificationError(f"{where}.cell: a cell of the channel.")
    if not pairs or sum(p for _, p in pairs) > 1 + OVER:
        raise SpecificationError(f"{where}.outputs: probabilities that add up to 1 at most.")
    return Origin(cell, text(spec, "label", where), tuple(pairs))


def _table(spec: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    return spec


def _text_or_none(spec: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if take(spec, key, where) is None else text(spec, key, where)


def _real(spec: Mapping[str, Any], key: str, where: str) -> float:
    return real(take(spec, key, where), f"{where}.{key}")


def signed(found: Any, where: str) -> float:
    """A lower bound of something that is not negative, which may lie below 0 itself."""
    if not is_finite(found):
        raise SpecificationError(f"{where}: a finite number.")
    return float(found)


def _reals(spec: Mapping[str, Any], key: str, where: str) -> tuple[float, ...]:
    return tuple(real(value, f"{where}.{key}") for value in items(spec, key, where))


def _error(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A share of guesses."""
    found = _amount(spec, key, where)
    if found > 1 + OVER:
        raise SpecificationError(f"{where}.{key}: between 0 and 1.")
    return min(found, 1.0)


def _amount(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A number of at least 0, which rounding may have put just below."""
    found = signed(take(spec, key, where), f"{where}.{key}")
    if found < -OVER:
        raise SpecificationError(f"{where}.{key}: a finite number of at least 0.")
    return max(found, 0.0)
