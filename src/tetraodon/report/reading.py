"""What a report is made of: a manifest and the published files that it names, each checked against its digest.

Nothing else is read. A manifest comes from outside, so every key that a report uses is checked for its kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..editions import raised_lines
from ..errors import OutputError, SpecificationError
from ..exact import show
from ..people import People, people_from_spec
from ..zcdp import probability
from .audits import audit_of
from .choices import traded_of
from .document import (
    Account,
    Budget,
    Considered,
    Document,
    Editions,
    Entry,
    Microdata,
    Noise,
    PolicyText,
    RowRelease,
    Table,
)
from .keys import (
    amount,
    flag,
    items,
    mapping,
    number_or_none,
    real,
    share,
    take,
    text,
    texts,
    whole,
    whole_or_none,
)
from .known import public_counts
from .parts import contents_of, guarantee_of, loss_of, one_of, unit_of, witness_of
from .reading_microdata import microdata_of
from .reading_rows import rows_of
from .reading_shown import shown_of

FORMAT = 1
SETTLED = ("all", "some", "none")
WEIGHTED = "weighted records"


def read(manifest: Path) -> Document:
    """The manifest with its published files.

    Raises:
        OutputError: the manifest or a published file cannot be read, or a file is not the one that was published.
        SpecificationError: not a manifest of this format; the message names the key.
    """
    try:
        written = manifest.read_bytes().decode("utf-8")
    except OSError as error:
        raise OutputError(
            f"{manifest}: cannot be read ({error.strerror}); name the manifest.json of a release."
        ) from None
    except UnicodeDecodeError:
        raise SpecificationError(
            f"{manifest}: not UTF-8 text; name the manifest.json of a release."
        ) from None
    try:
        spec = json.loads(written)
    except (ValueError, RecursionError):
        raise SpecificationError(f"{manifest}: not JSON; name the manifest.json of a release.") from None
    place = manifest.name
    if not isinstance(spec, dict):
        raise SpecificationError(f"{place}: a JSON object.")
    if spec.get("format") != FORMAT:
        raise SpecificationError(f"{place}: format: this version reads manifests of format {FORMAT}.")
    data = mapping(spec, "data", place)
    policy = _policy(mapping(spec, "policy", place), f"{place}: policy")
    entries = tuple(
        _weighted(_release(entry, manifest.parent, f"{place}: releases[{i}]"), policy.step)
        for i, entry in enumerate(items(spec, "releases", place))
    )
    budget = _budget(mapping(spec, "budget", place), f"{place}: budget")
    if budget.unit == "epsilon" and any(entry.loss.unit == "rho" for entry in entries):
        raise SpecificationError(
            f"{place}: releases: a loss in rho, which an account in epsilon cannot hold."
        )
    versions = mapping(spec, "versions", place)
    return Document(
        name=text(data, "name", f"{place}: data"),
        edition=text(data, "edition", f"{place}: data"),
        records=whole_or_none(data, "records", f"{place}: data"),
        policy=policy,
        budget=budget,
        entries=entries,
        versions=tuple((name, text(versions, name, f"{place}: versions")) for name in versions),
    )


def _policy(spec: Mapping[str, Any], where: str) -> PolicyText:
    whole_spec = mapping(spec, "spec", where)
    domain = mapping(whole_spec, "domain", f"{where}.spec")
    for name in domain:
        mapping(domain, name, f"{where}.spec.domain")
    people = (
        people_from_spec(whole_spec["people"], f"{where}.spec.people") if "people" in whole_spec else People()
    )
    return PolicyText(
        hash=text(spec, "hash", where),
        domain=domain,
        headline=text(spec, "headline", where),
        protected=texts(spec, "protected", where),
        odds=texts(spec, "odds", where),
        disclosed=texts(spec, "disclosed", where),
        known=public_counts(whole_spec, f"{where}.spec"),
        people=texts(spec, "people", where),
        max_rows=people.max_rows,
        also=_also(whole_spec.get("presence"), people),
        step=None if people.weight is None else people.weight.step,
    )


def _also(presence: Any, people: People) -> tuple[str, ...]:
    """What is a secret of a person besides values."""
    told = ["whether somebody is in the table at all"] if presence == "secret" else []
    told += ["how many rows a person has"] if people.row_counts == "secret" else []
    return (*told, "what a record weighs") if people.weights_change else tuple(told)


def _budget(spec: Mapping[str, Any], where: str) -> Budget:
    unit, total, delta = unit_of(spec, where), amount(spec, "total", where), take(spec, "delta", where)
    if total <= 0:
        raise SpecificationError(f"{where}.total: must be above 0.")
    if (delta is not None) != (unit == "rho"):
        raise SpecificationError(f"{where}.delta: goes with rho, which needs one; epsilon has none.")
    return Budget(
        unit=unit,
        delta=None if delta is None else probability(text(spec, "delta", where), f"{where}.delta"),
        total=total,
        spent=amount(spec, "spent", where),
        elsewhere=amount(spec, "elsewhere", where),
        remaining=amount(spec, "remaining", where),
        accounts=tuple(_account(a, f"{where}.policies") for a in items(spec, "policies", where)),
        ledger=None if take(spec, "ledger", where) is None else text(spec, "ledger", where),
        head=text(spec, "head", where),
        outside=texts(spec, "outside", where),
        renews=_renews(take(spec, "renews", where), where),
        editions=_editions(spec, where),
        raises=_raises(spec, where),
    )


def _renews(told: object, where: str) -> bool:
    if told not in (None, "edition"):
        raise SpecificationError(f'{where}.renews: "edition", or null.')
    return told is not None


def _editions(spec: Mapping[str, Any], where: str) -> Editions:
    told, at = mapping(spec, "editions", where), f"{where}.editions"
    return Editions(whole(told, "number", at), amount(told, "this", at), amount(told, "together", at))


def _raises(spec: Mapping[str, Any], where: str) -> tuple[str, ...]:
    at = f"{where}.raises"
    found = []
    for each in items(spec, "raises", where):
        if not isinstance(each, Mapping):
            raise SpecificationError(f"{at}: tables.")
        told = {key: text(each, key, at) for key in ("time", "reason")}
        found.append(told | {key: show(amount(each, key, at)) for key in ("from", "to")})
    return tuple(raised_lines(found))


def _account(spec: Any, where: str) -> Account:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return Account(
        policy=text(spec, "policy", where),
        row=whole(spec, "row", where),
        is_union=flag(spec, "all_known_counts", where),
        is_tied=flag(spec, "moves_several_records", where),
        largest=amount(spec, "largest", where),
        by_secret=tuple(_secret(s, f"{where}.by_secret") for s in items(spec, "by_secret", where)),
    )


def _secret(spec: Any, where: str) -> tuple[str, Fraction]:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return text(spec, "secret", where), amount(spec, "loss", where)


def _release(spec: Any, folder: Path, where: str) -> Entry | RowRelease | Microdata:
    """An entry of answers, which has no key "kind", or one of rows or microdata."""
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    if "kind" not in spec:
        return _entry(spec, folder, where)
    if spec["kind"] not in ("rows", "microdata"):
        raise SpecificationError(
            f"{where}.kind: this version reads entries of rows and of microdata, and of answers without a kind."
        )
    return rows_of(spec, folder, where) if spec["kind"] == "rows" else microdata_of(spec, folder, where)


def _weighted(entry: Entry | RowRelease | Microdata, step: Fraction | None) -> Entry | RowRelease | Microdata:
    """An entry whose records weigh: what it counts is called so."""
    if step is None or not isinstance(entry, Entry):
        return entry
    return replace(entry, step=step, unit=WEIGHTED if entry.unit == "records" else entry.unit)


def _entry(spec: Mapping[str, Any], folder: Path, where: str) -> Entry:
    cost = mapping(spec, "cost", where)
    query = mapping(spec, "query", where)
    if not query:
        raise SpecificationError(f"{where}.query: empty.")
    files, contents = contents_of(mapping(spec, "files", where), folder, where)
    attributes = texts(spec, "attributes", where)
    how, suppressed, beside = shown_of(spec, attributes, where)
    guarantee, loss = guarantee_of(spec, where), loss_of(spec, where)
    if amount(cost, "value", f"{where}.cost") != loss.amount:
        raise SpecificationError(f"{where}.cost.value: another amount than what was spent.")
    settled = text(spec, "settled_by_known_counts", where)
    if settled not in SETTLED:
        raise SpecificationError(f"{where}.settled_by_known_counts: one of {', '.join(SETTLED)}.")
    return Entry(
        name=text(spec, "name", where),
        word=str(next(iter(query))),
        query=query,
        guarantee=guarantee,
        loss=loss,
        rule=text(cost, "rule", f"{where}.cost"),
        witness=witness_of(take(cost, "witness", f"{where}.cost"), f"{where}.cost.witness"),
        noise=tuple(_noise(row, f"{where}.noise") for row in items(spec, "noise", where)),
        expected_error=number_or_none(spec, "expected_error", where),
        half_width=number_or_none(spec, "half_width", where),
        coverage=share(spec, "coverage", where),
        workload=text(spec, "workload", where),
        unit=text(spec, "unit", where),
        rows=whole(spec, "rows", where),
        attributes=attributes,
        axis=None if take(spec, "axis", where) is None else text(spec, "axis", where),
        tables=tuple(_table(t, f"{where}.tables") for t in items(spec, "tables", where)),
        disclosed=texts(spec, "disclosed_exactly", where),
        settled=settled,
        mechanism=text(spec, "mechanism_name", where),
        considered=_considered(spec, where),
        chosen=_chosen(spec, where),
        ledger_row=whole(spec, "ledger_row", where),
        presentation=how,
        suppressed=suppressed,
        files=files,
        content=one_of(contents, where),
        quantiles=None if beside is None else (beside, one_of(contents, where, "quantiles.")),
        traded=traded_of(take(spec, "frontier", where), loss, f"{where}.frontier"),
        audit=audit_of(spec.get("audit"), f"{where}.audit"),
    )


def _considered(spec: Mapping[str, Any], where: str) -> tuple[Considered, ...]:
    rows, curves = items(spec, "considered", where), items(spec, "curve", where)
    if len(rows) != len(curves):
        raise SpecificationError(f"{where}.curve: one curve for every mechanism considered.")
    found = []
    for i, (row, curve) in enumerate(zip(rows, curves, strict=True)):
        at, along = f"{where}.considered[{i}]", f"{where}.curve[{i}]"
        if not isinstance(row, Mapping) or not isinstance(curve, Mapping):
            raise SpecificationError(f"{at}: a table.")
        mechanism = mapping(row, "mechanism", at)
        grid, widths = items(curve, "loss", along), items(curve, "half_width", along)
        if len(grid) != len(widths) or not mechanism:
            raise SpecificationError(f"{along}: as many half-widths as losses, and a mechanism.")
        found.append(
            Considered(
                name=text(row, "name", at),
                kind=str(next(iter(mechanism))),
                expected_error=number_or_none(row, "expected_error", at),
                half_width=number_or_none(row, "half_width", at),
                losses=tuple(real(e, f"{along}.loss") for e in grid),
                half_widths=tuple(None if h is None else real(h, f"{along}.half_width") for h in widths),
            )
        )
    return tuple(found)


def _chosen(spec: Mapping[str, Any], where: str) -> int:
    ran = mapping(spec, "mechanism", where)
    for i, row in enumerate(items(spec, "considered", where)):
        if row["mechanism"] == ran:
            return i
    raise SpecificationError(f"{where}.mechanism: not among those considered.")


def _table(spec: Any, where: str) -> Table:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return Table(
        attributes=texts(spec, "attributes", where),
        rows=whole(spec, "rows", where),
        axis=None if take(spec, "axis", where) is None else text(spec, "axis", where),
        expected_error=number_or_none(spec, "expected_error", where),
        half_width=number_or_none(spec, "half_width", where),
    )


def _noise(spec: Any, where: str) -> Noise:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    return Noise(text(spec, "rows", where), amount(spec, "scale", where), whole(spec, "number", where))
