"""What a report is made of: a manifest and the published files that it names, each checked against its digest.

Nothing else is read. A manifest comes from outside, so every key that a report uses is checked for its kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import OutputError, SpecificationError
from ..exact import exact

FORMAT = 1
GUARANTEES = ("proved", "certified", "measured")


@dataclass(frozen=True)
class Noise:
    """Rows of one kind in every group, with their exact noise scale."""

    rows: str
    scale: Fraction
    number: int


@dataclass(frozen=True)
class Table:
    """One of several tables of a release.

    Attributes:
        attributes: its columns beside the numbers.
        rows: its number of rows.
        axis: the attribute along which it reads, if any has an order.
        expected_error, half_width: of one of its numbers.
    """

    attributes: tuple[str, ...]
    rows: int
    axis: str | None
    expected_error: float | None
    half_width: float | None


@dataclass(frozen=True)
class Considered:
    """One mechanism that was priced, with its error at the ε of the release and along a grid of ε."""

    name: str
    kind: str
    expected_error: float | None
    half_width: float | None
    epsilons: tuple[float, ...]
    half_widths: tuple[float | None, ...]


@dataclass(frozen=True)
class File:
    """A published file: format, name beside the manifest, digest."""

    form: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One release as its manifest tells it (keys as in the manifest).

    Attributes:
        word, query: which query, and its whole specification.
        epsilon: exact cost.
        witness: two values of one record that attain the cost; None if nothing moves.
        mechanism: name of the one that ran.
        considered: every mechanism that was priced, best first.
        chosen: index of the one that ran among them.
        tables: the tables that the file holds one below the other (``Marginals``); none where it is one table.
        content: bytes of one published file, as digested.
    """

    name: str
    word: str
    query: Mapping[str, Any]
    guarantee: str
    epsilon: Fraction
    rule: str
    witness: tuple[Mapping[str, str], Mapping[str, str]] | None
    noise: tuple[Noise, ...]
    expected_error: float | None
    half_width: float | None
    coverage: float
    workload: str
    unit: str
    rows: int
    attributes: tuple[str, ...]
    axis: str | None
    tables: tuple[Table, ...]
    disclosed: tuple[str, ...]
    mechanism: str
    considered: tuple[Considered, ...]
    chosen: int
    ledger_row: int
    files: tuple[File, ...]
    content: tuple[str, bytes]


@dataclass(frozen=True)
class PolicyText:
    """The policy in words, with its hash and specification."""

    hash: str
    domain: Mapping[str, Mapping[str, Any]]
    headline: str
    protected: tuple[str, ...]
    odds: tuple[str, ...]
    disclosed: tuple[str, ...]


