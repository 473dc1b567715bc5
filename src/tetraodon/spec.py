"""release.toml → the objects. Every error names the file, the key and the fix, and shows no data value.

pydantic checks the outer document; ``from_spec`` of each class reads what is inside, so there is one truth per class.
Numbers are read exactly.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binding import secrets_from_spec
from .constraints import Constraint, answers_file, constraint_from_spec
from .domain import Domain
from .errors import SpecificationError, Unsupported, unknown
from .exact import positive
from .loss import UNITS, Loss
from .mechanisms import mechanism_from_spec
from .policy import Policy
from .pricing import check
from .publish import FORMATS, file_name
from .queries import query_from_spec
from .reading import kind_of, listed, under
from .session import Request, Session, release_loss
from .table import Table

if TYPE_CHECKING:
    from pydantic import ValidationError

# Bytes, with room for what is added to the name of a ledger while it is written.
MAX_NAME = 240
MAX_PATH = 3800

# Keys of the design that this version refuses by name.
LATER = {
    "data": (
        "sql",
        "where",
        "id",
        "max_rows_per_id",
        "keep_by",
        "row_counts",
        "weight",
        "weight_bounds",
        "renews",
    ),
    "policy": ("exempt",),
    "releases": ("rows", "keep", "channel", "guarantee", "hybrid"),
    "releases.present": ("interval", "round_to", "suppress_below", "totals"),
}


@dataclass(frozen=True, eq=False)
class Document:
    """A settings file, read and checked; no data has been opened.

    Attributes:
        path: of the file; relative paths in it start from its folder.
        policy: with its domain.
        total: the budget.
        delta: of a budget in ρ, where it is stated.
        ledger: path of the ledger, None for an account in memory.
        requests: the releases, in order.
        formats: file formats of each release, by name.
    """

    path: Path
    policy: Policy
    total: Loss
    delta: Fraction | None
    ledger: Path | None
    requests: tuple[Request, ...]
    formats: Mapping[str, tuple[str, ...]]
    source: Mapping[str, Any]

    def table(self) -> Table:
        """Open the data (read-only).

        Raises:
            DataError: a missing file or column, or a column that cannot hold its attribute.
        """
        told = dict(self.source)
        source = str(told.pop("source"))
        where = source if "://" in source else self.path.parent / source
        return Table(where, self.policy.domain, **told)

    def session(self) -> Session:
        """The table under the policy, with the file's ledger."""
        total = {self.total.unit: self.total.amount}
        return Session(self.table(), self.policy, ledger=self.ledger, delta=self.delta, **total)