@dataclass(frozen=True)
class Budget:
    """The account: exact ε, and everything that went out beside it."""

    total: Fraction
    spent: Fraction
    remaining: Fraction
    ledger: str | None
    head: str
    outside: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A whole manifest."""

    name: str
    edition: str
    records: int | None
    policy: PolicyText
    budget: Budget
    entries: tuple[Entry, ...]
    versions: tuple[tuple[str, str], ...]


def read(manifest: Path) -> Document:
    """The manifest with its published files.

    Raises:
        OutputError: the manifest or a published file cannot be read, or a file is not the one that was published.
        SpecificationError: not a manifest of this format; the message names the key.
    """
    try:
        text = manifest.read_bytes().decode("utf-8")
    except OSError as error:
        raise OutputError(
            f"{manifest}: cannot be read ({error.strerror}); name the manifest.json of a release."
        ) from None
    except UnicodeDecodeError:
        raise SpecificationError(
            f"{manifest}: not UTF-8 text; name the manifest.json of a release."
        ) from None
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        raise SpecificationError(f"{manifest}: not JSON; name the manifest.json of a release.") from None
    place = manifest.name
    if not isinstance(spec, dict):
        raise SpecificationError(f"{place}: a JSON object.")
    if spec.get("format") != FORMAT:
        raise SpecificationError(f"{place}: format: this version reads manifests of format {FORMAT}.")
    data = _mapping(spec, "data", place)
    entries = tuple(
        _entry(entry, manifest.parent, f"{place}: releases[{i}]")
        for i, entry in enumerate(_list(spec, "releases", place))
    )
    versions = _mapping(spec, "versions", place)
    return Document(
        name=_text(data, "name", f"{place}: data"),
        edition=_text(data, "edition", f"{place}: data"),
        records=_whole_or_none(data, "records", f"{place}: data"),
        policy=_policy(_mapping(spec, "policy", place), f"{place}: policy"),
        budget=_budget(_mapping(spec, "budget", place), f"{place}: budget"),
        entries=entries,
        versions=tuple((name, _text(versions, name, f"{place}: versions")) for name in versions),
    )


def _policy(spec: Mapping[str, Any], where: str) -> PolicyText:
    domain = _mapping(_mapping(spec, "spec", where), "domain", f"{where}.spec")
    for name in domain:
        _mapping(domain, name, f"{where}.spec.domain")
    return PolicyText(
        hash=_text(spec, "hash", where),
        domain=domain,
        headline=_text(spec, "headline", where),
        protected=_texts(spec, "protected", where),
        odds=_texts(spec, "odds", where),
        disclosed=_texts(spec, "disclosed", where),
    )


def _budget(spec: Mapping[str, Any], where: str) -> Budget:
    if spec.get("unit") != "epsilon":
        raise SpecificationError(f"{where}.unit: this version reports budgets in epsilon.")
    total = _exact(spec, "total", where)
    if total <= 0:
        raise SpecificationError(f"{where}.total: must be above 0.")
    return Budget(
        total=total,
        spent=_exact(spec, "spent", where),
        remaining=_exact(spec, "remaining", where),
        ledger=None if _take(spec, "ledger", where) is None else _text(spec, "ledger", where),
        head=_text(spec, "head", where),
        outside=_texts(spec, "outside", where),
    )


def _entry(spec: Any, folder: Path, where: str) -> Entry:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    cost = _mapping(spec, "cost", where)
    query = _mapping(spec, "query", where)
    if not query:
        raise SpecificationError(f"{where}.query: empty.")
    files, content = _files(_mapping(spec, "files", where), folder, where)
    guarantee = _text(spec, "guarantee", where)
    if guarantee not in GUARANTEES:
        raise SpecificationError(f"{where}.guarantee: one of {', '.join(GUARANTEES)}.")
    return Entry(
        name=_text(spec, "name", where),
        word=str(next(iter(query))),
        query=query,
        guarantee=guarantee,
        epsilon=_exact(cost, "value", f"{where}.cost"),
        rule=_text(cost, "rule", f"{where}.cost"),
        witness=_witness(_take(cost, "witness", f"{where}.cost"), f"{where}.cost.witness"),
        noise=tuple(_noise(row, f"{where}.noise") for row in _list(spec, "noise", where)),
        expected_error=_number_or_none(spec, "expected_error", where),
        half_width=_number_or_none(spec, "half_width", where),
        coverage=_share(spec, "coverage", where),
        workload=_text(spec, "workload", where),
        unit=_text(spec, "unit", where),
        rows=_whole(spec, "rows", where),
        attributes=_texts(spec, "attributes", where),
        axis=None if _take(spec, "axis", where) is None else _text(spec, "axis", where),
        tables=tuple(_table(t, f"{where}.tables") for t in _list(spec, "tables", where)),
        disclosed=_texts(spec, "disclosed_exactly", where),
        mechanism=_text(spec, "mechanism_name", where),
        considered=_considered(spec, where),
        chosen=_chosen(spec, where),
        ledger_row=_whole(spec, "ledger_row", where),
        files=files,
        content=content,
    )


def _files(spec: Mapping[str, Any], folder: Path, where: str) -> tuple[tuple[File, ...], tuple[str, bytes]]:
    """Every published file, checked, and the content of one (Parquet before CSV: it keeps types)."""
    listed: list[File] = []
    contents: dict[str, bytes] = {}
    for form in spec:
        told = _mapping(spec, form, f"{where}.files")
        file = File(
            form, _text(told, "path", f"{where}.files.{form}"), _text(told, "sha256", f"{where}.files.{form}")
        )
        if file.path in ("", ".", "..") or set(file.path) & {"/", "\\", ":", "\0"}:
            raise SpecificationError(f"{where}.files.{form}.path: the name of a file beside the manifest.")
        try:
            content = (folder / file.path).read_bytes()
        except OSError as error:
            raise OutputError(f"{file.path}: the published file cannot be read ({error.strerror}).") from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise OutputError(
                f"{file.path}: its sha256 is not the one in the manifest, so it is not the file that was published; "
                "restore that file or release again."
            )
        listed.append(file)
        contents[form] = content
    for form in ("parquet", "csv"):
        if form in contents:
            return tuple(listed), (form, contents[form])
    raise SpecificationError(f"{where}.files: a parquet or csv file.")


def _considered(spec: Mapping[str, Any], where: str) -> tuple[Considered, ...]:
    rows, curves = _list(spec, "considered", where), _list(spec, "curve", where)
    if len(rows) != len(curves):
        raise SpecificationError(f"{where}.curve: one curve for every mechanism considered.")
    found = []
    for i, (row, curve) in enumerate(zip(rows, curves, strict=True)):
        at, along = f"{where}.considered[{i}]", f"{where}.curve[{i}]"
        if not isinstance(row, Mapping) or not isinstance(curve, Mapping):
            raise SpecificationError(f"{at}: a table.")
        mechanism = _mapping(row, "mechanism", at)
        grid, widths = _list(curve, "epsilon", along), _list(curve, "half_width", along)
        if len(grid) != len(widths) or not mechanism:
            raise SpecificationError(f"{along}: as many half-widths as values of epsilon, and a mechanism.")
        found.append(
            Considered(
                name=_text(row, "name", at),
                kind=str(next(iter(mechanism))),
                expected_error=_number_or_none(row, "expected_error", at),
                half_width=_number_or_none(row, "half_width", at),
                epsilons=tuple(_real(e, f"{along}.epsilon") for e in grid),
                half_widths=tuple(None if h is None else _real(h, f"{along}.half_width") for h in widths),
            )
        )
    return tuple(found)


def _chosen(spec: Mapping[str, Any], where: str) -> int:
    ran = _mapping(spec, "mechanism", where)
    for i, row in enumerate(_list(spec, "considered", where)):
        if row["mechanism"] == ran:
            return i
    raise SpecificationError(f"{where}.mechanism: not among those considered.")


def _table(spec: Any, where: str) -> Table:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return Table(
        attributes=_texts(spec, "attributes", where),
        rows=_whole(spec, "rows", where),
        axis=None if _take(spec, "axis", where) is None else _text(spec, "axis", where),
        expected_error=_number_or_none(spec, "expected_error", where),
        half_width=_number_or_none(spec, "half_width", where),
    )


def _noise(spec: Any, where: str) -> Noise:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return Noise(_text(spec, "rows", where), _exact(spec, "scale", where), _whole(spec, "number", where))


def _witness(spec: Any, where: str) -> tuple[Mapping[str, str], Mapping[str, str]] | None:
    if spec is None:
        return None
    fits = isinstance(spec, Sequence) and len(spec) == 2 and all(isinstance(end, Mapping) for end in spec)
    if not fits or set(spec[0]) != set(spec[1]):
        raise SpecificationError(f"{where}: two values of the same attributes.")
    first, second = ({name: _text(end, name, where) for name in end} for end in spec)
    return first, second


def _take(spec: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in spec:
        raise SpecificationError(f"{where}.{key}: required.")
    return spec[key]


def _mapping(spec: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = _take(spec, key, where)
    if not isinstance(found, Mapping):
        raise SpecificationError(f"{where}.{key}: a table.")
    return found


def _list(spec: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = _take(spec, key, where)
    if not isinstance(found, list):
        raise SpecificationError(f"{where}.{key}: a list.")
    return found


def _text(spec: Mapping[str, Any], key: str, where: str) -> str:
    found = _take(spec, key, where)
    if not isinstance(found, str):
        raise SpecificationError(f"{where}.{key}: a text.")
    return found


def _texts(spec: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = _list(spec, key, where)
    if not all(isinstance(item, str) for item in found):
        raise SpecificationError(f"{where}.{key}: a list of texts.")
    return tuple(found)


def _whole(spec: Mapping[str, Any], key: str, where: str) -> int:
    found = _take(spec, key, where)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise SpecificationError(f"{where}.{key}: a whole number of at least 0.")
    return found


def _whole_or_none(spec: Mapping[str, Any], key: str, where: str) -> int | None:
    return None if _take(spec, key, where) is None else _whole(spec, key, where)


def _real(found: Any, where: str) -> float:
    """A finite number that is not negative: all that a manifest holds are."""
    fits = isinstance(found, int | float) and not isinstance(found, bool)
    if not fits or not 0 <= found < float("inf"):
        raise SpecificationError(f"{where}: a finite number of at least 0.")
    return float(found)


def _number_or_none(spec: Mapping[str, Any], key: str, where: str) -> float | None:
    found = _take(spec, key, where)
    return None if found is None else _real(found, f"{where}.{key}")


def _share(spec: Mapping[str, Any], key: str, where: str) -> float:
    found = _real(_take(spec, key, where), f"{where}.{key}")
    if not 0 < found < 1:
        raise SpecificationError(f"{where}.{key}: between 0 and 1.")
    return found


def _exact(spec: Mapping[str, Any], key: str, where: str) -> Fraction:
    found = exact(_text(spec, key, where), f"{where}.{key}")
    if found < 0:
        raise SpecificationError(f"{where}.{key}: not negative.")
    return found