def load(path: Path) -> Document:
    """Read a settings file.

    Raises:
        SpecificationError: with file, key and fix.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecificationError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SpecificationError(f"{path}: is not UTF-8 text.") from None
    try:
        raw = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError(f"{path.name}: not valid TOML: {error}.") from None
    with _in_file(path.name):
        _refuse_later(raw)
        outer = _outer(raw)
        with _at("domain"):
            domain = Domain.from_spec(outer["domain"], path.parent)
        secrets = secrets_from_spec(outer["policy"]["secrets"])
        with _at("policy"):
            policy = Policy(
                domain,
                secrets,
                _constraints(outer["policy"]["constraint"], path.parent),
                outer["policy"]["presence"],
            )
        requests, formats = [], {}
        for i, told in enumerate(outer["release"]):
            with _at(_release(told, i)):
                requests.append(_request(told))
                check(requests[-1].query, domain)  # so that a wrong attribute is named with its key
                formats[told["name"]] = _formats(told.get("present") or {})
        names = [r.name for r in requests]
        for name in names:
            if names.count(name) > 1:
                raise SpecificationError(f"releases.{name}: two releases have this name.")
        budget, ledger = outer["budget"], outer["budget"].get("ledger")
        total = _loss(budget, "budget.")
        delta = None if budget["delta"] is None else positive(budget["delta"], "budget.delta")
        if delta is not None and (total.unit != "rho" or delta >= 1):
            raise SpecificationError(
                "budget.delta: below 1, and beside rho alone; a budget in epsilon has none."
            )
        if total.unit == "rho" and delta is None:
            raise SpecificationError(
                "budget.delta: is missing; a budget in rho states one, such as 0.000001."
            )
        for request in requests:
            if request.loss.unit == "rho" and total.unit == "epsilon":
                raise SpecificationError(
                    f"releases.{request.name}.rho: the budget is in epsilon, which Gaussian noise has none of; "
                    "state budget.rho and budget.delta instead."
                )
        data = {k: v for k, v in outer["data"].items() if v is not None}
        if "://" not in data["source"]:
            _check_path(data["source"], path.parent, "data.source")
        if ledger is not None:
            _check_path(ledger, path.parent, "budget.ledger")
    return Document(
        path,
        policy,
        total,
        delta,
        None if ledger is None else path.parent / ledger,
        tuple(requests),
        formats,
        data,
    )


@contextmanager
def _in_file(name: str) -> Iterator[None]:
    try:
        yield
    except SpecificationError as error:
        raise type(error)(f"{name}: {error}") from None


@contextmanager
def _at(key: str) -> Iterator[None]:
    """Prefix an error with its key, unless it starts with it already."""
    try:
        yield
    except SpecificationError as error:
        text = str(error)
        raise type(error)(text if text.startswith(key) else f"{key}.{text}") from None


def _check_path(told: str, folder: Path, key: str) -> None:
    """Refuse what no file can be called; looks at the length of names alone."""
    parts = Path(told).parts
    if not parts or "\0" in told:
        raise SpecificationError(f"{key}: the path of a file, not empty and without null characters.")
    long = any(len(os.fsencode(part)) > MAX_NAME for part in parts)
    if long or len(os.fsencode(folder.absolute() / told)) > MAX_PATH:
        raise SpecificationError(
            f"{key}: too long for the path of a file; at most {MAX_NAME} bytes a name and {MAX_PATH} in all."
        )


def _loss(told: Mapping[str, Any], prefix: str = "") -> Loss:
    """epsilon or rho, one of them."""
    given = [unit for unit in UNITS if told[unit] is not None]
    if len(given) == 2:
        raise SpecificationError(
            f"{prefix}rho: beside epsilon; state one of them (rho is for Gaussian noise)."
        )
    if not given:
        raise SpecificationError(f"{prefix}epsilon: is missing; add it (or rho, for Gaussian noise).")
    return Loss(given[0], positive(told[given[0]], f"{prefix}{given[0]}"))


def _constraints(told: Sequence[Mapping[str, Any]], folder: Path) -> list[Constraint]:
    """[[policy.constraint]] tables; answers may lie in a CSV file."""
    found = []
    for i, one in enumerate(told):
        where, spec = f"constraint.{i + 1}", dict(one)
        answers = spec.get("answers")
        if isinstance(answers, str):
            _check_path(answers, folder, f"policy.{where}.answers")
            names = listed(spec.get("marginal"), f"{where}.marginal", "a list of attributes")
            spec["answers"] = answers_file(folder / answers, names, f"{where}.answers")
        found.append(constraint_from_spec(spec, where))
    return found


def _request(told: Mapping[str, Any]) -> Request:
    with under("name"):
        file_name(told["name"])
    query = query_from_spec(told["query"])
    mechanism = told.get("mechanism", "auto")
    chosen = None if mechanism == "auto" else mechanism_from_spec(mechanism)
    loss = _loss(told)
    return Request(query, release_loss(loss.unit, loss.amount, loss.unit), told["name"], chosen)


def _formats(present: Mapping[str, Any]) -> tuple[str, ...]:
    for key in present:
        if key != "format":
            raise unknown("present", "key", key, ["format"])
    told = present.get("format", ["parquet", "csv"])
    expected = "a list of formats"
    formats = (told,) if isinstance(told, str) else tuple(listed(told, "present.format", expected))
    for form in formats:
        if not isinstance(form, str):
            raise SpecificationError(f"present.format: expected texts, got {kind_of(form)}.")
        if form not in FORMATS:
            raise unknown("present.format", "format", form, FORMATS)
    if not formats:
        raise SpecificationError("present.format: at least one of parquet, csv.")
    return formats


def _refuse_later(raw: Mapping[str, Any]) -> None:
    """Keys of the design that are not available yet are refused by name, not as unknown."""
    places: list[tuple[str, Any, tuple[str, ...]]] = [
        (part, raw.get(part), LATER[part]) for part in ("data", "policy")
    ]
    releases = raw.get("release")
    for i, told in enumerate(releases if isinstance(releases, list) else []):
        if isinstance(told, Mapping):
            name = _release(told, i)
            places += [
                (name, told, LATER["releases"]),
                (f"{name}.present", told.get("present"), LATER["releases.present"]),
            ]
    for place, told, later in places:
        for key in told if isinstance(told, Mapping) else ():
            if key in later:
                raise Unsupported(f"{place}.{key}: not available in this version; leave it out.")


def _outer(raw: Mapping[str, Any]) -> dict[str, Any]:
    from pydantic import BaseModel, ConfigDict, Field, ValidationError

    class Part(BaseModel):
        model_config = ConfigDict(
            extra="forbid", strict=True, hide_input_in_errors=True, arbitrary_types_allowed=True
        )

    class Data(Part):
        source: str
        name: str | None = None
        edition: str = ""
        table: str | None = None
        null: list[str] = Field(default_factory=list)

    class Rules(Part):
        secrets: str | dict[str, Any]
        presence: str = "public"
        constraint: list[dict[str, Any]] = Field(default_factory=list)

    class Budget(Part):
        epsilon: str | int | Decimal | None = None
        rho: str | int | Decimal | None = None
        delta: str | int | Decimal | None = None
        ledger: str | None = None

    class Released(Part):
        name: str
        epsilon: str | int | Decimal | None = None
        rho: str | int | Decimal | None = None
        query: dict[str, Any]
        mechanism: str | dict[str, Any] = "auto"
        present: dict[str, Any] | None = None

    class Outer(Part):
        data: Data
        domain: dict[str, dict[str, Any]]
        policy: Rules
        budget: Budget
        release: list[Released] = Field(min_length=1)

    try:
        return Outer.model_validate(raw).model_dump()
    except ValidationError as error:
        raise _translated(error, Outer, raw) from None


def _translated(error: ValidationError, outer: Any, raw: Mapping[str, Any]) -> SpecificationError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    path, given = _walk(first["loc"], raw, first["type"] == "missing")
    key = _key(path, raw)
    if first["type"] == "extra_forbidden":
        model: Any = outer
        for step in path[:-1]:
            inner = model.model_fields.get(step)
            if inner is not None:
                kind = inner.annotation
                model = getattr(kind, "__args__", (kind,))[0]
        place = key.rpartition(".")[0] or "top level"
        return unknown(place, "key", path[-1], list(model.model_fields))
    if first["type"] == "missing":
        return SpecificationError(f"{key}: is missing; add it.")
    if first["type"] == "too_short":
        return SpecificationError(f"{key}: at least one is needed.")
    wrong = {e["type"] for e in found if _walk(e["loc"], raw, False)[0] == path}
    if wrong & {"int_type", "decimal_type", "finite_number"}:
        expected = 'a number, such as 0.5 or "1/2"'
    else:
        kinds = {
            "string_type": "text",
            "dict_type": "a table",
            "model_type": "a table",
            "list_type": "a list",
        }
        expected = (
            " or ".join(dict.fromkeys(kinds[k] for k in kinds if k in wrong)) or "another kind of value"
        )
    return SpecificationError(f"{key}: expected {expected}, got {kind_of(given)}.")


def _walk(location: Sequence[int | str], raw: Any, is_missing: bool) -> tuple[list[str], Any]:
    """The keys of pydantic's location that the document has (it also names the kinds it tried), and what is there."""
    path: list[str] = []
    for step in location:
        inside = step in raw if isinstance(raw, Mapping) else isinstance(raw, list) and isinstance(step, int)
        if not inside:
            return ([*path, str(step)] if is_missing else path), raw
        raw = raw[step]
        path.append(str(step))
    return path, raw


def _release(told: Any, index: int) -> str:
    """A release by its name, or by its place where it has none."""
    name = told.get("name") if isinstance(told, Mapping) else None
    return f"releases.{name if isinstance(name, str) and name else index + 1}"


def _key(path: list[str], raw: Mapping[str, Any]) -> str:
    """`release.0.query` as `releases.<name>.query`, an item of a list as the list."""
    if path[0] == "release" and len(path) > 1:
        index = int(path[1])
        return ".".join([_release(raw["release"][index], index), *path[2:]])
    return "data.null" if path[:2] == ["data", "null"] else ".".join(path)
